// `expect:` of a scenario at the command line: checks before the run, the judgement after it, its testcases of JUnit
// XML, and the baseline files that are written.
#pragma once

#include "sim/cli/paths.h"
#include "sim/cli/programs.h"
#include "sim/report/expect.h"
#include "sim/report/junit.h"

// Before the run: checks the counters and files that expectations name. Prints missing ones as file:line:column.
bool cli_expectations_foresee(const char *path, const struct scn_scenario *scenario);

struct cli_judging {
    const char *path; // of the scenario's file
    const struct scn_scenario *scenario;
    junit_t *junit;         // NULL: none
    FILE *summary;          // receives the rows of the summary; NULL: none
    unsigned flags;         // REPORT_EXPECT_*; with RECORD baseline files are written if all else holds
    bool well;              // nothing else failed
    FILE *recorded, *confirmed; // receive what was recorded; and that expectations hold (NULL: not printed)
    const char *prefix;         // of the confirmation
};

// Judges all expectations; prints those that do not hold to standard error.
enum cli_exit cli_expectations_judge(const struct cli_judging *judging, const report_t *report);

// For a run that did not complete: its expectations are skipped for that reason.
void cli_expectations_skip(const struct cli_judging *judging, const report_t *report, const char *reason);

// Adds a testcase for each program with its status. unfinished: why the simulation did not complete; NULL: it did.
void cli_statuses_add(junit_t *junit, const struct scn_scenario *scenario, const struct cli_programs *programs,
                      const int *statuses, const char *unfinished);
