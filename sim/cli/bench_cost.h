// What a run simulated, read from the results it wrote: events from manifest.yaml, TLPs from counters.csv.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct cli_bench_cost {
    uint64_t events;
    uint64_t tlps; // over all links, each time a TLP is sent for the first time on one
};

// false: a file cannot be read.
bool cli_bench_cost_read(const char *directory, struct cli_bench_cost *cost_out);
