#include "sim/attach/objects.h"

#include <errno.h>
#include <stdlib.h>

#include "models/gpu/gpu.h"
#include "rtl/peach2_regs.h"
#include "sim/attach/internal.h"
#include "sim/platform/gpus.h"

// The most objects of all kinds that a process may have; the limits of an adapter are reached earlier.
enum { OBJECTS_MAX = 65536 };

// Time that devices get to finish the work of a process that has ended, before its memory is used for anything else.
static const uint64_t grace_ps = 10 * SIM_PS_PER_US;

// --- the list --------------------------------------------------------------------------------------------------------

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
        struct attach_object *memory = object_of_serial(process, object->names[i]);
        memory->users--;
        if (memory->users == 0 && memory->leaving) {
            const struct attach_object freed = *memory;
            object_remove(process, memory);
            (void)attach_object_destroy(thread, &freed);
        }
    }
}

// A GPU queue of the process with unfinished work, and its last item; NULL: none.
static const struct attach_object *busy_queue(const struct attach_thread *thread, uint64_t *last_out)
{
    const struct attach_process *process = thread->process;
    for (size_t i = 0; i < process->owns.count; i++) {
        const struct attach_object *object = &process->owns.list[i];
        if (object->kind != OBJECT_GPU_QUEUE || object->leaving) {
            continue;
        }
        const gpu_queue_t *queue = thread->backend.gpus->list[object->gpu]->queues[object->number].queue;
        *last_out = gpu_queue_submitted(queue);
        if (gpu_queue_done(queue) < *last_out) {
            return object;
        }
    }
    return NULL;
}

// Waits for the GPU work of the process, which may copy from or to its host memory.
static void copies_await(struct attach_thread *thread)
{
    uint64_t last;
    const struct attach_object *queue;
    while ((queue = busy_queue(thread, &last)) != NULL) {
        (void)thread->backend.ops.gpu->wait(&thread->backend, queue->gpu, (uint32_t)queue->number, last);
    }
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

static bool is_memory(enum attach_object_kind kind)
{
    return kind == OBJECT_PINNED || kind == OBJECT_GPU_PIN;
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
    if (is_memory(kind)) {
        copies_await(thread);
        object = object_of_serial(process, serial);
        if (object->users > 0) {
            return 0; // attach_memory_unname destroys it
        }
    }
    struct attach_object copy = *object;
    int status = attach_object_destroy(thread, &copy);
    object = object_of_serial(process, serial);
    if (status != 0) {
        object->leaving = false;
        return status;
    }
    object_remove(process, object);
    attach_memory_unname(thread, &copy);
    return 0;
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
                object_remove(process, &process->owns.list[i]);
                (void)attach_object_destroy(thread, &object);
            }
        }
    }
}
