// Who has which part of the board's memory, in units of a descriptor. For libtca and the libraries built on it, which
// share the board.
//
// Chains lie at the bottom. Above them, at the same place in every board, are the notification slots of libtca, so many
// for each sender, and last a unit for each node of the sub-cluster, where the TCA Verbs of that node introduces
// itself.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "verbs-shim/peach2/peach2_driver.h"
#include "verbs-shim/libtca/tca.h"

#define TCA_BOARD_UNITS      PEACH2_BOARD_DESCRIPTORS
#define TCA_BOARD_UNIT_BYTES 32u
#define TCA_BOARD_MEETING    (TCA_BOARD_UNITS - PEACH2_NODES_MAX) // the first of those units
#define TCA_BOARD_SLOTS      (TCA_BOARD_MEETING - PEACH2_NODES_MAX * TCA_SLOTS_BYTES / TCA_BOARD_UNIT_BYTES)
#define TCA_SLOT_BYTES       8u
#define TCA_SLOTS_BYTES      (tcaSlots * TCA_SLOT_BYTES) // of one sender

struct tca_context;

// Of the calling process; NULL before tcaInit.
struct tca_context *tca_context_current(void);
// What tcaInit does but for claiming the board, which is the caller's.
int tca_context_begin(struct backend_process *process);

// Another library takes a DMA channel, or gives it back: libtca's calls refuse it meanwhile, and nothing is set on it.
// false: a DMA of libtca's runs on it.
bool tca_channel_take(struct tca_context *context, unsigned channel);
void tca_channel_give(struct tca_context *context, unsigned channel);

// For a chain. false: there is no room.
bool tca_board_take(struct tca_context *context, uint32_t units, uint32_t *first_out);
void tca_board_give(struct tca_context *context, uint32_t first, uint32_t units);

// What is refused meanwhile the program did not ask for: a library tries.
void tca_note_quiet(bool quiet);
