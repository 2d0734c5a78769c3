// How `exec` shows what programs did: a trace, a summary, lines for refused calls and completions in error.
#pragma once

#include "sim/attach/attach_run.h"
#include "sim/cli/paths.h"
#include "sim/cli/repeats.h"
#include "sim/cli/trace.h"
#include "sim/report/breakdown.h"
#include "sim/report/junit.h"

// The options of the command line.
struct cli_observing_options {
    const char *trace; // a file; NULL: none
    struct cli_list trace_only;
    bool trace_causes;
    const char *explain;  // the selection; "": all; NULL: none
    const char *timeline; // a file; NULL: none
    bool summary, quiet_diagnosis, check;
};

struct cli_observing {
    const struct cli_observing_options *given;
    struct cli_trace trace;
    struct cli_repeats repeats; // of diagnoses
    bool tracing;
    char *yaml; // the part of exec.yaml about verbs calls; NULL: none
    breakdown_t *breakdown;
    unsigned explained;
    bool each;           // each of several operations of a kind is explained, not the median
    bool taken;          // the run came to its end
    char findings[8192]; // the first lines of checks
    char kinds[512];     // of operations that occurred
    bool inexact;        // the pieces of an operation did not add up; printed
};

// Sets the options of attach_run. Their ctx belongs to the caller, which passes calls on to the functions below. false:
// printed why.
bool cli_observing_begin(struct cli_observing *observing, const struct cli_observing_options *given,
                         const char *scenario_path, const struct cli_paths *paths, struct attach_run_options *run);
// Completes the trace, prints the breakdown and writes it into the directory (NULL: not written). false: printed why.
bool cli_observing_end(struct cli_observing *observing, const char *directory);

void cli_observing_trace(struct cli_observing *observing, const struct sim_trace_record *record);
void cli_observing_diagnosis(struct cli_observing *observing, const char *line);
// Adds the findings of checks as a testcase; nothing if there were no checks.
void cli_observing_judge(const struct cli_observing *observing, unsigned findings, junit_t *junit);
void cli_observing_take(struct cli_observing *observing, observe_t *observe);
