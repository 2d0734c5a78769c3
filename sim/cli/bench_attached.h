// Benchmarks of attached programs under `tcasim exec`: perftest, fio, and programs that are compiled for the benchmark.
// A program that is not installed is skipped.
#pragma once

#include "sim/cli/bench.h"

bool cli_is_installed(const char *program); // searched as execvp does
// bench_attached.c
bool cli_bench_send_lat(const struct cli_paths *paths, struct cli_bench_result *result);
bool cli_bench_write_bw_ibsim0(const struct cli_paths *paths, struct cli_bench_result *result);
bool cli_bench_write_bw_tca0(const struct cli_paths *paths, struct cli_bench_result *result);
bool cli_bench_write_bw_ibsim0_flow(const struct cli_paths *paths, struct cli_bench_result *result);
bool cli_bench_write_bw_tca0_flow(const struct cli_paths *paths, struct cli_bench_result *result);
bool cli_bench_write_lat_all(const struct cli_paths *paths, struct cli_bench_result *result);
// bench_programs.c
bool cli_bench_fio(const struct cli_paths *paths, struct cli_bench_result *result);
bool cli_bench_gpu_copy(const struct cli_paths *paths, struct cli_bench_result *result);
bool cli_bench_phases(const struct cli_paths *paths, struct cli_bench_result *result);
bool cli_bench_windows(const struct cli_paths *paths, struct cli_bench_result *result);
bool cli_bench_mpi_tca0(const struct cli_paths *paths, struct cli_bench_result *result);
bool cli_bench_himeno(const struct cli_paths *paths, struct cli_bench_result *result);
