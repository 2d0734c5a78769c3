// Ping-pong between two GPUs of one node through the CUDA runtime, as hanawa2013 4.3 measures it.
//
// With unified virtual addresses (uva): peer access is enabled in both directions, so that one GPU writes into the
// other's window, and the copy is a cudaMemcpy. Without (no-uva): cudaMemcpyPeer between devices that have no access to
// each other, through host memory. A copy has arrived when cudaDeviceSynchronize returns. A block of round trips is
// timed as a whole; an operation is half a round trip. After each point every byte on both GPUs is checked.
#include <cuda_runtime.h>
#include <errno.h>

#include "scenarios/workloads/region.h"
#include "scenarios/workloads/workload.h"

enum { SEND, RECEIVE, BACK, BUFFERS }; // the message, its copy in the other GPU, and the copy of that

struct buffer {
    int gpu;
    void *image_memory, *device; // including the guards
    struct region image;
};

struct pingpong {
    struct workload *workload;
    const struct backend *backend;
    struct buffer buffers[BUFFERS];
    uint32_t point;
    size_t bytes;
};

static int cuda_check(const struct pingpong *p, cudaError_t code, const char *what)
{
    if (code == cudaSuccess) {
        return 0;
    }
    p->workload->fail(p->workload->ctx, "cuda-pingpong of %zu B: %s: %s", p->bytes, what, cudaGetErrorString(code));
    return -EIO;
}

// --- one point -----------------------------------------------------------------------------------------------------

static uint8_t *device_data(const struct buffer *buffer)
{
    return (uint8_t *)buffer->device + (region_data(&buffer->image) - (uint8_t *)buffer->image_memory);
}

static int copy(const struct pingpong *p, unsigned to, unsigned from)
{
    const struct buffer *there = &p->buffers[to], *here = &p->buffers[from];
    bool uva = p->workload->method == WORKLOAD_UVA;
    cudaError_t code = uva ? cudaMemcpy(device_data(there), device_data(here), p->bytes, cudaMemcpyDefault)
                           : cudaMemcpyPeer(device_data(there), there->gpu, device_data(here), here->gpu, p->bytes);
    return cuda_check(p, code == cudaSuccess ? cudaDeviceSynchronize() : code, uva ? "cudaMemcpy" : "cudaMemcpyPeer");
}

static int turns_run(const struct pingpong *p, uint32_t count)
{
    int error = 0;
    for (uint32_t turn = 0; error == 0 && turn < count; turn++) {
        error = copy(p, RECEIVE, SEND);
        if (error == 0) {
            error = copy(p, BACK, RECEIVE);
        }
    }
    return error;
}

static int images_move(const struct pingpong *p, enum cudaMemcpyKind kind)
{
    bool down = kind == cudaMemcpyHostToDevice;
    int error = 0;
    for (unsigned i = 0; error == 0 && i < BUFFERS; i++) {
        const struct buffer *buffer = &p->buffers[i];
        error = cuda_check(p,
                           cudaMemcpy(down ? buffer->device : buffer->image_memory,
                                      down ? buffer->image_memory : buffer->device,
                                      region_memory_bytes(buffer->image.capacity), kind),
                           "cudaMemcpy");
    }
    return error;
}

static int point_prepare(const struct pingpong *p)
{
    region_expect(&p->buffers[SEND].image, 0, p->bytes, p->point);
    region_fill(&p->buffers[SEND].image, 0, p->bytes, p->point);
    region_expect(&p->buffers[RECEIVE].image, 0, p->bytes, p->point);
    region_expect(&p->buffers[BACK].image, 0, p->bytes, p->point);
    return images_move(p, cudaMemcpyHostToDevice);
}

static int point_check(const struct pingpong *p)
{
    static const char *const names[BUFFERS] = {"sent", "received", "returned"};
    int error = images_move(p, cudaMemcpyDeviceToHost);
    for (unsigned i = 0; error == 0 && i < BUFFERS; i++) {
        long bad;
        if (!region_check(&p->buffers[i].image, 0, p->bytes, p->point, &bad)) {
            p->workload->fail(p->workload->ctx, "cuda-pingpong of %zu B: byte %ld of the %s message is wrong", p->bytes,
                              bad, names[i]);
            error = -EBADMSG;
        }
    }
    return error;
}

static uint64_t now_ps(const struct pingpong *p)
{
    return p->backend->ops->time_ps(p->backend->ctx);
}

static int point_run(const struct pingpong *p)
{
    const struct workload *w = p->workload;
    int error = point_prepare(p);
    if (error == 0) {
        error = turns_run(p, w->warmup);
    }
    uint64_t start_ps = now_ps(p);
    if (error == 0) {
        error = turns_run(p, w->iterations);
    }
    uint64_t total_ps = now_ps(p) - start_ps, operations = 2 * (uint64_t)w->iterations;
    if (error == 0) {
        error = point_check(p);
    }
    if (error == 0) {
        uint64_t mean_ps = total_ps / operations;
        const struct workload_point point = {.bytes = p->bytes,
                                             .descriptors = 1,
                                             .operations = operations,
                                             .total_ps = total_ps,
                                             .min_ps = mean_ps,
                                             .max_ps = mean_ps};
        w->report(w->ctx, &point);
    }
    return error;
}

// --- the program ---------------------------------------------------------------------------------------------------

static int buffer_alloc(const struct pingpong *p, int gpu, size_t capacity, struct buffer *buffer)
{
    size_t bytes = region_memory_bytes(capacity);
    buffer->gpu = gpu;
    int error = cuda_check(p, cudaSetDevice(gpu), "cudaSetDevice");
    if (error == 0) {
        error = cuda_check(p, cudaMalloc(&buffer->device, bytes), "cudaMalloc");
    }
    if (error == 0) {
        error = cuda_check(p, cudaMallocHost(&buffer->image_memory, bytes), "cudaMallocHost");
    }
    if (error == 0) {
        region_over(buffer->image_memory, capacity, &buffer->image);
    }
    return error;
}

static int access_enable(const struct pingpong *p, int gpu, int other)
{
    int error = cuda_check(p, cudaSetDevice(gpu), "cudaSetDevice");
    return error == 0 ? cuda_check(p, cudaDeviceEnablePeerAccess(other, 0), "cudaDeviceEnablePeerAccess") : error;
}

static int prepare(struct pingpong *p)
{
    const struct workload *w = p->workload;
    int here = w->source_gpu, there = w->destination_gpu, error = 0;
    size_t capacity = (size_t)region_largest(w->bytes, w->bytes_count);
    if (here < 0 || there < 0 || here == there) {
        w->fail(w->ctx, "cuda-pingpong needs two GPUs of the node, from: and to:");
        return -EINVAL;
    }
    if (w->method == WORKLOAD_UVA) {
        error = access_enable(p, here, there);
        if (error == 0) {
            error = access_enable(p, there, here);
        }
    }
    for (unsigned i = 0; error == 0 && i < BUFFERS; i++) {
        error = buffer_alloc(p, i == RECEIVE ? there : here, capacity, &p->buffers[i]);
    }
    return error;
}

static void release(const struct pingpong *p)
{
    for (unsigned i = 0; i < BUFFERS; i++) {
        (void)cudaFree(p->buffers[i].device);
        (void)cudaFreeHost(p->buffers[i].image_memory);
    }
}

int workload_cuda_pingpong(struct workload *workload)
{
    const struct backend_process *process = backend_current();
    if (process == NULL) {
        return -ENODEV;
    }
    struct pingpong p = {.workload = workload, .backend = &process->backend};
    int error = prepare(&p);
    for (uint32_t i = 0; error == 0 && i < workload->bytes_count; i++) {
        p.bytes = (size_t)workload->bytes[i];
        p.point = i;
        error = point_run(&p);
    }
    if (error == 0) {
        release(&p);
    }
    return error;
}
