// Streams into and out of the window (models/flow). The pages of all of it must be mapped when it begins; each piece
// looks its page up again when it moves.
#include <string.h>

#include "models/gpu/internal.h"

static void writes_count(void *ctx, uint64_t bytes, uint32_t packet_bytes)
{
    gpu_t *gpu = ctx;
    gpu->counters[GPU_BAR_WRITES] += flow_packets(bytes, packet_bytes);
    gpu->counters[GPU_BAR_WRITE_BYTES] += bytes;
}

static void reads_count(void *ctx, uint64_t bytes, uint32_t packet_bytes)
{
    gpu_t *gpu = ctx;
    gpu->counters[GPU_BAR_READS] += flow_packets(bytes, packet_bytes);
    gpu->counters[GPU_BAR_READ_BYTES] += bytes;
}

static bool window_write(void *ctx, uint64_t address, const void *data, uint32_t bytes)
{
    uint64_t device_address;
    bool mapped = gpu_window_find(ctx, address, &device_address);
    if (mapped) {
        (void)gpu_l2_touch(ctx, device_address, bytes);
        gpu_memory_store(ctx, device_address, data, bytes);
    }
    return mapped;
}

static bool window_read(void *ctx, uint64_t address, void *data, uint32_t bytes)
{
    gpu_t *gpu = ctx;
    while (bytes > 0) { // a piece of the target's page may cross a page here
        uint64_t device_address, room = GPU_PAGE_BYTES - address % GPU_PAGE_BYTES;
        uint32_t part = (uint32_t)(bytes < room ? bytes : room);
        if (!gpu_window_find(gpu, address, &device_address)) {
            return false;
        }
        gpu->counters[GPU_L2_MISSES] += gpu_l2_touch(gpu, device_address, part);
        memcpy(data, gpu->memory + device_address, part);
        address += part;
        data = (uint8_t *)data + part;
        bytes -= part;
    }
    return true;
}

static bool range_is_mapped(const gpu_t *gpu, uint64_t address, uint64_t bytes)
{
    uint64_t device_address, first = address / GPU_PAGE_BYTES, last = (address + bytes - 1) / GPU_PAGE_BYTES;
    for (uint64_t page = first; page <= last; page++) {
        if (!gpu_window_find(gpu, page * GPU_PAGE_BYTES, &device_address)) {
            return false;
        }
    }
    return true;
}

void gpu_writes_on(void *ctx, pcie_end_t *end, struct flow_path *path, uint64_t address, uint64_t bytes)
{
    gpu_t *gpu = ctx;
    (void)end;
    path->refused = path->refused || !range_is_mapped(gpu, address, bytes);
    path->latency_ps += gpu->config.write_ps;
    path->to = (struct flow_target){window_write, gpu, address};
    flow_path_count(path, writes_count, gpu);
}

// What misses of the L2 cache add to a read, in the mean over the range.
static uint64_t misses_ps(const gpu_t *gpu, uint64_t address, uint64_t bytes)
{
    uint64_t units = (bytes + GPU_L2_UNIT_BYTES - 1) / GPU_L2_UNIT_BYTES;
    return gpu->config.l2_miss_ps * gpu_l2_misses(gpu, address, bytes) / units;
}

void gpu_reads_from(void *ctx, pcie_end_t *end, struct flow_path *path, uint64_t address, uint64_t bytes)
{
    gpu_t *gpu = ctx;
    (void)end;
    path->refused = path->refused || !range_is_mapped(gpu, address, bytes);
    uint64_t read_ps = gpu->config.read_ps + (path->refused ? 0 : misses_ps(gpu, address, bytes));
    path->latency_ps += read_ps;
    path->from = (struct flow_source){.read = window_read, .ctx = gpu, .address = address};
    flow_path_count(path, reads_count, gpu);
    flow_path_window(path, (uint64_t)gpu->config.reads_max * path->packet_bytes, read_ps);
    path->packet_bytes = path->packet_bytes < gpu->config.mps_bytes ? path->packet_bytes : gpu->config.mps_bytes;
    path->input = 0;
}
