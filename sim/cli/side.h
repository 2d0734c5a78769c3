// Several scenarios in parallel, as children of this process.
//
// The output of each is kept and printed in the order of the jobs, so that neither output nor results depend on the
// order in which they end. They share the processes: with more of them than scenarios, the series or points of each are
// measured in parallel, too.
#pragma once

#include "sim/cli/job.h"

// Uses at most `limit` processes at once. Returns the worst result.
enum cli_exit cli_side_run(const struct cli_job *jobs, size_t count, uint32_t limit);
