// Sets up scenarios for tests of the platform: nodes in a line, the E port of each cabled to the W port of the next.
#pragma once

#include "sim/scenario/scenario.h"

#define MIB (1ull << 20)

// Node names are node0, node1, ...; free with platform_fixture_free. Without runs.
struct scn_scenario *platform_fixture_line(unsigned nodes);
void platform_fixture_free(struct scn_scenario *scenario);
// Gives the node this many GPUs with the values of configs/gpu/k20.yaml, but with 64 MB. Does not change the board.
void platform_fixture_gpus(struct scn_scenario *scenario, uint32_t node, unsigned count);
// Appends a series; its sizes follow with platform_fixture_size_add.
struct scn_run *platform_fixture_run_add(struct scn_scenario *scenario, enum scn_workload workload,
                                         enum scn_method method);
void platform_fixture_size_add(struct scn_run *run, uint64_t bytes, uint64_t descriptors);
