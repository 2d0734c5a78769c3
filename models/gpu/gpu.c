// Creation and destruction of the GPU, and the dispatch of arriving TLPs.
#include "models/gpu/gpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "models/gpu/internal.h"

static const struct sim_counter_desc COUNTERS[GPU_COUNTERS] = {
    [GPU_BAR_WRITES] = {"bar_writes", "TLPs", "writes that arrived at the window"},
    [GPU_BAR_WRITE_BYTES] = {"bar_write_bytes", "bytes", "bytes of those that became visible"},
    [GPU_BAR_READS] = {"bar_reads", "TLPs", "reads that arrived at the window"},
    [GPU_BAR_READ_BYTES] = {"bar_read_bytes", "bytes", "bytes of those that were answered with data"},
    [GPU_UNSUPPORTED_WRITES] = {"unsupported_writes", "TLPs", "writes outside pinned pages, dropped"},
    [GPU_UNSUPPORTED_READS] = {"unsupported_reads", "TLPs", "reads answered with Unsupported Request"},
    [GPU_L2_MISSES] = {"l2_misses", "units", "pieces of 64 B that were read through the window and not in the L2 cache"},
    [GPU_COPY_READS] = {"copy_reads", "TLPs", "reads of the copy engines"},
    [GPU_COPY_READ_BYTES] = {"copy_read_bytes", "bytes", "bytes that came back for them"},
    [GPU_COPY_WRITES] = {"copy_writes", "TLPs", "writes of the copy engines"},
    [GPU_COPY_WRITE_BYTES] = {"copy_write_bytes", "bytes", "bytes of those"},
    [GPU_UNEXPECTED_COMPLETIONS] = {"unexpected_completions", "TLPs", "completions of no read, dropped"},
    [GPU_WORK_ITEMS] = {"work_items", "items", "items of the queues that are done"},
    [GPU_WORK_FAULTS] = {"work_faults", "items", "those of them that failed"},
};

static bool is_power(uint32_t value, uint32_t low, uint32_t high)
{
    return value >= low && value <= high && (value & (value - 1)) == 0;
}

static bool config_valid(const struct gpu_config *config)
{
    return config->memory_bytes > GPU_PAGE_BYTES && config->memory_bytes % GPU_PAGE_BYTES == 0 &&
           config->memory_bytes / GPU_PAGE_BYTES <= UINT32_MAX && config->bar_bytes > 0 &&
           config->bar_bytes % GPU_PAGE_BYTES == 0 && config->bar_bytes / GPU_PAGE_BYTES < UINT32_MAX &&
           config->reads_max > 0 && is_power(config->mps_bytes, 128, PCIE_PAYLOAD_MAX) &&
           is_power(config->completion_bytes, 64, 128) && config->l2_bytes > 0 &&
           config->l2_bytes % GPU_L2_SET_BYTES == 0 && config->memory_bytes / GPU_L2_UNIT_BYTES <= UINT32_MAX &&
           (config->copy_engines == 1 || config->copy_engines == 2) &&
           is_power(config->mrrs_bytes, 128, PCIE_PAYLOAD_MAX) && config->copy_reads_max > 0 &&
           config->copy_reads_max < PCIE_TAGS_MAX && config->memory_bytes_per_us > 0 && config->flops_per_us > 0;
}

static enum sim_status tables_create(gpu_t *gpu)
{
    gpu->pages = calloc(gpu->config.bar_bytes / GPU_PAGE_BYTES, sizeof *gpu->pages);
    if (gpu->pages == NULL || gpu_l2_init(gpu) != SIM_OK) {
        return SIM_ERR_NO_MEMORY;
    }
    void *memory = mmap(NULL, gpu->config.memory_bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        return SIM_ERR_NO_MEMORY;
    }
    gpu->memory = memory;
    return sim_counters_register(gpu->sim, gpu->name, COUNTERS, gpu->counters, GPU_COUNTERS);
}

static void tables_destroy(gpu_t *gpu)
{
    if (gpu->memory != NULL) {
        munmap(gpu->memory, gpu->config.memory_bytes);
    }
    gpu_l2_fini(gpu);
    free(gpu->pages);
    free(gpu);
}

enum sim_status gpu_create(sim_t *sim, pcie_pool_t *pool, const char *name, const struct gpu_config *config,
                           gpu_t **gpu_out)
{
    if (!config_valid(config) || strlen(name) >= GPU_NAME_MAX) {
        return SIM_ERR_INVALID;
    }
    gpu_t *gpu = calloc(1, sizeof *gpu);
    if (gpu == NULL) {
        return SIM_ERR_NO_MEMORY;
    }
    gpu->sim = sim;
    gpu->pool = pool;
    gpu->config = *config;
    snprintf(gpu->name, sizeof gpu->name, "%s", name);
    enum sim_status status = tables_create(gpu);
    if (status != SIM_OK) {
        tables_destroy(gpu);
        return status;
    }
    gpu_target_init(gpu);
    gpu_egress_init(gpu);
    gpu_copy_init(gpu);
    for (enum gpu_unit_kind kind = GPU_UNIT_IN; kind < GPU_UNIT_COUNT; kind++) {
        gpu_unit_init(gpu, kind);
    }
    *gpu_out = gpu;
    return SIM_OK;
}

void gpu_destroy(gpu_t *gpu)
{
    if (gpu == NULL) {
        return;
    }
    while (gpu->queues != NULL) {
        gpu_queue_fini(gpu->queues);
    }
    for (unsigned kind = GPU_UNIT_COUNT; kind > 0; kind--) {
        gpu_unit_fini(&gpu->units[kind - 1]);
    }
    pcie_egress_fini(&gpu->egress);
    gpu_target_fini(gpu);
    while (gpu->pins != NULL) {
        (void)gpu_unpin(gpu, gpu->pins->offset);
    }
    while (gpu->allocations != NULL) {
        (void)gpu_memory_free(gpu, gpu->allocations->base);
    }
    sim_counters_unregister(gpu->sim, gpu->counters);
    tables_destroy(gpu);
}

const char *gpu_name(const gpu_t *gpu)
{
    return gpu->name;
}

const struct gpu_config *gpu_get_config(const gpu_t *gpu)
{
    return &gpu->config;
}

uint64_t gpu_bar_base(const gpu_t *gpu)
{
    return gpu->bar_base;
}

// --- the link --------------------------------------------------------------------------------------------------------

static void end_receive(void *ctx, pcie_end_t *end, pcie_tlp_t *tlp)
{
    switch (tlp->kind) {
    case PCIE_TLP_MWR:
    case PCIE_TLP_MRD:
        gpu_target_receive(ctx, tlp);
        break;
    case PCIE_TLP_CPL:
    case PCIE_TLP_CPLD:
        pcie_end_release(end, tlp);
        gpu_copy_complete(ctx, tlp);
        pcie_tlp_unref(tlp);
        break;
    }
}

static void end_ready(void *ctx, pcie_end_t *end)
{
    gpu_t *gpu = ctx;
    (void)end;
    (void)pcie_egress_pump(&gpu->egress);
    gpu_copy_go_on(gpu);
}

static void end_down(void *ctx, pcie_end_t *end, unsigned lost_tlps)
{
    gpu_t *gpu = ctx;
    (void)end;
    (void)lost_tlps; // the link counts them
    (void)pcie_egress_pump(&gpu->egress);
    gpu_copy_down(gpu);
}

static const struct pcie_end_ops END_OPS = {.receive = end_receive,
                                            .ready = end_ready,
                                            .down = end_down,
                                            .writes_on = gpu_writes_on,
                                            .reads_from = gpu_reads_from};

void gpu_connect(gpu_t *gpu, pcie_end_t *end, uint64_t bar_base)
{
    if (gpu->end != NULL || bar_base % GPU_PAGE_BYTES != 0) {
        sim_panic(gpu->name, "connected twice, or to a window that does not begin with a page");
    }
    gpu->end = end;
    gpu->egress.end = end;
    gpu->bar_base = bar_base;
    pcie_end_attach(end, &END_OPS, gpu);
}
