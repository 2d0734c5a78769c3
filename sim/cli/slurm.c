// The engine `slurm`: points as a job array of the cluster's Slurm, in a folder that all nodes see.
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/cli/engine.h"
#include "sim/cli/interrupt.h"
#include "sim/cli/point.h"
#include "sim/cli/slurm_batch.h"
#include "sim/cli/slurm_record.h"
#include "sim/cli/slurm_wait.h"
#include "sim/cli/tool.h"

#define ANSWER_S       60 // after which Slurm gives no answer
#define ARRAY_SIZE_MAX 1000000
#define ARRAY_DEFAULT  1001 // MaxArraySize of Slurm's defaults

// --- options --------------------------------------------------------------------------------------------------------

static bool array_size_read(const char *text, uint32_t *size_out)
{
    uint64_t size = ARRAY_SIZE_MAX;
    char *end = NULL;
    if (text != NULL && (!cli_number_read(text, &end, &size) || *end != '\0' || size < 1 || size > ARRAY_SIZE_MAX)) {
        cli_error("--array-size %s: expected a number from 1 to %d", text, ARRAY_SIZE_MAX);
        return false;
    }
    *size_out = (uint32_t)size;
    return true;
}

static bool settings_right(const struct cli_engine_settings *settings)
{
    uint32_t size;
    bool submits =
        settings->partition != NULL || settings->array_size != NULL || settings->time != NULL || settings->detach;
    if (settings->resume && submits) {
        cli_error("--resume submits no jobs: it takes no --partition, --array-size, --time or --detach");
        return false;
    }
    if ((settings->partition != NULL && settings->partition[0] == '\0') ||
        (settings->time != NULL && settings->time[0] == '\0')) {
        cli_error("--%s: expected a value", settings->time != NULL && settings->time[0] == '\0' ? "time" : "partition");
        return false;
    }
    return array_size_read(settings->array_size, &size);
}

// --- before anything runs -------------------------------------------------------------------------------------------

static bool sbatch_there(void)
{
    static const char *const argv[] = {"sbatch", "--version", NULL};
    struct cli_tool tool;
    if (!cli_tool_run(argv, ANSWER_S, &tool)) {
        return false;
    }
    bool there = tool.found && tool.status == 0;
    if (!there) {
        cli_error("--engine slurm: %s%s; --engine local measures on this machine",
                  tool.found ? "sbatch does not work here: " : "",
                  tool.found ? cli_tool_reason(&tool) : "there is no sbatch in PATH");
    }
    cli_tool_fini(&tool);
    return there;
}

// Asks the controller for its limit on the number of tasks, and so whether it answers.
static bool controller_ask(uint64_t *tasks_max_out)
{
    static const char *const argv[] = {"scontrol", "show", "config", NULL};
    struct cli_tool tool;
    *tasks_max_out = ARRAY_DEFAULT;
    if (!cli_tool_run(argv, ANSWER_S, &tool)) {
        return false;
    }
    bool answered = tool.found && tool.status == 0;
    if (answered) {
        char *limit = strstr(tool.output, "MaxArraySize"), *end = NULL;
        limit = limit != NULL ? limit + strcspn(limit, "0123456789\n") : NULL;
        if (limit == NULL || !cli_number_read(limit, &end, tasks_max_out)) {
            *tasks_max_out = ARRAY_DEFAULT;
        }
    } else {
        cli_error("--engine slurm: no answer from Slurm's controller: %s",
                  tool.found ? cli_tool_reason(&tool) : "there is no scontrol in PATH");
    }
    cli_tool_fini(&tool);
    *tasks_max_out -= *tasks_max_out > 1; // the largest number of a task
    return answered;
}

static bool tasks_max_find(const struct cli_engine_settings *settings, uint32_t *tasks_max_out)
{
    uint64_t limit = 0;
    if (!array_size_read(settings->array_size, tasks_max_out) || !sbatch_there() || !controller_ask(&limit)) {
        return false;
    }
    if (*tasks_max_out > limit && settings->array_size != NULL) {
        cli_error("--array-size %s: this Slurm takes at most %" PRIu64 " (its MaxArraySize)", settings->array_size,
                  limit);
        return false;
    }
    *tasks_max_out = *tasks_max_out < limit ? *tasks_max_out : (uint32_t)limit;
    return true;
}

static bool points_own(const struct cli_sweep *sweep)
{
    char other[REPORT_HASH_MAX];
    if (sweep->job->fresh || !report_points_foreign(sweep->directory, other)) {
        return true;
    }
    cli_error("%s: its points were measured by another build of the program (%.12s...); --fresh measures them again, "
              "--out chooses another directory",
              sweep->directory, other);
    return false;
}

// --- waiting and collecting -----------------------------------------------------------------------------------------

// Of a point whose log nobody needs: it was measured.
static void files_remove(const struct cli_slurm_record *record, const struct cli_sweep *sweep)
{
    static const char *const suffixes[] = {".status", ".log"};
    char name[64], path[PATH_MAX];
    for (uint32_t i = 0; i < record->count; i++) {
        size_t count = sweep->points[i].result == CLI_EXIT_OK ? 2 : 1;
        for (size_t k = 0; k < count && record->tasks[i] > 0; k++) {
            cli_slurm_file(record->job, i, suffixes[k], name, sizeof name);
            if (cli_slurm_path(sweep->job, name, path)) {
                (void)unlink(path);
            }
        }
    }
    cli_slurm_record_remove(sweep->job);
    cli_slurm_folder_tidy(sweep->job, record->job);
}

// The program ends by the signal after saying what becomes of the jobs.
static void interrupt_end(const struct cli_slurm_record *record, const struct cli_sweep *sweep, int signal_number)
{
    char text[512], error[256] = "";
    unsigned long long job = record->job;
    cli_progress_fini(sweep->progress);
    if (record->detached || sweep->job->engine_settings->resume) {
        snprintf(text, sizeof text, "job %llu goes on, and --resume collects it", job);
    } else if (cli_slurm_cancel(record->job, error, sizeof error)) {
        snprintf(text, sizeof text,
                 "job %llu was cancelled; finished points are kept, and the same command continues from there", job);
        cli_slurm_record_remove(sweep->job);
    } else {
        snprintf(text, sizeof text, "job %llu could not be cancelled (%s) and goes on; --resume collects it", job,
                 error);
    }
    cli_interrupt_loss_set(text);
    (void)raise(signal_number); // delayed until the release
    cli_interrupt_release();
    cli_interrupt_loss_set(NULL); // not reached: no signal that is waited for is ignored
}

// Called with interruptions on hold.
static enum cli_engine_end jobs_wait(const struct cli_slurm_record *record, struct cli_sweep *sweep)
{
    bool started = false;
    int signal_number = cli_slurm_wait(record, sweep, &started);
    if (signal_number != 0) {
        interrupt_end(record, sweep, signal_number);
        return CLI_ENGINE_REFUSED;
    }
    if (started) {
        files_remove(record, sweep);
    }
    cli_interrupt_release();
    return started ? CLI_ENGINE_MEASURED : CLI_ENGINE_REFUSED;
}

static enum cli_engine_end jobs_collect(struct cli_sweep *sweep)
{
    struct cli_slurm_record record, now;
    enum cli_engine_end end = CLI_ENGINE_REFUSED;
    enum cli_slurm_found found = cli_slurm_record_read(&record, sweep->job);
    if (found != CLI_SLURM_FOUND) {
        if (found == CLI_SLURM_NONE) {
            cli_error("--resume: %s has no submitted jobs", sweep->job->directory);
        }
        return end;
    }
    if (cli_slurm_record_init(&now, sweep)) {
        if (strcmp(record.program, now.program) != 0) {
            cli_error("--resume: job %" PRIu64 " in %s was submitted by another build of the program (%.12s...)",
                      record.job, sweep->job->directory, record.program);
        } else if (strcmp(record.sweep, now.sweep) != 0 || record.count != now.count) {
            cli_error("--resume: job %" PRIu64 " in %s is of another sweep", record.job, sweep->job->directory);
        } else {
            cli_interrupt_hold();
            end = jobs_wait(&record, sweep);
        }
        cli_slurm_record_fini(&now);
    }
    cli_slurm_record_fini(&record);
    return end;
}

// --- submitting -----------------------------------------------------------------------------------------------------

static enum cli_engine_end jobs_submit(struct cli_slurm_record *record, struct cli_sweep *sweep, uint32_t tasks)
{
    cli_interrupt_hold(); // a submitted job has a record
    if (!cli_slurm_submit(record, sweep, tasks)) {
        cli_interrupt_release();
        return CLI_ENGINE_REFUSED;
    }
    if (cli_job_prints(sweep->job)) {
        printf("Submitted job %" PRIu64 " with %" PRIu32 " task%s%s\n", record->job, tasks, tasks == 1 ? "" : "s",
               record->detached ? "; the same command with --resume instead of --detach collects it" : "");
        fflush(stdout);
    }
    if (record->detached) {
        cli_interrupt_release();
        return CLI_ENGINE_DETACHED;
    }
    return jobs_wait(record, sweep);
}

static enum cli_engine_end missing_measure(struct cli_sweep *sweep, uint32_t tasks_max)
{
    struct cli_slurm_record record;
    if (!cli_slurm_record_init(&record, sweep)) {
        return CLI_ENGINE_REFUSED;
    }
    for (uint32_t i = 0; i < record.count; i++) {
        sweep->points[i].kept = !sweep->anew && report_point_exists(sweep->directory, sweep->points[i].name);
        sweep->points[i].result = CLI_EXIT_OK;
    }
    record.detached = sweep->job->engine_settings->detach;
    uint32_t tasks = cli_slurm_tasks_make(&record, sweep, tasks_max);
    enum cli_engine_end end = CLI_ENGINE_MEASURED;
    if (tasks > 0) {
        end = jobs_submit(&record, sweep, tasks);
    } else { // all are kept
        cli_slurm_record_remove(sweep->job);
        cli_slurm_folder_tidy(sweep->job, 0);
    }
    cli_slurm_record_fini(&record);
    return end;
}

static enum cli_engine_end measure(struct cli_sweep *sweep)
{
    uint32_t tasks_max = 0;
    if (sweep->job->engine_settings->resume) {
        return jobs_collect(sweep);
    }
    if (!tasks_max_find(sweep->job->engine_settings, &tasks_max) || !points_own(sweep) ||
        !cli_slurm_folder_free(sweep)) {
        return CLI_ENGINE_REFUSED;
    }
    return missing_measure(sweep, tasks_max);
}

const struct cli_engine cli_engine_slurm = {"slurm", settings_right, measure};
