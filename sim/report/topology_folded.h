// Draws a scenario with many nodes: each sub-cluster is one box, and so are neighbouring nodes without cables of boards
// at the same InfiniBand switch; below the switches, in rows by their distance from the nodes. A line between two
// stands for all cables between them. Private to the room.
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "sim/scenario/routes.h"

// Whether the scenario is drawn like this: more than 16 nodes, or several sub-clusters of more than one node.
bool topology_is_folded(const struct scn_scenario *scenario, const struct scn_routes *routes);

void topology_folded_draw(const struct scn_scenario *scenario, const struct scn_routes *routes, FILE *out);

// topology_svg.c: a text with its special characters replaced.
void topology_text_write(FILE *out, const char *text);

// The attribute data-links of an element: names of links, one by one. Without any there is no attribute.
struct topology_names {
    FILE *out;
    bool some;
};
void topology_name_write(struct topology_names *names, const char *name);
void topology_names_end(struct topology_names *names);

// The attributes data-links and data-name of a switch.
void topology_switch_links_write(const struct scn_scenario *scenario, uint32_t index, FILE *out);
