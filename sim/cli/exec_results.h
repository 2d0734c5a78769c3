// What a run of `tcasim exec` leaves: its directory, the judgement of the scenario's expectations, and its suite in
// JUnit's XML.
#pragma once

#include "sim/cli/capture.h"
#include "sim/cli/expectations.h"
#include "sim/cli/job.h"
#include "sim/cli/observing.h"

struct cli_exec {
    struct cli_job job; // the scenario; directory NULL: nothing is written
    struct cli_programs *programs;
    struct cli_captures *captures;
    struct cli_observing *observing;
    bool functional;
    const char *adversarial; // a seed; NULL: none
    report_t *report;        // NULL: nobody wants one
    struct attach_run_result result;
    bool went_on; // the simulation came to its end
};

// Whether expectations of the scenario are judged, so that what its programs print is to be captured.
bool cli_exec_expects(const struct cli_exec *exec);

// Whether each expectation is one that `exec` can judge. false: said where not.
bool cli_exec_expectations_check(const struct cli_exec *exec);

// After the run. status: of the programs. Returns the status of it all.
int cli_exec_results(struct cli_exec *exec, int status);
