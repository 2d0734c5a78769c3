#include "sim/cli/pool.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/cli/interrupt.h"
#include "sim/cli/options.h"

#define JOBS_MAX 1024
#define POLL_US  1000 // interval of polling for children that have ended

struct child {
    pid_t pid;    // 0: not started, or ended
    bool stopped; // unwanted, and told to end
    bool ended;
    enum cli_exit result;
};

struct state {
    const struct cli_pool *pool;
    struct child *children;
    size_t next, done, passed; // passed: in their order
    uint32_t running;
};

static void one_ended(struct state *state, size_t i, enum cli_exit result)
{
    const struct cli_pool *pool = state->pool;
    state->children[i] = (struct child){.ended = true, .result = result};
    state->done++;
    if (pool->ops->ended != NULL) {
        pool->ops->ended(pool->ctx, i, result);
    }
    for (; state->passed < pool->count && state->children[state->passed].ended; state->passed++) {
        if (pool->ops->in_order != NULL) {
            pool->ops->in_order(pool->ctx, state->passed, state->children[state->passed].result);
        }
    }
}

static void child_main(const struct cli_pool *pool, size_t i, pid_t parent)
{
    cli_interrupt_child();
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) {
        cli_interrupt_leave(CLI_EXIT_INPUT);
    }
    enum cli_exit result = pool->ops->run(pool->ctx, i);
    fflush(NULL);
    cli_interrupt_leave((int)result);
}

static void one_start(struct state *state, size_t i)
{
    const struct cli_pool *pool = state->pool;
    enum cli_exit result = CLI_EXIT_INPUT;
    if (pool->ops->prepare != NULL && !pool->ops->prepare(pool->ctx, i, &result)) {
        one_ended(state, i, result);
        return;
    }
    pid_t parent = getpid();
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        child_main(pool, i, parent);
    }
    int error = errno;
    if (pool->ops->forked != NULL) {
        pool->ops->forked(pool->ctx, i);
    }
    if (pid < 0) {
        cli_progress_fini(pool->progress);
        cli_error("%s: cannot start a process: %s", pool->ops->name(pool->ctx, i), strerror(error));
        one_ended(state, i, CLI_EXIT_INPUT);
        return;
    }
    state->children[i].pid = pid;
    state->running++;
}

static void progress_show(const struct state *state)
{
    char label[64];
    const struct cli_pool *pool = state->pool;
    uint64_t permille = state->done * 1000;
    for (size_t i = 0; i < state->next && pool->ops->permille != NULL; i++) {
        permille += state->children[i].pid != 0 ? pool->ops->permille(pool->ctx, i) : 0;
    }
    snprintf(label, sizeof label, "%zu of %zu %s", state->done, pool->count, pool->what);
    cli_progress_update(pool->progress, (unsigned)(permille / pool->count), label);
}

static void unwanted_stop(const struct state *state)
{
    const struct cli_pool *pool = state->pool;
    for (size_t i = 0; i < state->next && pool->ops->unwanted != NULL; i++) {
        struct child *child = &state->children[i];
        if (child->pid != 0 && !child->stopped && pool->ops->unwanted(pool->ctx, i)) {
            child->stopped = kill(child->pid, SIGKILL) == 0;
        }
    }
}

static enum cli_exit status_read(const struct state *state, size_t i, int status)
{
    if (WIFSIGNALED(status) && !state->children[i].stopped) {
        cli_progress_fini(state->pool->progress);
        cli_error("%s: ended by signal %d", state->pool->ops->name(state->pool->ctx, i), WTERMSIG(status));
    }
    return WIFEXITED(status) ? (enum cli_exit)WEXITSTATUS(status) : CLI_EXIT_INPUT;
}

static void one_wait(struct state *state)
{
    unwanted_stop(state);
    int status = 0;
    pid_t pid = waitpid(-1, &status, WNOHANG);
    while (pid == 0 || (pid < 0 && errno == EINTR)) {
        progress_show(state);
        (void)usleep(POLL_US);
        pid = waitpid(-1, &status, WNOHANG);
    }
    if (pid < 0) { // the children ended, and their statuses are lost
        for (size_t i = 0; i < state->next; i++) {
            if (state->children[i].pid != 0) {
                cli_error("%s: its exit status was lost: %s", state->pool->ops->name(state->pool->ctx, i),
                          strerror(errno));
                state->running--;
                one_ended(state, i, CLI_EXIT_INPUT);
            }
        }
    }
    for (size_t i = 0; pid > 0 && i < state->next; i++) {
        if (state->children[i].pid == pid) {
            state->running--;
            one_ended(state, i, status_read(state, i, status));
        }
    }
}

bool cli_pool_run(const struct cli_pool *pool)
{
    struct state state = {.pool = pool, .children = calloc(pool->count, sizeof *state.children)};
    if (state.children == NULL) {
        cli_error("out of memory");
        return false;
    }
    while (state.next < pool->count || state.running > 0) {
        progress_show(&state);
        if (state.next < pool->count && state.running < pool->limit) {
            one_start(&state, state.next++);
        } else {
            one_wait(&state);
        }
    }
    free(state.children);
    return true;
}

bool cli_jobs_read(const char *text, uint32_t *jobs_out)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    uint64_t jobs = processors > 0 ? (uint64_t)processors : 1;
    char *end;
    if (text != NULL && (!cli_number_read(text, &end, &jobs) || *end != '\0' || jobs < 1 || jobs > JOBS_MAX)) {
        cli_error("--jobs %s: expected a number from 1 to %d", text, JOBS_MAX);
        return false;
    }
    *jobs_out = (uint32_t)jobs;
    return true;
}
