#include "models/gpu/fifo.h"

#include <stdlib.h>

#include "sim/kernel/status.h"

enum { FIRST_CAPACITY = 16 };

static void grow(struct gpu_fifo *fifo)
{
    uint32_t capacity = fifo->capacity == 0 ? FIRST_CAPACITY : fifo->capacity * 2;
    struct gpu_slot *slots = malloc(capacity * sizeof *slots);
    if (slots == NULL) {
        sim_panic("gpu", "no memory for a queue of %u packets", capacity);
    }
    for (uint32_t i = 0; i < fifo->count; i++) {
        slots[i] = fifo->slots[(fifo->head + i) & (fifo->capacity - 1)];
    }
    free(fifo->slots);
    fifo->slots = slots;
    fifo->capacity = capacity;
    fifo->head = 0;
}

void gpu_fifo_push(struct gpu_fifo *fifo, const struct gpu_slot *slot)
{
    if (fifo->count == fifo->capacity) {
        grow(fifo);
    }
    fifo->slots[(fifo->head + fifo->count++) & (fifo->capacity - 1)] = *slot;
}

struct gpu_slot gpu_fifo_pop(struct gpu_fifo *fifo)
{
    struct gpu_slot slot = fifo->slots[fifo->head];
    fifo->head = (fifo->head + 1) & (fifo->capacity - 1);
    fifo->count--;
    return slot;
}

void gpu_fifo_fini(struct gpu_fifo *fifo)
{
    while (fifo->count > 0) {
        pcie_tlp_unref(gpu_fifo_pop(fifo).tlp);
    }
    free(fifo->slots);
    *fifo = (struct gpu_fifo){0};
}
