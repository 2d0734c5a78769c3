// The C interface of the Verilated boards: TLPs in, TLPs out, a clock that ticks only while a board has work.
//
// The only room that uses Verilator. A board is evaluated at the edges of its clock (multiples of the period since the
// start of the simulation) while packets are arriving, its idle_o is low, or a packet is leaving; an idle board costs
// nothing. All boards of one clock are evaluated in the order of their creation, in a tight loop while no other event
// is due.
//
// Models: the application interface of the hard IP, 128 bits a beat in each direction with ready and valid. Leaves out:
// the hard IP itself and its latency, which belong to models/pcie.
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

#include "models/pcie/tlp.h"
#include "rtl/peach2_regs.h"
#include "sim/kernel/sim.h"

typedef struct cosim_clock cosim_clock_t;
typedef struct cosim_peach2 cosim_peach2_t;

#define COSIM_PORTS 4 // 0 N, 1 E, 2 W, 3 S

struct cosim_peach2_config {
    uint16_t requester;
    uint32_t mps_bytes;    // 128, 256, 512, ...
    uint32_t start_cycles; // dmac_start_cycles
    uint32_t fetch_cycles; // dmac_fetch_cycles
    uint32_t finish_cycles;
    uint32_t read_bytes; // 64, 128, 256, 512
    uint32_t read_tags;  // 1..32
    uint32_t prefetch;   // 1..4
};

struct cosim_peach2_ops {
    // A packet left the chip (its last beat was taken at this edge). The owner gets the reference.
    void (*tx)(void *ctx, unsigned port, pcie_tlp_t *tlp);
    // The last beat of a packet given to cosim_peach2_rx was taken; the owner gets the reference back.
    void (*rx_taken)(void *ctx, unsigned port, pcie_tlp_t *tlp);
};

// period_ps must be even. One clock may drive any number of boards; destroy it after them.
enum sim_status cosim_clock_create(sim_t *sim, uint64_t period_ps, cosim_clock_t **clock_out);
void cosim_clock_destroy(cosim_clock_t *clock);

// trace_path: FST file of this board, or NULL. An existing file is replaced; SIM_ERR_IO if the path is not a regular
// file. SIM_ERR_RANGE: the chip does not support the values. The board comes out of reset idle.
enum sim_status cosim_peach2_create(cosim_clock_t *clock, pcie_pool_t *pool, const char *name,
                                    const struct cosim_peach2_config *config, const struct cosim_peach2_ops *ops,
                                    void *ctx, const char *trace_path, cosim_peach2_t **board_out);
void cosim_peach2_destroy(cosim_peach2_t *board);

// Queues a packet for the port, in order; its first beat is offered at the next edge. bar is the BAR it hit (N only).
// Keeps the reference until rx_taken.
void cosim_peach2_rx(cosim_peach2_t *board, unsigned port, unsigned bar, pcie_tlp_t *tlp);
// The port's hard IP takes packets (default) or stalls. A packet whose first beats were taken is still finished.
void cosim_peach2_set_tx_ready(cosim_peach2_t *board, unsigned port, bool ready);
// The port's hard IP has room for packets that enter a ring (default), by the bubble rule; see docs/decisions/0005.
void cosim_peach2_set_tx_room(cosim_peach2_t *board, unsigned port, bool room);

// Resets the chip, in no simulated time. Call between two edges of the clock. Packets inside are lost; those that are
// not taken yet come back by rx_taken. Every tx_ready and tx_room is set.
void cosim_peach2_reset(cosim_peach2_t *board);

uint64_t cosim_peach2_cycles(const cosim_peach2_t *board); // evaluated cycles so far

// The registers COUNTER.*, in their order, with their current values; costs no packet and no time.
void cosim_peach2_counters(const cosim_peach2_t *board, uint32_t values[PEACH2_COUNTER_REGISTERS]);

// For `tcasim bench`: a bare loop of clock and eval on the same model with the same beats as a recorded run. Streams
// `packets` memory writes of mps_bytes from N to E as fast as they are taken, `cycles_out` cycles in all. No scheduler,
// no TLPs. Returns after the last beat left.
enum sim_status cosim_bench_bare(const struct cosim_peach2_config *config, uint64_t packets, uint64_t *cycles_out);

#ifdef __cplusplus
}
#endif
