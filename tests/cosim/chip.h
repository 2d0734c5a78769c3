// A chip without a board, for the tests of the RTL and its co-simulation.
//
// Packets that leave a port are kept in order with their times. The node is number 2 of the window; E leads to the
// nodes 3..7, W to 0..1, S to 8..15; N to its own host and GPUs, whose blocks are translated to HOST_BASE + block *
// HOST_STRIDE.
#pragma once

#include "sim/cosim/cosim.h"
#include "tests/shim/test.h"

#include "rtl/peach2_regs.h"

enum { PORT_N, PORT_E, PORT_W, PORT_S };
enum { BAR_REGISTERS = 0, BAR_WINDOW = 2 };
enum { BLOCK_HOST, BLOCK_GPU0, BLOCK_GPU1, BLOCK_BOARD };
enum { CHIP_PERIOD_PS = 4000, OWN_NODE = 2, REQUESTER_CHIP = 0x0500, REQUESTER_HOST = 0x0010 };

#define WINDOW_BASE UINT64_C(0x10000000000)
#define HOST_BASE   UINT64_C(0x100000)
#define HOST_STRIDE UINT64_C(0x4000000000)

struct chip_leaving {
    pcie_tlp_t *tlp;
    uint64_t time_ps;
};

struct chip_port {
    struct chip_leaving *left;
    unsigned count, capacity;
    unsigned next; // for chip_next
    unsigned taken;
};

struct chip {
    sim_t *sim;
    pcie_pool_t *pool;
    cosim_clock_t *clock;
    cosim_peach2_t *board;
    struct chip_port ports[COSIM_PORTS];
    uint8_t tag;
    void (*on_tx)(struct chip *chip, unsigned port, pcie_tlp_t *tlp); // may be NULL
    void *user; // for on_tx
};

struct cosim_peach2_config chip_config(void);
struct chip *chip_create(const struct cosim_peach2_config *config); // NULL: chip_config()
void chip_destroy(struct chip *chip);                               // fails the test if a TLP leaked

void chip_send(struct chip *chip, unsigned port, unsigned bar, pcie_tlp_t *tlp);
void chip_run(struct chip *chip); // until no event is left
// The next packet that left the port, or NULL. The chip keeps the reference.
pcie_tlp_t *chip_next(struct chip *chip, unsigned port);
unsigned chip_left(const struct chip *chip); // packets not yet returned, over all ports

void chip_write(struct chip *chip, unsigned port, unsigned bar, uint64_t address, uint32_t bytes, const void *data);
// Reads through N and expects `bytes` from any number of completions.
void chip_read(struct chip *chip, unsigned bar, uint64_t address, uint32_t bytes, uint8_t *data_out);
void chip_set32(struct chip *chip, uint32_t offset, uint32_t value);
void chip_set64(struct chip *chip, uint32_t offset, uint64_t value);
uint32_t chip_get32(struct chip *chip, uint32_t offset);
uint32_t chip_counter(struct chip *chip, uint32_t offset);
// Sets window, routes and translation as above.
void chip_join(struct chip *chip);

uint64_t chip_window(unsigned node, unsigned block, uint64_t offset);

uint32_t chip_random(uint64_t *state); // xorshift; *state is the seed, not 0
void chip_fill(uint64_t *state, uint8_t *data, uint32_t bytes);
