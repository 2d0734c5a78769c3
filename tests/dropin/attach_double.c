// libtcasim-attach.so without a simulator: a process without simulated time and without devices. For the test build of
// libibverbs.so.1, whose device is in memory.
#include <stddef.h>
#include <time.h>

#include "verbs-shim/attach/ahead.h"
#include "verbs-shim/attach/attach.h"

static void cost(void *ctx, enum backend_cost kind, uint64_t amount)
{
    (void)ctx, (void)kind, (void)amount;
}

struct backend_process *backend_current(void)
{
    static const struct backend_ops ops = {.cost = cost};
    static struct backend_process process = {.backend = {.ops = &ops}, .number = 1};
    return &process;
}

enum attach_mode attach_mode(void)
{
    return ATTACH_FUNCTIONAL;
}

uint64_t attach_now_ps(void)
{
    return 0;
}

enum attach_woken attach_wait(unsigned flags, uint64_t deadline_ps)
{
    const struct timespec shortly = {.tv_nsec = 100000};
    (void)flags, (void)deadline_ps;
    (void)nanosleep(&shortly, NULL);
    return ATTACH_WOKEN_MEMORY;
}

bool attach_poll(uint64_t site, const volatile void *word, bool repeats)
{
    (void)site, (void)word, (void)repeats;
    return false;
}

unsigned attach_interrupts_ending(void)
{
    return 0;
}

void attach_library_enter(void)
{
}

void attach_library_leave(void)
{
}

const struct attach_environment *attach_environment(void)
{
    static const struct attach_environment environment;
    return &environment;
}

void attach_poll_function_add(uintptr_t entry, attach_is_idle_t is_idle)
{
    (void)entry;
    (void)is_idle;
}

void attach_resume(struct attach_caller *caller)
{
    (void)caller;
}

bool attach_resumed(bool *again_out)
{
    *again_out = false;
    return false;
}

struct attach_caller *attach_poll_within(struct attach_caller *caller)
{
    return caller;
}

void attach_found(void)
{
}

void attach_settle(void)
{
}

void attach_may_wake(void)
{
}

void attach_progress_set(const struct attach_progress *progress)
{
    (void)progress;
}

bool attach_progress_on_writes(void)
{
    return false;
}
