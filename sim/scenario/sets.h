// Which nodes and switches cables join, over any number of others. Private to the room.
#pragma once

#include <stdbool.h>

#include "sim/scenario/scenario.h"

struct scn_sets {
    uint32_t of[SCN_NODES_MAX + SCN_IB_SWITCHES_MAX]; // of each vertex (ib_fabric.h) one of its set; itself: the root
};

void scn_sets_init(struct scn_sets *sets);
void scn_sets_join(struct scn_sets *sets, uint32_t a, uint32_t b);
// Cables with an end that does not exist join nothing. HCAs forward nothing, but each has one cable.
void scn_sets_join_boards(struct scn_sets *sets, const struct scn_scenario *scenario);
void scn_sets_join_ib(struct scn_sets *sets, const struct scn_scenario *scenario);
bool scn_sets_joined(struct scn_sets *sets, uint32_t a, uint32_t b);
