// Programs as a source of results: what they print becomes the rows of series.
#pragma once

#include "sim/cli/job.h"
#include "sim/report/junit.h"

// Does a program of the scenario print results, or is an expectation about programs?
bool cli_printing_is_asked(const struct scn_scenario *scenario);

// Runs all programs of the job's scenario together in one simulation, and adds what they print to the report. A
// program that is not found is CLI_EXIT_INPUT. junit: receives their statuses; NULL: none.
enum cli_exit cli_printing_measure(const struct cli_job *job, report_t *report, junit_t *junit);
