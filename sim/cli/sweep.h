// The points of a sweep, measured by an engine, and their data in one report.
//
// A point that the same program measured before is not measured again. Results do not depend on the engine, on the
// number of children or jobs, nor on the order in which they end: the points are merged in their order.
#pragma once

#include "sim/cli/job.h"
#include "sim/cli/progress.h"
#include "sim/report/report.h"

// Measures the missing points and adds all points to the report. A point that fails is named, and the others continue.
// Returns the worst result. *merged_out: whether the report has the points; otherwise the engine refused them (printed
// why), they are still being measured, or all of them failed. Then the results of an earlier run stay.
enum cli_exit cli_sweep_run(const struct cli_job *job, report_t *report, struct cli_progress *progress, junit_t *junit,
                            bool *merged_out);
