// A resolved scenario becomes nodes, buses, boards, cables and host threads; one series of it is run in a simulation of
// its own and its measured points are handed out.
//
// Leaves out: files, tables and comparisons (sim/report), and what a key means to YAML (sim/scenario).
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sim/kernel/cause.h"
#include "sim/kernel/counter.h"
#include "sim/kernel/sim.h"
#include "sim/kernel/trace.h"
#include "sim/scenario/scenario.h"

// One measured point. `total_ps` is the time of `operations` of them; minimum and maximum are of single ones.
struct plat_point {
    const char *series;
    uint64_t bytes; // moved by one operation (all descriptors together)
    uint64_t descriptors;
    uint64_t operations;
    uint64_t total_ps;
    uint64_t min_ps, max_ps;
    uint64_t ranks;        // of a program on ACP; 0: of another one
    uint64_t memory_bytes; // that it measured; 0: it did not
};

// What became of a fault of the scenario. An end's TLPs: sent over the cable; queued or under way when it was pulled,
// and lost; sent by its board to the dead port afterwards, and dropped.
struct plat_fault_end {
    char name[SCN_NAME_MAX + 4]; // "node0.E"
    uint64_t sent_tlps, lost_tlps, dropped_tlps;
};
struct plat_fault {
    char cable[2 * SCN_NAME_MAX + 8]; // "node0.E-node1.W", as in the counters
    bool happened;
    uint64_t at_ps, after_start_ps; // simulated time, and since the programs started
    struct plat_fault_end ends[2];
};

struct plat_hooks {
    void *ctx;
    void (*point)(void *ctx, const struct plat_point *point);
    sim_counter_visit_fn counter;                             // after the series; may be NULL
    void (*fault)(void *ctx, const struct plat_fault *fault); // after the series, each of the scenario; may be NULL
    sim_trace_sink_fn trace;                                  // may be NULL
    // The critical path of a point, whose node measured it: what the time between begin and end of the measurement was
    // spent on (sim/kernel/cause.h). No pieces: the program did not measure it as one stretch. NULL: nothing is
    // recorded for it, which costs time and memory.
    void (*path)(void *ctx, const struct plat_point *point, const char *node, const struct sim_piece *pieces,
                 size_t count);
    uint64_t path_bytes_max; // of the records for it; 0: any. More ends the series: causes_full
    // The work of the series that is done, in thousandths; may be NULL.
    void (*progress)(void *ctx, unsigned permille);
};

struct hca_loss;
struct plat_options {
    const char *trace_rtl_path;  // NULL: no waveform. Else an FST file of every RTL board
    struct adversary *adversary; // the caller's, asked by hosts and HCAs; NULL: everything is on time
    // Of every HCA (models/hca/loss.h); NULL: nobody asks.
    void (*lost)(void *ctx, const char *name, const struct hca_loss *loss);
    void *lost_ctx;
};

struct plat_result {
    enum sim_run_outcome outcome;
    uint64_t simulated_ps;
    uint64_t events;
    uint64_t rtl_cycles; // evaluated, over all boards
    char text[2048];     // stuck: who waits for what; program failed: its message
    bool causes_full;    // stopped: the records for paths would have taken more than path_bytes_max
    bool failed;         // a workload found an error of its own (wrong data, error status)
};

// Runs scenario->runs[run_index]. SIM_OK: *result tells how it ended. Other codes: the platform could not be built; the
// reason is in result->text.
enum sim_status plat_run_series(const struct scn_scenario *scenario, uint32_t run_index,
                                const struct plat_options *options, const struct plat_hooks *hooks,
                                struct plat_result *result);

// Visits every counter of the scenario's hardware without running anything; the values are 0. Cores of further
// processes, which programs make, are not among them.
enum sim_status plat_counters_list(const struct scn_scenario *scenario, sim_counter_visit_fn visit, void *ctx);
