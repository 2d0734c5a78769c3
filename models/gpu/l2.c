// The L2 cache: which units of device memory it holds. A set is in the order of its use.
#include <stdlib.h>
#include <string.h>

#include "models/gpu/internal.h"

enum { WAYS = GPU_L2_SET_BYTES / GPU_L2_UNIT_BYTES };

static uint32_t sets_of(const gpu_t *gpu)
{
    return gpu->config.l2_bytes / GPU_L2_SET_BYTES;
}

enum sim_status gpu_l2_init(gpu_t *gpu)
{
    gpu->l2 = calloc(sets_of(gpu), WAYS * sizeof *gpu->l2); // 0: holds nothing, as page 0 is never allocated
    return gpu->l2 != NULL ? SIM_OK : SIM_ERR_NO_MEMORY;
}

void gpu_l2_fini(gpu_t *gpu)
{
    free(gpu->l2);
}

// The unit is the first of its set afterwards, the last one leaves. true: it was held.
static bool unit_touch(uint32_t *set, uint32_t unit)
{
    unsigned way = 0;
    while (way < WAYS - 1 && set[way] != unit) {
        way++;
    }
    bool held = set[way] == unit;
    memmove(set + 1, set, way * sizeof *set);
    set[0] = unit;
    return held;
}

// By multiplicative hashing: units side by side and units a power of two apart spread alike.
static uint32_t set_of(const gpu_t *gpu, uint32_t unit)
{
    return (uint32_t)((uint64_t)(unit * 0x9e3779b9u) * sets_of(gpu) >> 32);
}

static uint64_t range_touch(const gpu_t *gpu, uint32_t *table, uint64_t address, uint64_t bytes)
{
    uint64_t misses = 0, last = (address + bytes - 1) / GPU_L2_UNIT_BYTES;
    for (uint64_t unit = address / GPU_L2_UNIT_BYTES; unit <= last; unit++) {
        misses += unit_touch(table + (size_t)set_of(gpu, (uint32_t)unit) * WAYS, (uint32_t)unit) ? 0 : 1;
    }
    return misses;
}

uint64_t gpu_l2_touch(gpu_t *gpu, uint64_t address, uint64_t bytes)
{
    return range_touch(gpu, gpu->l2, address, bytes);
}

uint64_t gpu_l2_misses(const gpu_t *gpu, uint64_t bus_address, uint64_t bytes)
{
    size_t table_bytes = sets_of(gpu) * WAYS * sizeof *gpu->l2;
    uint32_t *table = malloc(table_bytes);
    if (table == NULL) {
        sim_panic(gpu->name, "no memory for a copy of the L2 cache's table");
    }
    memcpy(table, gpu->l2, table_bytes);
    uint64_t misses = 0, device_address;
    while (bytes > 0 && gpu_window_find(gpu, bus_address, &device_address)) {
        uint64_t room = GPU_PAGE_BYTES - bus_address % GPU_PAGE_BYTES, part = bytes < room ? bytes : room;
        misses += range_touch(gpu, table, device_address, part);
        bus_address += part;
        bytes -= part;
    }
    free(table);
    return misses;
}
