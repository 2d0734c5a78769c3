// Results as files and as a table: CSV, comparison with the published values, gnuplot, manifest.
//
// All output is derived from the points, the counters and the scenario. Nothing of the real machine's clock or its
// environment reaches data.csv, compare.csv, counters.csv or resolved.yaml.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "sim/scenario/scenario.h"

typedef struct report report_t;

struct report_point {
    const char *series; // copied
    uint64_t bytes, descriptors, operations;
    uint64_t total_ps, min_ps, max_ps;
    uint32_t sweep;               // number of the swept value, from 1; 0: no sweep
    uint64_t ranks, memory_bytes; // 0: not given
    uint64_t low_ps, high_ps;     // interval of the latency (interval.h); 0: not given
};

// scenario must outlive the report. reference_csv: the project's copy of the published values.
enum sim_status report_create(const struct scn_scenario *scenario, const char *reference_csv, report_t **report_out);
void report_destroy(report_t *report);

void report_add_point(report_t *report, const struct report_point *point);
size_t report_point_count(const report_t *report);
// Adds what a program printed, for the file programs.txt; both texts are copied.
void report_add_text(report_t *report, const char *program, const char *text);
// Adds the whole output of a program of the scenario (by its number there), for `expect:`; copied.
void report_add_output(report_t *report, uint32_t program, const char *bytes, size_t length);
// The run had programs; their counters are those of this series.
void report_set_programs(report_t *report, const char *series);
void report_add_counter(report_t *report, const char *series, const char *component, const char *name, const char *unit,
                        uint64_t value);
// How a series ran; for the manifest.
void report_add_run(report_t *report, const char *series, uint64_t simulated_ps, uint64_t events, uint64_t rtl_cycles);

// What the last one ran on: "rtl", "twin", "both" or "" for its boards; its device, such as "tca0".
void report_describe_run(report_t *report, const char *boards, const char *device);
// A series without results, or of a sweep a point; for the summary. Texts are copied.
void report_add_failure(report_t *report, const char *series, const char *text);

// The effect of a fault in a series; for the terminal and the manifest. Texts are copied.
struct report_fault_end {
    const char *name;       // "node0.E"
    uint64_t sent;          // TLPs or packets
    uint64_t lost, dropped; // queued or in flight when the cable was pulled; given to this end later
};
struct report_fault {
    const char *series, *what; // "node0.E-node1.W pulled"
    bool happened;
    uint64_t at_ps, after_start_ps; // simulated time, and since the programs started
    uint64_t back_ps;               // simulated time of its end; 0: never
    struct report_fault_end ends[2];
};
void report_add_fault(report_t *report, const struct report_fault *fault);

// Columns of data.csv, in order: series,bytes,latency_us,bandwidth_GBps,descriptors,operations,min_latency_us,
// max_latency_us; ranks and memory_MB where a row has them; of a sweep also sweep and a column for each swept key.
// Latencies and bandwidth of a point without operations are empty.

// Checks of the scenario that need this room: ids that are not in the reference table, unknown columns. For
// scn_load_options.check.
void report_check_scenario(const struct scn_scenario *scenario, const char *reference_csv, scn_complain_fn complain,
                           void *complain_ctx);

// Adds an override of the command line, for the manifest.
void report_add_set(report_t *report, const char *set);

// What was simulated for each comparison of the scenario, in their order, in the published unit; NAN: there is no such row.
void report_simulated(const report_t *report, double *values_out);

// Writes data.csv, counters.csv, compare.csv, programs.txt (if programs printed something), plot.gp, plot.svg (by
// gnuplot), resolved.yaml and manifest.yaml into directory, and creates it. Each file is written under a temporary name
// and renamed, so that an interrupted run leaves no incomplete file.
enum sim_status report_write(const report_t *report, const char *directory, const char *scenario_path, char *error,
                             size_t error_size);

// Creates a directory and its parents. SIM_ERR_IO: the reason is in error.
enum sim_status report_directory_create(const char *directory, char *error, size_t error_size);

// The versions of the program and of what it was built with, a line each.
void report_version_print(FILE *out);

// Prints the curves side by side, simulated against published values, and the effects of faults.
void report_print(const report_t *report, FILE *out);
// Prints only the effects of faults; nothing if there were none.
void report_faults_print(const report_t *report, FILE *out);
