// Memory of an end of a flow on libibverbs: registered, in the host or in a GPU. For tca0 libtca allocates it, so that
// the board can move it; for other devices it is memory that the node has pinned.
#include <cuda_runtime.h>
#include <errno.h>
#include <string.h>

#include "scenarios/workloads/flow.h"
#include "verbs-shim/libtca/tca.h"

#define PAGE_BYTES 4096u
#define RIGHTS     (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

static int cuda_check(const struct flow_end *end, cudaError_t code, const char *what)
{
    if (code == cudaSuccess) {
        return 0;
    }
    end->workload->fail(end->workload->ctx, "%s: %s: %s", end->program, what, cudaGetErrorString(code));
    return -EIO;
}

static int device_alloc(struct flow_end *end, struct flow_memory *memory)
{
    int error = cuda_check(end, cudaSetDevice(memory->gpu), "cudaSetDevice");
    return error == 0 ? cuda_check(end, cudaMalloc(&memory->device, region_memory_bytes(memory->region.capacity)),
                                   "cudaMalloc")
                      : error;
}

static int host_alloc(struct flow_end *end, struct flow_memory *memory, size_t capacity)
{
    if (!end->serves) {
        int error = region_alloc(end->backend, capacity, &memory->region);
        return error == 0 ? 0 : flow_give_up(end, -error, "no pinned memory");
    }
    if (tcaMalloc(&memory->tca, region_memory_bytes(capacity), tcaMemoryCPU) != tcaSuccess) {
        return flow_give_up(end, ENOMEM, "tcaMalloc");
    }
    region_over(memory->tca, capacity, &memory->region);
    return 0;
}

// The guards around the data are registered, too, so that a stray byte is detected in the memory rather than refused.
int flow_memory_alloc(struct flow_end *end, struct flow_memory *memory, int gpu, size_t lead_bytes, size_t bytes,
                      uint32_t slots)
{
    size_t stride_bytes = (lead_bytes + bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
    *memory = (struct flow_memory){.gpu = gpu, .lead_bytes = lead_bytes, .stride_bytes = stride_bytes};
    int error = host_alloc(end, memory, stride_bytes * slots);
    if (error == 0 && gpu >= 0) {
        error = device_alloc(end, memory);
    }
    if (error != 0) {
        return error;
    }
    void *start = memory->device != NULL ? memory->device : memory->region.buffer.address;
    int rights = RIGHTS | (flow_is_atomic(end) ? IBV_ACCESS_REMOTE_ATOMIC : 0);
    memory->mr = ibv_reg_mr(end->pd, start, region_memory_bytes(memory->region.capacity), rights);
    return memory->mr != NULL ? 0 : flow_give_up(end, errno, "ibv_reg_mr");
}

void flow_memory_free(struct flow_end *end, struct flow_memory *memory)
{
    (void)ibv_dereg_mr(memory->mr);
    if (memory->device != NULL) {
        (void)cudaFree(memory->device);
    }
    if (memory->tca != NULL) {
        (void)tcaFree(memory->tca, tcaMemoryCPU);
    } else {
        region_free(end->backend, &memory->region);
    }
}

size_t flow_memory_offset(const struct flow_memory *memory, uint32_t slot)
{
    return slot * memory->stride_bytes + memory->lead_bytes;
}

uint8_t *flow_memory_data(const struct flow_memory *memory, uint32_t slot)
{
    return region_data(&memory->region) + flow_memory_offset(memory, slot);
}

uint64_t flow_memory_address(const struct flow_memory *memory, uint32_t slot)
{
    const uint8_t *image = memory->region.buffer.address;
    const uint8_t *start = memory->device != NULL ? memory->device : image;
    return (uint64_t)(uintptr_t)start + (uint64_t)(flow_memory_data(memory, slot) - image);
}

static int move(struct flow_end *end, const struct flow_memory *memory, enum cudaMemcpyKind kind)
{
    void *image = memory->region.buffer.address;
    bool down = kind == cudaMemcpyHostToDevice;
    if (memory->device == NULL) {
        return 0;
    }
    int error = cuda_check(end, cudaSetDevice(memory->gpu), "cudaSetDevice");
    if (error == 0) {
        error = cuda_check(end,
                           cudaMemcpy(down ? memory->device : image, down ? image : memory->device,
                                      region_memory_bytes(memory->region.capacity), kind),
                           "cudaMemcpy");
    }
    return error == 0 ? cuda_check(end, cudaDeviceSynchronize(), "cudaDeviceSynchronize") : error;
}

int flow_memory_push(struct flow_end *end, const struct flow_memory *memory)
{
    return move(end, memory, cudaMemcpyHostToDevice);
}

int flow_memory_pull(struct flow_end *end, const struct flow_memory *memory)
{
    return move(end, memory, cudaMemcpyDeviceToHost);
}
