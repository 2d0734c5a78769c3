// The series of a scenario (the entries of its `runs:`), each in a simulation of its own: one after the other in this
// process, or in parallel processes, with the same results.
#pragma once

#include "sim/cli/job.h"
#include "sim/cli/progress.h"
#include "sim/cli/waves.h"

// One series, measured in this process.
struct cli_series {
    const struct cli_job *job;
    report_t *report;
    struct cli_progress *progress;
    struct cli_waves *waves; // of a job with trace_rtl
    uint32_t run_index;
    _Atomic unsigned *permille; // receives how much is done; NULL: nobody asks
    char text[2048]; // filled in: how it ended, if not well
};

const char *cli_series_name(const struct cli_series *series);
// Adds its points, counters and faults to the report. Prints why it failed.
enum cli_exit cli_series_measure(struct cli_series *series);
// Adds its failure to the report, and to junit, unless that is NULL, a testcase: could it be measured?
void cli_series_judge(const struct cli_series *series, enum cli_exit result, junit_t *junit);

struct cli_series_all {
    const struct cli_job *job; // its `jobs` series are measured in parallel, unless they are traced
    report_t *report;
    junit_t *junit; // NULL: none
    struct cli_progress *progress;
    struct cli_waves *waves;
};

// Measures and judges all series, in their order. One that got stuck or could not be built ends the scenario: those
// behind it are left out. After one that found wrong data the others still run, because they help to find the cause.
enum cli_exit cli_series_all_measure(const struct cli_series_all *all);
// series_abreast.c: the same in parallel processes.
enum cli_exit cli_series_abreast_measure(const struct cli_series_all *all);
