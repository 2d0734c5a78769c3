// The border between the software a user links and the machine it runs on.
//
// Everything in verbs-shim reaches devices and time through this table alone, so that the same code runs on simulated
// devices in one process (sim/platform), in an attached process, and on the real driver. On real hardware `cost` is
// empty, `wait_word` is a polling loop, and the writes are stores to mmap'ed BARs.
//
// A backend belongs to one thread of one node's program. Functions that fail return a negative errno value.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum backend_bar { BACKEND_BAR_REGISTERS, BACKEND_BAR_WINDOW };

// Work of the program itself that takes time on a processor. Empty on real hardware.
enum backend_cost {
    BACKEND_COST_CALL,       // entry and exit of a library call; amount: calls
    BACKEND_COST_LOAD_STORE, // cached accesses of up to 8 B; amount: accesses
    BACKEND_COST_COPY,       // memcpy in host memory; amount: bytes
    BACKEND_COST_INTERRUPT   // from a device's message to the thread that waits for it; amount: interrupts
};

// Pinned host memory that a board can reach.
struct backend_buffer {
    void *address;        // for the program
    uint64_t bus_address; // for devices of the same node
    size_t bytes;
};

struct backend_ops {
    // Page-aligned, zeroed. -ENOMEM, -EINVAL (0 bytes).
    int (*alloc_pinned)(void *ctx, size_t bytes, struct backend_buffer *buffer_out);
    void (*free_pinned)(void *ctx, struct backend_buffer *buffer);

    uint64_t (*bar_bytes)(void *ctx, enum backend_bar bar);
    uint64_t (*bar_bus_address)(void *ctx, enum backend_bar bar);

    // Stores through a write-combining mapping; they leave at the latest with the next fence. Any length and alignment.
    void (*write_combined)(void *ctx, enum backend_bar bar, uint64_t offset, const void *data, size_t bytes);
    void (*fence)(void *ctx);
    // Uncached accesses, naturally aligned, 4 or 8 bytes. A read that nobody answers gives all ones and -EIO.
    void (*write)(void *ctx, enum backend_bar bar, uint64_t offset, uint64_t value, unsigned bytes);
    int (*read)(void *ctx, enum backend_bar bar, uint64_t offset, unsigned bytes, uint64_t *value_out);

    // Waits until (*word & mask) == value, where word lies in pinned memory. timeout_ns 0: forever. -ETIMEDOUT.
    int (*wait_word)(void *ctx, const volatile uint64_t *word, uint64_t mask, uint64_t value, uint64_t timeout_ns);

    // The time stamp counter, in picoseconds; reading it costs time.
    uint64_t (*time_ps)(void *ctx);
    void (*cost)(void *ctx, enum backend_cost kind, uint64_t amount);
};

struct backend {
    const struct backend_ops *ops;
    void *ctx;
};

// A program's process as its environment knows it. Libraries that keep state for a process hang it here, so that
// several simulated processes may live in one.
struct backend_process {
    struct backend backend;
    struct peach2_board_handle *board;      // the node's board, opened by the environment; NULL: none
    void *library;                          // libtca's state; NULL before its first use
    void (*library_release)(void *library); // called by the environment after the process's last instruction
};

// The calling process: a function of the environment. In one process of simulated threads that of the calling thread,
// on real hardware the only one. NULL: the caller is no such process.
struct backend_process *backend_current(void);
