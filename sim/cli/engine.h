// How the missing points of a sweep are measured: as children of this process (local) or as jobs of a cluster (slurm).
//
// A sweep names its points, an engine measures them into the folder `points/` of the results, and the sweep merges them
// in their order. The results are the same bytes with every engine.
#pragma once

#include <limits.h>

#include "sim/cli/job.h"
#include "sim/cli/progress.h"
#include "sim/report/points.h"

// Options of `run` for an engine, as given; NULL and false: not given.
struct cli_engine_settings {
    const char *engine;
    const char *partition, *array_size, *time;
    bool detach, resume;
};

struct cli_sweep_point {
    char name[REPORT_POINT_NAME_MAX];
    bool kept; // measured by an earlier run
    enum cli_exit result;
    char *why; // it failed, from the heap; NULL: standard error already says why
};

struct cli_sweep {
    const struct cli_job *job;
    struct cli_progress *progress;
    const struct scn_sweep *asked;
    struct cli_sweep_point *points;
    bool anew;                // earlier measurements are not used
    char directory[PATH_MAX]; // points/ of the results
};

enum cli_engine_end {
    CLI_ENGINE_MEASURED, // every point has a result
    CLI_ENGINE_DETACHED, // the points are being measured; another run collects them
    CLI_ENGINE_REFUSED   // printed why; nothing was measured, and earlier results stay
};

struct cli_engine {
    const char *name;
    // Before any file is read. false: printed why.
    bool (*settings_right)(const struct cli_engine_settings *settings);
    // Fills in `kept`, `result` and `why` of each point.
    enum cli_engine_end (*measure)(struct cli_sweep *sweep);
};

extern const struct cli_engine cli_engine_local, cli_engine_slurm;

// The engine that the settings ask for (default: local). NULL: printed why.
const struct cli_engine *cli_engine_choose(const struct cli_engine_settings *settings);
