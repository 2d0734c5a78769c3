// Queues of TLPs with the data that belongs to each. Internal to models/gpu.
#pragma once

#include <stdbool.h>

#include "models/pcie/ring.h"
#include "models/pcie/tlp.h"
#include "sim/kernel/cause.h"

struct gpu_slot {
    pcie_tlp_t *tlp;
    uint64_t due_ps;   // of a waiting read: not answered before
    sim_cause_t cause; // of what happens at due_ps
};

static inline void gpu_fifo_init(struct pcie_ring *fifo)
{
    pcie_ring_init(fifo, sizeof(struct gpu_slot));
}

static inline void gpu_fifo_push(struct pcie_ring *fifo, const struct gpu_slot *slot)
{
    *(struct gpu_slot *)pcie_ring_push(fifo) = *slot;
}

static inline const struct gpu_slot *gpu_fifo_front(const struct pcie_ring *fifo)
{
    return pcie_ring_front(fifo);
}

static inline struct gpu_slot gpu_fifo_pop(struct pcie_ring *fifo)
{
    struct gpu_slot slot = *gpu_fifo_front(fifo);
    pcie_ring_pop(fifo);
    return slot;
}

// Releases the TLPs.
static inline void gpu_fifo_fini(struct pcie_ring *fifo)
{
    while (fifo->count > 0) {
        pcie_tlp_unref(gpu_fifo_pop(fifo).tlp);
    }
    pcie_ring_fini(fifo);
}
