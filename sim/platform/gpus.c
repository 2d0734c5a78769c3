#include "sim/platform/gpu_window.h"

#include <stdio.h>
#include <stdlib.h>

// Behind the second root port and those that follow.
#define FIRST_REQUESTER 0x0200u

static struct gpu_config config_of(const struct scn_node *node, unsigned index)
{
    const struct scn_gpu *gpu = &node->gpus[index];
    return (struct gpu_config){
        .memory_bytes = gpu->memory_bytes,
        .bar_bytes = gpu->bar_bytes,
        .requester_id = (uint16_t)(FIRST_REQUESTER + 0x100 * index),
        .write_ps = gpu->write_ps,
        .read_ps = gpu->read_ps,
        .reads_max = gpu->reads_max,
        .mps_bytes = node->host.mps_bytes,
        .completion_bytes = gpu->completion_bytes,
        .translations = gpu->translations,
        .translation_miss_ps = gpu->translation_miss_ps,
        .translation_walks_max = gpu->translation_walks_max,
        .copy_engines = gpu->copy_engines,
        .copy_setup_ps = gpu->copy_setup_ps,
        .mrrs_bytes = node->host.mrrs_bytes < gpu->copy_read_bytes ? node->host.mrrs_bytes : gpu->copy_read_bytes,
        .copy_reads_max = gpu->copy_reads_max,
        .launch_ps = gpu->launch_ps,
        .memory_bytes_per_us = gpu->memory_bytes_per_us,
        .flops_per_us = gpu->flops_per_us,
    };
}

enum sim_status plat_gpus_init(struct plat_gpus *gpus, const struct scn_node *node, sim_t *sim, pcie_pool_t *pool)
{
    *gpus = (struct plat_gpus){0};
    if (node->gpu_count == 0) {
        return SIM_OK;
    }
    gpus->list = calloc(node->gpu_count, sizeof *gpus->list);
    if (gpus->list == NULL) {
        return SIM_ERR_NO_MEMORY;
    }
    for (unsigned i = 0; i < node->gpu_count; i++) {
        struct plat_gpu *gpu = &gpus->list[gpus->count++];
        gpu->config = &node->gpus[i];
        snprintf(gpu->name, sizeof gpu->name, "%s.gpu%u", node->name, i);
        for (unsigned j = 0; j < PLAT_GPU_QUEUES_MAX; j++) {
            gpu->queues[j].sim = sim;
            sim_condition_init(&gpu->queues[j].ended);
        }
        const struct gpu_config config = config_of(node, i);
        enum sim_status status = gpu_create(sim, pool, gpu->name, &config, &gpu->gpu);
        if (status != SIM_OK) {
            return status;
        }
    }
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
}

void plat_gpus_fini(struct plat_gpus *gpus)
{
    for (unsigned i = 0; i < gpus->count; i++) {
        gpu_destroy(gpus->list[i].gpu);
        plat_gpu_windows_forget(&gpus->list[i]);
        for (unsigned j = 0; j < PLAT_GPU_QUEUES_MAX; j++) {
            plat_gpu_queue_clear(&gpus->list[i].queues[j]);
        }
    }
    free(gpus->list);
    *gpus = (struct plat_gpus){0};
}
