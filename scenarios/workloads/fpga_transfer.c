// Transfers between an FPGA's on-chip memory and a GPU or host memory, as kobayashi2018 3.1 measures them.
//
// Direct: the FPGA's own counter, from the end of the descriptor's writing to the completion signal, without the
// writing itself. Via the CPU: the sum of that counter for the FPGA and pinned host memory, and the time of cudaMemcpy
// between this memory and the GPU.
#include "scenarios/workloads/workload.h"

#include <cuda_runtime.h>
#include <errno.h>
#include <string.h>

#include "scenarios/workloads/region.h"
#include "verbs-shim/cuda/pin.h"
#include "verbs-shim/fpga/fpga_driver.h"

#define TIMEOUT_NS 1000000000ull // longer than a device waits for a completion

struct fpga_transfer {
    struct workload *workload;
    fpga_handle_t *fpga;
    const struct backend *backend;
    struct backend_buffer image, host; // host: one end of a transfer
    void *device, *stage;
    struct cuda_pin *pin;
    uint64_t stage_bus_address;
    // of the current point
    uint32_t point;
    size_t bytes;
    uint64_t offset; // of the data in every memory, after the first guard
};

static int gpu_of(const struct workload *w)
{
    return w->source_gpu >= 0 ? w->source_gpu : w->destination_gpu;
}

static int give_up(const struct fpga_transfer *t, int error, const char *what)
{
    t->workload->fail(t->workload->ctx, "transfer of %llu B: %s: %s", (unsigned long long)t->bytes, what,
                      strerror(-error));
    return error;
}

static int cuda_check(const struct fpga_transfer *t, cudaError_t error, const char *call)
{
    if (error == cudaSuccess) {
        return 0;
    }
    t->workload->fail(t->workload->ctx, "transfer of %llu B: %s: %s", (unsigned long long)t->bytes, call,
                      cudaGetErrorString(error));
    return -EIO;
}

// --- an image of each memory ---------------------------------------------------------------------------------------

static struct region image_of(const struct fpga_transfer *t)
{
    struct region image;
    region_over(t->image.address, t->bytes, &image);
    return image;
}

static int image_put(const struct fpga_transfer *t, int memory)
{
    size_t bytes = region_memory_bytes(t->bytes);
    if (memory == WORKLOAD_FPGA) {
        int error = fpga_store(t->fpga, 0, t->image.address, bytes);
        return error == 0 ? 0 : give_up(t, error, "filling the FPGA's memory");
    }
    if (memory == WORKLOAD_HOST) {
        memcpy(t->host.address, t->image.address, bytes);
        return 0;
    }
    int error = cuda_check(t, cudaMemcpy(t->device, t->image.address, bytes, cudaMemcpyHostToDevice), "cudaMemcpy");
    return error == 0 ? cuda_check(t, cudaDeviceSynchronize(), "cudaDeviceSynchronize") : error;
}

static int image_get(const struct fpga_transfer *t, int memory)
{
    size_t bytes = region_memory_bytes(t->bytes);
    if (memory == WORKLOAD_FPGA) {
        int error = fpga_load(t->fpga, 0, t->image.address, bytes);
        return error == 0 ? 0 : give_up(t, error, "reading the FPGA's memory");
    }
    if (memory == WORKLOAD_HOST) {
        memcpy(t->image.address, t->host.address, bytes);
        return 0;
    }
    return cuda_check(t, cudaMemcpy(t->image.address, t->device, bytes, cudaMemcpyDeviceToHost), "cudaMemcpy");
}

// --- one transfer --------------------------------------------------------------------------------------------------

static int descriptor_run(const struct fpga_transfer *t, uint64_t bus_address, uint64_t *time_ps)
{
    struct workload *w = t->workload;
    enum fpga_direction direction = w->destination_gpu == WORKLOAD_FPGA ? FPGA_READ : FPGA_WRITE;
    uint8_t id = (uint8_t)t->point;
    enum fpga_error cause = FPGA_OK;
    uint64_t counted_ns = 0;
    int error = direction == FPGA_READ ? fpga_read(t->fpga, bus_address, t->offset, (uint32_t)t->bytes, id)
                                       : fpga_write(t->fpga, t->offset, bus_address, (uint32_t)t->bytes, id);
    if (error != 0) {
        return give_up(t, error, "writing the descriptor");
    }
    error = fpga_wait(t->fpga, direction, id, TIMEOUT_NS, &cause);
    if (error != 0) {
        return give_up(t, error, error == -EREMOTEIO ? fpga_error_name(cause) : "waiting");
    }
    error = fpga_counter(t->fpga, direction, id, &counted_ns);
    *time_ps += counted_ns * 1000;
    return error == 0 ? 0 : give_up(t, error, "reading the counter");
}

static int copy_run(const struct fpga_transfer *t, uint64_t *time_ps)
{
    const struct backend *backend = t->backend;
    char *device = (char *)t->device + t->offset;
    bool to_device = t->workload->destination_gpu >= 0;
    uint64_t start_ps = backend->ops->time_ps(backend->ctx);
    cudaError_t result = to_device ? cudaMemcpy(device, t->stage, t->bytes, cudaMemcpyHostToDevice)
                                   : cudaMemcpy(t->stage, device, t->bytes, cudaMemcpyDeviceToHost);
    *time_ps += backend->ops->time_ps(backend->ctx) - start_ps;
    return cuda_check(t, result, "cudaMemcpy");
}

static int transfer_run(const struct fpga_transfer *t, uint64_t *time_ps_out)
{
    const struct workload *w = t->workload;
    *time_ps_out = 0;
    if (w->method == WORKLOAD_DIRECT) {
        uint64_t other = gpu_of(w) >= 0 ? t->pin->bus_address + t->pin->start : t->host.bus_address;
        return descriptor_run(t, other + t->offset, time_ps_out);
    }
    memset(t->stage, 0xa5, t->bytes);
    if (w->destination_gpu == WORKLOAD_FPGA) {
        int error = copy_run(t, time_ps_out);
        return error == 0 ? descriptor_run(t, t->stage_bus_address, time_ps_out) : error;
    }
    int error = descriptor_run(t, t->stage_bus_address, time_ps_out);
    return error == 0 ? copy_run(t, time_ps_out) : error;
}

// --- one point -----------------------------------------------------------------------------------------------------

static int point_prepare(struct fpga_transfer *t)
{
    struct region image = image_of(t);
    t->offset = (uint64_t)(region_data(&image) - (uint8_t *)t->image.address);
    region_guard(&image);
    region_fill(&image, 0, t->bytes, t->point);
    int error = image_put(t, t->workload->source_gpu);
    region_expect(&image, 0, t->bytes, t->point);
    return error == 0 ? image_put(t, t->workload->destination_gpu) : error;
}

// A write's completion signal does not show its arrival at a GPU; the copy for this check comes microseconds after it.
static int point_check(const struct fpga_transfer *t)
{
    struct workload *w = t->workload;
    const struct region image = image_of(t);
    long bad;
    int error = image_get(t, w->destination_gpu);
    if (error != 0 || region_check(&image, 0, t->bytes, t->point, &bad)) {
        return error;
    }
    w->fail(w->ctx, "transfer of %llu B: byte %ld of the destination is wrong", (unsigned long long)t->bytes, bad);
    return -EBADMSG;
}

static int point_run(struct fpga_transfer *t)
{
    struct workload *w = t->workload;
    struct workload_point result = {
        .bytes = t->bytes, .descriptors = 1, .operations = w->iterations, .min_ps = UINT64_MAX};
    int error = point_prepare(t);
    uint64_t transfers = (uint64_t)w->warmup + w->iterations;
    for (uint64_t i = 0; error == 0 && i < transfers; i++) {
        uint64_t time_ps;
        error = transfer_run(t, &time_ps);
        if (error != 0 || i < w->warmup) {
            continue;
        }
        result.total_ps += time_ps;
        result.min_ps = time_ps < result.min_ps ? time_ps : result.min_ps;
        result.max_ps = time_ps > result.max_ps ? time_ps : result.max_ps;
    }
    if (error == 0) {
        error = point_check(t);
    }
    if (error == 0) {
        w->report(w->ctx, &result);
    }
    t->point++;
    return error;
}

// --- the program ---------------------------------------------------------------------------------------------------

static int parameters_check(const struct workload *w)
{
    bool via_cpu = w->method == WORKLOAD_VIA_CPU;
    const char *why = w->drivers[WORKLOAD_DEVICE_FPGA] == NULL   ? "the node has no FPGA"
                      : !via_cpu && w->method != WORKLOAD_DIRECT ? "neither direct nor by way of the CPU"
                      : (w->source_gpu == WORKLOAD_FPGA) == (w->destination_gpu == WORKLOAD_FPGA)
                          ? "one end is the FPGA"
                      : via_cpu && gpu_of(w) < 0 ? "by way of the CPU the other end is a GPU"
                                                 : NULL;
    if (why != NULL) {
        w->fail(w->ctx, "fpga-transfer: %s", why);
    }
    return why != NULL ? -EINVAL : 0;
}

static int gpu_alloc(struct fpga_transfer *t, size_t bytes)
{
    uint64_t number;
    int error = cuda_check(t, cudaSetDevice(gpu_of(t->workload)), "cudaSetDevice");
    if (error == 0) {
        error = cuda_check(t, cudaMalloc(&t->device, bytes), "cudaMalloc");
    }
    if (error == 0) {
        error = cuda_check(t, cudaMallocHost(&t->stage, bytes), "cudaMallocHost");
    }
    if (error == 0 && !cuda_host_pinned(t->stage, bytes, &t->stage_bus_address, &number)) {
        error = give_up(t, -EFAULT, "finding the bus address of pinned memory");
    }
    if (error == 0) {
        error = cuda_pin_create(t->device, bytes, false, &t->pin);
        error = error == 0 ? 0 : give_up(t, error, "pinning device memory");
    }
    return error;
}

static int buffers_alloc(struct fpga_transfer *t)
{
    const struct workload *w = t->workload;
    t->bytes = (size_t)region_largest(w->bytes, w->bytes_count);
    size_t bytes = region_memory_bytes(t->bytes);
    int error = t->backend->ops->alloc_pinned(t->backend->ctx, bytes, &t->image);
    if (error == 0) {
        error = t->backend->ops->alloc_pinned(t->backend->ctx, bytes, &t->host);
    }
    if (error != 0) {
        return give_up(t, error, "no host memory");
    }
    return gpu_of(w) >= 0 ? gpu_alloc(t, bytes) : 0;
}

static void buffers_free(struct fpga_transfer *t)
{
    if (t->pin != NULL) {
        cuda_pin_destroy(t->pin);
    }
    if (gpu_of(t->workload) >= 0) {
        (void)cudaFreeHost(t->stage);
        (void)cudaFree(t->device);
    }
    struct backend_buffer *const buffers[] = {&t->image, &t->host};
    for (unsigned i = 0; i < 2; i++) {
        if (buffers[i]->address != NULL) {
            t->backend->ops->free_pinned(t->backend->ctx, buffers[i]);
        }
    }
}

int workload_fpga_transfer(struct workload *workload)
{
    int error = parameters_check(workload);
    if (error != 0) {
        return error;
    }
    fpga_handle_t *fpga = workload->drivers[WORKLOAD_DEVICE_FPGA];
    struct fpga_transfer t = {.workload = workload, .fpga = fpga, .backend = fpga_backend(fpga)};
    error = buffers_alloc(&t);
    for (uint32_t i = 0; error == 0 && i < workload->bytes_count; i++) {
        t.bytes = (size_t)workload->bytes[i];
        error = point_run(&t);
    }
    buffers_free(&t);
    return error;
}
