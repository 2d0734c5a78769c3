#include "sim/cli/sweep.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "sim/cli/engine.h"
#include "sim/cli/point.h"

static bool points_name(struct cli_sweep *sweep)
{
    bool named = true;
    for (uint32_t i = 0; i < sweep->asked->point_count && named; i++) {
        named = cli_sweep_point_name(sweep, i);
    }
    return named;
}

static bool is_of_sweep(const struct cli_sweep *sweep, const char *name)
{
    for (uint32_t i = 0; i < sweep->asked->point_count; i++) {
        if (strcmp(sweep->points[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

// Removes files of other programs or other values, which are not part of these results.
static void strangers_remove(const struct cli_sweep *sweep)
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
static void points_add(const struct cli_sweep *sweep, junit_t *junit)
{
    for (uint32_t i = 0; i < sweep->asked->point_count && junit != NULL; i++) {
        enum cli_exit result = sweep->points[i].result;
        char *name = NULL;
        if (asprintf(&name, "point %s", cli_sweep_label(sweep, i)) >= 0) {
            junit_case_add(junit, name, 0,
                           result == CLI_EXIT_OK       ? JUNIT_PASSED
                           : result == CLI_EXIT_EXPECT ? JUNIT_FAILED
                                                       : JUNIT_ERROR,
                           result != CLI_EXIT_OK ? "the point failed; standard error contains the reason" : NULL, NULL);
            free(name);
        }
    }
}

static enum cli_exit points_merge(struct cli_sweep *sweep, report_t *report)
{
    enum cli_exit worst = CLI_EXIT_OK;
    uint32_t count = sweep->asked->point_count, kept = 0, failed = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct cli_sweep_point *point = &sweep->points[i];
        if (point->result == CLI_EXIT_OK && report_point_add(report, sweep->directory, point->name, i + 1) != SIM_OK) {
            report_point_remove(sweep->directory, point->name);
            point->result = CLI_EXIT_INPUT;
        }
        if (point->result != CLI_EXIT_OK) {
            cli_error("%s: the point '%s' failed%s%s", sweep->job->path, cli_sweep_label(sweep, i),
                      point->why != NULL ? ": " : "", point->why != NULL ? point->why : "");
            report_point_add_none(report);
            report_add_failure(report, cli_sweep_label(sweep, i), "the point failed");
            failed++;
        }
        kept += point->kept && point->result == CLI_EXIT_OK;
        worst = cli_exit_worse(worst, point->result);
    }
    if (cli_job_prints(sweep->job)) {
        printf("Sweep: %u points, %u of them kept from an earlier run, %u failed\n", count, kept, failed);
    }
    return worst;
}

// Something else in place of the folder of the points: none can be kept, so none is measured.
static bool folder_is_possible(const struct cli_sweep *sweep)
{
    struct stat about;
    bool possible = stat(sweep->directory, &about) != 0 || S_ISDIR(about.st_mode);
    if (!possible) {
        cli_error("%s: not a directory", sweep->directory);
    }
    return possible;
}

static bool any_measured(const struct cli_sweep *sweep)
{
    bool any = false;
    for (uint32_t i = 0; i < sweep->asked->point_count && !any; i++) {
        any = sweep->points[i].result == CLI_EXIT_OK;
    }
    return any;
}

enum cli_engine_end cli_sweep_measure(struct cli_sweep *sweep, struct cli_progress *progress)
{
    enum cli_engine_end end = CLI_ENGINE_REFUSED;
    if (folder_is_possible(sweep) && points_name(sweep)) {
        sweep->progress = progress;
        end = sweep->job->engine->measure(sweep);
        cli_progress_fini(progress);
    }
    if (end == CLI_ENGINE_MEASURED) {
        strangers_remove(sweep);
    }
    return end;
}

enum cli_exit cli_sweep_run(const struct cli_job *job, report_t *report, struct cli_progress *progress, junit_t *junit,
                            bool *merged_out)
{
    struct cli_sweep sweep;
    bool begun = cli_sweep_init(&sweep, job, job->scenario->sweep, "points");
    enum cli_engine_end end = begun ? cli_sweep_measure(&sweep, progress) : CLI_ENGINE_REFUSED;
    *merged_out = false;
    enum cli_exit result = end == CLI_ENGINE_REFUSED ? CLI_EXIT_INPUT : CLI_EXIT_OK;
    if (end == CLI_ENGINE_MEASURED) {
        result = points_merge(&sweep, report);
        points_add(&sweep, junit);
        *merged_out = any_measured(&sweep); // else earlier results stay
    }
    cli_sweep_fini(&sweep);
    return result;
}
