// Long copies over the bus as streams (models/flow): all but the last pieces, which follow as packets, with what proves
// that the copy is done.
#include "models/gpu/internal.h"

enum { LEAST_BYTES = 8192, LAST_PIECES = 2 };

static bool device_write(void *ctx, uint64_t address, const void *data, uint32_t bytes)
{
    gpu_memory_store(ctx, address, data, bytes);
    return true;
}

static const void *device_at(void *ctx, uint64_t address, uint32_t bytes)
{
    (void)bytes;
    return ((gpu_t *)ctx)->memory + address;
}

static void reads_count(void *ctx, uint64_t bytes, uint32_t packet_bytes)
{
    gpu_t *gpu = ctx;
    gpu->counters[GPU_COPY_READS] += flow_packets(bytes, packet_bytes);
    gpu->counters[GPU_COPY_READ_BYTES] += bytes;
}

static void writes_count(void *ctx, uint64_t bytes, uint32_t packet_bytes)
{
    gpu_t *gpu = ctx;
    gpu->counters[GPU_COPY_WRITES] += flow_packets(bytes, packet_bytes);
    gpu->counters[GPU_COPY_WRITE_BYTES] += bytes;
}

static void path_in(gpu_t *gpu, struct flow_path *path, const struct gpu_work *work, uint64_t bytes)
{
    uint32_t piece = gpu->config.mrrs_bytes, window = gpu->config.copy_reads_max * piece;
    path->packet_bytes = path->grain_bytes = piece;
    flow_path_count(path, reads_count, gpu);
    pcie_end_stream_reads(gpu->end, path, piece, window, work->bus_address, bytes);
    flow_path_window(path, window, path->latency_ps);
    path->to = (struct flow_target){device_write, gpu, work->destination};
}

static void path_out(gpu_t *gpu, struct flow_path *path, const struct gpu_work *work, uint64_t bytes)
{
    path->packet_bytes = path->grain_bytes = gpu->config.mps_bytes;
    path->from = (struct flow_source){.at = device_at, .ctx = gpu, .address = work->source};
    flow_path_count(path, writes_count, gpu);
    pcie_end_stream_writes(gpu->end, path, 0, work->bus_address, bytes);
}

static void done(void *ctx, uint64_t bytes)
{
    static const struct sim_work streaming = {"GPU", "copy's stream", false};
    struct gpu_unit *unit = ctx;
    sim_cause_label(unit->gpu->sim, unit->gpu->name, &streaming);
    unit->flow = NULL;
    unit->done_bytes += bytes;
    gpu_copy_go_on(unit->gpu);
}

void gpu_copy_stream_begin(struct gpu_unit *unit)
{
    static const struct flow_ops ops = {.done = done};
    gpu_t *gpu = unit->gpu;
    const struct gpu_work *work = &unit->item->work;
    bool in = work->kind == GPU_WORK_COPY_IN;
    uint32_t piece = in ? gpu->config.mrrs_bytes : gpu->config.mps_bytes;
    // Pieces end at multiples of their size on the bus.
    uint64_t end = (work->bus_address + work->bytes - 1) / piece * piece - (LAST_PIECES - 1) * piece;
    if (gpu->config.flows == NULL || work->bytes < LEAST_BYTES || work->bus_address % piece != 0) {
        return;
    }
    struct flow_path path = {0};
    uint64_t bytes = end - work->bus_address;
    (in ? path_in : path_out)(gpu, &path, work, bytes);
    unit->flow = flow_start(gpu->config.flows, &path, bytes, &ops, unit);
}

void gpu_copy_stream_end(struct gpu_unit *unit, bool keep)
{
    flow_stream_t *flow = unit->flow;
    unit->flow = NULL;
    if (flow != NULL && keep) {
        unit->done_bytes += flow_stop(flow);
    } else if (flow != NULL) {
        flow_drop(flow);
    }
}
