// Who has which part of the board's memory, in units of a descriptor: chains from the bottom, notification slots from
// the top. For libtca and the libraries built on it, which share the board.
//
// The last units are nobody's: one for each node of the sub-cluster, where the TCA Verbs of that node introduces
// itself.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "verbs-shim/peach2_driver.h"

#define TCA_BOARD_UNITS      PEACH2_BOARD_DESCRIPTORS
#define TCA_BOARD_UNIT_BYTES 32u
#define TCA_BOARD_MEETING    (TCA_BOARD_UNITS - PEACH2_NODES_MAX) // the first of those units

struct tca_context;

// Of the calling process; NULL before tcaInit.
struct tca_context *tca_context_current(void);
// What tcaInit does but for claiming the board, which is the caller's.
int tca_context_begin(struct backend_process *process);

bool tca_board_take_low(struct tca_context *context, uint32_t units, uint32_t *first_out);
bool tca_board_take_high(struct tca_context *context, uint32_t units, uint32_t *first_out);
void tca_board_give(struct tca_context *context, uint32_t first, uint32_t units);
