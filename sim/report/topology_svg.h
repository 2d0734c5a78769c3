// A drawing of a scenario's fabric as SVG: nodes as discs, cables as lines with the port's letter at each end, filled
// where the root complex is. A ring is drawn as a circle, clockwise to the east; two rings with common S cables are
// drawn one inside the other; a chain is a line; anything else is drawn on one circle.
//
// A line has the name of its link (sim/scenario/links.h) as `data-link`; it leads from end 0 to end 1. What stands for
// several links has their names with blanks between them as `data-links`: a disc the node's slots, a switch its cables,
// in a folded drawing also lines and boxes. `data-name` is the name of the node or switch, `data-note` a text on colours.
#pragma once

#include <stddef.h>
#include <stdio.h>

#include "sim/scenario/scenario.h"

void topology_draw(const struct scn_scenario *scenario, FILE *out);

// SIM_ERR_IO: the reason is in error.
enum sim_status report_topology_write(const struct scn_scenario *scenario, const char *path, char *error,
                                      size_t error_size);
