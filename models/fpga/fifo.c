#include "models/fpga/fifo.h"

#include <stdlib.h>

enum { FIRST_CAPACITY = 64 };

static void grow(struct fpga_fifo *fifo)
{
    uint32_t capacity = fifo->capacity == 0 ? FIRST_CAPACITY : fifo->capacity * 2;
    struct fpga_due *slots = calloc(capacity, sizeof *slots);
    if (slots == NULL) {
        sim_panic("fpga", "out of memory for a queue of %u", capacity);
    }
    for (uint32_t i = 0; i < fifo->count; i++) {
        slots[i] = fifo->slots[(fifo->head + i) & (fifo->capacity - 1)];
    }
    free(fifo->slots);
    fifo->slots = slots;
    fifo->capacity = capacity;
    fifo->head = 0;
}

void fpga_fifo_push(struct fpga_fifo *fifo, const struct fpga_due *due)
{
    if (fifo->count == fifo->capacity) {
        grow(fifo);
    }
    fifo->slots[(fifo->head + fifo->count++) & (fifo->capacity - 1)] = *due;
}

struct fpga_due fpga_fifo_pop(struct fpga_fifo *fifo)
{
    struct fpga_due due = fifo->slots[fifo->head];
    fifo->head = (fifo->head + 1) & (fifo->capacity - 1);
    fifo->count--;
    return due;
}

const struct fpga_due *fpga_fifo_front(const struct fpga_fifo *fifo)
{
    return fifo->count == 0 ? NULL : &fifo->slots[fifo->head];
}

void fpga_fifo_fini(struct fpga_fifo *fifo)
{
    while (fifo->count > 0) {
        struct fpga_due due = fpga_fifo_pop(fifo);
        if (due.tlp != NULL) {
            pcie_tlp_unref(due.tlp);
        }
        if (due.request != NULL) {
            pcie_tlp_unref(due.request);
        }
    }
    free(fifo->slots);
}
