// What devices write to the memory of programs: who is told of it.
#include <errno.h>

#include "sim/attach/internal.h"

int attach_ranges_add(struct attach_process *process, struct attach_ranges *ranges, uint64_t bus_address, uint64_t bytes)
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

static bool place_hit(struct attach_thread *thread, uint64_t bus_address, uint32_t bytes)
{
    bool any = false;
    for (unsigned i = 0; i < ATTACH_PLACES; i++) {
        bool hit = thread->places[i] - bus_address < bytes;
        thread->hits[i] += hit;
        any = any || hit;
    }
    return any;
}

static bool word_hit(const struct attach_thread *thread, bool pinned, uint64_t address, uint32_t bytes)
{
    bool hit = false;
    for (unsigned i = 0; i < thread->word_count && !hit; i++) {
        const struct attach_word *word = &thread->words[i];
        hit =
            (word->pinned != 0) == pinned && (word->address - address < bytes || address - word->address < word->bytes);
    }
    return hit;
}

static void written(struct attach_process *process, bool pinned, uint64_t address, uint32_t bytes)
{
    // What arrives where no peer may write at will, a completion tells of: nobody looks for it.
    bool quiet = pinned ? is_within(&process->quiet, address, bytes) : process->open_regions == 0;
    bool event = pinned && ((address >= process->events_from && address < process->events_to) ||
                            is_within(&process->news, address, bytes));
    process->writes += !quiet;
    process->pinned_writes += pinned && !quiet;
    process->event_writes += event;
    for (unsigned i = 0; i < process->slots; i++) {
        struct attach_thread *thread = process->threads[i];
        if (thread == NULL) {
            continue;
        }
        bool word = (pinned && !quiet && thread->words_and_pinned) || word_hit(thread, pinned, address, bytes);
        bool place = pinned && place_hit(thread, address, bytes);
        thread->word_writes += word;
        thread->place_writes += place;
        bool told = thread->waits_for_words ? word : place || (!quiet && !thread->strayed);
        if (((thread->waits_for & ATTACH_WAIT_MEMORY) != 0 && told) ||
            ((thread->waits_for & ATTACH_WAIT_EVENTS) != 0 && event)) {
            thread->strayed = true;
            sim_condition_signal(process->server->sim, &thread->woken);
        }
    }
}

void attach_memory_written(void *ctx, uint64_t bus_address, uint32_t bytes)
{
    written(ctx, true, bus_address, bytes);
}

void attach_own_memory_written(void *ctx, uint64_t va, uint32_t bytes)
{
    written(ctx, false, va, bytes);
}
