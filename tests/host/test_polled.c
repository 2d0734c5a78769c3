// While causes are recorded: the write of a device that ended a loop in which the program itself polled.
#include <stdlib.h>

#include "bench.h"

#define WORD (2ull << 20)

static void polled(struct bench *b, bool found, uint64_t polled_ps)
{
    host_core_polled(b->core, WORD, found, polled_ps);
}

// The time from the write that ended the loop until now is the last piece of the path, and counts as polling.
static void expect_ended_by_write_at(struct bench *b, uint64_t write_ps)
{
    struct sim_piece *pieces = NULL;
    size_t count = 0;
    ASSERT_TRUE(sim_cause_path_since(b->sim, 0, &pieces, &count));
    if (EXPECT_GT(count, 0)) {
        const struct sim_piece *last = &pieces[count - 1];
        EXPECT_EQ(last->begin_ps, write_ps);
        EXPECT_EQ(last->end_ps, sim_now_ps(b->sim));
        if (EXPECT_NOT_NULL(last->work)) {
            EXPECT_STREQ(last->work->part, "polling");
            EXPECT_STREQ(last->component, "core");
        }
    }
    free(pieces);
}

static void run(struct bench *b, void (*program)(void *bench))
{
    sim_causes_record(b->sim, 0);
    EXPECT_EQ(bench_run(b, program), SIM_RUN_DONE);
    bench_fini(b);
}

static void poll_twice(void *arg)
{
    struct bench *b = arg;
    polled(b, false, 0);
    sim_thread_sleep(b->sim, 50 * NS);
    polled(b, true, 50 * NS);
    expect_ended_by_write_at(b, 20 * NS);
}

TEST(Polled, LoopEndsByTheFirstWriteSinceItsLastEmptyPoll)
{
    struct bench b;
    bench_init(&b);
    bench_write_later(&b, 20 * NS, WORD, 1);
    bench_write_later(&b, 30 * NS, WORD, 2);
    run(&b, poll_twice);
}

TEST(Polled, LoopEndsByNoWriteToTheNextWord)
{
    struct bench b;
    bench_init(&b);
    bench_write_later(&b, 10 * NS, WORD + 8, 1);
    bench_write_later(&b, 20 * NS, WORD, 1);
    run(&b, poll_twice);
}

static void poll_at_25(void *arg)
{
    struct bench *b = arg;
    polled(b, false, 0);
    sim_thread_sleep(b->sim, 25 * NS);
    polled(b, false, 25 * NS);
    sim_thread_sleep(b->sim, 25 * NS);
    polled(b, true, 50 * NS);
    expect_ended_by_write_at(b, 40 * NS);
}

TEST(Polled, LoopEndsByNoWriteThatAnEmptyPollHasSeen)
{
    struct bench b;
    bench_init(&b);
    bench_write_later(&b, 20 * NS, WORD, 1); // not what the program waits for
    bench_write_later(&b, 40 * NS, WORD, 2);
    run(&b, poll_at_25);
}

// The program tells of its poll at 20 ns when it has looked at other words, too.
static void poll_told_later(void *arg)
{
    struct bench *b = arg;
    polled(b, false, 0);
    sim_thread_sleep(b->sim, 25 * NS);
    polled(b, false, 20 * NS);
    sim_thread_sleep(b->sim, 25 * NS);
    polled(b, true, 50 * NS);
    expect_ended_by_write_at(b, 20 * NS);
}

TEST(Polled, LoopEndsByAWriteAtTheInstantOfItsLastEmptyPoll)
{
    struct bench b;
    bench_init(&b);
    bench_write_later(&b, 20 * NS, WORD, 1);
    run(&b, poll_told_later);
}

// Another thread of the program, on another core, leaves something at 20 ns.
static sim_cause_t left;

static void leave(void *ctx)
{
    struct bench *b = ctx;
    left = sim_cause_now(b->sim);
}

static void find_what_was_left(void *arg)
{
    struct bench *b = arg;
    host_core_found(b->core, 0); // its cause is not known: nothing follows
    sim_thread_sleep(b->sim, 50 * NS);
    host_core_found(b->core, left);
    expect_ended_by_write_at(b, 20 * NS);
}

TEST(Polled, LoopEndsByWhatAnotherThreadHasLeft)
{
    struct bench b;
    sim_event_t event;
    bench_init(&b);
    sim_event_init(&event, leave, &b);
    sim_event_schedule(b.sim, &event, 20 * NS);
    run(&b, find_what_was_left);
}
