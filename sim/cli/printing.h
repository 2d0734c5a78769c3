// Programs as the source of results: what they print becomes the rows of series.
#pragma once

#include "sim/cli/job.h"
#include "sim/report/junit.h"

// Whether a program of the scenario prints results, or an expectation is about programs.
bool cli_printing_is_asked(const struct scn_scenario *scenario);

// Runs all programs of the job's scenario together in one simulation, and adds what they print to the report. A
// program that cannot be found is CLI_EXIT_INPUT. junit: for their statuses; NULL: none.
enum cli_exit cli_printing_measure(const struct cli_job *job, report_t *report, junit_t *junit);
