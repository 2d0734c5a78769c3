// The GPU driver's requests.
#include <errno.h>
#include <unistd.h>

#include "sim/attach/internal.h"

int64_t attach_serve_gpu_info(struct attach_thread *thread, const struct attach_args_gpu_info *args,
                              struct attach_reply_gpu_info *reply)
{
    return thread->backend.ops.gpu->info(&thread->backend, args->gpu, &reply->info);
}

int64_t attach_serve_gpu_alloc(struct attach_thread *thread, const struct attach_args_gpu_alloc *args,
                               struct attach_reply_gpu_alloc *reply)
{
    int status = thread->backend.ops.gpu->alloc(&thread->backend, args->gpu, args->bytes, &reply->address);
    const struct attach_object object = {.kind = OBJECT_GPU_MEMORY,
                                         .gpu = args->gpu,
                                         .number = reply->address,
                                         .bus_address = reply->address,
                                         .bytes = args->bytes};
    return status != 0 ? status : attach_object_keep(thread, &object);
}

int64_t attach_serve_gpu_free(struct attach_thread *thread, const struct attach_args_gpu_free *args,
                              struct attach_reply_gpu_free *reply)
{
    (void)reply;
    return attach_object_release(thread, OBJECT_GPU_MEMORY, args->gpu, args->address);
}

// The process maps this memory, so that its kernels compute there.
int64_t attach_serve_gpu_share(struct attach_thread *thread, const struct attach_args_gpu_share *args,
                               struct attach_reply_gpu_share *reply)
{
    const struct attach_object *object =
        attach_object_find(thread->process, OBJECT_GPU_MEMORY, args->gpu, args->address);
    (void)reply;
    if (object == NULL) {
        return -EINVAL;
    }
    int fd = attach_sealed_memory(gpu_pages_bytes(object->bytes));
    gpu_t *model = thread->backend.gpus->list[args->gpu]->gpu;
    bool shared =
        fd >= 0 && gpu_memory_share(model, args->address, fd) == SIM_OK && attach_descriptor_send(thread->process, fd);
    if (fd >= 0) {
        close(fd);
    }
    return shared ? 0 : -ENOMEM;
}

int64_t attach_serve_gpu_pin(struct attach_thread *thread, const struct attach_args_gpu_pin *args,
                             struct attach_reply_gpu_pin *reply)
{
    if (args->bytes == 0 || !attach_device_owned(thread->process, args->gpu, args->address, args->bytes)) {
        return -EINVAL;
    }
    int status = thread->backend.ops.gpu->pin(&thread->backend, args->gpu, args->address, args->bytes, &reply->offset,
                                              &reply->bus_address);
    // The window shows whole pages of the device, which all belong to one allocation.
    uint64_t within = reply->offset % GPU_PAGE_BYTES;
    const struct attach_object object = {.kind = OBJECT_GPU_PIN,
                                         .gpu = args->gpu,
                                         .number = reply->offset,
                                         .bus_address = reply->bus_address - within,
                                         .bytes = gpu_pages_bytes(within + args->bytes)};
    return status != 0 ? status : attach_object_keep(thread, &object);
}

int64_t attach_serve_gpu_unpin(struct attach_thread *thread, const struct attach_args_gpu_unpin *args,
                               struct attach_reply_gpu_unpin *reply)
{
    (void)reply;
    return attach_object_release(thread, OBJECT_GPU_PIN, args->gpu, args->offset);
}

int64_t attach_serve_gpu_queue_create(struct attach_thread *thread, const struct attach_args_gpu_queue_create *args,
                                      struct attach_reply_gpu_queue_create *reply)
{
    int status = thread->backend.ops.gpu->queue_create(&thread->backend, args->gpu, &reply->queue);
    const struct attach_object object = {.kind = OBJECT_GPU_QUEUE, .gpu = args->gpu, .number = reply->queue};
    return status != 0 ? status : attach_object_keep(thread, &object);
}

int64_t attach_serve_gpu_queue_destroy(struct attach_thread *thread, const struct attach_args_gpu_queue_destroy *args,
                                       struct attach_reply_gpu_queue_destroy *reply)
{
    (void)reply;
    return attach_object_release(thread, OBJECT_GPU_QUEUE, args->gpu, args->queue);
}

// --- work -----------------------------------------------------------------------------------------------------------

// The bytes from the first to the last row; false: more than 64 bits hold.
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
        !attach_device_owned(process, gpu, work->device_address, device)) {
        return false;
    }
    switch (work->kind) {
    case BACKEND_GPU_TO_DEVICE:
    case BACKEND_GPU_TO_HOST:
        return attach_memory_owned(process, work->other_address, other);
    case BACKEND_GPU_INSIDE:
        return attach_device_owned(process, gpu, work->other_address, other);
    case BACKEND_GPU_TO_PEER:
        return attach_device_owned(process, work->peer, work->other_address, other);
    case BACKEND_GPU_SET:
        return true;
    case BACKEND_GPU_KERNEL:
    case BACKEND_GPU_MARK:
    case BACKEND_GPU_AFTER:
        break;
    }
    return false;
}

// More than any GPU of these years gets in one kernel, and within the range of the model's numbers.
static const uint64_t kernel_max_ns = UINT64_C(1) << 40, kernel_max_bytes = UINT64_C(1) << 44,
                      kernel_max_flops = UINT64_C(1) << 50;

static bool submit_allowed(const struct attach_process *process, uint32_t gpu, const struct backend_gpu_work *work)
{
    switch ((unsigned)work->kind) {
    case BACKEND_GPU_KERNEL:
        return work->duration_ns < kernel_max_ns && work->memory_bytes < kernel_max_bytes &&
               work->flops < kernel_max_flops;
    case BACKEND_GPU_MARK:
        return true;
    case BACKEND_GPU_AFTER:
        return attach_object_find(process, OBJECT_GPU_QUEUE, work->peer, work->queue) != NULL;
    }
    return work_allowed(process, gpu, work);
}

// Names the memory of work that is allowed.
static void memory_name(struct attach_process *process, uint32_t gpu, const struct backend_gpu_work *work,
                        struct attach_object *submission)
{
    uint64_t device = 0, other = 0;
    bool copies = work->kind <= BACKEND_GPU_SET && extent(work->bytes, work->rows, work->device_pitch, &device) &&
                  extent(work->bytes, work->rows, work->other_pitch, &other);
    if (!copies) {
        return;
    }
    (void)attach_device_name(process, submission, gpu, work->device_address, device);
    if (work->kind == BACKEND_GPU_TO_DEVICE || work->kind == BACKEND_GPU_TO_HOST) {
        const struct attach_bus_range range = {work->other_address, other};
        (void)attach_memory_name(process, submission, &range, 1);
    } else if (work->kind == BACKEND_GPU_INSIDE || work->kind == BACKEND_GPU_TO_PEER) {
        uint32_t of = work->kind == BACKEND_GPU_TO_PEER ? work->peer : gpu;
        (void)attach_device_name(process, submission, of, work->other_address, other);
    }
}

int64_t attach_serve_gpu_submit(struct attach_thread *thread, const struct attach_args_gpu_submit *args,
                                struct attach_reply_gpu_submit *reply)
{
    struct backend_gpu_work work = args->work;
    struct attach_object submission = {.kind = OBJECT_KINDS};
    if (!submit_allowed(thread->process, args->gpu, &work) || !attach_effect_set(thread->process, args->gpu, &work)) {
        return -EINVAL;
    }
    memory_name(thread->process, args->gpu, &work, &submission); // it may wait for room in the queue
    int status = thread->backend.ops.gpu->submit(&thread->backend, args->gpu, args->queue, &work, &reply->ticket);
    attach_memory_unname(thread, &submission);
    if (status != 0 && work.effect != NULL) {
        work.effect(work.effect_ctx, NULL);
    }
    return status;
}

int64_t attach_serve_gpu_poll(struct attach_thread *thread, const struct attach_args_gpu_poll *args,
                              struct attach_reply_gpu_poll *reply)
{
    return thread->backend.ops.gpu->poll(&thread->backend, args->gpu, args->queue, args->ticket,
                                         args->timed != 0 ? &reply->ended_ps : NULL);
}

int64_t attach_serve_gpu_wait(struct attach_thread *thread, const struct attach_args_gpu_wait *args,
                              struct attach_reply_gpu_wait *reply)
{
    (void)reply;
    return thread->backend.ops.gpu->wait(&thread->backend, args->gpu, args->queue, args->ticket);
}
