// The GPUs' kernel driver as an attached process sees it: each command crosses.
#include <errno.h>
#include <string.h>

#include "verbs-shim/attach/attach_ops.h"
#include "verbs-shim/attach/client.h"

static unsigned count(void *ctx)
{
    (void)ctx;
    return attach_greeting()->gpu_count;
}

static int info(void *ctx, unsigned gpu, struct backend_gpu_info *info_out)
{
    (void)ctx;
    int status = (int)attach_cross1(ATTACH_OP_GPU_INFO, gpu);
    if (status == 0) {
        memcpy(info_out, attach_slot()->structure, sizeof *info_out);
    }
    return status;
}

static int memory_alloc(void *ctx, unsigned gpu, uint64_t bytes, uint64_t *device_address_out)
{
    (void)ctx;
    int status = (int)attach_cross3(ATTACH_OP_GPU_ALLOC, gpu, bytes, 0);
    *device_address_out = status == 0 ? attach_slot()->values[0] : 0;
    return status;
}

static int memory_free(void *ctx, unsigned gpu, uint64_t device_address)
{
    (void)ctx;
    return (int)attach_cross3(ATTACH_OP_GPU_FREE, gpu, device_address, 0);
}

static int pin(void *ctx, unsigned gpu, uint64_t device_address, uint64_t bytes, uint64_t *offset_out,
               uint64_t *bus_address_out)
{
    (void)ctx;
    int status = (int)attach_cross3(ATTACH_OP_GPU_PIN, gpu, device_address, bytes);
    if (status == 0) {
        *offset_out = attach_slot()->values[0];
        *bus_address_out = attach_slot()->values[1];
    }
    return status;
}

static int unpin(void *ctx, unsigned gpu, uint64_t offset)
{
    (void)ctx;
    return (int)attach_cross3(ATTACH_OP_GPU_UNPIN, gpu, offset, 0);
}

static int queue_create(void *ctx, unsigned gpu, uint32_t *queue_out)
{
    (void)ctx;
    int status = (int)attach_cross1(ATTACH_OP_GPU_QUEUE_CREATE, gpu);
    *queue_out = status == 0 ? (uint32_t)attach_slot()->values[0] : 0;
    return status;
}

static int queue_destroy(void *ctx, unsigned gpu, uint32_t queue)
{
    (void)ctx;
    return (int)attach_cross3(ATTACH_OP_GPU_QUEUE_DESTROY, gpu, queue, 0);
}

static int submit(void *ctx, unsigned gpu, uint32_t queue, const struct backend_gpu_work *work, uint64_t *ticket_out)
{
    (void)ctx;
    memcpy(attach_slot()->structure, work, sizeof *work);
    int status = (int)attach_cross3(ATTACH_OP_GPU_SUBMIT, gpu, queue, 0);
    if (status == 0) {
        *ticket_out = attach_slot()->values[0];
    }
    return status;
}

static int poll(void *ctx, unsigned gpu, uint32_t queue, uint64_t ticket, uint64_t *ended_ps_out)
{
    (void)ctx;
    attach_slot()->arguments[3] = ended_ps_out != NULL;
    int status = (int)attach_cross3(ATTACH_OP_GPU_POLL, gpu, queue, ticket);
    if (status == 1 && ended_ps_out != NULL) {
        *ended_ps_out = attach_slot()->values[0];
    }
    return status;
}

static int wait(void *ctx, unsigned gpu, uint32_t queue, uint64_t ticket)
{
    (void)ctx;
    return (int)attach_cross3(ATTACH_OP_GPU_WAIT, gpu, queue, ticket);
}

const struct backend_gpu_ops attach_gpu_ops = {
    .count = count,
    .info = info,
    .alloc = memory_alloc,
    .free = memory_free,
    .pin = pin,
    .unpin = unpin,
    .queue_create = queue_create,
    .queue_destroy = queue_destroy,
    .submit = submit,
    .poll = poll,
    .wait = wait,
};
