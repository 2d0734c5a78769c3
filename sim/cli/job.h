// Runs one scenario, from its first series to its results.
#pragma once

#include "sim/cli/cli.h"
#include "sim/cli/paths.h"
#include "sim/cli/trace.h"
#include "sim/report/junit.h"
#include "sim/report/report.h"
#include "sim/scenario/scenario.h"

struct cli_draws;
struct cli_engine;
struct cli_engine_settings;

struct cli_job {
    const char *path; // of the scenario's file
    struct scn_scenario *scenario;
    const struct cli_list *sets; // as given, for the manifest
    char *directory;             // of the results
    const char *reference_csv;
    const struct cli_paths *paths;
    uint32_t jobs;                                     // parallel processes, for points of a sweep or series
    struct cli_draws *draws;                           // of --interval; NULL: none
    bool fresh;                                        // of a sweep: measure again what an earlier run measured
    const struct cli_engine *engine;                   // of a sweep
    const struct cli_engine_settings *engine_settings; // of a sweep
    bool quiet, json; // json: the tables on standard output, and no text
    bool trace_rtl;
    bool update_baseline;
    FILE *suites;            // receives the scenario's JUnit suite; NULL: none
    FILE *summary;           // receives its rows of the summary; NULL: none
    struct cli_trace *trace; // NULL: none
};

// Whether it prints text on standard output.
static inline bool cli_job_prints(const struct cli_job *job)
{
    return !job->quiet && !job->json;
}

// Runs every series of the scenario into the report, without further steps.
enum cli_exit cli_job_measure(const struct cli_job *job, report_t *report);

// From now on an interruption says what it costs: a sweep keeps its finished points, any other scenario has no results.
void cli_job_loss_set(const struct cli_job *job);

enum cli_exit cli_job_run(const struct cli_job *job);
