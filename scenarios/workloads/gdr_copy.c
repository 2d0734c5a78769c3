// Copies between host memory and GPU memory through a mapped window, as gdrcopy's own benchmark makes them: to the GPU
// by write-combined stores (from: host), from the GPU by streaming loads (to: host).
//
// A block of copies of the same bytes is timed as a whole. After each point every byte is checked, and those around it.
#include <cuda_runtime.h>
#include <errno.h>
#include <gdrapi.h>
#include <string.h>

#include "scenarios/workloads/region.h"
#include "scenarios/workloads/workload.h"

struct gdr_copy {
    struct workload *workload;
    const struct backend *backend;
    bool down;            // to the GPU
    struct region source; // what is copied; an image of it if it is in the GPU
    struct region target; // the same for the destination
    void *source_memory, *target_memory, *device;
    gdr_t gdr;
    gdr_mh_t handle;
    uint8_t *mapping; // of all of `device`, including the guards
    uint32_t point;
    size_t bytes;
};

static int give_up(const struct gdr_copy *g, int error, const char *what)
{
    g->workload->fail(g->workload->ctx, "gdr-copy of %zu B: %s: %s", g->bytes, what, strerror(error));
    return -error;
}

static int cuda_check(const struct gdr_copy *g, cudaError_t code, const char *what)
{
    if (code == cudaSuccess) {
        return 0;
    }
    g->workload->fail(g->workload->ctx, "gdr-copy of %zu B: %s: %s", g->bytes, what, cudaGetErrorString(code));
    return -EIO;
}

// --- one point -----------------------------------------------------------------------------------------------------

static int copies_run(const struct gdr_copy *g, uint32_t count)
{
    uint8_t *mapped = g->mapping + (region_data(&g->source) - (uint8_t *)g->source_memory);
    int error = 0;
    for (uint32_t i = 0; error == 0 && i < count; i++) {
        error = g->down ? gdr_copy_to_mapping(g->handle, mapped, region_data(&g->source), g->bytes)
                        : gdr_copy_from_mapping(g->handle, region_data(&g->target), mapped, g->bytes);
    }
    return error == 0 ? 0 : give_up(g, error, g->down ? "gdr_copy_to_mapping" : "gdr_copy_from_mapping");
}

static int device_move(const struct gdr_copy *g, bool down)
{
    void *image = g->down ? g->target_memory : g->source_memory;
    size_t bytes = region_memory_bytes(g->source.capacity);
    return cuda_check(g,
                      cudaMemcpy(down ? g->device : image, down ? image : g->device, bytes,
                                 down ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost),
                      "cudaMemcpy");
}

static int point_check(const struct gdr_copy *g)
{
    long bad;
    int error = g->down ? device_move(g, false) : 0;
    if (error == 0 && !region_check(&g->target, 0, g->bytes, g->point, &bad)) {
        g->workload->fail(g->workload->ctx, "gdr-copy of %zu B: byte %ld is wrong", g->bytes, bad);
        error = -EBADMSG;
    }
    return error;
}

static int point_run(const struct gdr_copy *g)
{
    const struct workload *w = g->workload;
    const struct backend *backend = g->backend;
    region_fill(&g->source, 0, g->bytes, g->point);
    region_expect(&g->target, 0, g->bytes, g->point);
    int error = device_move(g, true);
    if (error == 0) {
        error = cuda_check(g, cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    }
    if (error == 0) {
        error = copies_run(g, w->warmup);
    }
    uint64_t start_ps = backend->ops->time_ps(backend->ctx);
    if (error == 0) {
        error = copies_run(g, w->iterations);
    }
    uint64_t total_ps = backend->ops->time_ps(backend->ctx) - start_ps;
    if (error == 0) {
        error = point_check(g);
    }
    if (error == 0) {
        uint64_t mean_ps = total_ps / w->iterations;
        const struct workload_point point = {.bytes = g->bytes,
                                             .descriptors = 1,
                                             .operations = w->iterations,
                                             .total_ps = total_ps,
                                             .min_ps = mean_ps,
                                             .max_ps = mean_ps};
        w->report(w->ctx, &point);
    }
    return error;
}

// --- the program ---------------------------------------------------------------------------------------------------

static int memory_alloc(struct gdr_copy *g, int gpu, size_t capacity)
{
    size_t bytes = region_memory_bytes(capacity);
    int error = cuda_check(g, cudaSetDevice(gpu), "cudaSetDevice");
    if (error == 0) {
        error = cuda_check(g, cudaMalloc(&g->device, bytes), "cudaMalloc");
    }
    if (error == 0) {
        error = cuda_check(g, cudaMallocHost(&g->source_memory, bytes), "cudaMallocHost");
    }
    if (error == 0) {
        error = cuda_check(g, cudaMallocHost(&g->target_memory, bytes), "cudaMallocHost");
    }
    if (error == 0) {
        region_over(g->source_memory, capacity, &g->source);
        region_over(g->target_memory, capacity, &g->target);
    }
    return error;
}

static int window_map(struct gdr_copy *g)
{
    size_t bytes = region_memory_bytes(g->source.capacity);
    g->gdr = gdr_open();
    if (g->gdr == NULL) {
        return give_up(g, ENODEV, "gdr_open");
    }
    void *mapping;
    int error = gdr_pin_buffer(g->gdr, (unsigned long)(uintptr_t)g->device, bytes, 0, 0, &g->handle);
    if (error == 0) {
        error = gdr_map(g->gdr, g->handle, &mapping, bytes);
    }
    if (error != 0) {
        return give_up(g, error, "pinning the memory into the window");
    }
    g->mapping = mapping;
    return 0;
}

static void release(const struct gdr_copy *g)
{
    (void)gdr_close(g->gdr);
    (void)cudaFree(g->device);
    (void)cudaFreeHost(g->source_memory);
    (void)cudaFreeHost(g->target_memory);
}

int workload_gdr_copy(struct workload *workload)
{
    const struct backend_process *process = backend_current();
    bool down = workload->source_gpu < 0;
    int gpu = down ? workload->destination_gpu : workload->source_gpu;
    if (process == NULL) {
        return -ENODEV;
    }
    if (gpu < 0 || (!down && workload->destination_gpu >= 0)) {
        workload->fail(workload->ctx, "gdr-copy goes from host memory to a GPU or from a GPU to host memory");
        return -EINVAL;
    }
    struct gdr_copy g = {.workload = workload, .backend = &process->backend, .down = down};
    int error = memory_alloc(&g, gpu, (size_t)region_largest(workload->bytes, workload->bytes_count));
    if (error == 0) {
        error = window_map(&g);
    }
    for (uint32_t i = 0; error == 0 && i < workload->bytes_count; i++) {
        g.bytes = (size_t)workload->bytes[i];
        g.point = i;
        error = point_run(&g);
    }
    if (error == 0) {
        release(&g);
    }
    return error;
}
