// Threads of libraries in a simulated process: each is a simulated thread with a core of its own; and the lock between
// such a thread and the program.
//
// Threads of the simulation switch only where simulated time passes, so the words of the lock need no atomics. Cost: a
// load and a store to take the lock, a store to release it, and one iteration of a polling loop for a thread that had
// to wait. Leaves out: moving a line between the caches of two cores.
#include <errno.h>
#include <stdio.h>

#include "sim/kernel/cause.h"
#include "sim/platform/backend_inproc.h"

static const struct sim_work look = {"polling", "the look that sees it", false};
static const struct sim_work locking = {"library", "lock between threads of a process", false};

static const char *const names[BACKEND_THREADS] = {
    [BACKEND_THREAD_TCA_VERBS] = "progress",
    [BACKEND_THREAD_ACP] = "communication",
};

const struct plat_helper *plat_backend_helper(const struct plat_backend_inproc *ctx)
{
    const char *caller = sim_thread_name(ctx->sim);
    for (unsigned i = 0; i < BACKEND_THREADS; i++) {
        if (ctx->helpers[i].thread != NULL && ctx->helpers[i].thread == caller) {
            return &ctx->helpers[i];
        }
    }
    return NULL;
}

static void thread_main(void *arg)
{
    struct plat_helper *helper = arg;
    sim_t *sim = helper->backend->sim;
    helper->thread = sim_thread_name(sim);
    helper->run(helper->arg);
    helper->running = false;
    helper->thread = NULL;
    sim_condition_signal(sim, &helper->ended);
}

static int core_create(struct plat_backend_inproc *b, struct plat_helper *helper, const char *name)
{
    sim_condition_init(&helper->ended);
    sim_condition_init(&helper->released);
    sim_condition_init(&helper->woken);
    helper->backend = b;
    return host_core_create(b->sim, name, host_core_config(b->core), b->rc, b->memory, &helper->core) == SIM_OK
               ? 0
               : -ENOMEM;
}

static int start(void *ctx, enum backend_thread thread, void (*run)(void *arg), void *arg)
{
    struct plat_backend_inproc *b = ctx;
    struct plat_helper *helper = &b->helpers[thread];
    char name[SCN_NAME_MAX + 32];
    if (helper->running) {
        return -EBUSY;
    }
    snprintf(name, sizeof name, b->number != 0 ? "%s.%s%u" : "%s.%s", b->node, names[thread], b->number);
    if (helper->core == NULL && core_create(b, helper, name) != 0) {
        return -ENOMEM;
    }
    helper->run = run;
    helper->arg = arg;
    helper->stopping = false;
    helper->running = sim_thread_spawn(b->sim, name, thread_main, helper) == SIM_OK;
    return helper->running ? 0 : -ENOMEM;
}

static uint64_t changes(void *ctx, enum backend_thread thread)
{
    const struct plat_backend_inproc *b = ctx;
    (void)thread;
    return host_memory_changes(b->memory);
}

static void wake(void *ctx, enum backend_thread thread)
{
    struct plat_backend_inproc *b = ctx;
    sim_condition_signal(b->sim, &b->helpers[thread].woken);
    host_memory_touch(b->memory);
}

static void stop(void *ctx, enum backend_thread thread)
{
    struct plat_backend_inproc *b = ctx;
    struct plat_helper *helper = &b->helpers[thread];
    const struct sim_wait_reason reason = {b->node, "a library's thread to end", 0, 0};
    helper->stopping = true;
    if (helper->running) {
        wake(ctx, thread);
    }
    while (helper->running) {
        (void)sim_condition_wait(b->sim, &helper->ended, SIM_NEVER_PS, &reason);
    }
}

static bool pause_turn(void *ctx, enum backend_thread thread, uint64_t seen, bool devices, uint64_t max_ns)
{
    struct plat_backend_inproc *b = ctx;
    struct plat_helper *helper = &b->helpers[thread];
    const struct sim_wait_reason reason = {b->node, "a library's thread to do its part", 0, 0};
    host_core_t *core = plat_backend_core(b);
    bool ends = plat_backend_helper(b) == helper && helper->stopping;
    if (!ends) {
        uint64_t deadline_ps = max_ns == 0 ? SIM_NEVER_PS : sim_now_ps(b->sim) + max_ns * SIM_PS_PER_NS;
        if (devices) {
            (void)host_memory_wait_change(b->memory, seen, deadline_ps);
        } else if (host_memory_changes(b->memory) == seen) {
            (void)sim_condition_wait(b->sim, &helper->woken, deadline_ps, &reason);
        }
        host_core_spend(core, host_core_config(core)->poll_ps, &look);
    }
    return plat_backend_helper(b) != helper || !helper->stopping;
}

static void elapse(void *ctx)
{
    (void)ctx;
}

static bool is_locked(void *ctx, enum backend_thread thread)
{
    const struct plat_helper *helper = &((struct plat_backend_inproc *)ctx)->helpers[thread];
    return helper->served != helper->ticket;
}

static void lock(void *ctx, enum backend_thread thread)
{
    struct plat_backend_inproc *b = ctx;
    struct plat_helper *helper = &b->helpers[thread];
    host_core_t *core = plat_backend_core(b);
    const struct sim_wait_reason reason = {b->node, "ticket %llu of the process's lock, %llu has it", helper->ticket,
                                           helper->served};
    uint64_t ticket = helper->ticket++;
    host_core_spend(core, BACKEND_LOCK_LOADS * host_core_config(core)->load_ps, &locking);
    if (ticket != helper->served) {
        while (ticket != helper->served) {
            (void)sim_condition_wait(b->sim, &helper->released, SIM_NEVER_PS, &reason);
        }
        host_core_spend(core, host_core_config(core)->poll_ps, &locking);
    }
}

static void unlock(void *ctx, enum backend_thread thread)
{
    struct plat_backend_inproc *b = ctx;
    host_core_t *core = plat_backend_core(b);
    host_core_spend(core, BACKEND_UNLOCK_LOADS * host_core_config(core)->load_ps, &locking);
    b->helpers[thread].served++;
    sim_condition_signal(b->sim, &b->helpers[thread].released);
}

void plat_backend_threads_stop(struct plat_backend_inproc *ctx)
{
    for (unsigned i = 0; i < BACKEND_THREADS; i++) {
        if (ctx->helpers[i].running) {
            stop(ctx, (enum backend_thread)i);
        }
    }
}

void plat_backend_threads_fini(struct plat_backend_inproc *ctx)
{
    for (unsigned i = 0; i < BACKEND_THREADS; i++) {
        host_core_destroy(ctx->helpers[i].core);
        ctx->helpers[i] = (struct plat_helper){0};
    }
}

const struct backend_thread_ops plat_backend_thread_ops = {
    .start = start,
    .stop = stop,
    .changes = changes,
    .pause = pause_turn,
    .wake = wake,
    .elapse = elapse,
    .is_locked = is_locked,
    .lock = lock,
    .unlock = unlock,
};
