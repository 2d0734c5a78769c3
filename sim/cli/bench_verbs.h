// Benchmarks of verbs: the same ping-pong on either device, and the memory of a queue pair.
#pragma once

#include "sim/cli/bench.h"

bool cli_bench_tca0(const struct cli_paths *paths, struct cli_bench_result *result);
bool cli_bench_ibsim0(const struct cli_paths *paths, struct cli_bench_result *result);
