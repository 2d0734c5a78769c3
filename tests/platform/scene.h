// Scenarios for the tests of this folder: nodes in a line, each E port cabled to the next W port.
#pragma once

#include "sim/scenario/scenario.h"

#define MIB (1ull << 20)

// Node names are node0, node1, ...; free with scene_free. Without runs.
struct scn_scenario *scene_line(unsigned nodes);
void scene_free(struct scn_scenario *scene);
// Gives the node so many GPUs, as configs/gpu/k20.yaml has them but with 64 MB. The board, if it has one, stays.
void scene_gpus(struct scn_scenario *scene, uint32_t node, unsigned count);
// Appends a series; its sizes follow with scene_size.
struct scn_run *scene_run(struct scn_scenario *scene, enum scn_workload workload, enum scn_method method);
void scene_size(struct scn_run *run, uint64_t bytes, uint64_t descriptors);
