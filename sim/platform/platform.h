// A resolved scenario becomes nodes, buses, boards, cables and host threads; one series of it is run in a simulation of
// its own, and its measured points are reported.
//
// Leaves out: files, tables and comparisons (sim/report), and keys as YAML (sim/scenario).
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sim/kernel/cause.h"
#include "sim/kernel/counter.h"
#include "sim/kernel/sim.h"
#include "sim/kernel/trace.h"
#include "sim/scenario/scenario.h"

// One measured point. `total_ps` is the time of all `operations`; minimum and maximum are of single operations.
struct plat_point {
    const char *series;
    uint64_t bytes; // moved by one operation (all descriptors together)
    uint64_t descriptors;
    uint64_t operations;
    uint64_t total_ps;
    uint64_t min_ps, max_ps;
    uint64_t ranks;        // of a program on ACP; 0: another workload
    uint64_t memory_bytes; // measured memory; 0: not measured
};

// The result of a fault of the scenario. TLPs or packets of an end: sent over the cable; lost, because they were queued
// or in flight when it was pulled; dropped, because they were sent to the dead port afterwards.
struct plat_fault_end {
    char name[SCN_NAME_MAX + 4]; // "node0.E", of an InfiniBand cable "node0"
    uint64_t sent, lost, dropped;
};
struct plat_fault {
    char what[2 * SCN_NAME_MAX + 16]; // "node0.E-node1.W pulled"
    bool happened;
    uint64_t at_ps, after_start_ps; // simulated time, and since the programs started
    uint64_t back_ps;               // when the link was up again; 0: never
    struct plat_fault_end ends[2];
};

struct plat_hooks {
    void *ctx;
    void (*point)(void *ctx, const struct plat_point *point);
    sim_counter_visit_fn counter;                             // after the series; may be NULL
    void (*fault)(void *ctx, const struct plat_fault *fault); // after the series, for each fault; may be NULL
    sim_trace_sink_fn trace;                                  // may be NULL
    bool trace_causes; // records of the trace name their causes, unless those are SIM_CAUSES_LAST events ago
    // The critical path of a point that the node measured: the pieces of the time between begin and end of the
    // measurement (sim/kernel/cause.h). No pieces: the program did not measure the point in one interval. NULL: paths
    // are not recorded, which saves time and memory.
    void (*path)(void *ctx, const struct plat_point *point, const char *node, const struct sim_piece *pieces,
                 size_t count);
    uint64_t path_bytes_max; // limit on its records, which ends the series (causes_full); 0: none
    // The finished part of the series, in thousandths; may be NULL.
    void (*progress)(void *ctx, unsigned permille);
};

struct hca_loss;
struct plat_options {
    const char *trace_rtl_path;  // FST file with the waveform of every RTL board; NULL: none
    struct adversary *adversary; // owned by the caller, used by hosts and HCAs; NULL: no delays
    // Losses of every HCA (models/hca/loss.h); NULL: not reported.
    void (*lost)(void *ctx, const char *name, const struct hca_loss *loss);
    void *lost_ctx;
};

struct plat_result {
    enum sim_run_outcome outcome;
    uint64_t simulated_ps;
    uint64_t events;
    uint64_t rtl_cycles; // evaluated, of all boards
    uint32_t traced;     // records of the trace that have a number
    char text[2048];     // stuck: who waits, and for what; a program failed: its message
    bool causes_full;    // stopped: the records for paths would have taken more than path_bytes_max
    bool failed;         // a workload found an error of its own (wrong data, error status)
};

// Runs scenario->runs[run_index]. SIM_OK: *result describes how the run ended. Other codes: the platform could not be
// built; result->text is the reason.
enum sim_status plat_run_series(const struct scn_scenario *scenario, uint32_t run_index,
                                const struct plat_options *options, const struct plat_hooks *hooks,
                                struct plat_result *result);

// Visits every counter of the scenario's hardware without running anything; the values are 0. Counters
// of cores of further processes, which programs create, are left out.
enum sim_status plat_counters_list(const struct scn_scenario *scenario, sim_counter_visit_fn visit, void *ctx);
