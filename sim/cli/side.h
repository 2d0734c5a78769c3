// Several scenarios in parallel, as children of this process.
//
// The output of each is kept and printed in the order of the jobs, so that neither output nor results depend on the
// order in which they end. A sweep among them measures its points one after the other.
#pragma once

#include "sim/cli/job.h"

// Runs at most `limit` at once. Returns the worst result.
enum cli_exit cli_side_run(const struct cli_job *jobs, size_t count, uint32_t limit);
