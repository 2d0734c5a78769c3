// The co-simulation compared with a bare loop of clock and eval.
#pragma once

#include "sim/cli/bench.h"

bool cli_bench_cosim(const struct cli_paths *paths, struct cli_bench_result *result);
