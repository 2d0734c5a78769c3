// A chip with a scripted host at N, for the tests of the DMA controller.
//
// The host answers the chip's reads from its memory (reads of other addresses are unsupported) and keeps every write,
// at N and at the three cables, in images of the memories there; a write to any other address fails the test. Each
// image has an expected image: the tests declare the moved data (dmac_expect, dmac_expect_end) and compare
// (dmac_compare). A read is answered with the memory at its arrival, so that a read that overtakes a write is detected.
#pragma once

#include "tests/cosim/chip.h"

enum { SPACE_HOST, SPACE_GPU, SPACE_EAST, SPACE_WEST, SPACE_SOUTH, SPACE_BOARD, SPACE_COUNT };
enum {
    SPACE_BYTES = 0x20000,
    BOARD_BYTES = 0x8000,
    SOURCE_BYTES = 0x8000,  // random bytes at the start of the host's and the GPU's memory
    CHAIN_OFFSET = 0x8000,  // descriptors in the host's memory
    TARGET_OFFSET = 0x10000 // zero in every memory
};
enum { DMAC_CHANNELS = 4, DMAC_TIMEOUT_CYCLES = 1 << 18 };

struct dmac_space {
    unsigned port;
    uint64_t base, alias; // where its writes arrive; its address in the window
    uint32_t bytes;
    uint8_t *got, *want, *before;
};

struct dmac_transfer {
    uint64_t source, destination;
    uint32_t bytes;
    bool stride, fence, interrupt;
    uint32_t width, source_pitch, destination_pitch; // bytes
    uint8_t reserved;                                // of the descriptor
};

// The values for a channel's registers.
struct dmac_order {
    unsigned channel, mode;
    bool notify_local, notify_remote, interrupt;
    struct dmac_transfer transfer;
    uint64_t descriptor;
    uint64_t local, remote;
    uint32_t value;
};

enum dmac_answer { ANSWER_DATA, ANSWER_UNSUPPORTED, ANSWER_ABORT, ANSWER_NOTHING };

// The answers to reads that touch this range of bus addresses; the first matching rule counts.
struct dmac_rule {
    uint64_t address;
    uint32_t bytes;
    enum dmac_answer answer;
    uint32_t delay_cycles, gap_cycles; // to the first completion, and between completions
};

struct dmac;

struct dmac_reply {
    struct dmac *dmac;
    sim_event_t event;
    pcie_tlp_t *read; // NULL: free
    enum dmac_answer answer;
    uint32_t offset, gap_cycles;
    uint8_t data[512];
};

struct dmac_timer {
    struct dmac *dmac;
    sim_event_t event;
    void (*fn)(struct dmac *dmac, unsigned number);
    unsigned number;
};

struct dmac {
    struct chip *chip;
    struct cosim_peach2_config config;
    struct dmac_space spaces[SPACE_COUNT];
    uint64_t random;
    // the host's answers
    uint32_t delay_cycles;
    bool split;   // one completion for each 64 bytes
    bool shuffle; // completions of random sizes and at random times
    struct dmac_rule rules[4];
    struct dmac_reply replies[64];
    pcie_tlp_t **reads; // all reads of the chip, in order
    unsigned read_count;
    void (*on_write)(struct dmac *dmac, unsigned port, uint64_t address, uint32_t bytes); // may be NULL
    void *user;                                                                           // for on_write
    struct dmac_timer timers[512];
    unsigned timer_count, stalls_left;
    sim_event_t stall, watchdog;
    uint64_t watched_cycles;
};

struct dmac *dmac_create(const struct cosim_peach2_config *config); // NULL: chip_config()
void dmac_destroy(struct dmac *dmac);
void dmac_run(struct dmac *dmac); // until no event is left; a channel that hangs fails the test
void dmac_after(struct dmac *dmac, uint32_t cycles, void (*fn)(struct dmac *dmac, unsigned number), unsigned number);
void dmac_stall(struct dmac *dmac, unsigned times); // ports stall and continue, this many times at random

uint64_t dmac_address(unsigned space, uint32_t offset); // of the host and the GPU: bus addresses
uint64_t dmac_window(unsigned space, uint32_t offset);  // of every space: an address of the window
uint64_t dmac_status_address(unsigned space, unsigned channel);

// These are queued; dmac_run sends them.
void dmac_set32(struct dmac *dmac, unsigned channel, uint32_t offset, uint32_t value);
void dmac_set64(struct dmac *dmac, unsigned channel, uint32_t offset, uint64_t value);
void dmac_prepare(struct dmac *dmac, const struct dmac_order *order); // all but CONTROL
void dmac_go(struct dmac *dmac, const struct dmac_order *order);      // CONTROL
void dmac_start(struct dmac *dmac, const struct dmac_order *order);   // both
// A descriptor at a bus address (PEACH2_MODE_CHAIN_HOST) or an offset in the board's memory; next: 0 ends the chain.
void dmac_describe(struct dmac *dmac, unsigned mode, uint64_t at, const struct dmac_transfer *transfer, uint64_t next);
// Descriptors one after the other from `at` on.
void dmac_chain(struct dmac *dmac, unsigned mode, uint64_t at, const struct dmac_transfer *transfers, unsigned count);

uint32_t dmac_get32(struct dmac *dmac, uint32_t offset); // runs
uint32_t dmac_status(struct dmac *dmac, unsigned channel);
uint32_t dmac_completed(struct dmac *dmac, unsigned channel);
// A copy of a completion that answers the whole read, now, with bytes of 0xee.
void dmac_answer_again(struct dmac *dmac, pcie_tlp_t *read);

// `bytes` from the host's memory at `from` to `space`; 16 B aligned offsets after TARGET_OFFSET.
struct dmac_transfer dmac_copy(uint32_t from, unsigned space, uint32_t to, uint32_t bytes);
// Register mode with both status words: the local one at the host, the remote one in the east.
struct dmac_order dmac_order(unsigned channel, struct dmac_transfer transfer);
struct dmac_order dmac_order_chain(unsigned channel, unsigned mode, uint64_t descriptor);

void dmac_expect(struct dmac *dmac, const struct dmac_transfer *transfer); // the data are moved
void dmac_expect_bytes(struct dmac *dmac, uint64_t address, uint32_t bytes, const void *data);
// The channel ended in this way, and STATUS and the requested status words show it.
void dmac_expect_end(struct dmac *dmac, const struct dmac_order *order, unsigned error);
void dmac_compare(struct dmac *dmac);        // every image is as expected
void dmac_compare_partly(struct dmac *dmac); // or unchanged, byte by byte
void dmac_expect_works(struct dmac *dmac, unsigned channel);
// Starts it: it ends with the error before any data move, and the channel works afterwards.
void dmac_expect_refused(struct dmac *dmac, const struct dmac_order *order, unsigned error);
const uint8_t *dmac_got(struct dmac *dmac, uint64_t address);
