#include "sim/attach/objects.h"

#include <errno.h>
#include <stdlib.h>

#include "models/gpu/gpu.h"
#include "models/hca/abi/hca_abi.h"
#include "rtl/peach2_regs.h"
#include "sim/attach/internal.h"
#include "sim/platform/gpus.h"

// The most objects of all kinds that a process may have; the limits of an adapter are reached earlier.
enum { OBJECTS_MAX = 65536 };

// Time that devices get to finish the work of a process that has ended, before its memory is used for anything else.
static const uint64_t grace_ps = 10 * SIM_PS_PER_US;

unsigned attach_object_waits(enum attach_object_kind kind)
{
    static const unsigned waits_of[OBJECT_KINDS] = {
#define OBJECT(ID, title, by, end, waits) [OBJECT_##ID] = (waits),
#include "sim/attach/objects.def"
#undef OBJECT
    };
    return waits_of[kind];
}

// --- the list --------------------------------------------------------------------------------------------------------

void attach_owned_init(struct attach_owned *owns)
{
    *owns = (struct attach_owned){0};
    sim_condition_init(&owns->ended);
}

void attach_owned_fini(struct attach_owned *owns)
{
    for (size_t i = 0; i < owns->count; i++) {
        free(owns->list[i].pages);
    }
    free(owns->list);
}

int attach_object_add(struct attach_process *process, const struct attach_object *object)
{
    struct attach_owned *owns = &process->owns;
    if (owns->count == OBJECTS_MAX) {
        return -ENOMEM;
    }
    if (owns->count == owns->room) {
        size_t room = owns->room != 0 ? owns->room * 2 : 64;
        struct attach_object *objects = realloc(owns->list, room * sizeof *objects);
        if (objects == NULL) {
            return -ENOMEM;
        }
        owns->list = objects;
        owns->room = room;
    }
    owns->list[owns->count] = *object;
    owns->list[owns->count++].serial = ++owns->serials;
    return 0;
}

static void object_remove(struct attach_process *process, struct attach_object *object)
{
    *object = process->owns.list[--process->owns.count];
    sim_condition_signal(process->server->sim, &process->owns.ended);
}

struct attach_object *attach_object_find(const struct attach_process *process, enum attach_object_kind kind,
                                         uint32_t gpu, uint64_t number)
{
    for (size_t i = 0; i < process->owns.count; i++) {
        struct attach_object *object = &process->owns.list[i];
        if (object->kind == kind && object->gpu == gpu && object->number == number && !object->leaving) {
            return object;
        }
    }
    return NULL;
}

static struct attach_object *object_of_serial(const struct attach_process *process, uint64_t serial)
{
    for (size_t i = 0; i < process->owns.count; i++) {
        if (process->owns.list[i].serial == serial) {
            return &process->owns.list[i];
        }
    }
    return NULL;
}

// --- what is in flight -----------------------------------------------------------------------------------------------

// Waits until the work of a GPU queue that was submitted by now has ended.
static void queue_await(struct attach_thread *thread, uint64_t serial)
{
    struct attach_process *process = thread->process;
    const struct attach_object *object = object_of_serial(process, serial);
    if (!object->leaving) {
        const gpu_queue_t *queue = thread->backend.gpus->list[object->gpu]->queues[object->number].queue;
        const uint64_t last = gpu_queue_submitted(queue);
        if (gpu_queue_done(queue) < last) {
            (void)thread->backend.ops.gpu->wait(&thread->backend, object->gpu, (uint32_t)object->number, last);
        }
        return;
    }
    const struct sim_wait_reason reason = {thread->name, "the end of a GPU queue", 0, 0};
    while (object != NULL && object->leaving) {
        (void)sim_condition_wait(process->server->sim, &process->owns.ended, SIM_NEVER_PS, &reason);
        object = object_of_serial(process, serial);
    }
}

// Waits for the GPU work of the process that may name what is out of reach by now: that of the queues that it has.
static void copies_await(struct attach_thread *thread)
{
    const struct attach_owned *owns = &thread->process->owns;
    const uint64_t newest = owns->serials;
    for (uint64_t done = 0, next; done < newest; done = next) {
        next = newest;
        bool found = false;
        for (size_t i = 0; i < owns->count; i++) {
            const struct attach_object *object = &owns->list[i];
            if (object->kind == OBJECT_GPU_QUEUE && object->serial > done && object->serial <= next) {
                next = object->serial;
                found = true;
            }
        }
        if (found) {
            queue_await(thread, next);
        }
    }
}

static uint64_t bit_of(enum backend_bar bar)
{
    return UINT64_C(1) << bar;
}

// Where stores to the object go: an address that can be read, and all BARs that lead there.
static uint64_t stores_offset(const struct attach_object *object, enum backend_bar *bar_out, uint64_t *bars_out)
{
    *bar_out = object->kind == OBJECT_UAR       ? BACKEND_BAR_HCA_UAR
               : object->kind == OBJECT_GPU_PIN ? (enum backend_bar)(BACKEND_BAR_GPU0 + object->gpu)
                                                : BACKEND_BAR_REGISTERS;
    *bars_out = bit_of(*bar_out) | (object->kind == OBJECT_BOARD ? bit_of(BACKEND_BAR_WINDOW) : 0);
    switch (object->kind) {
    case OBJECT_UAR:
        return object->number * HCA_UAR_BYTES;
    case OBJECT_GPU_PIN:
        return object->number & ~UINT64_C(3);
    default:
        return PEACH2_CHIP_BASE + PEACH2_CHIP_ID;
    }
}

// Waits until the stores that threads of the process have made are at the device. The kernel takes the page from all
// processors of the process (an interrupt, which empties their buffers); a read then pushes what is on the bus (PCI
// Express, clause 2.4.1).
static void stores_await(struct attach_thread *thread, const struct attach_object *object)
{
    struct attach_process *process = thread->process;
    enum backend_bar bar;
    uint64_t bars, offset = stores_offset(object, &bar, &bars), value;
    if ((process->stored_bars & bars) == 0) {
        return;
    }
    process->draining++;
    for (unsigned i = 0; i < ATTACH_SLOTS; i++) {
        if (process->threads[i] != NULL) {
            host_core_drain(process->threads[i]->core);
        }
    }
    process->draining--;
    sim_condition_signal(process->server->sim, &process->owns.ended);
    (void)thread->backend.ops.read(&thread->backend, bar, offset, 4, &value);
}

// Waits for what is in flight to an object that is out of reach, except for what its driver waits for.
static void in_flight_await(struct attach_thread *thread, const struct attach_object *object)
{
    const struct attach_object copy = *object; // the list changes meanwhile
    if ((attach_object_waits(copy.kind) & ATTACH_STORES) != 0) {
        stores_await(thread, &copy);
    }
    if ((attach_object_waits(copy.kind) & ATTACH_COPIES) != 0) {
        copies_await(thread);
    }
}

// --- memory ----------------------------------------------------------------------------------------------------------

static struct attach_object *covering(const struct attach_process *process, enum attach_object_kind kind,
                                      uint64_t bus_address, uint64_t bytes)
{
    for (size_t i = 0; i < process->owns.count; i++) {
        struct attach_object *object = &process->owns.list[i];
        uint64_t offset = bus_address - object->bus_address;
        if (object->kind == kind && !object->leaving && offset < object->bytes && bytes <= object->bytes - offset) {
            return object;
        }
    }
    return NULL;
}

static struct attach_object *memory_of(const struct attach_process *process, uint64_t bus_address, uint64_t bytes)
{
    struct attach_object *pinned = covering(process, OBJECT_PINNED, bus_address, bytes);
    return pinned != NULL ? pinned : covering(process, OBJECT_GPU_PIN, bus_address, bytes);
}

bool attach_pinned_owned(const struct attach_process *process, uint64_t bus_address, uint64_t bytes)
{
    return covering(process, OBJECT_PINNED, bus_address, bytes) != NULL;
}

bool attach_memory_owned(const struct attach_process *process, uint64_t bus_address, uint64_t bytes)
{
    return memory_of(process, bus_address, bytes) != NULL;
}

bool attach_memory_name(struct attach_process *process, struct attach_object *object,
                        const struct attach_bus_range *ranges, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        if (ranges[i].bytes != 0 && !attach_memory_owned(process, ranges[i].bus_address, ranges[i].bytes)) {
            return false;
        }
    }
    for (unsigned i = 0; i < count; i++) {
        if (ranges[i].bytes != 0) {
            struct attach_object *memory = memory_of(process, ranges[i].bus_address, ranges[i].bytes);
            memory->users++;
            object->names[object->name_count++] = memory->serial;
        }
    }
    return true;
}

void attach_memory_unname(struct attach_thread *thread, struct attach_object *object)
{
    struct attach_process *process = thread->process;
    unsigned count = object->name_count;
    object->name_count = 0;
    for (unsigned i = 0; i < count; i++) {
        const uint64_t serial = object->names[i];
        struct attach_object *memory = object_of_serial(process, serial);
        memory->users--;
        sim_condition_signal(process->server->sim, &process->owns.ended);
        if (memory->users == 0 && memory->kept) {
            memory->kept = false; // this thread ends it
            in_flight_await(thread, memory);
            memory = object_of_serial(process, serial);
            const struct attach_object freed = *memory;
            object_remove(process, memory);
            (void)attach_object_destroy(thread, &freed);
        }
    }
}

// The device memory that has the whole range. bus_address of OBJECT_GPU_MEMORY: its device address. An allocation
// consists of whole pages.
static struct attach_object *device_memory_of(const struct attach_process *process, uint32_t gpu, uint64_t address,
                                              uint64_t bytes)
{
    for (size_t i = 0; i < process->owns.count; i++) {
        struct attach_object *memory = &process->owns.list[i];
        uint64_t offset = address - memory->bus_address, whole = gpu_pages_bytes(memory->bytes);
        if (memory->kind == OBJECT_GPU_MEMORY && memory->gpu == gpu && !memory->leaving && offset < whole &&
            bytes <= whole - offset) {
            return memory;
        }
    }
    return NULL;
}

bool attach_device_owned(const struct attach_process *process, uint32_t gpu, uint64_t address, uint64_t bytes)
{
    return device_memory_of(process, gpu, address, bytes) != NULL;
}

bool attach_device_name(struct attach_process *process, struct attach_object *object, uint32_t gpu, uint64_t address,
                        uint64_t bytes)
{
    struct attach_object *memory = device_memory_of(process, gpu, address, bytes);
    if (memory != NULL) {
        memory->users++;
        object->names[object->name_count++] = memory->serial;
    }
    return memory != NULL;
}

// --- the end of an object --------------------------------------------------------------------------------------------

int64_t attach_object_keep(struct attach_thread *thread, const struct attach_object *object)
{
    int status = attach_object_add(thread->process, object);
    if (status != 0) {
        struct attach_object copy = *object;
        (void)attach_object_destroy(thread, object);
        attach_memory_unname(thread, &copy);
    }
    return status;
}

// Waits until no request that takes time names the memory, and for what such requests have begun.
static void submissions_await(struct attach_thread *thread, uint64_t serial)
{
    struct attach_process *process = thread->process;
    const struct sim_wait_reason reason = {thread->name, "the end of a submission", 0, 0};
    while (object_of_serial(process, serial)->users > 0) {
        (void)sim_condition_wait(process->server->sim, &process->owns.ended, SIM_NEVER_PS, &reason);
    }
    in_flight_await(thread, object_of_serial(process, serial));
}

int64_t attach_object_release(struct attach_thread *thread, enum attach_object_kind kind, uint32_t gpu, uint64_t number)
{
    struct attach_process *process = thread->process;
    struct attach_object *object = attach_object_find(process, kind, gpu, number);
    if (object == NULL) {
        return -EINVAL;
    }
    if (kind == OBJECT_GPU_PIN && object->users > 0) {
        return -EBUSY;
    }
    const uint64_t serial = object->serial;
    object->leaving = true;
    in_flight_await(thread, object);
    object = object_of_serial(process, serial);           // it is still there: only this thread ends it
    if (kind == OBJECT_GPU_MEMORY && object->users > 0) { // by submissions that wait for room in their queues
        submissions_await(thread, serial);
        object = object_of_serial(process, serial);
    }
    if (object->users > 0) {
        object->kept = true; // attach_memory_unname destroys it
        return 0;
    }
    struct attach_object copy = *object;
    int status = attach_object_destroy(thread, &copy);
    object = object_of_serial(process, serial);
    if (status != 0) {
        object->leaving = false;
        sim_condition_signal(process->server->sim, &process->owns.ended);
        return status;
    }
    object_remove(process, object);
    attach_memory_unname(thread, &copy);
    return 0;
}

void attach_cores_await(struct attach_thread *thread)
{
    struct attach_process *process = thread->process;
    const struct sim_wait_reason reason = {thread->name, "other threads that wait for its stores", 0, 0};
    while (process->draining > 0) {
        (void)sim_condition_wait(process->server->sim, &process->owns.ended, SIM_NEVER_PS, &reason);
    }
}

void attach_objects_clear(struct attach_thread *thread)
{
    struct attach_process *process = thread->process;
    if (process->server->board_owners[process->node] == process) { // it may have been killed with interrupts enabled
        thread->backend.ops.write(&thread->backend, BACKEND_BAR_REGISTERS,
                                  PEACH2_INTERRUPT_BASE + PEACH2_INTERRUPT_ENABLE, 0, 4);
    }
    for (int kind = 0; kind < OBJECT_KINDS; kind++) {
        if (kind == OBJECT_GPU_PIN) {
            sim_thread_sleep(process->server->sim, grace_ps);
        }
        for (size_t i = process->owns.count; i-- > 0;) {
            if (process->owns.list[i].kind == (enum attach_object_kind)kind) {
                const struct attach_object object = process->owns.list[i];
                in_flight_await(thread, &object);
                object_remove(process, &process->owns.list[i]);
                (void)attach_object_destroy(thread, &object);
            }
        }
    }
}
