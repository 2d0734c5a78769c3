// The amount of simulation in a run, read from its results: events from manifest.yaml, TLPs from counters.csv.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct cli_bench_cost {
    uint64_t events;
    uint64_t tlps; // first transmissions, added up over all links
};

// false: a file cannot be read.
bool cli_bench_cost_read(const char *directory, struct cli_bench_cost *cost_out);
