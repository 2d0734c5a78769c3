// The parts of the board's memory, in units of a descriptor. For libtca and the libraries built on it, which share the
// board.
//
// Chains are at the bottom. Above them, at the same offset in every board, are the notification slots of libtca, the
// same number for each sender. Last is one unit for each node of the sub-cluster, to which that node's TCA Verbs writes
// when it sets up a connection.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "verbs-shim/peach2/peach2_driver.h"
#include "verbs-shim/libtca/tca.h"

#define TCA_BOARD_UNITS         PEACH2_BOARD_DESCRIPTORS
#define TCA_BOARD_UNIT_BYTES    32u
#define TCA_BOARD_INTRODUCTIONS (TCA_BOARD_UNITS - PEACH2_NODES_MAX) // first unit for connection set-up
#define TCA_BOARD_SLOTS         (TCA_BOARD_INTRODUCTIONS - PEACH2_NODES_MAX * TCA_SLOTS_BYTES / TCA_BOARD_UNIT_BYTES)
#define TCA_SLOT_BYTES          8u
#define TCA_SLOTS_BYTES         (tcaSlots * TCA_SLOT_BYTES) // slots of one sender

struct tca_context;

// The context of the calling process; NULL before tcaInit.
struct tca_context *tca_context_current(void);
// What tcaInit does, except that the caller must claim the board.
int tca_context_begin(struct backend_process *process);

// Another library takes a DMA channel or gives it back. In between, libtca's calls refuse the channel, and nothing is
// set on it. false: a DMA of libtca runs on it.
bool tca_channel_take(struct tca_context *context, unsigned channel);
void tca_channel_give(struct tca_context *context, unsigned channel);

// Allocates units for a chain. false: there is no room.
bool tca_board_take(struct tca_context *context, uint32_t units, uint32_t *first_out);
void tca_board_give(struct tca_context *context, uint32_t first, uint32_t units);

// true: refusals are not reported, because a library makes the calls and not the program.
void tca_note_suppress(bool suppress);
