// Threads of libraries beside a simulated program, and the lock between the two.
#include "tests/support/site.h"

struct helper {
    struct site site;
    const struct backend *backend;
    unsigned turns; // of the thread's loop, in all its lives
};

// Looks for work every microsecond until it must end.
static void looks_for_work(void *arg)
{
    struct helper *helper = arg;
    const struct backend *backend = helper->backend;
    const struct backend_thread_ops *thread = backend->ops->thread;
    uint64_t seen;
    do {
        helper->turns++;
        seen = thread->changes(backend->ctx, BACKEND_THREAD_ACP);
    } while (thread->pause(backend->ctx, BACKEND_THREAD_ACP, seen, false, 1000));
}

static void rest(const struct backend *backend, uint64_t us)
{
    backend->ops->cost(backend->ctx, BACKEND_COST_TIME, us * 1000);
}

static void starts_it_twice(void *arg, peach2_handle_t *board)
{
    struct helper *helper = arg;
    const struct backend *backend = helper->backend = peach2_backend(board);
    const struct backend_thread_ops *thread = backend->ops->thread;
    for (unsigned life = 1; life <= 2; life++) {
        TEST_TRACE("life %u", life);
        helper->turns = 0;
        EXPECT_EQ(thread->start(backend->ctx, BACKEND_THREAD_ACP, looks_for_work, helper), 0);
        rest(backend, 100);
        thread->stop(backend->ctx, BACKEND_THREAD_ACP);
        EXPECT_BETWEEN(helper->turns, 80, 101); // a turn is a microsecond and the look
        unsigned turns = helper->turns;
        rest(backend, 10);
        EXPECT_EQ(helper->turns, turns);
    }
}

TEST(LibraryThread, MayBeStartedAgainWhenItHasBeenStopped)
{
    struct helper helper = {0};
    site_init(&helper.site, 1);
    site_build(&helper.site);
    ASSERT_NOT_NULL(helper.site.machine);
    plat_machine_set_program(helper.site.machine, 0, starts_it_twice, &helper);
    EXPECT_EQ(plat_machine_run(helper.site.machine), SIM_RUN_DONE);
    site_fini(&helper.site);
}

// value[0], value[1]: the time to take the lock and to release it.
static void takes_the_lock(void *arg, peach2_handle_t *board)
{
    struct helper *helper = arg;
    const struct backend *backend = helper->backend = peach2_backend(board);
    const struct backend_thread_ops *thread = backend->ops->thread;
    const sim_t *sim = plat_machine_sim(helper->site.machine);
    EXPECT_EQ(thread->start(backend->ctx, BACKEND_THREAD_ACP, looks_for_work, helper), 0);
    rest(backend, 1);
    uint64_t begin_ps = sim_now_ps(sim);
    thread->lock(backend->ctx, BACKEND_THREAD_ACP);
    uint64_t taken_ps = sim_now_ps(sim);
    thread->unlock(backend->ctx, BACKEND_THREAD_ACP);
    helper->site.value[0] = taken_ps - begin_ps;
    helper->site.value[1] = sim_now_ps(sim) - taken_ps;
    thread->stop(backend->ctx, BACKEND_THREAD_ACP);
}

TEST(LibraryThread, SharesALockThatCostsALoadAndAStoreToTakeAndAStoreToRelease)
{
    struct helper helper = {0};
    site_init(&helper.site, 1);
    const uint64_t access_ps = helper.site.scenario->nodes[0].host.load_ps;
    site_build(&helper.site);
    ASSERT_NOT_NULL(helper.site.machine);
    plat_machine_set_program(helper.site.machine, 0, takes_the_lock, &helper);
    EXPECT_EQ(plat_machine_run(helper.site.machine), SIM_RUN_DONE);
    EXPECT_EQ(helper.site.value[0], 2 * access_ps);
    EXPECT_EQ(helper.site.value[1], access_ps);
    site_fini(&helper.site);
}
