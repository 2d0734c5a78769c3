#include "sim/platform/gpu_window.h"

#include <stdio.h>
#include <stdlib.h>

enum sim_status plat_gpus_add(struct plat_gpus *gpus, sim_t *sim, const char *name, const struct scn_gpu *config,
                              struct plat_gpu **gpu_out)
{
    struct plat_gpu *gpu = calloc(1, sizeof *gpu);
    if (gpu == NULL) {
        return SIM_ERR_NO_MEMORY;
    }
    gpu->config = config;
    gpu->name = name;
    for (unsigned i = 0; i < PLAT_GPU_QUEUES_MAX; i++) {
        gpu->queues[i].sim = sim;
        gpu->queues[i].gpu_name = name;
        gpu->queues[i].number = i;
        sim_condition_init(&gpu->queues[i].ended);
    }
    gpus->list[gpus->count++] = gpu;
    *gpu_out = gpu;
    return SIM_OK;
}

static void items_free(struct plat_gpu_item *item)
{
    while (item != NULL) {
        struct plat_gpu_item *next = item->next;
        if (item->effect != NULL) {
            item->effect(item->effect_ctx, NULL);
        }
        free(item);
        item = next;
    }
}

void plat_gpu_queue_clear(struct plat_gpu_queue *queue)
{
    items_free(queue->pending);
    items_free(queue->marks);
    queue->pending = queue->pending_last = queue->marks = NULL;
    queue->queue = NULL;
    queue->failed = 0;
    queue->ending = false;
}

void plat_gpus_fini(struct plat_gpus *gpus)
{
    for (unsigned i = 0; i < gpus->count; i++) {
        plat_gpu_windows_forget(gpus->list[i]);
        for (unsigned j = 0; j < PLAT_GPU_QUEUES_MAX; j++) {
            plat_gpu_queue_clear(&gpus->list[i]->queues[j]);
        }
        free(gpus->list[i]);
    }
    *gpus = (struct plat_gpus){0};
}
