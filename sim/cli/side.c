#include "sim/cli/side.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/cli/interrupt.h"
#include "sim/cli/progress.h"

#define LOOK_US 5000 // how often is looked whether a child has ended

struct child {
    const struct cli_job *job;
    pid_t pid; // 0: not started, or ended
    bool ended;
    enum cli_exit result;
    FILE *output, *errors; // what it prints; NULL: printed, or never started
};

struct side {
    struct child *children;
    size_t count, next, running, done, printed;
    struct cli_progress progress;
};

// --- one scenario ----------------------------------------------------------------------------------------------------

static void child_main(const struct child *child, pid_t parent)
{
    struct cli_job job = *child->job;
    cli_interrupt_child();
    cli_interrupt_init(); // it has files of its own to tidy up
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent || dup2(fileno(child->output), STDOUT_FILENO) < 0 ||
        dup2(fileno(child->errors), STDERR_FILENO) < 0) {
        cli_interrupt_leave(CLI_EXIT_INPUT);
    }
    job.jobs = 1;
    enum cli_exit result = cli_job_run(&job);
    fflush(NULL);
    cli_interrupt_leave((int)result);
}

static void child_fail(struct side *side, struct child *child, const char *why)
{
    cli_error("%s: %s", child->job->path, why);
    child->result = CLI_EXIT_INPUT;
    child->ended = true;
    side->done++;
}

static void child_start(struct side *side, struct child *child)
{
    pid_t parent = getpid();
    child->output = tmpfile();
    child->errors = tmpfile();
    if (child->output == NULL || child->errors == NULL) {
        child_fail(side, child, "no scratch file for what it prints");
        return;
    }
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        child_main(child, parent);
    }
    if (pid < 0) {
        child_fail(side, child, strerror(errno));
        return;
    }
    child->pid = pid;
    side->running++;
}

static void child_end(struct side *side, struct child *child, int status)
{
    child->pid = 0;
    child->ended = true;
    child->result = WIFEXITED(status) ? (enum cli_exit)WEXITSTATUS(status) : CLI_EXIT_INPUT;
    side->running--;
    side->done++;
    if (WIFSIGNALED(status)) {
        cli_progress_fini(&side->progress);
        cli_error("%s: ended by signal %d", child->job->path, WTERMSIG(status));
    }
}

// --- what they print -------------------------------------------------------------------------------------------------

static void file_copy(FILE *from, FILE *to)
{
    char buffer[4096];
    size_t bytes;
    if (from == NULL) {
        return;
    }
    rewind(from);
    while ((bytes = fread(buffer, 1, sizeof buffer, from)) > 0) {
        (void)fwrite(buffer, 1, bytes, to);
    }
    fflush(to);
    (void)fclose(from);
}

static void ended_print(struct side *side)
{
    while (side->printed < side->count && side->children[side->printed].ended) {
        struct child *child = &side->children[side->printed++];
        cli_progress_fini(&side->progress);
        file_copy(child->output, stdout);
        file_copy(child->errors, stderr);
    }
}

// --- all of them -----------------------------------------------------------------------------------------------------

static void progress_show(struct side *side)
{
    char label[64];
    snprintf(label, sizeof label, "%zu of %zu scenarios", side->done, side->count);
    cli_progress_update(&side->progress, (unsigned)(side->done * 1000 / side->count), label);
}

static void one_wait(struct side *side)
{
    int status = 0;
    pid_t pid = waitpid(-1, &status, WNOHANG);
    while (pid == 0) {
        progress_show(side);
        (void)usleep(LOOK_US);
        pid = waitpid(-1, &status, WNOHANG);
    }
    for (size_t i = 0; pid > 0 && i < side->next; i++) {
        if (side->children[i].pid == pid) {
            child_end(side, &side->children[i], status);
        }
    }
}

static enum cli_exit children_run(struct side *side, uint32_t limit)
{
    enum cli_exit worst = CLI_EXIT_OK;
    while (side->next < side->count || side->running > 0) {
        if (side->next < side->count && side->running < limit) {
            child_start(side, &side->children[side->next++]);
        } else {
            one_wait(side);
        }
        ended_print(side);
    }
    ended_print(side);
    for (size_t i = 0; i < side->count; i++) {
        worst = cli_exit_worse(worst, side->children[i].result);
    }
    return worst;
}

enum cli_exit cli_side_run(const struct cli_job *jobs, size_t count, uint32_t limit)
{
    struct side side = {.children = calloc(count, sizeof *side.children), .count = count};
    if (side.children == NULL) {
        cli_error("out of memory");
        return CLI_EXIT_INPUT;
    }
    for (size_t i = 0; i < count; i++) {
        side.children[i].job = &jobs[i];
    }
    cli_progress_init(&side.progress, !jobs[0].quiet);
    cli_interrupt_loss_set("the scenarios that were running leave no results");
    enum cli_exit result = children_run(&side, limit);
    cli_interrupt_loss_set(NULL);
    cli_progress_fini(&side.progress);
    free(side.children);
    return result;
}
