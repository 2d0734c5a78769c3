// A drawing of a scenario's fabric as SVG: nodes as discs, cables as lines with the port's letter at each end, filled
// where the root complex is. A ring is drawn as a circle, clockwise to the east; two rings with common S cables are
// drawn one inside the other; a chain is a line; anything else is drawn on one circle.
#pragma once

#include <stddef.h>

#include "sim/scenario/scenario.h"

// SIM_ERR_IO: the reason is in error.
enum sim_status report_topology_write(const struct scn_scenario *scenario, const char *path, char *error,
                                      size_t error_size);
