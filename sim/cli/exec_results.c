#include "sim/cli/exec_results.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/cli/series.h"
#include "sim/kernel/text.h"
#include "sim/report/files.h"
#include "sim/report/json.h"
#include "sim/report/printed.h"

// --- which expectations ---------------------------------------------------------------------------------------------

// Series are judged only if the scenario has programs; otherwise it only provides hardware for those of the command
// line.
static bool judges_series(const struct cli_exec *exec)
{
    return exec->job.scenario->outside_count > 0;
}

bool cli_exec_expects(const struct cli_exec *exec)
{
    const struct scn_scenario *scenario = exec->job.scenario;
    bool expects = false;
    for (uint32_t i = 0; i < scenario->expect_count; i++) {
        expects = expects || judges_series(exec) || scn_check_subject(&scenario->expects[i]) != SCN_SUBJECT_SERIES;
    }
    return expects && !exec->functional;
}

bool cli_exec_expectations_check(const struct cli_exec *exec)
{
    const struct scn_scenario *scenario = exec->job.scenario;
    bool good = true;
    for (uint32_t i = 0; i < scenario->expect_count && scenario->sweep != NULL && judges_series(exec); i++) {
        const struct scn_check *expect = &scenario->expects[i];
        fprintf(stderr, "%s:%u:%u: expect: '%s' is about the points of sweep:, which `tcasim run` measures\n",
                exec->job.path, expect->line, expect->column, expect->id);
        good = false;
    }
    if (good && exec->functional && scenario->expect_count > 0 && judges_series(exec)) {
        cli_error("%s: with --functional its expectations are not judged, because there is no simulated time",
                  exec->job.path);
    }
    return good;
}

// --- results to judge -----------------------------------------------------------------------------------------------

static bool is_named(const struct scn_scenario *scenario, const char *series)
{
    bool named = false;
    for (uint32_t i = 0; i < scenario->expect_count; i++) {
        const struct scn_check *expect = &scenario->expects[i];
        named = named || (expect->value.given && strcmp(expect->value.series, series) == 0) ||
                (expect->over.given && strcmp(expect->over.series, series) == 0);
    }
    return named;
}

// Measures the series of `runs:` that expectations name.
static enum cli_exit series_measure(struct cli_exec *exec, junit_t *junit)
{
    const struct scn_scenario *scenario = exec->job.scenario;
    enum cli_exit result = CLI_EXIT_OK;
    struct cli_progress progress;
    struct cli_series series = {.job = &exec->job, .report = exec->report, .progress = &progress};
    cli_progress_init(&progress, false);
    for (uint32_t i = 0; i < scenario->run_count && judges_series(exec) && result < CLI_EXIT_INPUT; i++) {
        if (is_named(scenario, scenario->runs[i].series)) {
            series.run_index = i;
            enum cli_exit one = cli_series_measure(&series);
            cli_series_judge(&series, one, junit);
            result = cli_exit_worse(result, one);
        }
    }
    return result;
}

// Takes what programs printed, and the rows in it if they have results:.
static enum cli_exit outputs_take(struct cli_exec *exec, bool well)
{
    const struct scn_scenario *scenario = exec->job.scenario;
    enum cli_exit result = CLI_EXIT_OK;
    for (uint32_t i = 0; i < scenario->outside_count; i++) {
        char error[256];
        size_t length;
        const struct scn_results *results = &scenario->outsides[i].results;
        char *text = cli_captures_read(exec->captures, i, &length);
        if (text == NULL) {
            continue;
        }
        report_add_output(exec->report, i, text, length);
        if (well && results->series[0] != '\0' &&
            report_add_printed(exec->report, results, text, error, sizeof error) != SIM_OK) {
            cli_error("%s: series '%s': %s: %s", exec->job.path, results->series, exec->programs->list[i].argv[0],
                      error);
            result = CLI_EXIT_INPUT;
        }
        free(text);
    }
    return result;
}

// --- files ----------------------------------------------------------------------------------------------------------

// A word as it is, and everything else that may be a program's name as a quoted string.
static void name_write(FILE *file, const char *name)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-+";
    if (name[0] != '\0' && name[0] != '-' && name[strspn(name, plain)] == '\0') {
        fputs(name, file);
    } else {
        sim_text_quote(file, name);
    }
}

static FILE *hash_open(const struct cli_exec *exec)
{
    char *path = NULL;
    bool named = asprintf(&path, "%s/exec.yaml", exec->job.directory) >= 0;
    FILE *file = named && (unlink(path) == 0 || errno == ENOENT) ? fopen(path, "we") : NULL; // not into a FIFO or link
    if (file == NULL) {
        cli_error("%s/exec.yaml cannot be written", exec->job.directory);
    }
    free(path);
    return file;
}

static bool hash_write(const struct cli_exec *exec)
{
    const struct attach_run_result *result = &exec->result;
    FILE *file = hash_open(exec);
    if (file == NULL) {
        return false;
    }
    fprintf(file, "# Every scheduling slot of a program, its simulated time, and all events; equal from run to run.\n");
    fprintf(file, "hash: %016llx\nattach_calls: %llu\nsimulated_ps: %llu\n", (unsigned long long)result->hash,
            (unsigned long long)result->calls, (unsigned long long)result->simulated_ps);
    if (exec->adversarial != NULL) {
        fprintf(file, "adversarial: %s\n", exec->adversarial);
    }
    cli_programs_outside_print(result, "# Another run may differ", file);
    if (result->late[0] != '\0') {
        fprintf(file, "learned_waits: # not shown to be as with --every-poll (docs/decisions/0017-waiting.md)\n%s",
                result->late);
    }
    fprintf(file, "programs:\n");
    for (uint32_t i = 0; i < exec->programs->count; i++) {
        fputs("  - {program: ", file);
        name_write(file, exec->programs->list[i].argv[0]);
        fprintf(file, ", status: %d}\n", result->statuses[i]);
    }
    fprintf(file, "machine: # if the hashes of two runs differ, `tcasim compare` says what of this does\n%s",
            result->machine);
    fputs(exec->observing->yaml != NULL ? exec->observing->yaml : "", file);
    return fclose(file) == 0;
}

static bool directory_write(const struct cli_exec *exec)
{
    const struct cli_job *job = &exec->job;
    char error[512] = "";
    for (size_t i = 0; i < job->sets->count; i++) {
        report_add_set(exec->report, job->sets->items[i]);
    }
    if (report_write(exec->report, job->directory, job->path, error, sizeof error) != SIM_OK) {
        cli_error("%s: %s", job->path, error);
        return false;
    }
    return hash_write(exec);
}

struct json_work {
    const struct cli_exec *exec;
    enum sim_status status;
    char error[512];
};

static void json_write(void *ctx, FILE *out)
{
    static const char *const files[] = {"exec.yaml", "data.csv", "compare.csv", "breakdown.csv", "counters.csv", NULL};
    struct json_work *work = ctx;
    const struct cli_job *job = &work->exec->job;
    work->status = json_results_print(out, job->path, job->directory, files, work->error, sizeof work->error);
}

bool cli_exec_json_write(const struct cli_exec *exec, const char *path)
{
    struct json_work work = {.exec = exec};
    char error[512] = "";
    enum sim_status status = files_one_write(path, json_write, &work, error, sizeof error);
    if (status == SIM_OK && work.status == SIM_OK) {
        return true;
    }
    cli_error("%s", status != SIM_OK ? error : work.error);
    if (status == SIM_OK) {
        (void)remove(path); // it is not whole
    }
    return false;
}

// --- all of it ------------------------------------------------------------------------------------------------------

static int worse(int status, enum cli_exit other)
{
    return status > (int)other ? status : (int)other;
}

static int judge(struct cli_exec *exec, int status, junit_t *junit)
{
    const struct cli_job *job = &exec->job;
    struct cli_judging judging = {.path = job->path,
                                  .scenario = job->scenario,
                                  .junit = junit,
                                  .flags = (job->update_baseline ? REPORT_EXPECT_RECORD : 0) |
                                           (judges_series(exec) ? 0 : REPORT_EXPECT_NO_SERIES),
                                  .recorded = stderr,
                                  .confirmed = stderr,
                                  .prefix = "tcasim: "};
    if (!exec->went_on) {
        cli_expectations_skip(&judging, exec->report, "the simulation did not complete");
        return status;
    }
    status = worse(status, outputs_take(exec, status == 0));
    status = worse(status, series_measure(exec, junit));
    judging.well = status == 0;
    return worse(status, cli_expectations_judge(&judging, exec->report));
}

int cli_exec_results(struct cli_exec *exec, int status)
{
    const struct cli_job *job = &exec->job;
    const struct attach_run_result *result = &exec->result;
    junit_t *junit = job->suites != NULL ? junit_create() : NULL;
    report_add_run(exec->report, "exec", result->simulated_ps, result->events, result->rtl_cycles);
    if (junit != NULL) {
        junit_suite_begin(junit, job->scenario->name, job->path);
    }
    char unfinished[sizeof result->ends + sizeof result->text];
    snprintf(unfinished, sizeof unfinished, "%s%s", result->ends, result->text);
    cli_statuses_add(junit, job->scenario, exec->programs, result->statuses, exec->went_on ? NULL : unfinished);
    if (junit != NULL) {
        cli_observing_judge(exec->observing, result->findings, junit);
    }
    if (!exec->functional) {
        status = judge(exec, status, junit);
    }
    if (job->directory != NULL && !result->interrupted) {
        exec->written = directory_write(exec);
        status = exec->written ? status : worse(status, CLI_EXIT_INPUT);
    }
    if (junit != NULL) {
        junit_suites_write(junit, job->suites);
        junit_destroy(junit);
    }
    return status;
}
