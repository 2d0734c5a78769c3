// Host threads: when they run, and in what order.
#include <stdio.h>
#include <stdlib.h>

#include "helpers.h"

struct sleeper {
    sim_t *sim;
    uint64_t woke_ps[3];
};

static void sleep_thrice(void *arg)
{
    struct sleeper *sleeper = arg;
    const uint64_t delays_ps[3] = {1, 999, 0};
    for (int i = 0; i < 3; i++) {
        sim_thread_sleep(sleeper->sim, delays_ps[i]);
        sleeper->woke_ps[i] = sim_now_ps(sleeper->sim);
    }
}

TEST(Thread, SleepsExactly)
{
    struct sleeper sleeper = {.sim = helper_sim_create()};
    ASSERT_EQ(sim_thread_spawn(sleeper.sim, "t", sleep_thrice, &sleeper), SIM_OK);
    EXPECT_EQ(sim_run(sleeper.sim), SIM_RUN_DONE);
    EXPECT_EQ(sleeper.woke_ps[0], 1);
    EXPECT_EQ(sleeper.woke_ps[1], 1000);
    EXPECT_EQ(sleeper.woke_ps[2], 1000);
    EXPECT_EQ(sim_events_run(sleeper.sim), 4);
    sim_destroy(sleeper.sim);
}

TEST(Thread, WakesInTheOrderOfTimeThenOfFallingAsleep)
{
    struct record record = {.sim = helper_sim_create()};
    struct actor actors[4];
    const uint64_t delays_ps[4] = {300, 100, 300, 200};
    for (int i = 0; i < 4; i++) {
        actor_init(&actors[i], &record, (char)('a' + i));
        actors[i].delay_ps = delays_ps[i];
        ASSERT_EQ(sim_thread_spawn(record.sim, "t", actor_thread, &actors[i]), SIM_OK);
    }
    EXPECT_EQ(sim_run(record.sim), SIM_RUN_DONE);
    EXPECT_STREQ(record.letters, "bdac");
    sim_destroy(record.sim);
}

// --- turns ----------------------------------------------------------------------------------------------------------

enum { INSTANTS = 64, INSTANT_PS = 100 };

struct player {
    sim_t *sim;
    char letter, *order;    // of each instant, two letters
    unsigned sleeps;        // to each instant, from the second one on
};

static void play(void *arg)
{
    const struct player *player = arg;
    (void)sim_thread_take_turns(player->sim);
    for (unsigned i = 0; i < INSTANTS; i++) {
        unsigned sleeps = i == 0 ? 1 : player->sleeps;
        for (unsigned j = 0; j < sleeps; j++) {
            sim_thread_sleep(player->sim, INSTANT_PS / sleeps);
        }
        char *free = player->order + 2 * i;
        free[free[0] != 0] = player->letter;
    }
}

// The first thread comes to each instant by so many sleeps.
static void orders(unsigned sleeps, char order[2 * INSTANTS + 1])
{
    sim_t *sim = helper_sim_create();
    struct player players[2] = {{sim, 'a', order, sleeps}, {sim, 'b', order, 1}};
    for (unsigned i = 0; i < 2; i++) {
        ASSERT_EQ(sim_thread_spawn(sim, "t", play, &players[i]), SIM_OK);
    }
    EXPECT_EQ(sim_run(sim), SIM_RUN_DONE);
    sim_destroy(sim);
}

TEST(Thread, TakesTheSameTurnsHoweverItCameToAnInstant)
{
    char by_one[2 * INSTANTS + 1] = "", by_many[2 * INSTANTS + 1] = "";
    orders(1, by_one);
    orders(4, by_many);
    EXPECT_STREQ(by_many, by_one);
    unsigned first = 0;
    for (unsigned i = 0; i < INSTANTS; i++) {
        first += by_one[2 * i] == 'a';
    }
    EXPECT_BETWEEN(first, INSTANTS / 4, 3 * INSTANTS / 4); // neither is always the first
}

TEST(Thread, StartsAfterTheEventsAlreadyDue)
{
    struct record record = {.sim = helper_sim_create()};
    struct actor first, thread, last;
    actor_init(&first, &record, 'a');
    actor_init(&thread, &record, 't');
    actor_init(&last, &record, 'z');
    sim_event_schedule(record.sim, &first.event, 0);
    ASSERT_EQ(sim_thread_spawn(record.sim, "t", actor_event, &thread), SIM_OK);
    sim_event_schedule(record.sim, &last.event, 0);
    EXPECT_EQ(sim_run(record.sim), SIM_RUN_DONE);
    EXPECT_STREQ(record.letters, "atz");
    sim_destroy(record.sim);
}

struct known {
    sim_t *sim;
    char name[16];
    bool inside;
};

static void know_yourself(void *arg)
{
    struct known *known = arg;
    sim_thread_sleep(known->sim, 5);
    snprintf(known->name, sizeof known->name, "%s", sim_thread_name(known->sim));
    known->inside = sim_thread_is_running(known->sim);
}

TEST(Thread, KnowsItsNameWhileItRuns)
{
    struct known known = {.sim = helper_sim_create()};
    char name[] = "node0.cpu0";
    ASSERT_EQ(sim_thread_spawn(known.sim, name, know_yourself, &known), SIM_OK);
    name[0] = 'X';
    EXPECT_EQ(sim_thread_count(known.sim), 1);
    EXPECT_EQ(sim_run(known.sim), SIM_RUN_DONE);
    EXPECT_STREQ(known.name, "node0.cpu0");
    EXPECT_TRUE(known.inside);
    EXPECT_FALSE(sim_thread_is_running(known.sim));
    EXPECT_NULL(sim_thread_name(known.sim));
    EXPECT_EQ(sim_thread_count(known.sim), 0);
    sim_destroy(known.sim);
}

static void spawn_another(void *arg)
{
    struct actor *actor = arg;
    sim_thread_sleep(actor->record->sim, 50);
    EXPECT_EQ(sim_thread_spawn(actor->record->sim, "child", actor_thread, actor), SIM_OK);
    record_add(actor->record, 'p');
}

TEST(Thread, MaySpawnAnother)
{
    struct record record = {.sim = helper_sim_create()};
    struct actor actor;
    actor_init(&actor, &record, 'c');
    actor.delay_ps = 25;
    ASSERT_EQ(sim_thread_spawn(record.sim, "parent", spawn_another, &actor), SIM_OK);
    EXPECT_EQ(sim_run(record.sim), SIM_RUN_DONE);
    EXPECT_STREQ(record.letters, "pc");
    EXPECT_EQ(record.times_ps[1], 75);
    sim_destroy(record.sim);
}

struct crowd {
    sim_t *sim;
    unsigned ended;
};

static void sleep_many_times(void *arg)
{
    struct crowd *crowd = arg;
    for (uint64_t i = 1; i <= 20; i++) {
        sim_thread_sleep(crowd->sim, i);
    }
    crowd->ended++;
}

TEST(Thread, LivesBesideAThousandOthers)
{
    struct crowd crowd = {.sim = helper_sim_create()};
    for (int i = 0; i < 1000; i++) {
        ASSERT_EQ(sim_thread_spawn(crowd.sim, "t", sleep_many_times, &crowd), SIM_OK);
    }
    EXPECT_EQ(sim_run(crowd.sim), SIM_RUN_DONE);
    EXPECT_EQ(crowd.ended, 1000);
    EXPECT_EQ(sim_now_ps(crowd.sim), 210);
    EXPECT_EQ(sim_events_run(crowd.sim), 1000 * 21);
    sim_destroy(crowd.sim);
}
