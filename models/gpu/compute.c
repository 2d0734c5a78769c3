// The compute unit: kernels by duration or by traffic and flops, copies and fills inside device memory.
#include <string.h>

#include "models/gpu/internal.h"

// Time of `amount` at `rate` per microsecond, rounded up.
static uint64_t rate_ps(uint64_t amount, uint64_t rate)
{
    return amount / rate * SIM_PS_PER_US + (amount % rate * SIM_PS_PER_US + rate - 1) / rate;
}

static uint64_t longer(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

uint64_t gpu_compute_ps(const gpu_t *gpu, const struct gpu_work *work)
{
    // A copy reads and writes every byte.
    uint64_t moved = work->kind == GPU_WORK_COPY ? 2 * work->bytes : work->bytes;
    uint64_t ps = rate_ps(moved, gpu->config.memory_bytes_per_us);
    if (work->kind == GPU_WORK_KERNEL) {
        ps = longer(ps, longer(work->duration_ps, rate_ps(work->flops, gpu->config.flops_per_us)));
    }
    return gpu->config.launch_ps + ps;
}

void gpu_compute_apply(gpu_t *gpu, const struct gpu_work *work)
{
    if (work->kind == GPU_WORK_KERNEL) {
        if (work->effect != NULL) {
            work->effect(work->effect_ctx);
            gpu_memory_touched(gpu, 0, gpu->config.memory_bytes);
        }
        return;
    }
    if (work->kind == GPU_WORK_FILL) {
        gpu_memory_fill(gpu, work->destination, work->fill, work->bytes);
        return;
    }
    memmove(gpu->memory + work->destination, gpu->memory + work->source, work->bytes);
    gpu_memory_touched(gpu, work->destination, work->bytes);
}
