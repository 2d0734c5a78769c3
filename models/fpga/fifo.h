// Queues of entries with a due time. Internal to models/fpga.
#pragma once

#include <stddef.h>

#include "models/pcie/ring.h"
#include "models/pcie/tlp.h"

struct fpga_due {
    uint64_t due_ps;
    pcie_tlp_t *tlp;     // a BAR access, or a completion
    pcie_tlp_t *request; // the request that this completion ends, or NULL
    uint32_t entry;      // of a completion signal
};

static inline void fpga_fifo_init(struct pcie_ring *fifo)
{
    pcie_ring_init(fifo, sizeof(struct fpga_due));
}

static inline void fpga_fifo_push(struct pcie_ring *fifo, const struct fpga_due *due)
{
    *(struct fpga_due *)pcie_ring_push(fifo) = *due;
}

// NULL: empty.
static inline const struct fpga_due *fpga_fifo_front(const struct pcie_ring *fifo)
{
    return fifo->count > 0 ? pcie_ring_front(fifo) : NULL;
}

static inline struct fpga_due fpga_fifo_pop(struct pcie_ring *fifo)
{
    struct fpga_due due = *(const struct fpga_due *)pcie_ring_front(fifo);
    pcie_ring_pop(fifo);
    return due;
}

// Drops the references of the entries that are left.
static inline void fpga_fifo_fini(struct pcie_ring *fifo)
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
    pcie_ring_fini(fifo);
}
