// A machine for the driver without a simulation: BARs that store writes, pinned memory from the heap, and a log of
// every access.
#pragma once

#include "rtl/peach2_regs.h"
#include "tests/shim/test.h"
#include "verbs-shim/peach2/peach2_driver.h"

#define WINDOW_BASE 0x8000000000ull
#define BAR0_BASE   0x4000000000ull
#define BAR0_BYTES  (128u << 10)
#define GPU_BASE(n) (0xc000000000ull + ((uint64_t)(n) << 34))
#define LOG_MAX     512
#define PINNED_MAX  16

enum access { ACCESS_WRITE, ACCESS_WRITE_COMBINED, ACCESS_READ, ACCESS_FENCE };

struct log_entry {
    enum access access;
    enum backend_bar bar;
    uint64_t offset, value;
    size_t bytes;
};

struct machine {
    struct backend backend;
    uint8_t bar0[BAR0_BYTES];
    unsigned gpus;       // GPU n has its BAR at GPU_BASE(n)
    bool silent;         // reads get no answer
    unsigned busy_reads; // reads of STATUS that show busy before they show the value in bar0
    struct log_entry log[LOG_MAX];
    unsigned log_count;
    uint64_t calls, interrupts; // paid
    void *pinned[PINNED_MAX];
    unsigned pinned_count, pinned_live;
    unsigned pinned_left;     // allocations that still succeed
    uint64_t word_after_wait; // value of the word after a wait
    bool wait_times_out;
    uint64_t now_ps, read_ps; // the clock, and the time of a read
};

void machine_init(struct machine *machine);
void machine_fini(struct machine *machine);
// Opens the board as node 1 of 4 in a line 0 - 1 - 2 - 3: W leads to 0, E to 2 and 3.
peach2_handle_t *machine_open(struct machine *machine);
uint64_t machine_register(const struct machine *machine, uint64_t offset, unsigned bytes);
void machine_register_set(struct machine *machine, uint64_t offset, uint64_t value, unsigned bytes);
// The last write to that offset of BAR 0; NULL: none.
const struct log_entry *machine_last_write(const struct machine *machine, uint64_t offset);
