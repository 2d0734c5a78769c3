// Benchmarks of attached programs: perftest under `tcasim exec`. Where it is not installed they are skipped.
#pragma once

#include "sim/cli/bench.h"

bool cli_bench_send_lat(const struct cli_paths *paths, struct cli_bench_result *result);
bool cli_bench_write_bw_ibsim0(const struct cli_paths *paths, struct cli_bench_result *result);
bool cli_bench_write_bw_tca0(const struct cli_paths *paths, struct cli_bench_result *result);
