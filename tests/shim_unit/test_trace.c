// The traces beneath a failure: those of the scopes that it is in, also in simulated threads.
#include <string.h>

#include "sim/kernel/sim.h"
#include "sim/kernel/thread.h"
#include "tests/shim/test.h"

static char failure_text[4096];

// Runs body and returns its messages, whose number must be `failures`.
static const char *messages_of(void (*body)(void *arg), void *arg, unsigned failures)
{
    EXPECT_EQ(test_failures_of(body, arg, failure_text, sizeof failure_text), failures);
    return failure_text;
}

static void step(unsigned number)
{
    TEST_TRACE("step %u", number);
    EXPECT_NE(number, 2);
}

static void walk(void *arg)
{
    (void)arg;
    for (unsigned seed = 7; seed < 9; seed++) {
        TEST_TRACE("seed %u", seed);
        step(seed - 6);
    }
    FAIL("after all");
}

TEST(TestTrace, NamesTheScopesOfAFailureInnermostFirst)
{
    const char *text = messages_of(walk, NULL, 2);
    EXPECT_CONTAINS(text, "left     2 (0x2)\n  right    2 (0x2)\n  in step 2 (");
    EXPECT_LACKS(text, "step 1");
    EXPECT_LACKS(text, "seed 7");
    const char *inner = strstr(text, "in step 2 ("), *outer = strstr(text, "in seed 8 (");
    ASSERT_NOT_NULL(inner);
    ASSERT_NOT_NULL(outer);
    EXPECT_LT(inner, outer);
    EXPECT_CONTAINS(inner, "test_trace.c:");
    EXPECT_CONTAINS(text, "after all\n");
    EXPECT_LACKS(strstr(text, "after all"), "seed");
}

static void leaves_early(unsigned number)
{
    TEST_TRACE("number %u", number);
    ASSERT_EQ(number, 3);
}

static void two_early(void *arg)
{
    (void)arg;
    leaves_early(1);
    FAIL("afterwards");
}

TEST(TestTrace, EndsWithAnAssertionThatReturns)
{
    const char *text = messages_of(two_early, NULL, 2);
    EXPECT_CONTAINS(text, "in number 1");
    const char *after = strstr(text, "afterwards");
    EXPECT_LACKS(after, "number");
}

// Two threads that take turns in the middle of their scopes.
static void first_thread(void *arg)
{
    TEST_TRACE("the first's scope");
    sim_thread_sleep(arg, 20);
    FAIL("first fails");
}

static void second_thread(void *arg)
{
    sim_thread_sleep(arg, 10);
    TEST_TRACE("the second's scope");
    sim_thread_sleep(arg, 20);
    FAIL("second fails");
}

static void two_threads(void *arg)
{
    (void)arg;
    const struct sim_config config = {.seed = 1};
    sim_t *sim = NULL;
    ASSERT_EQ(sim_create(&config, &sim), SIM_OK);
    TEST_TRACE("the run");
    sim_thread_spawn(sim, "first", first_thread, sim);
    sim_thread_spawn(sim, "second", second_thread, sim);
    EXPECT_EQ(sim_run(sim), SIM_RUN_DONE);
    sim_destroy(sim);
}

TEST(TestTrace, OfAThreadIsItsOwnAndThatOfTheRun)
{
    const char *text = messages_of(two_threads, NULL, 2);
    const char *first = strstr(text, "first fails"), *second = strstr(text, "second fails");
    ASSERT_NOT_NULL(first);
    ASSERT_NOT_NULL(second);
    EXPECT_CONTAINS(second, "\n  in the second's scope (");
    EXPECT_CONTAINS(second, "\n  in thread second at 30 ps\n  in the run (");
    EXPECT_LACKS(second, "first");
    failure_text[second - text] = '\0';
    EXPECT_CONTAINS(first, "\n  in the first's scope (");
    EXPECT_CONTAINS(first, "\n  in thread first at 20 ps\n  in the run (");
    EXPECT_LACKS(first, "second");
}

static void endless_thread(void *arg)
{
    TEST_TRACE("a cancelled scope");
    sim_thread_sleep(arg, SIM_PS_PER_MS);
    FAIL("is not reached");
}

static void failing_thread(void *arg)
{
    (void)arg;
    FAIL("fails");
}

static void run_one(uint64_t time_limit_ps, void (*thread)(void *arg))
{
    const struct sim_config config = {.seed = 1, .time_limit_ps = time_limit_ps};
    sim_t *sim = NULL;
    ASSERT_EQ(sim_create(&config, &sim), SIM_OK);
    TEST_TRACE("limit %llu", (unsigned long long)time_limit_ps);
    sim_thread_spawn(sim, "thread", thread, sim);
    (void)sim_run(sim);
    sim_destroy(sim);
}

static void cancelled_and_failing(void *arg)
{
    (void)arg;
    run_one(SIM_PS_PER_US, endless_thread);
    run_one(0, failing_thread);
}

TEST(TestTrace, OfACancelledThreadEndsWithItsSimulation)
{
    const char *text = messages_of(cancelled_and_failing, NULL, 1);
    EXPECT_CONTAINS(text, "in thread thread at 0 ps\n  in limit 0 (");
    EXPECT_LACKS(text, "cancelled");
}
