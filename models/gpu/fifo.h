// A growing queue of TLPs with what belongs to each. Internal to models/gpu.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "models/pcie/tlp.h"

struct gpu_slot {
    pcie_tlp_t *tlp;
    uint64_t due_ps; // of a read that waits: not before
    uint64_t order;  // of those that leave
    bool ends_read;  // the last completion of a read
};

struct gpu_fifo {
    struct gpu_slot *slots;
    uint32_t capacity; // a power of two, or 0
    uint32_t head, count;
};

void gpu_fifo_push(struct gpu_fifo *fifo, const struct gpu_slot *slot);
struct gpu_slot gpu_fifo_pop(struct gpu_fifo *fifo);
void gpu_fifo_fini(struct gpu_fifo *fifo); // gives back the TLPs
static inline const struct gpu_slot *gpu_fifo_front(const struct gpu_fifo *fifo)
{
    return &fifo->slots[fifo->head];
}
