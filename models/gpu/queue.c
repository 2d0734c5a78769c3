// Work queues: items one after the other, marks, and waits for items of other queues.
#include <stdlib.h>

#include "models/gpu/internal.h"

static void queue_event_run(void *ctx);

enum sim_status gpu_queue_create(gpu_t *gpu, gpu_queue_t **queue_out)
{
    gpu_queue_t *queue = calloc(1, sizeof *queue);
    if (queue == NULL) {
        return SIM_ERR_NO_MEMORY;
    }
    queue->gpu = gpu;
    queue->items_end = &queue->items;
    queue->next = gpu->queues;
    gpu->queues = queue;
    sim_event_init(&queue->event, queue_event_run, queue);
    *queue_out = queue;
    return SIM_OK;
}

static void item_free(struct gpu_item *item)
{
    for (unsigned i = 0; i < 2; i++) {
        if (item->uses[i] != NULL) {
            item->uses[i]->uses--;
        }
    }
    free(item);
}

// Removes an item whose queue is destroyed from the waiters of the other queue.
static void wait_forget(struct gpu_item *item)
{
    struct gpu_item **link = &item->work.queue->waiters;
    while (*link != item) {
        link = &(*link)->next_unit;
    }
    *link = item->next_unit;
}

void gpu_queue_fini(gpu_queue_t *queue)
{
    for (; queue->waiters != NULL; queue->waiters = queue->waiters->next_unit) {
        queue->waiters->work.queue = NULL;
    }
    gpu_queue_t **link = &queue->gpu->queues;
    while (*link != queue) {
        link = &(*link)->next;
    }
    *link = queue->next;
    while (queue->items != NULL) {
        struct gpu_item *item = queue->items;
        queue->items = item->next;
        if (item->work.kind == GPU_WORK_WAIT && item->work.queue != NULL) {
            wait_forget(item);
        }
        item_free(item);
    }
    sim_event_cancel(queue->gpu->sim, &queue->event);
    free(queue);
}

enum sim_status gpu_queue_destroy(gpu_queue_t *queue)
{
    if (queue->items != NULL || queue->reporting) {
        return SIM_ERR_BUSY;
    }
    gpu_queue_fini(queue);
    return SIM_OK;
}

uint64_t gpu_queue_submitted(const gpu_queue_t *queue)
{
    return queue->submitted;
}

uint64_t gpu_queue_done(const gpu_queue_t *queue)
{
    return queue->done;
}

// --- submission ------------------------------------------------------------------------------------------------------

static bool uses_find(const gpu_t *gpu, const struct gpu_work *work, struct gpu_item *item)
{
    bool reads = work->kind == GPU_WORK_COPY_OUT || work->kind == GPU_WORK_COPY;
    bool writes = work->kind == GPU_WORK_COPY_IN || work->kind == GPU_WORK_COPY || work->kind == GPU_WORK_FILL;
    item->uses[0] = reads ? gpu_memory_holder(gpu, work->source, work->bytes) : NULL;
    item->uses[1] = writes ? gpu_memory_holder(gpu, work->destination, work->bytes) : NULL;
    return reads == (item->uses[0] != NULL) && writes == (item->uses[1] != NULL);
}

static bool is_valid(const gpu_queue_t *queue, const struct gpu_work *work)
{
    switch (work->kind) {
    case GPU_WORK_COPY_IN:
    case GPU_WORK_COPY_OUT:
        return work->bytes > 0 && queue->gpu->end != NULL && work->bus_address <= UINT64_MAX - work->bytes;
    case GPU_WORK_COPY:
    case GPU_WORK_FILL:
        return work->bytes > 0;
    case GPU_WORK_KERNEL:
    case GPU_WORK_MARK:
        return true;
    case GPU_WORK_WAIT:
        return work->queue != NULL && work->item <= work->queue->submitted;
    }
    return false;
}

enum sim_status gpu_queue_submit(gpu_queue_t *queue, const struct gpu_work *work, uint64_t *item_out)
{
    if (!is_valid(queue, work)) {
        return SIM_ERR_INVALID;
    }
    struct gpu_item found = {0};
    if (!uses_find(queue->gpu, work, &found)) {
        return SIM_ERR_RANGE;
    }
    struct gpu_item *item = malloc(sizeof *item);
    if (item == NULL) {
        return SIM_ERR_NO_MEMORY;
    }
    *item = found;
    item->work = *work;
    item->queue = queue;
    item->number = ++queue->submitted;
    for (unsigned i = 0; i < 2; i++) {
        if (item->uses[i] != NULL) {
            item->uses[i]->uses++;
        }
    }
    if (work->kind == GPU_WORK_WAIT && work->queue->done < work->item) {
        item->next_unit = work->queue->waiters; // that queue has unfinished items, so it cannot be destroyed before
        work->queue->waiters = item;
    } else if (work->kind == GPU_WORK_WAIT) {
        item->work.queue = NULL; // nothing to wait for
    }
    *queue->items_end = item;
    queue->items_end = &item->next;
    if (queue->items == item && !queue->reporting) {
        sim_event_schedule(queue->gpu->sim, &queue->event, 0);
    }
    if (item_out != NULL) {
        *item_out = item->number;
    }
    return SIM_OK;
}

// --- progress --------------------------------------------------------------------------------------------------------

// Wakes the items that wait for what is done now.
static void waiters_wake(gpu_queue_t *queue)
{
    struct gpu_item **link = &queue->waiters;
    while (*link != NULL) {
        struct gpu_item *item = *link;
        if (item->work.item > queue->done) {
            link = &item->next_unit;
            continue;
        }
        *link = item->next_unit;
        item->work.queue = NULL;
        if (item->queue->items == item) {
            sim_event_schedule(item->queue->gpu->sim, &item->queue->event, 0);
        }
    }
}

void gpu_item_done(struct gpu_item *item, enum sim_status status)
{
    gpu_queue_t *queue = item->queue;
    gpu_t *gpu = queue->gpu;
    gpu->counters[GPU_WORK_ITEMS]++;
    gpu->counters[GPU_WORK_FAULTS] += status != SIM_OK;
    queue->items = item->next;
    if (queue->items == NULL) {
        queue->items_end = &queue->items;
    }
    queue->done = item->number;
    struct gpu_work work = item->work;
    item_free(item);
    sim_progress(gpu->sim);
    if (work.done != NULL) {
        queue->reporting = true;
        work.done(work.ctx, status);
        queue->reporting = false;
    }
    waiters_wake(queue);
    if (queue->items != NULL) {
        sim_event_schedule(gpu->sim, &queue->event, 0);
    }
}

static void queue_event_run(void *ctx)
{
    gpu_queue_t *queue = ctx;
    struct gpu_item *item = queue->items;
    if (item == NULL || item->started) {
        return;
    }
    switch (item->work.kind) {
    case GPU_WORK_COPY_IN:
    case GPU_WORK_COPY_OUT:
    case GPU_WORK_COPY:
    case GPU_WORK_FILL:
    case GPU_WORK_KERNEL:
        item->started = true;
        gpu_unit_submit(queue->gpu, item);
        break;
    case GPU_WORK_MARK:
        gpu_item_done(item, SIM_OK);
        break;
    case GPU_WORK_WAIT:
        if (item->work.queue == NULL) {
            gpu_item_done(item, SIM_OK);
        }
        break;
    }
}
