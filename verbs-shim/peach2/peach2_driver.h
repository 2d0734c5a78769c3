// The driver of a PEACH2 board: what a kernel driver and its thin user library do on the machine.
//
// Programs the routes and the N-port translation at open, gives the window address of remote memory, writes by PIO,
// starts DMAs in register mode and as chains of descriptors in host or board memory, and waits for completions. The
// driver checks those limits of the board that it can know; the board reports the others as error status.
//
// Functions return 0 or a negative errno; a DMA that the board refused or could not finish gives -EREMOTEIO from
// peach2_dma_wait and peach2_wait_status with the board's error code in *error_out.
//
// Time: functions that set something up pay a library call. Stores by PIO, starts and waits pay none: programs use the
// mapped BAR and the mapped status word directly, as those of the published measurements do.
//
// A handle is used by one thread at a time. Nothing is lost when that thread is abandoned in the middle of a call:
// peach2_close releases whatever the thread had allocated.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "rtl/peach2_regs.h"
#include "verbs-shim/backend/backend.h"

#define PEACH2_NODES_MAX         16
#define PEACH2_CHANNELS          PEACH2_DMAC_COUNT
#define PEACH2_BOARD_DESCRIPTORS PEACH2_MEMORY_DESCRIPTORS
#define PEACH2_DMA_BYTES_MAX     (PEACH2_DESCRIPTOR_LENGTH_MAX & ~3u)
#define PEACH2_DMA_WIDTH_MAX     (4 * PEACH2_DESCRIPTOR_WIDTH_MAX)
#define PEACH2_DMA_PITCH_MAX     (4 * PEACH2_DESCRIPTOR_SOURCE_PITCH_MAX)
#define PEACH2_HOST_BYTES_MAX    (8ull << 30) // host memory of a node that the window reaches
#define PEACH2_GPUS_MAX          2            // the window reaches the first GPUs of a node,
#define PEACH2_GPU_BYTES_MAX     (8ull << 30) // and this much of the BAR of each
#define PEACH2_NO_PORT           0xffu

typedef struct peach2_board_handle peach2_handle_t;

// The output that reaches each node: ports 1 E, 2 W, 3 S, or PEACH2_NO_PORT if none does. The own node's entry is
// ignored.
struct peach2_routing {
    uint32_t node, node_count;
    uint8_t port_of_node[PEACH2_NODES_MAX];
    uint8_t gpus; // GPUs of the own node that have a block of the window; peach2_open counts them
};

// An entry of the board's ROUTE registers: offsets in the window whose masked bits are within the bounds go to the
// port.
#define PEACH2_ROUTES_MAX 8
struct peach2_route {
    bool enabled;
    uint8_t port; // 0 N, 1 E, 2 W, 3 S, 4 this board
    uint64_t mask, lower, upper;
};

// The entries that peach2_open programs; of those that match, the lowest wins. Each cable port has two entries, as the
// nodes that one direction of a ring reaches may wrap around the end of the numbering. -EINVAL: no such node, a port
// other than E, W and S, a port that leads to more than two ranges of consecutive nodes, or too many GPUs.
int peach2_routes_make(const struct peach2_routing *routing, struct peach2_route routes_out[PEACH2_ROUTES_MAX]);

// The text of an enum peach2_dma_error for messages, also for an unknown code.
const char *peach2_dma_error_name(unsigned error);

// -ENXIO: no PEACH2 that this driver knows answers behind the BAR. -EINVAL: routes that the registers cannot express
// (see peach2_routes_make).
int peach2_open(const struct backend *backend, const struct peach2_routing *routing, peach2_handle_t **handle_out);
// Another thread's view of an open board: it has its own backend and the same routes, which it does not program again.
// The two may not use the same DMA channel, and only one of them may use interrupts.
int peach2_open_shared(const peach2_handle_t *open, const struct backend *backend, peach2_handle_t **handle_out);
// The same if the open handle is in another process: the board runs with these routes, which are not programmed again.
int peach2_open_booted(const struct backend *backend, const struct peach2_routing *routing,
                       peach2_handle_t **handle_out);
// After a reset of the board: programs again what peach2_open programmed, and returns when that is in force. Whatever
// else was prepared is lost. -ENXIO: the board does not answer.
int peach2_restore(peach2_handle_t *handle);
// The routing with which the handle was opened.
const struct peach2_routing *peach2_routing(const peach2_handle_t *handle);
// Also releases the chains and readers that still exist.
void peach2_close(peach2_handle_t *handle);
const struct backend *peach2_backend(const peach2_handle_t *handle);
uint32_t peach2_node(const peach2_handle_t *handle); // the own node
uint32_t peach2_node_count(const peach2_handle_t *handle);

// Bus address through which any board and any CPU of the sub-cluster writes to `bus_address` of host memory in `node`.
// 0: there is no such node, or the window does not reach the address.
uint64_t peach2_window_address(const peach2_handle_t *handle, uint32_t node, uint64_t bus_address);

// The same for offset `offset` in the BAR of a GPU of `node`. 0: there is no such node, or the window does not reach
// that GPU or that offset. The driver does not know whether the node has that GPU.
uint64_t peach2_gpu_window_address(const peach2_handle_t *handle, uint32_t node, uint32_t gpu, uint64_t offset);

// PIO: stores into the window and a fence. window_address as above. -EINVAL: not inside the window.
int peach2_pio_write(peach2_handle_t *handle, uint64_t window_address, const void *data, size_t bytes);

// --- DMA ---------------------------------------------------------------------------------------------------------

// Status words are 8 bytes: lower half the value given here, upper half the channel's STATUS (error in bits 7:4).
struct peach2_notify {
    uint64_t local_address;  // 0: none. Bus address in own host memory, 8 B aligned
    uint64_t remote_address; // 0: none. Window address, 8 B aligned
    uint32_t value;
};

enum peach2_transfer_flags {
    PEACH2_TRANSFER_FENCE = 1,    // in a chain: starts when every earlier write of the channel has been issued
    PEACH2_TRANSFER_INTERRUPT = 2 // interrupts the own host when the last write of the transfer has been issued
};

// One run of bytes, or rows of a block: `width` bytes each, the pitches apart; the last row may be short.
struct peach2_transfer {
    uint64_t source;                          // a bus address on the own node
    uint64_t destination;                     // a bus address on the own node, or a window address
    uint32_t bytes;                           // of all rows
    uint32_t width;                           // of a row, a multiple of 4; 0: one run, the pitches are ignored
    uint32_t source_pitch, destination_pitch; // multiples of 4; the board refuses them if their low 4 bits differ
    uint32_t flags;                           // of enum peach2_transfer_flags
};

enum peach2_chain_memory { PEACH2_CHAIN_HOST, PEACH2_CHAIN_BOARD };

// Register mode: prepare writes all registers except the start; start is one write and may be repeated with the same
// values. -EINVAL: null, a bad channel, a status word that is not 8 B aligned, or a width or pitch that the registers
// do not take. notify may be NULL: none.
int peach2_dma_prepare(peach2_handle_t *handle, unsigned channel, const struct peach2_transfer *transfer,
                       const struct peach2_notify *notify);
// -EINVAL: bad channel, or nothing was prepared on it.
int peach2_dma_start(peach2_handle_t *handle, unsigned channel);

// A chain of count descriptors, built in pinned host memory, or in the board's memory from board_index on. The chain
// may be started any number of times. -EINVAL: empty, or a width or pitch that is no multiple of 4. -ENOSPC: does not
// fit in the board's memory. -ERANGE: a length, width or pitch that does not fit in a descriptor.
typedef struct peach2_chain peach2_chain_t;
int peach2_chain_create(peach2_handle_t *handle, enum peach2_chain_memory memory, uint32_t board_index,
                        const struct peach2_transfer *transfers, uint32_t count, peach2_chain_t **chain_out);
void peach2_chain_destroy(peach2_chain_t *chain);
// For tests of bad input: makes descriptor `index` point to `next_index` instead of the next one, and not be the last.
// next_index may be beyond the chain.
int peach2_chain_relink(peach2_chain_t *chain, uint32_t index, uint32_t next_index);
int peach2_chain_prepare(peach2_handle_t *handle, unsigned channel, const peach2_chain_t *chain,
                         const struct peach2_notify *notify);
// The same by one register write and without a library call, with the notification of the channel's last prepare.
// -EINVAL: there was none.
int peach2_chain_select(peach2_handle_t *handle, unsigned channel, const peach2_chain_t *chain);
// Replaces the transfers of a chain that does not run, with at most as many as it was created with. Errors as create.
int peach2_chain_rewrite(peach2_chain_t *chain, const struct peach2_transfer *transfers, uint32_t count);

// Waits until a status word in own pinned memory is non-zero, resets it to zero and splits its value. timeout_ns 0:
// forever; otherwise -ETIMEDOUT. value_out may be NULL.
int peach2_wait_status(peach2_handle_t *handle, volatile uint64_t *status_word, uint64_t timeout_ns,
                       uint32_t *value_out, unsigned *error_out);
// Reads STATUS of the channel by PIO until it is not busy. -EIO: the board does not answer. -ETIMEDOUT: the channel was
// busy for PEACH2_DMA_TIMEOUT_NS; the DMA continues, and one may wait again.
#define PEACH2_DMA_TIMEOUT_NS 1000000000ull
int peach2_dma_wait(peach2_handle_t *handle, unsigned channel, unsigned *error_out);
// Reads STATUS once. -EAGAIN: a DMA runs.
int peach2_dma_poll(peach2_handle_t *handle, unsigned channel, unsigned *error_out);

// --- interrupts --------------------------------------------------------------------------------------------------

// Bits 0..3 belong to the DMA channels; the own host and other boards raise the others.
#define PEACH2_INTERRUPT_RAISED (UINT32_MAX << PEACH2_INTERRUPT_RAISED_LSB)

// From now on the board interrupts the own host for the bits of `mask` (0: none). Bits that were pending before are
// dropped. -ENOMEM: no pinned memory for the board's message.
int peach2_interrupt_enable(peach2_handle_t *handle, uint32_t mask);
// The board stops to interrupt and to write the word. Called before close if other nodes may still raise bits.
void peach2_interrupt_disable(peach2_handle_t *handle);
// For a caller that polls the board's word and does not sleep. -EAGAIN: the board has not interrupted.
int peach2_interrupt_take(peach2_handle_t *handle, uint32_t *pending_out);
const volatile uint64_t *peach2_interrupt_word(const peach2_handle_t *handle); // only while interrupts are enabled
// Sleeps until the board interrupts, pays the handling, and takes the pending bits. timeout_ns 0: forever; otherwise
// -ETIMEDOUT. -EINVAL: interrupts are not enabled. -EIO: the board does not answer.
int peach2_interrupt_wait(peach2_handle_t *handle, uint64_t timeout_ns, uint32_t *pending_out);
// Raises bits at the board of any node, also the own one, after everything that this handle stored there before.
// -EINVAL: no such node, or bits outside PEACH2_INTERRUPT_RAISED.
int peach2_interrupt_raise(peach2_handle_t *handle, uint32_t node, uint32_t bits);

// --- the board's memory --------------------------------------------------------------------------------------------

// Address through which any board and any CPU of the sub-cluster writes to the internal memory of `node`'s board. 0:
// there is no such node, or offset is beyond the memory.
uint64_t peach2_board_memory_address(const peach2_handle_t *handle, uint32_t node, uint32_t offset);
// The own board: one PCIe read or write of 8 bytes. offset is a multiple of 8. -EINVAL, -EIO.
int peach2_board_memory_read(peach2_handle_t *handle, uint32_t offset, uint64_t *value_out);
int peach2_board_memory_write(peach2_handle_t *handle, uint32_t offset, uint64_t value);

// BAR 0, for diagnosis and tests.
int peach2_register_read(peach2_handle_t *handle, uint64_t offset, unsigned bytes, uint64_t *value_out);
void peach2_register_write(peach2_handle_t *handle, uint64_t offset, uint64_t value, unsigned bytes);
