// The engine `local`: points in parallel as children of this process.
#include <stdlib.h>

#include "sim/cli/engine.h"
#include "sim/cli/point.h"
#include "sim/cli/pool.h"
#include "sim/cli/slurm_record.h"

struct local {
    struct cli_sweep *sweep;
    struct scn_scenario *starting; // the point whose process is about to start
};

static const char *point_title(void *ctx, size_t i)
{
    const struct local *local = ctx;
    return cli_sweep_point_title(local->sweep, (uint32_t)i);
}

static bool point_prepare(void *ctx, size_t i, enum cli_exit *result)
{
    struct local *local = ctx;
    struct cli_sweep_point *point = &local->sweep->points[i];
    point->kept = report_point_exists(local->sweep->directory, point->name);
    local->starting = point->kept ? NULL : cli_sweep_point_load(local->sweep, (uint32_t)i);
    *result = point->kept ? CLI_EXIT_OK : CLI_EXIT_INPUT;
    return local->starting != NULL;
}

static enum cli_exit point_run(void *ctx, size_t i)
{
    const struct local *local = ctx;
    return cli_sweep_point_measure(local->sweep, (uint32_t)i, local->starting);
}

static void point_forked(void *ctx, size_t i)
{
    struct local *local = ctx;
    (void)i;
    scn_free(local->starting);
    local->starting = NULL;
}

static void point_ended(void *ctx, size_t i, enum cli_exit result)
{
    struct local *local = ctx;
    local->sweep->points[i].result = result;
    cli_progress_fini(local->sweep->progress);
}

static enum cli_engine_end measure(struct cli_sweep *sweep)
{
    static const struct cli_pool_ops ops = {
        .prepare = point_prepare, .run = point_run, .forked = point_forked, .ended = point_ended, .name = point_title};
    struct local local = {.sweep = sweep};
    const struct cli_pool pool = {&ops, &local, sweep->asked->point_count, sweep->job->jobs, "points", sweep->progress};
    if (!cli_slurm_folder_free(sweep)) {
        return CLI_ENGINE_REFUSED;
    }
    for (uint32_t i = 0; i < sweep->asked->point_count && sweep->anew; i++) {
        report_point_remove(sweep->directory, sweep->points[i].name);
    }
    return cli_pool_run(&pool) ? CLI_ENGINE_MEASURED : CLI_ENGINE_REFUSED;
}

static bool settings_right(const struct cli_engine_settings *settings)
{
    const struct {
        bool given;
        const char *name;
    } others[] = {{settings->partition != NULL, "partition"},
                  {settings->array_size != NULL, "array-size"},
                  {settings->time != NULL, "time"},
                  {settings->detach, "detach"},
                  {settings->resume, "resume"}};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        if (others[i].given) {
            cli_error("--%s needs --engine slurm", others[i].name);
            return false;
        }
    }
    return true;
}

const struct cli_engine cli_engine_local = {"local", settings_right, measure};
