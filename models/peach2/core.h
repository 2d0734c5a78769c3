// The chip of a PEACH2 board as the board sees it: packets in and out of four ports. Two implementations are possible,
// the Verilated RTL (sim/cosim) and a transaction-level twin; the platform chooses and supplies the functions.
#pragma once

#include "models/flow/flow.h"
#include "models/pcie/tlp.h"

#define PEACH2_PORTS 4

enum peach2_port { PEACH2_PORT_N, PEACH2_PORT_E, PEACH2_PORT_W, PEACH2_PORT_S };

// From the board to the chip. rx: keeps the reference until the board's rx_taken is called.
struct peach2_core_ops {
    void (*rx)(void *core, unsigned port, unsigned bar, pcie_tlp_t *tlp);
    // false: with the packet that fills the hard IP, while it is passed to the board's tx; a packet never stops half way.
    void (*set_tx_ready)(void *core, unsigned port, bool ready);
    // Whether packets that enter a ring may start towards the port (docs/decisions/0005-whole-board.md).
    void (*set_tx_room)(void *core, unsigned port, bool room);
    // As at power-up, but the memory of descriptors keeps its contents. Packets inside are lost; of those that are not
    // taken, the board gets rx_taken. The hard IPs take packets and have room.
    void (*reset)(void *core);
    // Where a stream of writes goes that arrives at a port (struct pcie_end_ops). NULL: the chip wants packets.
    void (*writes_on)(void *core, unsigned port, unsigned bar, struct flow_path *path, uint64_t address,
                      uint64_t bytes);
};
