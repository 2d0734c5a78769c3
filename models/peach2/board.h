// A PEACH2 board around its chip: joins the four ports of the chip with the ends of PCI Express links.
//
// The hard IP's latency and buffers are those of the links' ends; the board decodes the two BARs of the N port and
// moves packets between link and chip with back-pressure in both directions. Bus addresses are the node's. The hard IP
// begins to transmit with the first beat of a packet (its interface requires the beats of a packet without a gap, at
// the rate of the wire) and delivers a received packet when it is complete and its LCRC is checked. Packets wait in the
// hard IP's buffers, or also in DDR3 memory (ddr3.h). Leaves out: the management processor.
#pragma once

#include "models/pcie/link.h"
#include "models/peach2/core.h"
#include "rtl/peach2_regs.h"
#include "sim/kernel/sim.h"

typedef struct peach2_board peach2_board_t;

#define PEACH2_BAR0_BYTES   (128ull << 10)
#define PEACH2_WINDOW_BYTES (1ull << PEACH2_WINDOW_BITS)

// beat_ps: the chip's clock period, in which it moves 16 bytes.
enum sim_status peach2_board_create(sim_t *sim, const char *name, uint64_t bar0_base, uint64_t window_base,
                                    uint64_t beat_ps, peach2_board_t **board_out);
void peach2_board_destroy(peach2_board_t *board);

// Before the first packet, and once: packets of cables are buffered in DDR3 memory as well.
struct peach2_ddr3_config {
    uint32_t embedded_tlps; // 1 to 32
    uint64_t bytes_per_us;  // of the memory's bus
    uint64_t turn_ps;       // of each access, as direction and row change
};
enum sim_status peach2_board_add_ddr3(peach2_board_t *board, const struct peach2_ddr3_config *config);

// The chip; set once, before the first packet. The chip's callbacks are the functions below.
void peach2_board_set_core(peach2_board_t *board, const struct peach2_core_ops *ops, void *core);
void peach2_board_tx(void *board, unsigned port, pcie_tlp_t *tlp);
void peach2_board_rx_taken(void *board, unsigned port, pcie_tlp_t *tlp);
void peach2_board_rx_taken_at(void *board, unsigned port, pcie_tlp_t *tlp, uint64_t taken_ps); // known in advance

// The link's end at a port; NULL: it is not connected.
pcie_end_t *peach2_board_end(void *board, unsigned port);

// Resets the chip. The links of all ports are down, so that nothing waits here; what they have accepted is lost, too.
void peach2_board_reset(peach2_board_t *board);

// Becomes the owner of the link end (once per port). Packets of the chip for a port without a link are dropped and
// counted.
void peach2_board_connect(peach2_board_t *board, enum peach2_port port, pcie_end_t *end);
