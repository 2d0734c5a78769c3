// The GPUs' driver, for programs.
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "sim/attach/internal.h"

static int64_t info(struct attach_thread *thread, uint32_t gpu)
{
    struct backend_gpu_info info;
    int status = thread->backend.ops.gpu->info(&thread->backend, gpu, &info);
    if (status == 0) {
        memcpy(thread->slot->structure, &info, sizeof info);
    }
    return status;
}

static int64_t memory_alloc(struct attach_thread *thread, uint32_t gpu, uint64_t bytes)
{
    uint64_t address = 0;
    int status = thread->backend.ops.gpu->alloc(&thread->backend, gpu, bytes, &address);
    thread->slot->values[0] = address;
    const struct attach_object object = {
        .kind = OBJECT_GPU_MEMORY, .gpu = gpu, .number = address, .bus_address = address, .bytes = bytes};
    return status != 0 ? status : attach_object_keep(thread, &object);
}

// The process maps what it was given, so that its kernels compute there.
static int64_t memory_share(struct attach_thread *thread, uint32_t gpu, uint64_t address)
{
    const struct attach_object *object = attach_object_find(thread->process, OBJECT_GPU_MEMORY, gpu, address);
    if (object == NULL) {
        return -EINVAL;
    }
    int fd = attach_sealed_memory(gpu_pages_bytes(object->bytes));
    gpu_t *model = thread->backend.gpus->list[gpu].gpu;
    bool shared =
        fd >= 0 && gpu_memory_share(model, address, fd) == SIM_OK && attach_descriptor_send(thread->process, fd);
    if (fd >= 0) {
        close(fd);
    }
    return shared ? 0 : -ENOMEM;
}

// Device memory of other processes is not there; an allocation has whole pages. bus_address of OBJECT_GPU_MEMORY: its
// device address.
static bool device_range_owned(const struct attach_process *process, uint32_t gpu, uint64_t address, uint64_t bytes)
{
    for (size_t i = 0; i < process->object_count; i++) {
        const struct attach_object *object = &process->objects[i];
        uint64_t offset = address - object->bus_address, whole = gpu_pages_bytes(object->bytes);
        if (object->kind == OBJECT_GPU_MEMORY && object->gpu == gpu && offset < whole && bytes <= whole - offset) {
            return true;
        }
    }
    return false;
}

static int64_t pin(struct attach_thread *thread, uint32_t gpu, uint64_t address, uint64_t bytes)
{
    uint64_t offset = 0, bus_address = 0;
    if (bytes == 0 || !device_range_owned(thread->process, gpu, address, bytes)) {
        return -EINVAL;
    }
    int status = thread->backend.ops.gpu->pin(&thread->backend, gpu, address, bytes, &offset, &bus_address);
    thread->slot->values[0] = offset;
    thread->slot->values[1] = bus_address;
    // Whole pages of the device are in the window, as they are those of one allocation.
    uint64_t within = offset % GPU_PAGE_BYTES;
    const struct attach_object object = {.kind = OBJECT_GPU_PIN,
                                         .gpu = gpu,
                                         .number = offset,
                                         .bus_address = bus_address - within,
                                         .bytes = gpu_pages_bytes(within + bytes)};
    return status != 0 ? status : attach_object_keep(thread, &object);
}

static int64_t queue_create(struct attach_thread *thread, uint32_t gpu)
{
    uint32_t queue = 0;
    int status = thread->backend.ops.gpu->queue_create(&thread->backend, gpu, &queue);
    thread->slot->values[0] = queue;
    const struct attach_object object = {.kind = OBJECT_GPU_QUEUE, .gpu = gpu, .number = queue};
    return status != 0 ? status : attach_object_keep(thread, &object);
}

// --- work -----------------------------------------------------------------------------------------------------------

// All rows; false: their end lies beyond what 64 bits hold.
static bool extent(uint64_t bytes, uint64_t rows, uint64_t pitch, uint64_t *extent_out)
{
    uint64_t before;
    return rows != 0 && !__builtin_mul_overflow(rows - 1, rows > 1 ? pitch : 0, &before) &&
           !__builtin_add_overflow(before, bytes, extent_out);
}

static bool work_allowed(const struct attach_process *process, uint32_t gpu, const struct backend_gpu_work *work)
{
    uint64_t device, other;
    if (!extent(work->bytes, work->rows, work->device_pitch, &device) ||
        !extent(work->bytes, work->rows, work->other_pitch, &other) || work->rows > 1u << 20 ||
        !device_range_owned(process, gpu, work->device_address, device)) {
        return false;
    }
    switch (work->kind) {
    case BACKEND_GPU_TO_DEVICE:
    case BACKEND_GPU_TO_HOST:
        return attach_memory_owned(process, work->other_address, other);
    case BACKEND_GPU_INSIDE:
        return device_range_owned(process, gpu, work->other_address, other);
    case BACKEND_GPU_TO_PEER:
        return device_range_owned(process, work->peer, work->other_address, other);
    case BACKEND_GPU_SET:
        return true;
    case BACKEND_GPU_KERNEL:
    case BACKEND_GPU_MARK:
    case BACKEND_GPU_AFTER:
        break;
    }
    return false;
}

// What no GPU of these years is given at once, and what the model's numbers hold.
static const uint64_t kernel_max_ns = UINT64_C(1) << 40, kernel_max_bytes = UINT64_C(1) << 44,
                      kernel_max_flops = UINT64_C(1) << 50;

static int64_t submit(struct attach_thread *thread, uint32_t gpu, uint32_t queue, const void *structure)
{
    struct backend_gpu_work work;
    uint64_t ticket = 0;
    memcpy(&work, structure, sizeof work);
    bool allowed = false;
    if ((unsigned)work.kind == BACKEND_GPU_KERNEL) {
        allowed =
            work.duration_ns < kernel_max_ns && work.memory_bytes < kernel_max_bytes && work.flops < kernel_max_flops;
    } else if ((unsigned)work.kind == BACKEND_GPU_MARK) {
        allowed = true;
    } else if ((unsigned)work.kind == BACKEND_GPU_AFTER) {
        allowed = attach_object_find(thread->process, OBJECT_GPU_QUEUE, work.peer, work.queue) != NULL;
    } else if ((unsigned)work.kind < BACKEND_GPU_AFTER) {
        allowed = work_allowed(thread->process, gpu, &work);
    }
    if (!allowed) {
        return -EINVAL;
    }
    if (!attach_effect_set(thread->process, gpu, &work)) {
        return -EINVAL;
    }
    int status = thread->backend.ops.gpu->submit(&thread->backend, gpu, queue, &work, &ticket);
    if (status != 0 && work.effect != NULL) {
        work.effect(work.effect_ctx, NULL);
    }
    thread->slot->values[0] = ticket;
    return status;
}

static int64_t poll_ticket(struct attach_thread *thread, const struct attach_request *request)
{
    uint64_t ended_ps = 0, *wanted = request->arguments[3] != 0 ? &ended_ps : NULL;
    int status = thread->backend.ops.gpu->poll(&thread->backend, (uint32_t)request->arguments[0],
                                               (uint32_t)request->arguments[1], request->arguments[2], wanted);
    thread->slot->values[0] = ended_ps;
    return status;
}

int64_t attach_request_gpu(struct attach_thread *thread, const struct attach_request *request)
{
    const uint64_t *arguments = request->arguments;
    const struct backend_gpu_ops *ops = thread->backend.ops.gpu;
    if (arguments[0] >= ops->count(&thread->backend)) {
        return -ENODEV;
    }
    uint32_t gpu = (uint32_t)arguments[0], queue = (uint32_t)arguments[1];
    bool has_queue =
        arguments[1] <= UINT32_MAX && attach_object_find(thread->process, OBJECT_GPU_QUEUE, gpu, queue) != NULL;
    switch (request->op) {
    case ATTACH_OP_GPU_INFO:
        return info(thread, gpu);
    case ATTACH_OP_GPU_ALLOC:
        return memory_alloc(thread, gpu, arguments[1]);
    case ATTACH_OP_GPU_FREE:
        return attach_object_release(thread, OBJECT_GPU_MEMORY, gpu, arguments[1]);
    case ATTACH_OP_GPU_SHARE:
        return memory_share(thread, gpu, arguments[1]);
    case ATTACH_OP_GPU_PIN:
        return pin(thread, gpu, arguments[1], arguments[2]);
    case ATTACH_OP_GPU_UNPIN:
        return attach_object_release(thread, OBJECT_GPU_PIN, gpu, arguments[1]);
    case ATTACH_OP_GPU_QUEUE_CREATE:
        return queue_create(thread, gpu);
    case ATTACH_OP_GPU_QUEUE_DESTROY:
        return attach_object_release(thread, OBJECT_GPU_QUEUE, gpu, arguments[1]);
    case ATTACH_OP_GPU_SUBMIT:
        return has_queue ? submit(thread, gpu, queue, request->structure) : -EINVAL;
    case ATTACH_OP_GPU_POLL:
        return has_queue ? poll_ticket(thread, request) : -EINVAL;
    case ATTACH_OP_GPU_WAIT:
        return has_queue ? ops->wait(&thread->backend, gpu, queue, arguments[2]) : -EINVAL;
    }
    return -ENOSYS;
}
