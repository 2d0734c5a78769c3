// The second thread of a simulated process: a simulated thread with a core of its own, and the lock between the two.
//
// Threads of the simulation switch only where simulated time passes, so the words of the lock need no care. What they
// cost: a load and a store to take it, a store to give it back, and one turn of a polling loop for who had to wait.
// Leaves out that a line moves between the caches of two cores.
#include <errno.h>
#include <stdio.h>

#include "sim/kernel/cause.h"
#include "sim/platform/backend_inproc.h"

static const struct sim_work look = {"polling", "the look that sees it", false};
static const struct sim_work locking = {"library", "lock between two threads", false};

bool plat_backend_is_helper(const struct plat_backend_inproc *ctx)
{
    return ctx->helper.running && ctx->helper.thread == sim_thread_name(ctx->sim);
}

static void thread(void *arg)
{
    struct plat_backend_inproc *b = arg;
    struct plat_helper *helper = &b->helper;
    helper->thread = sim_thread_name(b->sim);
    helper->run(helper->arg);
    helper->running = false;
    sim_condition_signal(b->sim, &helper->ended);
}

static int start(void *ctx, void (*run)(void *arg), void *arg)
{
    struct plat_backend_inproc *b = ctx;
    struct plat_helper *helper = &b->helper;
    if (helper->running) {
        return -EBUSY;
    }
    char name[SCN_NAME_MAX + 16];
    snprintf(name, sizeof name, "%s.progress", b->node);
    if (helper->core == NULL) {
        sim_condition_init(&helper->ended);
        sim_condition_init(&helper->released);
        if (host_core_create(b->sim, name, host_core_config(b->core), b->rc, b->memory, &helper->core) != SIM_OK) {
            return -ENOMEM;
        }
    }
    helper->run = run;
    helper->arg = arg;
    helper->thread = NULL; // until it runs
    helper->stopping = false;
    helper->running = sim_thread_spawn(b->sim, name, thread, b) == SIM_OK;
    return helper->running ? 0 : -ENOMEM;
}

static void stop(void *ctx)
{
    struct plat_backend_inproc *b = ctx;
    const struct sim_wait_reason reason = {b->node, "the process's second thread to end", 0, 0};
    b->helper.stopping = true;
    if (b->helper.running) {
        host_memory_touch(b->memory);
    }
    while (b->helper.running) {
        (void)sim_condition_wait(b->sim, &b->helper.ended, SIM_NEVER_PS, &reason);
    }
}

static bool pause_turn(void *ctx, uint64_t max_ns)
{
    struct plat_backend_inproc *b = ctx;
    host_core_t *core = plat_backend_core(b);
    bool helper = plat_backend_is_helper(b);
    if (!helper || !b->helper.stopping) {
        uint64_t deadline_ps = max_ns == 0 ? SIM_NEVER_PS : sim_now_ps(b->sim) + max_ns * SIM_PS_PER_NS;
        (void)host_memory_wait_change(b->memory, b->helper.seen[helper], deadline_ps);
        host_core_spend(core, host_core_config(core)->poll_ps, &look);
    }
    return !helper || !b->helper.stopping;
}

static void wake(void *ctx)
{
    struct plat_backend_inproc *b = ctx;
    host_memory_touch(b->memory);
}

static void lock(void *ctx)
{
    struct plat_backend_inproc *b = ctx;
    struct plat_helper *helper = &b->helper;
    host_core_t *core = plat_backend_core(b);
    const struct sim_wait_reason reason = {b->node, "ticket %llu of the process's lock, %llu has it", helper->ticket,
                                           helper->served};
    uint64_t ticket = helper->ticket++;
    host_core_spend(core, 2 * host_core_config(core)->load_ps, &locking);
    if (ticket != helper->served) {
        while (ticket != helper->served) {
            (void)sim_condition_wait(b->sim, &helper->released, SIM_NEVER_PS, &reason);
        }
        host_core_spend(core, host_core_config(core)->poll_ps, &locking);
    }
    helper->seen[plat_backend_is_helper(b)] = host_memory_changes(b->memory);
}

static void unlock(void *ctx)
{
    struct plat_backend_inproc *b = ctx;
    host_core_t *core = plat_backend_core(b);
    host_core_spend(core, host_core_config(core)->load_ps, &locking);
    b->helper.served++;
    sim_condition_signal(b->sim, &b->helper.released);
}

const struct backend_thread_ops plat_backend_thread_ops = {
    .start = start,
    .stop = stop,
    .pause = pause_turn,
    .wake = wake,
    .lock = lock,
    .unlock = unlock,
};
