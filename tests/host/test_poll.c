// The loop of a poll that began at t0 samples at t0 + k * 10 ns; the iteration that saw the word is charged as well.
#include "bench.h"

#define WORD (2ull << 20)

static void poll_for_one(void *arg)
{
    struct bench *b = arg;
    EXPECT_TRUE(host_core_poll(b->core, WORD, UINT64_MAX, 1, SIM_NEVER_PS));
    b->answer = sim_now_ps(b->sim); // the tests check this field
}

static uint64_t poll_end_ps(uint64_t write_ps)
{
    struct bench b;
    bench_init(&b);
    bench_write_later(&b, write_ps, WORD, 1);
    EXPECT_EQ(bench_run(&b, poll_for_one), SIM_RUN_DONE);
    uint64_t end_ps = b.answer;
    bench_fini(&b);
    return end_ps;
}

TEST(Poll, SeesAWriteWithTheFirstSampleAfterIt)
{
    EXPECT_EQ(poll_end_ps(34 * NS), 50 * NS);
    EXPECT_EQ(poll_end_ps(39 * NS + 999), 50 * NS);
}

TEST(Poll, SeesAWriteAtTheInstantOfASample)
{
    EXPECT_EQ(poll_end_ps(40 * NS), 50 * NS);
}

TEST(Poll, SeesAWriteRightAfterASampleWithTheNext)
{
    EXPECT_EQ(poll_end_ps(40 * NS + 1), 60 * NS);
}

TEST(Poll, PaysOneTurnWhenTheWordIsThereAlready)
{
    struct bench b;
    bench_init(&b);
    *(uint64_t *)host_memory_at(b.memory, WORD) = 1;
    EXPECT_EQ(bench_run(&b, poll_for_one), SIM_RUN_DONE);
    EXPECT_EQ(b.answer, 10 * NS);
    EXPECT_EQ(bench_counter(&b, "core", "poll_turns"), 1);
    bench_fini(&b);
}

TEST(Poll, CountsTheTurnsThatALoopWouldHaveMade)
{
    struct bench b;
    bench_init(&b);
    bench_write_later(&b, 34 * NS, WORD, 1);
    EXPECT_EQ(bench_run(&b, poll_for_one), SIM_RUN_DONE);
    EXPECT_EQ(bench_counter(&b, "core", "poll_turns"), 5); // at 0, 10, 20, 30 and 40 ns
    bench_fini(&b);
}

TEST(Poll, MissesAValueThatIsGoneBeforeTheNextSample)
{
    struct bench b;
    bench_init(&b);
    bench_write_later(&b, 32 * NS, WORD, 1);
    bench_write_later(&b, 35 * NS, WORD, 2);
    bench_write_later(&b, 71 * NS, WORD, 1);
    EXPECT_EQ(bench_run(&b, poll_for_one), SIM_RUN_DONE);
    EXPECT_EQ(b.answer, 90 * NS);
    bench_fini(&b);
}

static void poll_masked(void *arg)
{
    struct bench *b = arg;
    EXPECT_TRUE(host_core_poll(b->core, WORD, 0xff00, 0x0500, SIM_NEVER_PS));
    EXPECT_EQ(sim_now_ps(b->sim), 30 * NS);
}

TEST(Poll, LooksAtTheMaskedBitsAlone)
{
    struct bench b;
    bench_init(&b);
    bench_write_later(&b, 8 * NS, WORD, 0x050000);
    bench_write_later(&b, 18 * NS, WORD, 0xa0005a1);
    *(uint64_t *)host_memory_at(b.memory, WORD) = 0x0401;
    EXPECT_EQ(bench_run(&b, poll_masked), SIM_RUN_DONE);
    bench_fini(&b);
}

static void poll_with_deadline(void *arg)
{
    struct bench *b = arg;
    EXPECT_FALSE(host_core_poll(b->core, WORD, UINT64_MAX, 1, 55 * NS));
    EXPECT_EQ(sim_now_ps(b->sim), 55 * NS);
}

TEST(Poll, GivesUpAtTheDeadline)
{
    struct bench b;
    bench_init(&b);
    EXPECT_EQ(bench_run(&b, poll_with_deadline), SIM_RUN_DONE);
    bench_fini(&b);
}

TEST(Poll, DoesNotCountASampleBeyondTheDeadline)
{
    struct bench b;
    bench_init(&b);
    bench_write_later(&b, 52 * NS, WORD, 1); // a sample at 60 ns would see it
    EXPECT_EQ(bench_run(&b, poll_with_deadline), SIM_RUN_DONE);
    bench_fini(&b);
}

TEST(Poll, CountsTheWholeTurnsOfALoopThatGaveUp)
{
    for (unsigned written = 0; written < 2; written++) {
        TEST_TRACE("%u writes before the deadline", written);
        struct bench b;
        bench_init(&b);
        if (written > 0) {
            bench_write_later(&b, 52 * NS, WORD, 1);
        }
        EXPECT_EQ(bench_run(&b, poll_with_deadline), SIM_RUN_DONE);
        EXPECT_EQ(bench_counter(&b, "core", "poll_turns"), 5); // of 10 ns within 55 ns
        bench_fini(&b);
    }
}

static void poll_past_deadline(void *arg)
{
    struct bench *b = arg;
    sim_thread_sleep(b->sim, 20 * NS);
    EXPECT_FALSE(host_core_poll(b->core, WORD, UINT64_MAX, 1, 20 * NS));
    *(uint64_t *)host_memory_at(b->memory, WORD) = 1;
    EXPECT_TRUE(host_core_poll(b->core, WORD, UINT64_MAX, 1, 20 * NS));
}

TEST(Poll, SamplesOnceEvenWhenTheDeadlineIsPast)
{
    struct bench b;
    bench_init(&b);
    EXPECT_EQ(bench_run(&b, poll_past_deadline), SIM_RUN_DONE);
    bench_fini(&b);
}

TEST(Poll, NamesTheWordAndTheValueWhenItIsStuck)
{
    struct bench b;
    char text[256];
    bench_init(&b);
    EXPECT_EQ(bench_run(&b, poll_for_one), SIM_RUN_STUCK);
    (void)sim_describe_waiters(b.sim, text, sizeof text);
    EXPECT_CONTAINS(text, "program waits for memory: word 0x200000 to become 0x1");
    bench_fini(&b);
}

static void poll_of_one_who_ends(void *arg)
{
    struct bench *b = arg;
    EXPECT_FALSE(host_core_poll(b->core, WORD, UINT64_MAX, 1, SIM_NEVER_PS));
    EXPECT_EQ(sim_now_ps(b->sim), 25 * NS);
    EXPECT_FALSE(host_core_poll(b->core, WORD, UINT64_MAX, 1, SIM_NEVER_PS));
    EXPECT_EQ(sim_now_ps(b->sim), 25 * NS);
}

static void program_end(void *ctx)
{
    host_core_abandon(((struct bench *)ctx)->core);
}

TEST(Poll, EndsAtOnceWhenTheProgramHasEnded)
{
    struct bench b;
    sim_event_t end;
    bench_init(&b);
    sim_event_init(&end, program_end, &b);
    sim_event_schedule(b.sim, &end, 25 * NS);
    EXPECT_EQ(bench_run(&b, poll_of_one_who_ends), SIM_RUN_DONE);
    bench_fini(&b);
}
