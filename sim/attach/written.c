// What devices write to the memory of programs, and which threads are notified of it.
#include <errno.h>

#include "sim/attach/internal.h"

int attach_ranges_add(struct attach_process *process, struct attach_ranges *ranges, uint64_t bus_address,
                      uint64_t bytes)
{
    if (bytes == 0 || !attach_pinned_owned(process, bus_address, bytes)) {
        return -EINVAL;
    }
    if (ranges->count == ATTACH_RANGES) {
        return -ENOSPC;
    }
    ranges->list[ranges->count].bus_address = bus_address;
    ranges->list[ranges->count++].bytes = bytes;
    return 0;
}

void attach_ranges_remove(struct attach_ranges *ranges, uint64_t bus_address, uint64_t bytes)
{
    unsigned kept = 0;
    for (unsigned i = 0; i < ranges->count; i++) {
        if (ranges->list[i].bus_address - bus_address >= bytes) {
            ranges->list[kept++] = ranges->list[i];
        }
    }
    ranges->count = kept;
}

static bool is_within(const struct attach_ranges *ranges, uint64_t bus_address, uint32_t bytes)
{
    for (unsigned i = 0; i < ranges->count; i++) {
        uint64_t offset = bus_address - ranges->list[i].bus_address;
        if (offset < ranges->list[i].bytes && bytes <= ranges->list[i].bytes - offset) {
            return true;
        }
    }
    return false;
}

static bool is_region(const struct attach_object *object, bool pinned, uint64_t address)
{
    return pinned ? object->kind == OBJECT_PINNED && address - object->bus_address < object->bytes
                  : object->open && address - object->va < object->va_bytes;
}

// Finds pinned memory, or a region of the process's own memory to which others may write without a notification. Writes
// elsewhere in its own memory are reported by completions, so no thread polls for them. NULL: none.
static struct attach_object *region_find(struct attach_process *process, bool pinned, uint64_t address)
{
    size_t last = process->region_last;
    if (last < process->owns.count && is_region(&process->owns.list[last], pinned, address)) {
        return &process->owns.list[last]; // writes come in sequences
    }
    for (size_t i = 0; i < process->owns.count && (pinned || process->open_regions != 0); i++) {
        if (is_region(&process->owns.list[i], pinned, address)) {
            process->region_last = i;
            return &process->owns.list[i];
        }
    }
    return NULL;
}

static void thread_notify(struct attach_thread *thread, const struct poll_write *write)
{
    unsigned waits_for = thread->wait.flags;
    bool waits_for_it =
        (waits_for & ATTACH_WAIT_MEMORY) != 0 && (write->pinned || (waits_for & ATTACH_WAIT_PINNED) == 0);
    bool seen = attach_loop_written(thread, write);
    if ((thread->fast_forwarded && seen) || (!thread->fast_forwarded && waits_for_it && !write->ignored) ||
        ((waits_for & ATTACH_WAIT_EVENTS) != 0 && write->event) ||
        ((waits_for & ATTACH_WAIT_WORK) != 0 && write->work)) {
        sim_condition_signal(thread->process->server->sim, &thread->wait.woken);
    }
}

// region: that of the address; NULL: none.
static void notify(struct attach_process *process, struct poll_write *write, const struct attach_object *region)
{
    struct poll_region named;
    write->work = write->pinned && is_within(&process->writes.event_ranges, write->address, write->bytes);
    write->event = write->work || (write->pinned && write->address >= process->writes.events_from &&
                                   write->address < process->writes.events_to);
    process->writes.all += !write->ignored;
    process->writes.pinned += !write->ignored && write->pinned;
    process->writes.events += write->event;
    process->writes.works += write->work;
    atomic_store_explicit(&process->segment->event_writes, process->writes.works, memory_order_relaxed);
    if (region != NULL) {
        named = (struct poll_region){region->kind, region->number};
        write->region = &named;
        write->unrelated = region->unrelated;
    }
    for (unsigned i = 0; i < process->slots; i++) {
        if (process->threads[i] != NULL) {
            thread_notify(process->threads[i], write);
        }
    }
}

void attach_memory_written(void *ctx, uint64_t bus_address, uint32_t bytes)
{
    struct attach_process *process = ctx;
    struct poll_write write = {.pinned = true,
                               .ignored = is_within(&process->writes.ignored, bus_address, bytes),
                               .address = bus_address,
                               .bytes = bytes};
    notify(process, &write, region_find(process, true, bus_address));
}

void attach_own_memory_written(void *ctx, uint64_t va, uint32_t bytes)
{
    struct attach_process *process = ctx;
    const struct attach_object *region = region_find(process, false, va);
    struct poll_write write = {.ignored = region == NULL, .address = va, .bytes = bytes};
    if (process->server->options->explain) {
        observe_written(process->observed, va, bytes);
    }
    notify(process, &write, region);
}
