// GPUs for programs that run as threads of the simulation: calls of the driver become calls of the model.
#include "sim/platform/backend_gpu.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "sim/kernel/cause.h"
#include "sim/platform/backend_inproc.h"
#include "sim/platform/gpu_window.h"

static const struct sim_work look = {"polling", "the look that sees it", false};

#define PAGE_MASK (GPU_PAGE_BYTES - 1)

static int error_of(enum sim_status status)
{
    switch (status) {
    case SIM_OK:
        return 0;
    case SIM_ERR_NO_MEMORY:
        return -ENOMEM;
    case SIM_ERR_BUSY:
        return -EBUSY;
    case SIM_ERR_FAULT:
    case SIM_ERR_IO:
    case SIM_ERR_TIMEOUT:
        return -EIO;
    case SIM_ERR_INVALID:
    case SIM_ERR_NOT_FOUND:
    case SIM_ERR_EXISTS:
    case SIM_ERR_RANGE:
    case SIM_ERR_UNSUPPORTED:
        break;
    }
    return -EINVAL;
}

static struct plat_gpu *gpu_of(void *ctx, unsigned gpu)
{
    const struct plat_backend_inproc *b = ctx;
    return b->gpus != NULL && gpu < b->gpus->count ? b->gpus->list[gpu] : NULL;
}

static unsigned gpu_count(void *ctx)
{
    const struct plat_backend_inproc *b = ctx;
    return b->gpus != NULL ? b->gpus->count : 0;
}

static int gpu_info(void *ctx, unsigned number, struct backend_gpu_info *info_out)
{
    const struct plat_gpu *gpu = gpu_of(ctx, number);
    if (gpu == NULL) {
        return -ENODEV;
    }
    const struct scn_gpu *config = gpu->config;
    *info_out = (struct backend_gpu_info){
        .memory_bytes = config->memory_bytes,
        .memory_free_bytes = gpu_memory_free_bytes(gpu->gpu),
        .bar_bytes = config->bar_bytes,
        .pci_bus = 2 + number,
        .socket = config->socket,
        .copy_engines = config->copy_engines,
        .copy_call_ns = config->copy_call_ps / SIM_PS_PER_NS,
        .submit_call_ns = config->submit_call_ps / SIM_PS_PER_NS,
        .manage_call_ns = config->manage_call_ps / SIM_PS_PER_NS,
        .staging_bytes = config->staging_bytes,
    };
    snprintf(info_out->name, sizeof info_out->name, "%s", config->model);
    return 0;
}

// --- memory --------------------------------------------------------------------------------------------------------

static int memory_alloc(void *ctx, unsigned number, uint64_t bytes, uint64_t *device_address_out)
{
    struct plat_gpu *gpu = gpu_of(ctx, number);
    return gpu != NULL ? error_of(gpu_memory_alloc(gpu->gpu, bytes, device_address_out)) : -ENODEV;
}

static int memory_free(void *ctx, unsigned number, uint64_t device_address)
{
    struct plat_gpu *gpu = gpu_of(ctx, number);
    if (gpu == NULL) {
        return -ENODEV;
    }
    plat_gpu_windows_close(gpu, device_address);
    return error_of(gpu_memory_free(gpu->gpu, device_address));
}

static int window_error(enum sim_status status)
{
    return status == SIM_ERR_NO_MEMORY ? -ENOSPC : error_of(status);
}

// Pins the whole pages that contain the range; the offset is that of its first byte.
static int range_pin(struct plat_gpu *gpu, uint64_t device_address, uint64_t bytes, uint64_t *offset_out)
{
    uint64_t within = device_address & PAGE_MASK;
    if (bytes == 0 || bytes > UINT64_MAX - within) {
        return -EINVAL;
    }
    enum sim_status status = gpu_pin(gpu->gpu, device_address - within, bytes + within, offset_out);
    if (status == SIM_ERR_NO_MEMORY) { // closing the windows that the driver keeps open makes room
        plat_gpu_windows_close_all(gpu);
        status = gpu_pin(gpu->gpu, device_address - within, bytes + within, offset_out);
    }
    *offset_out += within;
    return window_error(status);
}

static int memory_pin(void *ctx, unsigned number, uint64_t device_address, uint64_t bytes, uint64_t *offset_out,
                      uint64_t *bus_address_out)
{
    struct plat_gpu *gpu = gpu_of(ctx, number);
    uint64_t offset = 0;
    int error = gpu != NULL ? range_pin(gpu, device_address, bytes, &offset) : -ENODEV;
    if (error == 0) {
        *offset_out = offset;
        *bus_address_out = gpu_bar_base(gpu->gpu) + offset;
    }
    return error;
}

static int memory_unpin(void *ctx, unsigned number, uint64_t offset)
{
    struct plat_gpu *gpu = gpu_of(ctx, number);
    return gpu != NULL ? error_of(gpu_unpin(gpu->gpu, offset & ~PAGE_MASK)) : -ENODEV;
}

// --- queues --------------------------------------------------------------------------------------------------------

static struct plat_gpu_queue *queue_of(void *ctx, unsigned number, uint32_t queue)
{
    struct plat_gpu *gpu = gpu_of(ctx, number);
    bool known = gpu != NULL && queue < PLAT_GPU_QUEUES_MAX && gpu->queues[queue].queue != NULL &&
                 !gpu->queues[queue].ending;
    return known ? &gpu->queues[queue] : NULL;
}

// The same for a call in which time passes: the queue stays until queue_leave. ticket: of the queue, or 0. NULL: there
// is no such queue, or no such ticket.
static struct plat_gpu_queue *queue_enter(void *ctx, unsigned number, uint32_t queue_number, uint64_t ticket)
{
    struct plat_gpu_queue *queue = queue_of(ctx, number, queue_number);
    if (queue == NULL || ticket > gpu_queue_submitted(queue->queue)) {
        return NULL;
    }
    queue->users++;
    return queue;
}

static int queue_leave(struct plat_gpu_queue *queue, int error)
{
    queue->users--;
    if (queue->ending && queue->users == 0) {
        sim_condition_signal(queue->sim, &queue->ended);
    }
    return error;
}

static int queue_create(void *ctx, unsigned number, uint32_t *queue_out)
{
    struct plat_gpu *gpu = gpu_of(ctx, number);
    for (uint32_t i = 0; gpu != NULL && i < PLAT_GPU_QUEUES_MAX; i++) {
        if (gpu->queues[i].queue == NULL) {
            int error = error_of(gpu_queue_create(gpu->gpu, &gpu->queues[i].queue));
            *queue_out = i;
            return error;
        }
    }
    return gpu == NULL ? -ENODEV : -ENOMEM;
}

static void ticket_await(struct plat_gpu_queue *queue, uint64_t ticket)
{
    const struct sim_wait_reason reason = {queue->gpu_name, "item %llu of queue %llu to end", ticket, queue->number};
    while (gpu_queue_done(queue->queue) < ticket) {
        (void)sim_condition_wait(queue->sim, &queue->ended, SIM_NEVER_PS, &reason);
    }
}

static int queue_wait(void *ctx, unsigned number, uint32_t queue_number, uint64_t ticket)
{
    const struct plat_backend_inproc *b = ctx;
    struct plat_gpu_queue *queue = queue_enter(ctx, number, queue_number, ticket);
    if (queue == NULL) {
        return -EINVAL;
    }
    ticket_await(queue, ticket);
    host_core_spend(b->core, host_core_config(b->core)->poll_ps, &look);
    return queue_leave(queue, queue->failed != 0 && queue->failed <= ticket ? -EIO : 0);
}

// Waits for the work of the queue and for the calls of other threads that name it.
static int queue_destroy(void *ctx, unsigned number, uint32_t queue_number)
{
    const struct plat_backend_inproc *b = ctx;
    struct plat_gpu_queue *queue = queue_of(ctx, number, queue_number);
    if (queue == NULL) {
        return -EINVAL;
    }
    queue->ending = true;
    ticket_await(queue, gpu_queue_submitted(queue->queue));
    host_core_spend(b->core, host_core_config(b->core)->poll_ps, &look);
    const struct sim_wait_reason reason = {queue->gpu_name, "%llu threads that wait for queue %llu", queue->users,
                                           queue_number};
    while (queue->users > 0) {
        (void)sim_condition_wait(queue->sim, &queue->ended, SIM_NEVER_PS, &reason);
    }
    int error = error_of(gpu_queue_destroy(queue->queue));
    queue->ending = false;
    if (error == 0) {
        plat_gpu_queue_clear(queue);
    }
    return error;
}

// Items of a queue end in the order in which they were submitted.
static void item_done(void *ctx, enum sim_status status)
{
    struct plat_gpu_item *item = ctx;
    struct plat_gpu_queue *queue = item->queue;
    queue->pending = item->next;
    if (status != SIM_OK && queue->failed == 0) {
        queue->failed = item->number;
    }
    if (item->window != NULL) {
        plat_gpu_window_give(item->window);
    }
    if (item->is_mark) {
        item->ended_ps = sim_now_ps(queue->sim);
        item->next = queue->marks;
        queue->marks = item;
    } else {
        free(item);
    }
    sim_condition_signal(queue->sim, &queue->ended);
}

static void *effect_memory(void *ctx, uint64_t device_address, uint64_t bytes)
{
    return gpu_memory_at(ctx, device_address, bytes);
}

static void item_effect(void *ctx)
{
    struct plat_gpu_item *item = ctx;
    const struct backend_gpu_memory memory = {effect_memory, item->gpu};
    void (*effect)(void *, const struct backend_gpu_memory *) = item->effect;
    item->effect = NULL;
    effect(item->effect_ctx, &memory);
}

// A queue holds so many items; whoever submits more waits until one has ended, as for a full ring of a real GPU.
#define QUEUE_ITEMS_MAX 16384u

static void room_await(struct plat_gpu_queue *queue)
{
    uint64_t submitted = gpu_queue_submitted(queue->queue);
    if (submitted >= QUEUE_ITEMS_MAX) {
        ticket_await(queue, submitted - QUEUE_ITEMS_MAX + 1);
    }
}

// effect: the work whose effect the item has; NULL: none.
static int item_submit(struct plat_gpu_queue *queue, struct gpu_work *work, struct plat_gpu_window *window,
                       const struct plat_gpu_item *effect, uint64_t *ticket_out)
{
    struct plat_gpu_item *item = calloc(1, sizeof *item);
    if (item == NULL) {
        return -ENOMEM;
    }
    *item = (struct plat_gpu_item){.queue = queue,
                                   .number = gpu_queue_submitted(queue->queue) + 1,
                                   .is_mark = work->kind == GPU_WORK_MARK,
                                   .window = window};
    if (effect != NULL && effect->effect != NULL) {
        item->effect = effect->effect;
        item->effect_ctx = effect->effect_ctx;
        item->gpu = effect->gpu;
        work->effect = item_effect;
        work->effect_ctx = item;
    }
    work->done = item_done;
    work->ctx = item;
    int error = error_of(gpu_queue_submit(queue->queue, work, ticket_out));
    if (error != 0) {
        free(item);
        return error;
    }
    if (queue->pending == NULL) {
        queue->pending = item;
    } else {
        queue->pending_last->next = item;
    }
    queue->pending_last = item;
    return 0;
}

// --- work ----------------------------------------------------------------------------------------------------------

static int row_submit(struct plat_gpu_queue *queue, const struct backend_gpu_work *work, uint64_t row,
                      struct plat_gpu *peer, uint64_t *ticket_out)
{
    uint64_t device = work->device_address + row * work->device_pitch;
    uint64_t other = work->other_address + row * work->other_pitch;
    uint64_t offset = 0;
    struct plat_gpu_window *window = NULL;
    struct gpu_work item = {.bytes = work->bytes, .fill = work->value};
    int error = 0;
    switch (work->kind) {
    case BACKEND_GPU_TO_DEVICE:
        item.kind = GPU_WORK_COPY_IN;
        item.bus_address = other;
        item.destination = device;
        break;
    case BACKEND_GPU_TO_HOST:
        item.kind = GPU_WORK_COPY_OUT;
        item.source = device;
        item.bus_address = other;
        break;
    case BACKEND_GPU_TO_PEER:
        error = window_error(plat_gpu_window_take(peer, other, work->bytes, &window, &offset));
        item.kind = GPU_WORK_COPY_OUT;
        item.source = device;
        item.bus_address = gpu_bar_base(peer->gpu) + offset;
        break;
    case BACKEND_GPU_INSIDE:
        item.kind = GPU_WORK_COPY;
        item.source = device;
        item.destination = other;
        break;
    case BACKEND_GPU_SET:
        item.kind = GPU_WORK_FILL;
        item.destination = device;
        break;
    case BACKEND_GPU_KERNEL:
    case BACKEND_GPU_MARK:
    case BACKEND_GPU_AFTER:
        return -EINVAL;
    }
    if (error != 0) {
        return error;
    }
    error = item_submit(queue, &item, window, NULL, ticket_out);
    if (error != 0 && window != NULL) {
        plat_gpu_window_give(window);
    }
    return error;
}

// Submits work that moves bytes.
static int rows_submit(void *ctx, struct plat_gpu_queue *queue, const struct backend_gpu_work *work,
                       uint64_t *ticket_out)
{
    struct plat_gpu *peer = work->kind == BACKEND_GPU_TO_PEER ? gpu_of(ctx, work->peer) : NULL;
    if (work->rows == 0 || work->bytes == 0 || (work->kind == BACKEND_GPU_TO_PEER && peer == NULL)) {
        return -EINVAL;
    }
    int error = 0;
    for (uint64_t row = 0; row < work->rows && error == 0; row++) {
        room_await(queue);
        error = row_submit(queue, work, row, peer, ticket_out);
    }
    return error;
}

static int work_submit(void *ctx, unsigned number, struct plat_gpu_queue *queue, const struct backend_gpu_work *work,
                       uint64_t *ticket_out)
{
    struct plat_gpu_queue *other = NULL;
    struct gpu_work item = {0};
    struct plat_gpu_item effect = {0};
    room_await(queue); // before another queue is looked up: time may pass
    switch (work->kind) {
    case BACKEND_GPU_TO_DEVICE:
    case BACKEND_GPU_TO_HOST:
    case BACKEND_GPU_INSIDE:
    case BACKEND_GPU_TO_PEER:
    case BACKEND_GPU_SET:
        return rows_submit(ctx, queue, work, ticket_out);
    case BACKEND_GPU_KERNEL:
        item.kind = GPU_WORK_KERNEL;
        item.duration_ps = work->duration_ns * SIM_PS_PER_NS;
        item.bytes = work->memory_bytes;
        item.flops = work->flops;
        effect = (struct plat_gpu_item){
            .effect = work->effect, .effect_ctx = work->effect_ctx, .gpu = gpu_of(ctx, number)->gpu};
        break;
    case BACKEND_GPU_MARK:
        item.kind = GPU_WORK_MARK;
        break;
    case BACKEND_GPU_AFTER:
        other = queue_of(ctx, work->peer, work->queue);
        if (other == NULL) {
            return -EINVAL;
        }
        item.kind = GPU_WORK_WAIT;
        item.queue = other->queue;
        item.item = work->ticket;
        break;
    }
    return item_submit(queue, &item, NULL, &effect, ticket_out);
}

static int submit(void *ctx, unsigned number, uint32_t queue_number, const struct backend_gpu_work *work,
                  uint64_t *ticket_out)
{
    struct plat_gpu_queue *queue = queue_enter(ctx, number, queue_number, 0);
    return queue != NULL ? queue_leave(queue, work_submit(ctx, number, queue, work, ticket_out)) : -EINVAL;
}

static int ticket_state(const struct plat_gpu_queue *queue, uint64_t ticket, uint64_t *ended_ps_out)
{
    if (gpu_queue_done(queue->queue) < ticket) {
        return 0;
    }
    if (queue->failed != 0 && queue->failed <= ticket) {
        return -EIO;
    }
    const struct plat_gpu_item *mark = queue->marks;
    while (mark != NULL && mark->number != ticket) {
        mark = mark->next;
    }
    if (ended_ps_out != NULL) {
        *ended_ps_out = mark != NULL ? mark->ended_ps : 0;
    }
    return ended_ps_out != NULL && mark == NULL ? -EINVAL : 1;
}

static int poll(void *ctx, unsigned number, uint32_t queue_number, uint64_t ticket, uint64_t *ended_ps_out)
{
    const struct plat_backend_inproc *b = ctx;
    struct plat_gpu_queue *queue = queue_enter(ctx, number, queue_number, ticket);
    if (queue == NULL) {
        return -EINVAL;
    }
    host_core_spend(b->core, host_core_config(b->core)->load_ps, &look);
    return queue_leave(queue, ticket_state(queue, ticket, ended_ps_out));
}

const struct backend_gpu_ops plat_backend_gpu_ops = {
    .count = gpu_count,
    .info = gpu_info,
    .alloc = memory_alloc,
    .free = memory_free,
    .pin = memory_pin,
    .unpin = memory_unpin,
    .queue_create = queue_create,
    .queue_destroy = queue_destroy,
    .submit = submit,
    .poll = poll,
    .wait = queue_wait,
};
