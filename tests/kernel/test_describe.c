// The description of the threads of a stuck run.
#include "helpers.h"

struct waiter {
    sim_t *sim;
    sim_condition_t condition;
    uint64_t deadline_ps;
    uint64_t sleep_ps;
};

static void sleep_then_wait(void *arg)
{
    static const struct sim_wait_reason reason = {"node1.memory", "word 0x%llx to become %llu", 0x1000, 7};
    struct waiter *waiter = arg;
    sim_thread_sleep(waiter->sim, waiter->sleep_ps);
    sim_condition_wait(waiter->sim, &waiter->condition, waiter->deadline_ps, &reason);
}

static void sleep_only(void *arg)
{
    struct waiter *waiter = arg;
    sim_thread_sleep(waiter->sim, waiter->sleep_ps);
}

TEST(Describe, NamesEachThreadWhatItWaitsForAndSinceWhen)
{
    struct waiter waiter = {.sim = helper_sim_create(), .deadline_ps = SIM_NEVER_PS, .sleep_ps = 12345 * SIM_PS_PER_NS};
    char text[256];
    ASSERT_EQ(sim_thread_spawn(waiter.sim, "node0.cpu0", sleep_then_wait, &waiter), SIM_OK);
    EXPECT_EQ(sim_run(waiter.sim), SIM_RUN_STUCK);
    EXPECT_EQ(sim_describe_waiters(waiter.sim, text, sizeof text), 1);
    EXPECT_STREQ(text, "node0.cpu0 waits for node1.memory: word 0x1000 to become 7 (since 12345 ns)\n");
    sim_destroy(waiter.sim);
}

TEST(Describe, ListsThreadsInTheOrderOfSpawning)
{
    struct waiter waiter = {.sim = helper_sim_create_limited(2500, 0), .deadline_ps = 9000, .sleep_ps = 1250};
    struct waiter longer = {.sim = waiter.sim, .sleep_ps = 4000};
    char text[256];
    ASSERT_EQ(sim_thread_spawn(waiter.sim, "b", sleep_only, &longer), SIM_OK);
    ASSERT_EQ(sim_thread_spawn(waiter.sim, "gone", sleep_only, &waiter), SIM_OK);
    ASSERT_EQ(sim_thread_spawn(waiter.sim, "a", sleep_then_wait, &waiter), SIM_OK);
    EXPECT_EQ(sim_run(waiter.sim), SIM_RUN_TIME_LIMIT);
    EXPECT_EQ(sim_describe_waiters(waiter.sim, text, sizeof text), 2);
    EXPECT_STREQ(text, "b waits for time: sleeps until 4 ns (since 0 ns)\n"
                       "a waits for node1.memory: word 0x1000 to become 7 (since 1.250 ns, until 9 ns)\n");
    sim_destroy(waiter.sim);
}

TEST(Describe, ListsAThreadThatWasSpawnedAfterTheNewestOneEnded)
{
    struct waiter waiter = {.sim = helper_sim_create(), .deadline_ps = SIM_NEVER_PS};
    struct waiter brief = {.sim = waiter.sim, .sleep_ps = 1};
    char text[256];
    ASSERT_EQ(sim_thread_spawn(waiter.sim, "first", sleep_then_wait, &waiter), SIM_OK);
    ASSERT_EQ(sim_thread_spawn(waiter.sim, "ends", sleep_only, &brief), SIM_OK);
    EXPECT_EQ(sim_run(waiter.sim), SIM_RUN_STUCK);
    ASSERT_EQ(sim_thread_spawn(waiter.sim, "last", sleep_only, &brief), SIM_OK);
    EXPECT_EQ(sim_describe_waiters(waiter.sim, text, sizeof text), 2);
    EXPECT_STREQ(text, "first waits for node1.memory: word 0x1000 to become 7 (since 0 ns)\n"
                       "last waits for its turn to run\n");
    sim_destroy(waiter.sim);
}

TEST(Describe, KeepsTheZerosBehindThePoint)
{
    struct waiter waiter = {.sim = helper_sim_create_limited(2000, 0), .deadline_ps = 2007, .sleep_ps = 1050};
    char text[256];
    ASSERT_EQ(sim_thread_spawn(waiter.sim, "t", sleep_then_wait, &waiter), SIM_OK);
    EXPECT_EQ(sim_run(waiter.sim), SIM_RUN_TIME_LIMIT);
    EXPECT_EQ(sim_describe_waiters(waiter.sim, text, sizeof text), 1);
    EXPECT_CONTAINS(text, "(since 1.050 ns, until 2.007 ns)");
    sim_destroy(waiter.sim);
}

TEST(Describe, SaysThatAThreadHasNotRunYet)
{
    struct waiter waiter = {.sim = helper_sim_create()};
    char text[64];
    ASSERT_EQ(sim_thread_spawn(waiter.sim, "t", sleep_only, &waiter), SIM_OK);
    EXPECT_EQ(sim_describe_waiters(waiter.sim, text, sizeof text), 1);
    EXPECT_STREQ(text, "t waits for its turn to run\n");
    sim_destroy(waiter.sim);
}

TEST(Describe, CutsTheTextToTheBuffer)
{
    struct waiter waiter = {.sim = helper_sim_create()};
    char text[6] = "xxxxx";
    EXPECT_EQ(sim_describe_waiters(waiter.sim, text, sizeof text), 0);
    EXPECT_STREQ(text, "");
    ASSERT_EQ(sim_thread_spawn(waiter.sim, "t", sleep_only, &waiter), SIM_OK);
    EXPECT_EQ(sim_describe_waiters(waiter.sim, text, sizeof text), 1);
    EXPECT_STREQ(text, "t wai");
    EXPECT_EQ(sim_describe_waiters(waiter.sim, NULL, 0), 1);
    sim_destroy(waiter.sim);
}
