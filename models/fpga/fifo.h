// A growing queue of what is due at a time. Internal to models/fpga.
#pragma once

#include "models/pcie/tlp.h"

struct fpga_due {
    uint64_t due_ps;
    pcie_tlp_t *tlp;     // a BAR access, or a completion
    pcie_tlp_t *request; // that this completion ends, or NULL
    uint32_t entry;      // of a completion signal
};

struct fpga_fifo {
    struct fpga_due *slots;
    uint32_t capacity; // a power of two
    uint32_t head, count;
};

void fpga_fifo_fini(struct fpga_fifo *fifo); // drops the references of what is left
void fpga_fifo_push(struct fpga_fifo *fifo, const struct fpga_due *due);
struct fpga_due fpga_fifo_pop(struct fpga_fifo *fifo);
const struct fpga_due *fpga_fifo_front(const struct fpga_fifo *fifo); // NULL: empty
