// Makes the routes of an InfiniBand fabric whose graph is known. Private to the room.
#pragma once

#include "sim/scenario/ib_fabric.h"

// Zeroed memory; ends the program if there is none.
void *scn_ib_cells(size_t count, size_t size);
uint32_t scn_ib_distances(const struct scn_ib_fabric *fabric, uint32_t ib_switch, uint32_t *distances,
                          uint32_t *queue); // from a switch to all switches; returns their sum

// Sets order, position and parent_ports.
void scn_ib_order(struct scn_ib_fabric *fabric);
// Sets ports: shortest routes, or up*/down*.
void scn_ib_route(struct scn_ib_fabric *fabric, bool up_down);
