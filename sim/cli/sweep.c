#include "sim/cli/sweep.h"

#include <dirent.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cli/interrupt.h"
#include "sim/cli/load.h"
#include "sim/cli/pool.h"
#include "sim/cli/printing.h"
#include "sim/report/points.h"

struct point {
    char name[REPORT_POINT_NAME_MAX];
    bool kept; // measured by an earlier run
    enum cli_exit result;
};

struct sweep {
    const struct cli_job *job;
    struct cli_progress *progress;
    const struct scn_sweep *points_asked;
    struct point *points;
    char directory[PATH_MAX];
    struct scn_scenario *starting; // the point whose process is about to start
};

static const char *label_of(const struct sweep *sweep, uint32_t i)
{
    return sweep->points_asked->points[i].label;
}

static struct scn_scenario *point_load(const struct sweep *sweep, uint32_t i)
{
    const struct cli_job *job = sweep->job;
    return cli_point_load(job->path, job->paths, job->sets, &sweep->points_asked->points[i]);
}

// --- one point, in a child ------------------------------------------------------------------------------------------

static enum cli_exit point_measure(const struct cli_job *job, const char *directory, const char *name)
{
    char error[512] = "";
    report_t *report = NULL;
    if (report_create(job->scenario, job->reference_csv, &report) != SIM_OK) {
        return CLI_EXIT_INPUT;
    }
    enum cli_exit result = cli_job_measure(job, report);
    if (result == CLI_EXIT_OK) {
        cli_interrupt_hold();
        if (report_point_write(report, directory, name, error, sizeof error) != SIM_OK) {
            cli_error("%s", error);
            result = CLI_EXIT_INPUT;
        }
        cli_interrupt_release();
    } else {
        report_faults_print(report, stderr); // a point that failed has no results that would show them
    }
    report_destroy(report);
    return result;
}

static const char *point_title(void *ctx, size_t i)
{
    static char title[PATH_MAX + 256];
    const struct sweep *sweep = ctx;
    snprintf(title, sizeof title, "%s (%s)", sweep->job->path, label_of(sweep, (uint32_t)i));
    return title;
}

static enum cli_exit point_run(void *ctx, size_t i)
{
    const struct sweep *sweep = ctx;
    struct cli_job job = *sweep->job;
    job.path = point_title(ctx, i);
    job.scenario = sweep->starting;
    job.quiet = true;
    return point_measure(&job, sweep->directory, sweep->points[i].name);
}

// --- all of them ----------------------------------------------------------------------------------------------------

static bool point_prepare(void *ctx, size_t i, enum cli_exit *result)
{
    struct sweep *sweep = ctx;
    struct point *point = &sweep->points[i];
    point->kept = report_point_exists(sweep->directory, point->name);
    sweep->starting = point->kept ? NULL : point_load(sweep, (uint32_t)i);
    *result = point->kept ? CLI_EXIT_OK : CLI_EXIT_INPUT;
    return sweep->starting != NULL;
}

static void point_forked(void *ctx, size_t i)
{
    struct sweep *sweep = ctx;
    (void)i;
    scn_free(sweep->starting);
    sweep->starting = NULL;
}

static void point_ended(void *ctx, size_t i, enum cli_exit result)
{
    struct sweep *sweep = ctx;
    sweep->points[i].result = result;
    cli_progress_fini(sweep->progress);
}

static bool points_measure(struct sweep *sweep)
{
    static const struct cli_pool_ops ops = {point_prepare, point_run, point_forked, point_ended, point_title};
    const struct cli_pool pool = {&ops,     sweep,          sweep->points_asked->point_count, sweep->job->jobs,
                                  "points", sweep->progress};
    return cli_pool_run(&pool);
}

static bool points_name(struct sweep *sweep)
{
    for (uint32_t i = 0; i < sweep->points_asked->point_count; i++) {
        struct scn_scenario *scenario = point_load(sweep, i);
        bool named = scenario != NULL && report_point_name(scenario, sweep->points[i].name) == SIM_OK;
        scn_free(scenario);
        if (!named) {
            cli_error("%s (%s): cannot be named", sweep->job->path, label_of(sweep, i));
            return false;
        }
        if (sweep->job->fresh || cli_printing_is_asked(sweep->job->scenario)) { // the point's name leaves out programs
            report_point_remove(sweep->directory, sweep->points[i].name);
        }
    }
    return true;
}

static bool is_of_sweep(const struct sweep *sweep, const char *name)
{
    for (uint32_t i = 0; i < sweep->points_asked->point_count; i++) {
        if (strcmp(sweep->points[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

// Removes files of other programs or other values, which are not part of these results.
static void strangers_remove(const struct sweep *sweep)
{
    DIR *entries = opendir(sweep->directory);
    for (struct dirent *entry = entries != NULL ? readdir(entries) : NULL; entry != NULL; entry = readdir(entries)) {
        char name[REPORT_POINT_NAME_MAX];
        size_t length = strspn(entry->d_name, "0123456789abcdef");
        if (length != sizeof name - 1 || entry->d_name[length] != '.') {
            continue;
        }
        snprintf(name, sizeof name, "%.64s", entry->d_name);
        if (!is_of_sweep(sweep, name)) {
            report_point_remove(sweep->directory, name);
        }
    }
    if (entries != NULL) {
        (void)closedir(entries);
    }
}

// Adds a testcase for each point: could it be measured?
static void points_add(const struct sweep *sweep, junit_t *junit)
{
    for (uint32_t i = 0; i < sweep->points_asked->point_count && junit != NULL; i++) {
        enum cli_exit result = sweep->points[i].result;
        char *name = NULL;
        if (asprintf(&name, "point %s", label_of(sweep, i)) >= 0) {
            junit_case_add(junit, name, 0,
                           result == CLI_EXIT_OK       ? JUNIT_PASSED
                           : result == CLI_EXIT_EXPECT ? JUNIT_FAILED
                                                       : JUNIT_ERROR,
                           result != CLI_EXIT_OK ? "the point failed; standard error contains the reason" : NULL, NULL);
            free(name);
        }
    }
}

static enum cli_exit points_merge(struct sweep *sweep, report_t *report)
{
    enum cli_exit worst = CLI_EXIT_OK;
    uint32_t count = sweep->points_asked->point_count, kept = 0, failed = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct point *point = &sweep->points[i];
        if (point->result == CLI_EXIT_OK && report_point_add(report, sweep->directory, point->name, i + 1) != SIM_OK) {
            report_point_remove(sweep->directory, point->name);
            point->result = CLI_EXIT_INPUT;
        }
        if (point->result != CLI_EXIT_OK) {
            cli_error("%s: the point '%s' failed", sweep->job->path, label_of(sweep, i));
            report_point_add_none(report);
            report_add_failure(report, label_of(sweep, i), "the point failed");
            failed++;
        }
        kept += point->kept && point->result == CLI_EXIT_OK;
        worst = cli_exit_worse(worst, point->result);
    }
    if (!sweep->job->quiet) {
        printf("Sweep: %u points, %u of them kept from an earlier run, %u failed\n", count, kept, failed);
    }
    return worst;
}

enum cli_exit cli_sweep_run(const struct cli_job *job, report_t *report, struct cli_progress *progress, junit_t *junit)
{
    struct sweep sweep = {.job = job, .progress = progress, .points_asked = job->scenario->sweep};
    enum cli_exit result = CLI_EXIT_INPUT;
    if ((size_t)snprintf(sweep.directory, sizeof sweep.directory, "%s/points", job->directory) >=
        sizeof sweep.directory) {
        cli_error("%s: the name of the directory is too long", job->directory);
        return result;
    }
    sweep.points = calloc(sweep.points_asked->point_count, sizeof *sweep.points);
    if (sweep.points == NULL) {
        cli_error("out of memory");
        return result;
    }
    if (points_name(&sweep) && points_measure(&sweep)) {
        cli_progress_fini(progress);
        strangers_remove(&sweep);
        result = points_merge(&sweep, report);
        points_add(&sweep, junit);
    }
    free(sweep.points);
    return result;
}
