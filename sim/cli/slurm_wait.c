#include "sim/cli/slurm_wait.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "sim/cli/interrupt.h"
#include "sim/cli/slurm_states.h"
#include "sim/kernel/regular_file.h"

#define LOOK_MS     200   // interval of looking for ended points in the folder
#define ASK_MS      1000  // interval of asking Slurm, at first
#define ASK_MAX_MS  10000 // and in the end
#define GRACE_MS    5000  // files may appear so much later than the end of their task, on a network file system
#define UNCONFIRMED UINT64_MAX

struct waiting {
    const struct cli_slurm_record *record;
    struct cli_sweep *sweep;
    struct cli_slurm_task *tasks;
    uint32_t task_count;
    bool *done;         // of each point
    uint64_t *ended_ms; // of each point: since when its task, or the point itself, is known to have ended
    uint32_t done_count;
    uint64_t now_ms, ask_at_ms, ask_ms;
    bool silent; // Slurm gave no answer, and this was said
};

static uint64_t clock_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void point_end(struct waiting *waiting, uint32_t i, enum cli_exit result, char *why)
{
    waiting->done[i] = true;
    waiting->done_count++;
    waiting->sweep->points[i].result = result;
    waiting->sweep->points[i].why = why;
}

static bool file_path(const struct waiting *waiting, uint32_t i, const char *suffix, char path[PATH_MAX])
{
    char name[64];
    cli_slurm_file(waiting->record->job, i, suffix, name, sizeof name);
    return cli_slurm_path(waiting->sweep->job, name, path);
}

// --- reasons --------------------------------------------------------------------------------------------------------

// The first message of the program in the log, or else its first line; from the heap. NULL: it has none.
static char *log_reason(const char *path)
{
    static const char own[] = "tcasim: ";
    char *line = NULL, *reason = NULL;
    size_t size = 0;
    FILE *file = sim_regular_open(path);
    for (bool found = false; file != NULL && !found && getline(&line, &size, file) > 0;) {
        line[strcspn(line, "\n")] = '\0';
        found = strncmp(line, own, sizeof own - 1) == 0;
        if (found || (reason == NULL && line[0] != '\0')) {
            free(reason);
            reason = strdup(found ? line + sizeof own - 1 : line);
        }
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    free(line);
    return reason;
}

// "what; log: PATH"; without a log only the first.
static char *why_make(const struct waiting *waiting, uint32_t i, const char *what)
{
    char path[PATH_MAX], *why = NULL;
    bool log = file_path(waiting, i, ".log", path) && access(path, R_OK) == 0;
    char *reason = log ? log_reason(path) : NULL;
    size_t last = reason != NULL ? strlen(reason) : 0;
    if (last > 0 && reason[last - 1] == ':') { // of a message of several lines
        reason[last - 1] = '\0';
    }
    int length = asprintf(&why, "%s%s%s%s%s", what, what[0] != '\0' && reason != NULL ? ": " : "",
                          reason != NULL ? reason : "", log ? "; log: " : "", log ? path : "");
    free(reason);
    return length >= 0 ? why : NULL;
}

static char *task_why(const struct waiting *waiting, uint32_t i)
{
    uint32_t task = waiting->record->tasks[i];
    const struct cli_slurm_task *about = &waiting->tasks[task - 1];
    char what[192];
    if (about->life == CLI_SLURM_FORGOTTEN) {
        snprintf(what, sizeof what, "Slurm no longer knows its job %" PRIu64 "_%" PRIu32, waiting->record->job, task);
    } else {
        snprintf(what, sizeof what, "its job %" PRIu64 "_%" PRIu32 " ended as %s%s%s%s", waiting->record->job, task,
                 about->state, about->reason[0] != '\0' ? " (" : "", about->reason,
                 about->reason[0] != '\0' ? ")" : "");
    }
    return why_make(waiting, i, what);
}

// --- the folder -----------------------------------------------------------------------------------------------------

// The exit status that the task wrote; -1: none yet.
static int status_read(const struct waiting *waiting, uint32_t i)
{
    char path[PATH_MAX];
    int status = -1;
    FILE *file = file_path(waiting, i, ".status", path) ? sim_regular_open(path) : NULL;
    if (file != NULL) {
        status = fscanf(file, "%d", &status) == 1 && status >= 0 ? status : -1;
        (void)fclose(file);
    }
    return status;
}

static bool point_late(struct waiting *waiting, uint32_t i)
{
    if (waiting->ended_ms[i] == UNCONFIRMED) {
        waiting->ended_ms[i] = waiting->now_ms;
    }
    return waiting->now_ms - waiting->ended_ms[i] >= GRACE_MS;
}

static void status_take(struct waiting *waiting, uint32_t i, int status)
{
    const struct cli_sweep *sweep = waiting->sweep;
    if (status > CLI_EXIT_OK && status <= CLI_EXIT_STUCK) {
        point_end(waiting, i, (enum cli_exit)status, why_make(waiting, i, ""));
    } else if (status > CLI_EXIT_STUCK) {
        char what[48];
        snprintf(what, sizeof what, status > 128 ? "ended by signal %d" : "ended with status %d",
                 status > 128 ? status - 128 : status);
        point_end(waiting, i, CLI_EXIT_INPUT, why_make(waiting, i, what));
    } else if (report_point_exists(sweep->directory, sweep->points[i].name)) {
        point_end(waiting, i, CLI_EXIT_OK, NULL);
    } else if (point_late(waiting, i)) {
        point_end(waiting, i, CLI_EXIT_INPUT,
                  why_make(waiting, i, "its job measured it, but its file is not in points/"));
    }
}

static void folder_refresh(const char *path)
{
    DIR *entries = opendir(path); // a network file system looks at a folder again when it is opened
    if (entries != NULL) {
        (void)readdir(entries);
        (void)closedir(entries);
    }
}

static void folder_look(struct waiting *waiting)
{
    char path[PATH_MAX];
    if (cli_slurm_path(waiting->sweep->job, "", path)) {
        folder_refresh(path);
    }
    folder_refresh(waiting->sweep->directory);
    for (uint32_t i = 0; i < waiting->record->count; i++) {
        int status = waiting->done[i] ? -1 : status_read(waiting, i);
        if (status >= 0) {
            status_take(waiting, i, status);
        }
    }
}

// --- Slurm ----------------------------------------------------------------------------------------------------------

static void tasks_ask(struct waiting *waiting)
{
    char error[256] = "";
    if (!cli_slurm_states_read(waiting->record->job, waiting->tasks, waiting->task_count, error, sizeof error)) {
        for (uint32_t i = 0; i < waiting->task_count; i++) { // nothing has ended that is not known to
            waiting->tasks[i].life = CLI_SLURM_WAITING;
        }
        if (!waiting->silent) {
            cli_progress_fini(waiting->sweep->progress);
            cli_error("no answer from Slurm (%s); still waiting", error);
        }
        waiting->silent = true;
    } else {
        waiting->silent = false;
    }
}

// A point without a status whose task has ended was not measured.
static void tasks_judge(struct waiting *waiting)
{
    for (uint32_t i = 0; i < waiting->record->count; i++) {
        if (waiting->done[i]) {
            continue;
        }
        enum cli_slurm_life life = waiting->tasks[waiting->record->tasks[i] - 1].life;
        if (life == CLI_SLURM_WAITING || life == CLI_SLURM_RUNNING) {
            waiting->ended_ms[i] = UNCONFIRMED; // also after it was put back into the queue
        } else if (point_late(waiting, i)) {
            point_end(waiting, i, CLI_EXIT_INPUT, task_why(waiting, i));
        } else {
            waiting->ask_ms = ASK_MS; // to be confirmed soon
        }
    }
}

static void progress_show(const struct waiting *waiting)
{
    uint32_t running = 0, pending = 0;
    const char *reason = "";
    for (uint32_t i = 0; i < waiting->task_count; i++) {
        running += waiting->tasks[i].life == CLI_SLURM_RUNNING;
        pending += waiting->tasks[i].life == CLI_SLURM_WAITING;
        if (waiting->tasks[i].life == CLI_SLURM_WAITING && reason[0] == '\0') {
            reason = waiting->tasks[i].reason;
        }
    }
    char label[192];
    snprintf(label, sizeof label,
             "%" PRIu32 " of %" PRIu32 " points; jobs: %" PRIu32 " running, %" PRIu32 " pending%s%s%s",
             waiting->done_count, waiting->record->count, running, pending, reason[0] != '\0' ? " (" : "", reason,
             reason[0] != '\0' ? ")" : "");
    cli_progress_update(waiting->sweep->progress,
                        (unsigned)((uint64_t)waiting->done_count * 1000 / waiting->record->count), label);
}

static int all_wait(struct waiting *waiting)
{
    int signal_number = 0;
    while (signal_number == 0) {
        waiting->now_ms = clock_ms();
        folder_look(waiting);
        if (waiting->done_count == waiting->record->count) {
            return 0;
        }
        if (waiting->now_ms >= waiting->ask_at_ms) {
            tasks_ask(waiting);
            waiting->now_ms = clock_ms();
            waiting->ask_ms = waiting->ask_ms * 2 < ASK_MAX_MS ? waiting->ask_ms * 2 : ASK_MAX_MS;
            folder_look(waiting); // what ended before the answer
            tasks_judge(waiting);
            waiting->ask_at_ms = waiting->now_ms + waiting->ask_ms;
        }
        progress_show(waiting);
        signal_number = cli_interrupt_wait(LOOK_MS);
    }
    return signal_number;
}

// Points that no task measures were kept, or were removed after the jobs were submitted.
static void others_take(struct waiting *waiting)
{
    struct cli_sweep *sweep = waiting->sweep;
    for (uint32_t i = 0; i < waiting->record->count; i++) {
        uint32_t task = waiting->record->tasks[i];
        waiting->ended_ms[i] = UNCONFIRMED;
        waiting->task_count = task > waiting->task_count ? task : waiting->task_count;
        sweep->points[i].kept = task == 0;
        if (task == 0 && report_point_exists(sweep->directory, sweep->points[i].name)) {
            point_end(waiting, i, CLI_EXIT_OK, NULL);
        } else if (task == 0) {
            point_end(waiting, i, CLI_EXIT_INPUT, strdup("no job measures it; run the sweep again"));
        }
    }
}

int cli_slurm_wait(const struct cli_slurm_record *record, struct cli_sweep *sweep, bool *started_out)
{
    struct waiting waiting = {.record = record, .sweep = sweep, .ask_ms = ASK_MS};
    waiting.done = calloc(record->count, sizeof *waiting.done);
    waiting.ended_ms = calloc(record->count, sizeof *waiting.ended_ms);
    waiting.tasks = calloc((size_t)record->count + 1, sizeof *waiting.tasks);
    int signal_number = 0;
    *started_out = waiting.done != NULL && waiting.ended_ms != NULL && waiting.tasks != NULL;
    if (*started_out) {
        others_take(&waiting);
        signal_number = all_wait(&waiting);
    } else {
        cli_error("out of memory");
    }
    free(waiting.done);
    free(waiting.ended_ms);
    free(waiting.tasks);
    return signal_number;
}
