#include "sim/cli/slurm_states.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cli/options.h"
#include "sim/cli/tool.h"

#define ANSWER_S 60 // after which a command has no answer

static enum cli_slurm_life life_of(const char *state)
{
    static const struct {
        const char *state;
        enum cli_slurm_life life;
    } lives[] = {
        {"PENDING", CLI_SLURM_WAITING},      {"REQUEUED", CLI_SLURM_WAITING},    {"REQUEUE_HOLD", CLI_SLURM_WAITING},
        {"SPECIAL_EXIT", CLI_SLURM_WAITING}, {"BOOT_FAIL", CLI_SLURM_ENDED},     {"CANCELLED", CLI_SLURM_ENDED},
        {"COMPLETED", CLI_SLURM_ENDED},      {"DEADLINE", CLI_SLURM_ENDED},      {"FAILED", CLI_SLURM_ENDED},
        {"NODE_FAIL", CLI_SLURM_ENDED},      {"OUT_OF_MEMORY", CLI_SLURM_ENDED}, {"PREEMPTED", CLI_SLURM_ENDED},
        {"TIMEOUT", CLI_SLURM_ENDED}};
    for (size_t i = 0; i < sizeof lives / sizeof lives[0]; i++) {
        if (strcmp(lives[i].state, state) == 0) {
            return lives[i].life;
        }
    }
    return CLI_SLURM_RUNNING; // RUNNING, CONFIGURING, SUSPENDED, COMPLETING and others
}

static void task_set(struct cli_slurm_task *tasks, uint32_t count, uint64_t number, const char *state,
                     const char *reason)
{
    if (number < 1 || number > count || tasks[number - 1].life != CLI_SLURM_FORGOTTEN) {
        return;
    }
    struct cli_slurm_task *task = &tasks[number - 1];
    task->life = life_of(state);
    snprintf(task->state, sizeof task->state, "%s", state);
    snprintf(task->reason, sizeof task->reason, "%s", strcmp(reason, "None") != 0 ? reason : "");
}

void cli_slurm_squeue_parse(char *text, struct cli_slurm_task *tasks, uint32_t count)
{
    char *rest = NULL;
    for (char *line = strtok_r(text, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest)) {
        uint64_t number = 0;
        char *end = NULL, state[24] = "", reason[48] = "";
        if (cli_number_read(line, &end, &number) && sscanf(end, "|%23[A-Z_]|%47[^\n]", state, reason) >= 1) {
            task_set(tasks, count, number, state, reason);
        }
    }
}

// Tasks "4-8:2,10%3" of an array; a list that sacct cut short ("...") means all the others.
static void list_set(const char *list, struct cli_slurm_task *tasks, uint32_t count, const char *state)
{
    uint64_t first = 0;
    char *end = NULL;
    while (cli_number_read(list, &end, &first)) {
        uint64_t last = first, step = 1;
        bool range = *end == '-' && cli_number_read(end + 1, &end, &last);
        bool steps = range && *end == ':' && cli_number_read(end + 1, &end, &step);
        for (uint64_t k = first; k <= last && k <= count; k += steps && step > 0 ? step : 1) {
            task_set(tasks, count, k, state, "");
        }
        list = *end == ',' ? end + 1 : end;
    }
    for (uint32_t k = 1; k <= count && strncmp(list, "...", 3) == 0; k++) {
        task_set(tasks, count, k, state, "");
    }
}

void cli_slurm_sacct_parse(char *text, struct cli_slurm_task *tasks, uint32_t count)
{
    char *rest = NULL;
    for (char *line = strtok_r(text, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest)) {
        uint64_t number = 0;
        char *end = NULL, *task = strchr(line, '_'), *bar = strchr(line, '|'), state[24] = "";
        if (task == NULL || bar == NULL || task > bar || sscanf(bar, "|%23[A-Z_]", state) != 1) {
            continue; // not of an array's task
        }
        if (task[1] == '[') {
            list_set(task + 2, tasks, count, state);
        } else if (cli_number_read(task + 1, &end, &number) && end == bar) {
            task_set(tasks, count, number, state, "");
        }
    }
}

// --- the commands ---------------------------------------------------------------------------------------------------

static bool squeue_ask(uint64_t job, const char *states, struct cli_tool *tool, char *error, size_t error_size)
{
    char number[32];
    snprintf(number, sizeof number, "--jobs=%" PRIu64, job);
    const char *const argv[] = {"squeue", "--noheader", "--array", states, number, "--format=%K|%T|%r", NULL};
    if (!cli_tool_run(argv, ANSWER_S, tool)) {
        snprintf(error, error_size, "squeue cannot be run");
        return false;
    }
    // A job that ended a while ago has no record in the controller.
    if (tool->found && (tool->status == 0 || strstr(tool->errors, "Invalid job id") != NULL)) {
        return true;
    }
    snprintf(error, error_size, "%s", tool->found ? cli_tool_reason(tool) : "there is no squeue in PATH");
    cli_tool_fini(tool);
    return false;
}

// Without accounting sacct ends with an error, and nothing more is known.
static void sacct_ask(uint64_t job, struct cli_slurm_task *tasks, uint32_t count)
{
    char number[32];
    struct cli_tool tool;
    snprintf(number, sizeof number, "--jobs=%" PRIu64, job);
    const char *const argv[] = {"sacct", "--noheader",           "--parsable2", "--allocations",
                                number,  "--format=JobID,State", NULL};
    if (cli_tool_run(argv, ANSWER_S, &tool)) {
        if (tool.found && tool.status == 0) {
            cli_slurm_sacct_parse(tool.output, tasks, count);
        }
        cli_tool_fini(&tool);
    }
}

bool cli_slurm_states_read(uint64_t job, struct cli_slurm_task *tasks, uint32_t count, char *error, size_t error_size)
{
    struct cli_tool tool;
    bool forgotten = false;
    memset(tasks, 0, count * sizeof *tasks);
    if (!squeue_ask(job, "--states=all", &tool, error, error_size)) {
        return false;
    }
    cli_slurm_squeue_parse(tool.output, tasks, count);
    cli_tool_fini(&tool);
    for (uint32_t i = 0; i < count; i++) {
        forgotten = forgotten || tasks[i].life == CLI_SLURM_FORGOTTEN;
    }
    if (forgotten) {
        sacct_ask(job, tasks, count);
    }
    return true;
}

enum cli_slurm_job cli_slurm_job_look(uint64_t job)
{
    struct cli_tool tool;
    char error[256];
    if (!squeue_ask(job, "--states=all", &tool, error, sizeof error)) {
        return CLI_SLURM_JOB_UNKNOWN;
    }
    enum cli_slurm_job result = CLI_SLURM_JOB_ENDED;
    char *rest = NULL;
    for (char *line = strtok_r(tool.output, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest)) {
        char state[24] = "";
        if (sscanf(line, "%*[^|]|%23[A-Z_]", state) == 1 && life_of(state) != CLI_SLURM_ENDED &&
            strcmp(state, "COMPLETING") != 0) { // its program has ended
            result = CLI_SLURM_JOB_ALIVE;
        }
    }
    cli_tool_fini(&tool);
    return result;
}
