// Kernels that compute: their order, and the memory that they may reach. Prints the kernels in the order in which they
// ran, and for each range of memory whether a kernel gets it.
#include <stdio.h>

#include "backend.h"

enum { BYTES = 65536, KERNEL_NS = 10000 };

static char order[8];
static unsigned ran;

static void note(void *ctx, const struct backend_gpu_memory *memory)
{
    (void)memory;
    order[ran++] = *(const char *)ctx;
}

static uint64_t address;
static bool got_all, got_part, got_more, got_beyond;

static void look(void *ctx, const struct backend_gpu_memory *memory)
{
    (void)ctx;
    got_all = memory->at(memory->ctx, address, BYTES) != NULL;
    got_part = memory->at(memory->ctx, address + BYTES / 2, BYTES / 2) != NULL;
    got_more = memory->at(memory->ctx, address, BYTES + 1) != NULL;
    got_beyond = memory->at(memory->ctx, address + BYTES / 2, BYTES) != NULL;
}

static int launch(const struct backend *backend, uint32_t queue, uint64_t *ticket_out,
                  void (*effect)(void *ctx, const struct backend_gpu_memory *memory), void *ctx)
{
    const struct backend_gpu_work work = {
        .kind = BACKEND_GPU_KERNEL, .duration_ns = KERNEL_NS, .effect = effect, .effect_ctx = ctx};
    return backend->ops->gpu->submit(backend->ctx, 0, queue, &work, ticket_out);
}

int backend_kernels(const struct backend *backend)
{
    const struct backend_gpu_ops *gpu = backend->ops->gpu;
    static char names[] = "abc";
    uint64_t other, ticket;
    uint32_t queue;
    // The other GPU's allocation, at the same address, is freed again.
    if (gpu->queue_create(backend->ctx, 0, &queue) != 0 || gpu->alloc(backend->ctx, 1, BYTES, &other) != 0 ||
        gpu->alloc(backend->ctx, 0, BYTES, &address) != 0 || gpu->free(backend->ctx, 1, other) != 0) {
        return 3;
    }
    for (char *name = names; *name != '\0'; name++) {
        if (launch(backend, queue, &ticket, note, name) != 0) {
            return 4;
        }
    }
    if (launch(backend, queue, &ticket, look, NULL) != 0 || gpu->wait(backend->ctx, 0, queue, ticket) != 0) {
        return 5;
    }
    printf("%s %d %d %d %d %d\n", order, other == address, got_all, got_part, got_more, got_beyond);
    return 0;
}
