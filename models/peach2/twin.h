// The PEACH2 chip at transaction level: the same ports, registers, errors and timing as the RTL, one packet at a time.
//
// `tcasim crosscheck` and random tests compare it with the RTL (rtl/, reached through sim/cosim): bytes and counters
// exactly, times to the clock cycle. Everything happens at edges of the chip's clock, multiples of its period since the
// start of the simulation; a packet of n beats occupies each unit that it passes for n cycles. States and names are
// those of the RTL, whose modules describe each part. Leaves out: waveforms; that the chip reads the registers of one
// request two cycles apart, and later ones only when earlier ones have left (here all are read at the edge of the first);
// that a counter counts a packet in the cycle in which its first or last beat passes (here it may be read some cycles
// before).
#pragma once

#include "models/flow/flow.h"
#include "models/pcie/link.h"
#include "models/peach2/core.h"
#include "rtl/peach2_regs.h"
#include "sim/kernel/sim.h"

typedef struct peach2_twin peach2_twin_t;

struct peach2_twin_config {
    uint64_t period_ps;
    uint16_t requester;
    uint32_t mps_bytes;    // 128 .. 4096
    uint32_t start_cycles; // of the DMAC
    uint32_t fetch_cycles; // to a chain's first fetch, if less than start_cycles
    uint32_t finish_cycles;
    uint32_t read_bytes; // 64, 128, 256, 512
    uint32_t read_tags;  // 1..32
    uint32_t prefetch;   // 1..4
    flow_net_t *flows;   // of the long parts of transfers; NULL: everything is packets
};

struct peach2_twin_ops {
    // A packet left the chip. The owner gets the reference.
    void (*tx)(void *ctx, unsigned port, pcie_tlp_t *tlp);
    // The last beat of a packet given to rx is taken at taken_ps, now or later; the owner gets the reference back.
    // Called as soon as the time is known, for each port in order.
    void (*rx_taken)(void *ctx, unsigned port, pcie_tlp_t *tlp, uint64_t taken_ps);
    // With flows: the end of the link at a port; NULL: it is not connected.
    pcie_end_t *(*end)(void *ctx, unsigned port);
};

// ops must stay valid. SIM_ERR_RANGE: the chip does not support the values.
enum sim_status peach2_twin_create(sim_t *sim, pcie_pool_t *pool, const char *name,
                                   const struct peach2_twin_config *config, const struct peach2_twin_ops *ops,
                                   void *ctx, peach2_twin_t **twin_out);
void peach2_twin_destroy(peach2_twin_t *twin);

// See struct peach2_core_ops. Call between two edges of the clock.
void peach2_twin_reset(peach2_twin_t *twin);

// The registers COUNTER.*, in their order, with their current values; costs no packet and no time.
void peach2_twin_counters(const peach2_twin_t *twin, uint32_t values[PEACH2_COUNTER_REGISTERS]);

// For peach2_board_set_core, with the twin as the core. A packet that the router has already chosen leaves even if
// set_tx_ready(false) is called before its first beat, unless the call comes from inside tx, as the board's does.
extern const struct peach2_core_ops peach2_twin_core_ops;
