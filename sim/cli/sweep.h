// The points of a sweep, side by side as children of this process, and their data in one report.
//
// A point that was measured before, by the same program, is not measured again. Results do not depend on the number of
// children nor on who ends first: the points are merged in their order.
#pragma once

#include "sim/cli/job.h"
#include "sim/cli/progress.h"
#include "sim/report/report.h"

// Measures what is missing and adds everything to the report. A point that fails is named, and the others go on; the
// worst result is returned.
enum cli_exit cli_sweep_run(const struct cli_job *job, report_t *report, struct cli_progress *progress, junit_t *junit);
