// The outcomes of a run.
#include "helpers.h"

struct ticker {
    sim_t *sim;
    uint64_t period_ps;
    uint64_t progress_until_ps;
    uint64_t stop_at_ps;
    uint64_t ticks;
    sim_event_t event;
};

static void tick(void *ctx)
{
    struct ticker *ticker = ctx;
    ticker->ticks++;
    if (sim_now_ps(ticker->sim) <= ticker->progress_until_ps) {
        sim_progress(ticker->sim);
    }
    if (ticker->stop_at_ps != 0 && sim_now_ps(ticker->sim) >= ticker->stop_at_ps) {
        sim_stop(ticker->sim);
    }
    sim_event_schedule(ticker->sim, &ticker->event, ticker->period_ps);
}

static void ticker_start(struct ticker *ticker)
{
    sim_event_init(&ticker->event, tick, ticker);
    sim_event_schedule(ticker->sim, &ticker->event, ticker->period_ps);
}

TEST(Run, IsDoneAtOnceWhenNothingIsThere)
{
    sim_t *sim = helper_sim_create();
    EXPECT_EQ(sim_run(sim), SIM_RUN_DONE);
    EXPECT_EQ(sim_run(sim), SIM_RUN_DONE);
    EXPECT_EQ(sim_now_ps(sim), 0);
    sim_destroy(sim);
}

TEST(Run, EndsAtTheTimeLimitBeforeTheEventsDueThere)
{
    struct ticker ticker = {.sim = helper_sim_create_limited(1000, 0), .period_ps = 100};
    ticker_start(&ticker);
    EXPECT_EQ(sim_run(ticker.sim), SIM_RUN_TIME_LIMIT);
    EXPECT_EQ(ticker.ticks, 9);
    EXPECT_EQ(sim_now_ps(ticker.sim), 1000);
    EXPECT_EQ(sim_run(ticker.sim), SIM_RUN_TIME_LIMIT);
    EXPECT_EQ(sim_now_ps(ticker.sim), 1000);
    sim_destroy(ticker.sim);
}

TEST(Run, IsStuckWhenTheSilenceLimitPassed)
{
    struct ticker ticker = {
        .sim = helper_sim_create_limited(0, 1000), .period_ps = 30, .progress_until_ps = 300};
    ticker_start(&ticker);
    EXPECT_EQ(sim_run(ticker.sim), SIM_RUN_STUCK);
    EXPECT_EQ(sim_now_ps(ticker.sim), 1300);
    EXPECT_EQ(ticker.ticks, 1300 / 30);
    sim_destroy(ticker.sim);
}

TEST(Run, CountsSilenceFromItsOwnBeginning)
{
    struct ticker ticker = {.sim = helper_sim_create_limited(0, 1000), .period_ps = 30, .progress_until_ps = 300};
    ticker_start(&ticker);
    EXPECT_EQ(sim_run(ticker.sim), SIM_RUN_STUCK);
    EXPECT_EQ(sim_now_ps(ticker.sim), 1300);
    EXPECT_EQ(sim_run(ticker.sim), SIM_RUN_STUCK);
    EXPECT_EQ(sim_now_ps(ticker.sim), 2300);
    EXPECT_EQ(ticker.ticks, 2300 / 30);
    sim_destroy(ticker.sim);
}

TEST(Run, IsStuckWhenTimeStandsStill)
{
    struct ticker ticker = {.sim = helper_sim_create()};
    ticker_start(&ticker);
    EXPECT_EQ(sim_run(ticker.sim), SIM_RUN_STUCK);
    EXPECT_EQ(ticker.ticks, 10000000);
    EXPECT_EQ(sim_now_ps(ticker.sim), 0);
    sim_destroy(ticker.sim);
}

TEST(Run, GoesOnAfterTenMillionEventsWhileTimeMoves)
{
    struct ticker ticker = {.sim = helper_sim_create_limited(10000100, 0), .period_ps = 1};
    ticker_start(&ticker);
    EXPECT_EQ(sim_run(ticker.sim), SIM_RUN_TIME_LIMIT);
    EXPECT_EQ(ticker.ticks, 10000099);
    EXPECT_EQ(sim_now_ps(ticker.sim), 10000100);
    sim_destroy(ticker.sim);
}

static void yield_forever(void *arg)
{
    for (;;) {
        sim_thread_sleep(arg, 0);
    }
}

TEST(Run, IsStuckWhenAThreadYieldsForever)
{
    sim_t *sim = helper_sim_create();
    ASSERT_EQ(sim_thread_spawn(sim, "t", yield_forever, sim), SIM_OK);
    EXPECT_EQ(sim_run(sim), SIM_RUN_STUCK);
    EXPECT_EQ(sim_now_ps(sim), 0);
    sim_destroy(sim);
}

static void sleep_forever(void *arg)
{
    for (;;) {
        sim_thread_sleep(arg, 7);
    }
}

TEST(Run, EndsAtTheTimeLimitWithAThreadThatNeverEnds)
{
    sim_t *sim = helper_sim_create_limited(1000, 100);
    ASSERT_EQ(sim_thread_spawn(sim, "t", sleep_forever, sim), SIM_OK);
    EXPECT_EQ(sim_run(sim), SIM_RUN_TIME_LIMIT);
    EXPECT_EQ(sim_now_ps(sim), 1000);
    EXPECT_EQ(sim_thread_count(sim), 1);
    sim_destroy(sim);
}

TEST(Run, StopsAfterTheEventThatAsksForIt)
{
    struct ticker ticker = {.sim = helper_sim_create(), .period_ps = 100, .stop_at_ps = 500};
    ticker_start(&ticker);
    EXPECT_EQ(sim_run(ticker.sim), SIM_RUN_STOPPED);
    EXPECT_EQ(ticker.ticks, 5);
    ticker.stop_at_ps = 700;
    EXPECT_EQ(sim_run(ticker.sim), SIM_RUN_STOPPED);
    EXPECT_EQ(ticker.ticks, 7);
    EXPECT_EQ(sim_now_ps(ticker.sim), 700);
    sim_destroy(ticker.sim);
}

static void stop_then_sleep(void *arg)
{
    struct actor *actor = arg;
    sim_stop(actor->record->sim);
    record_add(actor->record, '1');
    sim_thread_sleep(actor->record->sim, 10);
    record_add(actor->record, '2');
}

TEST(Run, StopsWhenTheThreadThatAsksForItBlocks)
{
    struct record record = {.sim = helper_sim_create()};
    struct actor actor;
    actor_init(&actor, &record, 'a');
    ASSERT_EQ(sim_thread_spawn(record.sim, "t", stop_then_sleep, &actor), SIM_OK);
    EXPECT_EQ(sim_run(record.sim), SIM_RUN_STOPPED);
    EXPECT_STREQ(record.letters, "1");
    EXPECT_EQ(sim_run(record.sim), SIM_RUN_DONE);
    EXPECT_STREQ(record.letters, "12");
    EXPECT_EQ(sim_now_ps(record.sim), 10);
    sim_destroy(record.sim);
}
