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
        gpu_window_touch(ctx, address);
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
        gpu_window_touch(gpu, address);
        memcpy(data, gpu->memory + device_address, part);
        address += part;
        data = (uint8_t *)data + part;
        bytes -= part;
    }
    return true;
}

// false: a page of the range is not mapped. misses_out: pages without a translation when it is their turn.
static bool range_check(const gpu_t *gpu, uint64_t address, uint64_t bytes, uint64_t *misses_out)
{
    uint64_t device_address, first = address / GPU_PAGE_BYTES, last = (address + bytes - 1) / GPU_PAGE_BYTES;
    for (uint64_t page = first; page <= last; page++) {
        if (!gpu_window_find(gpu, page * GPU_PAGE_BYTES, &device_address)) {
            return false;
        }
    }
    *misses_out = gpu_window_misses(gpu, address, last - first + 1);
    return true;
}

// A walk holds writes up when those that arrive meanwhile have filled the receive buffer.
static uint64_t write_pause_ps(const gpu_t *gpu, const struct flow_path *path)
{
    uint64_t filled_ps = (uint64_t)flow_path_ps(path, pcie_end_stream_receives(gpu->end, path->packet_bytes));
    uint64_t miss_ps = gpu->config.translation_miss_ps;
    return miss_ps > filled_ps ? miss_ps - filled_ps : 0;
}

void gpu_writes_on(void *ctx, pcie_end_t *end, struct flow_path *path, uint64_t address, uint64_t bytes)
{
    gpu_t *gpu = ctx;
    uint64_t misses = 0;
    (void)end;
    path->refused = path->refused || !range_check(gpu, address, bytes, &misses);
    path->pause_ps += misses * write_pause_ps(gpu, path);
    path->latency_ps += gpu->config.write_ps;
    path->to = (struct flow_target){window_write, gpu, address};
    flow_path_count(path, writes_count, gpu);
}

void gpu_reads_from(void *ctx, pcie_end_t *end, struct flow_path *path, uint64_t address, uint64_t bytes)
{
    gpu_t *gpu = ctx;
    uint64_t misses = 0;
    (void)end;
    path->refused = path->refused || !range_check(gpu, address, bytes, &misses);
    path->pause_ps += misses * gpu->config.translation_miss_ps;
    path->latency_ps += gpu->config.read_ps;
    path->from = (struct flow_source){.read = window_read, .ctx = gpu, .address = address};
    flow_path_count(path, reads_count, gpu);
    flow_path_window(path, (uint64_t)gpu->config.reads_max * path->packet_bytes, gpu->config.read_ps);
    path->packet_bytes = path->packet_bytes < gpu->config.mps_bytes ? path->packet_bytes : gpu->config.mps_bytes;
    path->input = 0;
}
