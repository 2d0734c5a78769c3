#include "sim/cli/slurm_batch.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/cli/interval.h"
#include "sim/cli/tool.h"
#include "sim/report/files.h"

#define SUBMIT_S   120 // after which sbatch has no answer
#define OPTION_MAX 4096

uint32_t cli_slurm_tasks_make(struct cli_slurm_record *record, const struct cli_sweep *sweep, uint32_t tasks_max)
{
    uint32_t missing = 0, seen = 0;
    for (uint32_t i = 0; i < record->count; i++) {
        missing += !sweep->points[i].kept;
    }
    uint32_t tasks = missing < tasks_max ? missing : tasks_max;
    for (uint32_t i = 0; i < record->count; i++) {
        record->tasks[i] = 0;
        if (!sweep->points[i].kept) {
            record->tasks[i] = (uint32_t)((uint64_t)seen++ * tasks / missing) + 1;
        }
    }
    return tasks;
}

// --- the script -----------------------------------------------------------------------------------------------------

// A word of the shell, whatever the text contains.
static void word_write(FILE *out, const char *before, const char *text)
{
    fprintf(out, "%s'", before);
    for (; *text != '\0'; text++) {
        if (*text == '\'') {
            fputs("'\\''", out);
        } else {
            fputc(*text, out);
        }
    }
    fputc('\'', out);
}

static void cases_write(const struct cli_slurm_record *record, const struct cli_sweep *sweep, FILE *out)
{
    uint32_t task = 0;
    fputs("case $SLURM_ARRAY_TASK_ID in\n", out);
    for (uint32_t i = 0; i < record->count; i++) {
        if (record->tasks[i] == 0) {
            continue;
        }
        if (record->tasks[i] != task) {
            fprintf(out, "%s%" PRIu32 ") points='", task > 0 ? "' ;;\n" : "", record->tasks[i]);
            task = record->tasks[i];
        } else {
            fputc(' ', out);
        }
        fprintf(out, "%" PRIu32 ":%s", i + 1, sweep->points[i].name);
    }
    fputs("' ;;\nesac\n", out);
}

static void command_write(const struct cli_sweep *sweep, const char *program, FILE *out)
{
    const struct cli_job *job = sweep->job;
    word_write(out, "    ", program);
    fputs(" run --quiet --point=\"$point\"", out);
    fputs(job->fresh ? " --fresh" : "", out);
    if (sweep->asked != job->scenario->sweep) {
        fprintf(out, " --interval=%" PRIu32, cli_draws_count(job->draws));
    }
    word_write(out, " --out=", job->directory);
    for (size_t i = 0; i < job->sets->count; i++) {
        word_write(out, " --set=", job->sets->items[i]);
    }
    word_write(out, " -- ", job->path);
    fputs(" >\"$log\" 2>&1 || status=$?\n", out);
}

// program, directory, folder: absolute paths.
static void script_write(const struct cli_slurm_record *record, const struct cli_sweep *sweep, const char *program,
                         const char *directory, const char *folder, FILE *out)
{
    const char *home = getenv("TCASIM_HOME");
    fputs("#!/bin/sh\n# Measures points of a sweep; written by `tcasim run --engine slurm`.\nset -u\n", out);
    word_write(out, "folder=", folder);
    word_write(out, "\ncd ", directory);
    fputs(" || exit 2\n", out);
    if (home != NULL && home[0] != '\0') {
        word_write(out, "export TCASIM_HOME=", home);
        fputc('\n', out);
    }
    cases_write(record, sweep, out);
    fputs("job=$SLURM_ARRAY_JOB_ID\n"
          "for name in $(env | sed -n 's/^\\(SLURM[A-Za-z0-9_]*\\)=.*/\\1/p'); do\n"
          "    unset \"$name\" # mpirun of a scenario's programs would start them by Slurm\n"
          "done\n",
          out);
    fputs("worst=0\nfor point in $points; do\n"
          "    name=$folder/$job-${point%%:*}\n"
          "    log=$name.log\n"
          "    status=0\n",
          out);
    command_write(sweep, program, out);
    fputs("    echo $status >\"$name.status.tmp\" && mv \"$name.status.tmp\" \"$name.status\"\n"
          "    [ $status -le $worst ] || worst=$status\n"
          "done\nexit $worst\n",
          out);
}

// --- submitting -----------------------------------------------------------------------------------------------------

struct script {
    const struct cli_slurm_record *record;
    const struct cli_sweep *sweep;
    char program[PATH_MAX], directory[PATH_MAX];
    char *folder; // absolute
};

static void script_print(void *ctx, FILE *out)
{
    const struct script *script = ctx;
    script_write(script->record, script->sweep, script->program, script->directory, script->folder, out);
}

static bool paths_find(struct script *script, char folder[PATH_MAX])
{
    const struct cli_job *job = script->sweep->job;
    char error[PATH_MAX + 256] = "";
    if (!cli_slurm_path(job, "", folder) || report_directory_create(folder, error, sizeof error) != SIM_OK) {
        if (error[0] != '\0') {
            cli_error("%s", error);
        }
        return false;
    }
    script->folder = realpath(folder, NULL);
    ssize_t length = readlink("/proc/self/exe", script->program, sizeof script->program - 1);
    script->program[length > 0 ? length : 0] = '\0';
    if (access(script->program, X_OK) != 0) {
        cli_error("--engine slurm: the file of this program was replaced or removed while it runs: %s",
                  script->program);
        return false;
    }
    if (script->folder == NULL || getcwd(script->directory, sizeof script->directory) == NULL) {
        cli_error("--engine slurm: %s: %s", script->folder == NULL ? folder : "the working directory", strerror(errno));
        return false;
    }
    return true;
}

static bool script_make(struct script *script, char path[PATH_MAX])
{
    char folder[PATH_MAX], error[PATH_MAX + 256] = "";
    if (!paths_find(script, folder)) {
        return false;
    }
    if (files_path(script->folder, CLI_SLURM_SCRIPT, path, PATH_MAX - 32) != SIM_OK) {
        cli_error("%s: the name of the directory is too long", script->folder);
        return false;
    }
    bool written = files_one_write(path, script_print, script, error, sizeof error) == SIM_OK;
    if (!written) {
        cli_error("%s", error);
    }
    return written;
}

// sbatch prints "JOB" or "JOB;CLUSTER".
static bool job_read(struct cli_tool *tool, uint64_t *job_out)
{
    char *end = NULL;
    if (!tool->found) {
        cli_error("--engine slurm: there is no sbatch in PATH");
    } else if (tool->status != 0) {
        cli_error("--engine slurm: sbatch refused the jobs: %s", cli_tool_reason(tool));
    } else if (!cli_number_read(tool->output, &end, job_out) || (*end != '\n' && *end != ';') || *job_out == 0) {
        tool->output[strcspn(tool->output, "\n")] = '\0';
        cli_error("--engine slurm: sbatch gave no number of a job: '%s'", tool->output);
    } else {
        return true;
    }
    return false;
}

static bool sbatch_run(const struct cli_engine_settings *settings, uint32_t tasks, const char *script,
                       uint64_t *job_out)
{
    char array[32], partition[OPTION_MAX], time[OPTION_MAX];
    const char *argv[11];
    size_t count = 0;
    struct cli_tool tool;
    snprintf(array, sizeof array, "--array=1-%" PRIu32, tasks);
    argv[count++] = "sbatch";
    argv[count++] = "--parsable";
    argv[count++] = "--job-name=tcasim";
    argv[count++] = "--chdir=/";          // the script changes to the directory, whose name Slurm would expand
    argv[count++] = "--output=/dev/null"; // each point has a log of its own
    argv[count++] = array;
    if (settings->partition != NULL) {
        snprintf(partition, sizeof partition, "--partition=%s", settings->partition);
        argv[count++] = partition;
    }
    if (settings->time != NULL) {
        snprintf(time, sizeof time, "--time=%s", settings->time);
        argv[count++] = time;
    }
    argv[count++] = script;
    argv[count] = NULL;
    if (!cli_tool_run(argv, SUBMIT_S, &tool)) {
        return false;
    }
    bool submitted = job_read(&tool, job_out);
    cli_tool_fini(&tool);
    return submitted;
}

bool cli_slurm_cancel(uint64_t job, char *error, size_t error_size)
{
    char number[32];
    struct cli_tool tool;
    snprintf(number, sizeof number, "%" PRIu64, job);
    const char *const argv[] = {"scancel", number, NULL};
    if (!cli_tool_run(argv, SUBMIT_S, &tool)) {
        snprintf(error, error_size, "scancel cannot be run");
        return false;
    }
    bool cancelled = tool.found && tool.status == 0;
    if (!cancelled) {
        snprintf(error, error_size, "%s", tool.found ? cli_tool_reason(&tool) : "there is no scancel in PATH");
    }
    cli_tool_fini(&tool);
    return cancelled;
}

bool cli_slurm_submit(struct cli_slurm_record *record, const struct cli_sweep *sweep, uint32_t tasks)
{
    const struct cli_job *job = sweep->job;
    struct script script = {.record = record, .sweep = sweep};
    char path[PATH_MAX], error[256] = "";
    bool submitted = script_make(&script, path) && sbatch_run(job->engine_settings, tasks, path, &record->job);
    free(script.folder);
    if (submitted && !cli_slurm_record_write(record, job)) {
        (void)cli_slurm_cancel(record->job, error, sizeof error);
        submitted = false;
    }
    return submitted;
}
