// A board's packet buffer in external memory: hanawa2013 3.3 buffers packets in embedded memory of the FPGA and in DDR3
// SDRAM, of which the board has one SO-DIMM (3.6).
//
// Models: one memory for all ports. A packet of a cable that finds embedded_tlps earlier ones of its port not yet taken
// by the chip is written to the memory, and so is every later one until the port has none there any more; each is read
// again when the chip has fewer than two of its port. One access at a time, of one packet, by ports and directions in
// turn. The credits of a packet return when it is written. So cables whose packets wait for a shared output are as fast
// as the memory lets them pass twice, and others know nothing of it. Leaves out: its capacity (it never fills),
// refresh, several packets in one access.
//
// Units: bytes, picoseconds. Deterministic. Private to the room.
#pragma once

#include <stdbool.h>

#include "models/peach2/board.h"
#include "sim/kernel/sim.h"

typedef struct peach2_ddr3 peach2_ddr3_t;

struct peach2_ddr3_ops {
    void (*deliver)(void *ctx, unsigned port, unsigned bar, pcie_tlp_t *tlp); // to the chip
    void (*release)(void *ctx, unsigned port, pcie_tlp_t *tlp);               // its credits
};

// Counters are registered as those of `name`.ddr3. SIM_ERR_INVALID: a number is out of range. SIM_ERR_NO_MEMORY.
enum sim_status peach2_ddr3_create(sim_t *sim, const char *name, const struct peach2_ddr3_config *config,
                                   const struct peach2_ddr3_ops *ops, void *ctx, peach2_ddr3_t **ddr3_out);
void peach2_ddr3_destroy(peach2_ddr3_t *ddr3); // NULL: nothing
// A packet has arrived. false: it goes to the chip now; true: the buffer has it, with the reference.
bool peach2_ddr3_keeps(peach2_ddr3_t *ddr3, unsigned port, unsigned bar, pcie_tlp_t *tlp);
// The chip takes the oldest packet that it has of the port, now or later. true: its credits have been returned.
bool peach2_ddr3_taken(peach2_ddr3_t *ddr3, unsigned port, uint64_t taken_ps);
void peach2_ddr3_reset(peach2_ddr3_t *ddr3); // after the chip's: drops everything, and releases what was not written
