// sim_try_advance, and the agreement of the fast ways to move time with the exact one.
#include "helpers.h"

struct clock {
    sim_t *sim;
    uint64_t delay_ps;
    bool stops_first;
    bool moved;
    uint64_t before_ps, after_ps;
    sim_event_t event;
};

static void clock_ticks(void *ctx)
{
    struct clock *clock = ctx;
    if (clock->stops_first) {
        sim_stop(clock->sim);
    }
    clock->before_ps = sim_now_ps(clock->sim);
    clock->moved = sim_try_advance(clock->sim, clock->delay_ps);
    clock->after_ps = sim_now_ps(clock->sim);
}

static void clock_start(struct clock *clock, uint64_t start_ps)
{
    sim_event_init(&clock->event, clock_ticks, clock);
    sim_event_schedule(clock->sim, &clock->event, start_ps);
}

TEST(Advance, MovesTimeWhenNothingIsDue)
{
    struct clock clock = {.sim = helper_sim_create(), .delay_ps = 4000};
    clock_start(&clock, 100);
    EXPECT_EQ(sim_run(clock.sim), SIM_RUN_DONE);
    EXPECT_TRUE(clock.moved);
    EXPECT_EQ(clock.after_ps, 4100);
    sim_destroy(clock.sim);
}

TEST(Advance, RefusesWhenAnEventIsDueAtItsTarget)
{
    struct record record = {.sim = helper_sim_create()};
    struct clock clock = {.sim = record.sim, .delay_ps = 4000};
    struct actor actor;
    actor_init(&actor, &record, 'a');
    sim_event_schedule(record.sim, &actor.event, 4100);
    clock_start(&clock, 100);
    EXPECT_EQ(sim_run(clock.sim), SIM_RUN_DONE);
    EXPECT_FALSE(clock.moved);
    EXPECT_EQ(clock.after_ps, 100);
    EXPECT_EQ(record.times_ps[0], 4100);
    sim_destroy(clock.sim);
}

TEST(Advance, MovesTimeWhenTheNextEventIsDueBehindItsTarget)
{
    struct record record = {.sim = helper_sim_create()};
    struct clock clock = {.sim = record.sim, .delay_ps = 4000};
    struct actor actor;
    actor_init(&actor, &record, 'a');
    sim_event_schedule(record.sim, &actor.event, 4101);
    clock_start(&clock, 100);
    EXPECT_EQ(sim_run(clock.sim), SIM_RUN_DONE);
    EXPECT_EQ(clock.after_ps, 4100);
    EXPECT_EQ(record.times_ps[0], 4101);
    sim_destroy(clock.sim);
}

TEST(Advance, RefusesToReachTheTimeLimit)
{
    struct clock clock = {.sim = helper_sim_create_limited(5000, 0), .delay_ps = 4900};
    clock_start(&clock, 100);
    EXPECT_EQ(sim_run(clock.sim), SIM_RUN_DONE);
    EXPECT_FALSE(clock.moved);
    sim_destroy(clock.sim);
}

TEST(Advance, RefusesToPassTheSilenceLimit)
{
    struct clock clock = {.sim = helper_sim_create_limited(0, 1000), .delay_ps = 901};
    clock_start(&clock, 100);
    EXPECT_EQ(sim_run(clock.sim), SIM_RUN_DONE);
    EXPECT_FALSE(clock.moved);
    sim_destroy(clock.sim);
}

TEST(Advance, RefusesAfterAStopAndBeyondTheEndOfTime)
{
    struct clock clock = {.sim = helper_sim_create(), .delay_ps = 1, .stops_first = true};
    clock_start(&clock, 100);
    EXPECT_EQ(sim_run(clock.sim), SIM_RUN_STOPPED);
    EXPECT_FALSE(clock.moved);
    clock.stops_first = false;
    clock.delay_ps = SIM_NEVER_PS;
    clock_start(&clock, 100);
    EXPECT_EQ(sim_run(clock.sim), SIM_RUN_DONE);
    EXPECT_FALSE(clock.moved);
    sim_destroy(clock.sim);
}

// --- exact, and ahead of SystemC ---------------------------------------------------------------------------------

static void record_of_mixed_run(bool exact, struct record *record, uint64_t *events_out)
{
    struct actor actors[8];
    *record = (struct record){.sim = helper_sim_create()};
    if (exact) {
        sim_bridge_keep_exact(record->sim);
    }
    for (int i = 0; i < 8; i++) {
        actor_init(&actors[i], record, (char)('a' + i));
        actors[i].delay_ps = (uint64_t)(i * 7 % 5) * 100;
        if (i % 2 == 0) {
            EXPECT_EQ(sim_thread_spawn(record->sim, "t", actor_thread, &actors[i]), SIM_OK);
        } else {
            sim_event_schedule(record->sim, &actors[i].event, actors[i].delay_ps);
        }
    }
    EXPECT_EQ(sim_run(record->sim), SIM_RUN_DONE);
    *events_out = sim_events_run(record->sim);
    sim_destroy(record->sim);
    record->sim = NULL;
}

TEST(Exact, GivesTheSameOrderTimesAndCountAsRunningAhead)
{
    struct record ahead, exact;
    uint64_t events_ahead, events_exact;
    record_of_mixed_run(false, &ahead, &events_ahead);
    record_of_mixed_run(true, &exact, &events_exact);
    EXPECT_EQ(ahead.count, 8);
    EXPECT_STREQ(ahead.letters, exact.letters);
    EXPECT_MEMEQ(ahead.times_ps, exact.times_ps, sizeof ahead.times_ps);
    EXPECT_EQ(events_ahead, events_exact);
}
