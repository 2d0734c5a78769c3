// Shared by the files of the driver. Private to the room.
#pragma once

#include "verbs-shim/peach2/peach2_driver.h"
#include "verbs-shim/peach2/peach2_poll_timer.h"

// The window: 512 GiB over 16 nodes, each with four blocks of 8 GiB (rtl/registers.def).
enum peach2_block { PEACH2_BLOCK_HOST, PEACH2_BLOCK_GPU0, PEACH2_BLOCK_GPU1, PEACH2_BLOCK_BOARD };

struct peach2_board_handle {
    struct backend backend;
    struct peach2_routing routing;
    uint64_t window_base;
    uint32_t control[PEACH2_CHANNELS];    // value of CONTROL that starts the channel; 0: nothing prepared
    struct backend_buffer interrupt_word; // target of the board's messages; without memory until interrupts are enabled
    peach2_chain_t *chains;
    struct peach2_reader *readers; // of peach2_proxy.h
};

uint64_t peach2_block_address(const peach2_handle_t *handle, uint32_t node, enum peach2_block block);

// peach2_proxy.c: destroys the readers that the program did not destroy.
void peach2_readers_destroy(peach2_handle_t *handle);

// Offset in BAR 0 of a channel's register.
uint64_t peach2_dmac_register(unsigned channel, unsigned reg);

// Programs routes and translation. -EINVAL as peach2_open.
int peach2_routes_program(peach2_handle_t *handle);

// Checks that registers and descriptors can hold it. -EINVAL, -ERANGE.
int peach2_transfer_check(const struct peach2_transfer *transfer);
static inline bool peach2_transfer_is_block(const struct peach2_transfer *transfer)
{
    return transfer->width != 0;
}

// Writes the addresses and the value of the completion status. Returns the bits of CONTROL that ask for it.
int peach2_notify_prepare(peach2_handle_t *handle, unsigned channel, const struct peach2_notify *notify,
                          uint32_t *control_out);

// MODE of CONTROL.
void peach2_mode_prepare(peach2_handle_t *handle, unsigned channel, enum peach2_dma_mode mode, uint32_t notify_control);

static inline void peach2_pay_call(const peach2_handle_t *handle)
{
    handle->backend.ops->cost(handle->backend.ctx, BACKEND_COST_CALL, 1);
}
