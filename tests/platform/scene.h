// Scenarios for the tests of this folder: nodes in a line, each E port cabled to the next W port.
#pragma once

#include "sim/scenario/scenario.h"

#define MIB (1ull << 20)

// Node names are node0, node1, ...; free with scene_free. Without runs.
struct scn_scenario *scene_line(unsigned nodes);
void scene_free(struct scn_scenario *scene);
// Appends a series; its sizes follow with scene_size.
struct scn_run *scene_run(struct scn_scenario *scene, enum scn_program program, enum scn_method method);
void scene_size(struct scn_run *run, uint64_t bytes, uint64_t descriptors);
