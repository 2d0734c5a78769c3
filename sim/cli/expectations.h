// `expect:` of a scenario at the command line: what can be known before the run, the judgement after it, what of it
// goes into JUnit's XML, and baseline files that are written.
#pragma once

#include "sim/cli/paths.h"
#include "sim/cli/programs.h"
#include "sim/report/expect.h"
#include "sim/report/junit.h"

// Before the run: counters and files that expectations name. Prints what is not there as file:line:column.
bool cli_expectations_foresee(const char *path, const struct scn_scenario *scenario);

struct cli_judging {
    const char *path; // of the scenario's file
    const struct scn_scenario *scenario;
    junit_t *junit;         // NULL: none
    unsigned flags;         // REPORT_EXPECT_*; with RECORD baseline files are written where all else holds
    bool well;              // whether all else was as it should be
    FILE *told, *confirmed; // what was recorded; that expectations hold (NULL: nowhere)
    const char *prefix;     // of what is confirmed
};

// Judges them all; prints those that do not hold to standard error.
enum cli_exit cli_expectations_judge(const struct cli_judging *judging, const report_t *report);

// Of a run that could not go on: they are skipped for that reason.
void cli_expectations_skip(const struct cli_judging *judging, const char *reason);

// A testcase for each program with its status. unfinished: why the simulation could not go on; NULL: it could.
void cli_statuses_add(junit_t *junit, const struct scn_scenario *scenario, const struct cli_programs *programs,
                      const int *statuses, const char *unfinished);
