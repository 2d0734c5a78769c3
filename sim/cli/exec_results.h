// The results of a run of `tcasim exec`: its directory, the judgement of the scenario's expectations, and its suite of
// JUnit XML.
#pragma once

#include "sim/cli/capture.h"
#include "sim/cli/expectations.h"
#include "sim/cli/job.h"
#include "sim/cli/observing.h"

struct cli_exec {
    struct cli_job job; // of the scenario; directory NULL: no files are written
    struct cli_programs *programs;
    struct cli_captures *captures;
    struct cli_observing *observing;
    bool functional;
    const char *adversarial; // a seed; NULL: none
    report_t *report;        // NULL: not needed
    struct attach_run_result result;
    bool went_on; // the simulation completed
    bool written; // the directory's files
};

// Are expectations of the scenario judged, so that the output of its programs must be captured?
bool cli_exec_expects(const struct cli_exec *exec);

// Can `exec` judge each expectation? false: printed why not.
bool cli_exec_expectations_check(const struct cli_exec *exec);

// After the run. status: of the programs. Returns the overall status.
int cli_exec_results(struct cli_exec *exec, int status);

// Writes the directory's exec.yaml and tables as one JSON object. false: printed why.
bool cli_exec_json_write(const struct cli_exec *exec, const char *path);
