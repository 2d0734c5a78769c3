// Causes: the path back from an instant to its causes.
#include "sim/kernel/cause.h"

#include <stdlib.h>

#include "helpers.h"

static const struct sim_work working = {"work", "working", false};
static const struct sim_work waiting = {"work", "waiting", false};
static const struct sim_work flying = {"wire", "flying", false};

// A thread that measures: it requests an answer, which comes by an event and wakes it.
struct measure {
    sim_t *sim;
    sim_event_t answer, other;
    sim_condition_t answered;
    sim_cause_t kept;
    struct sim_piece *pieces;
    size_t count;
    bool found;
};

static void answer_run(void *ctx)
{
    struct measure *m = ctx;
    sim_cause_label(m->sim, "device", &flying);
    sim_condition_signal(m->sim, &m->answered);
}

static void work_for(struct measure *m, uint64_t ps)
{
    sim_thread_sleep(m->sim, ps);
    sim_cause_label(m->sim, "core", &working);
}

static void answer_await(struct measure *m)
{
    const struct sim_wait_reason reason = {"device", "its answer", 0, 0};
    (void)sim_condition_wait(m->sim, &m->answered, SIM_NEVER_PS, &reason);
}

static void run(struct measure *m, void (*program)(void *arg), bool record)
{
    *m = (struct measure){.sim = helper_sim_create()};
    sim_condition_init(&m->answered);
    sim_event_init(&m->answer, answer_run, m);
    if (record) {
        sim_causes_record(m->sim, 0);
    }
    EXPECT_EQ(sim_thread_spawn(m->sim, "program", program, m), SIM_OK);
    EXPECT_EQ(sim_run(m->sim), SIM_RUN_DONE);
}

static void done(struct measure *m)
{
    free(m->pieces);
    sim_destroy(m->sim);
}

static void piece_is(const struct measure *m, size_t index, const struct sim_work *work, uint64_t begin_ps,
                     uint64_t end_ps)
{
    ASSERT_LT(index, m->count);
    EXPECT_EQ(m->pieces[index].work, work);
    EXPECT_EQ(m->pieces[index].begin_ps, begin_ps);
    EXPECT_EQ(m->pieces[index].end_ps, end_ps);
}

static void ask_and_wait(void *arg)
{
    struct measure *m = arg;
    work_for(m, 100);
    sim_cause_clock_read(m->sim);
    work_for(m, 10);
    sim_event_schedule(m->sim, &m->answer, 300);
    work_for(m, 20); // in the meantime
    answer_await(m);
    work_for(m, 5);
    sim_cause_clock_read(m->sim);
    m->found = sim_cause_path(m->sim, 315, &m->pieces, &m->count);
}

TEST(Causes, LeadFromTheEndToTheBeginningThroughWhatCameLast)
{
    struct measure m;
    run(&m, ask_and_wait, true);
    EXPECT_TRUE(m.found);
    EXPECT_EQ(m.count, 4);
    piece_is(&m, 0, &working, 100, 110);
    piece_is(&m, 1, &flying, 110, 410);
    piece_is(&m, 2, NULL, 410, 410); // the wake
    piece_is(&m, 3, &working, 410, 415);
    done(&m);
}

TEST(Causes, AreNothingUnlessTheyAreRecorded)
{
    struct measure m;
    run(&m, ask_and_wait, false);
    EXPECT_FALSE(m.found);
    EXPECT_EQ(sim_cause_now(m.sim), 0);
    done(&m);
}

TEST(Causes, EndTheRunWhenTheyTakeMoreMemoryThanAllowed)
{
    struct measure m = {.sim = helper_sim_create()};
    sim_condition_init(&m.answered);
    sim_event_init(&m.answer, answer_run, &m);
    sim_causes_record(m.sim, 200);
    EXPECT_EQ(sim_thread_spawn(m.sim, "program", ask_and_wait, &m), SIM_OK);
    EXPECT_EQ(sim_run(m.sim), SIM_RUN_STOPPED);
    EXPECT_TRUE(sim_causes_full(m.sim));
    EXPECT_EQ(m.count, 0);
    EXPECT_BETWEEN(sim_now_ps(m.sim), 1, 415);
    done(&m);
}

static void measure_something_else(void *arg)
{
    struct measure *m = arg;
    sim_cause_clock_read(m->sim);
    work_for(m, 100);
    sim_cause_clock_read(m->sim);
    m->found = sim_cause_path(m->sim, 99, &m->pieces, &m->count);
}

TEST(Causes, HaveNoPathForATimeThatNobodyMeasured)
{
    struct measure m;
    run(&m, measure_something_else, true);
    EXPECT_FALSE(m.found);
    done(&m);
}

static void ask_twice(void *arg)
{
    struct measure *m = arg;
    sim_cause_clock_read(m->sim);
    work_for(m, 10);
    sim_event_schedule(m->sim, &m->answer, 100);
    work_for(m, 30);
    sim_event_schedule(m->sim, &m->answer, 70); // due at the same time
    answer_await(m);
    sim_cause_clock_read(m->sim);
    m->found = sim_cause_path(m->sim, 110, &m->pieces, &m->count);
}

TEST(Causes, OfAnEventStayThoseOfWhoeverAskedForThatTimeFirst)
{
    struct measure m;
    run(&m, ask_twice, true);
    EXPECT_TRUE(m.found);
    piece_is(&m, 0, &working, 0, 10);
    piece_is(&m, 1, &flying, 10, 110);
    done(&m);
}

static void ask_for_later(void *arg)
{
    struct measure *m = arg;
    sim_cause_clock_read(m->sim);
    work_for(m, 10);
    sim_event_schedule(m->sim, &m->answer, 100);
    work_for(m, 30);
    sim_event_schedule(m->sim, &m->answer, 200);
    answer_await(m);
    sim_cause_clock_read(m->sim);
    m->found = sim_cause_path(m->sim, 240, &m->pieces, &m->count);
}

TEST(Causes, OfAMovedEventAreThoseOfWhoeverMovedIt)
{
    struct measure m;
    run(&m, ask_for_later, true);
    EXPECT_TRUE(m.found);
    EXPECT_EQ(m.count, 4); // the fourth one is the wake-up
    piece_is(&m, 0, &working, 0, 10);
    piece_is(&m, 1, &working, 10, 40);
    piece_is(&m, 2, &flying, 40, 240);
    done(&m);
}

static void read_the_clock_at_100(void *arg)
{
    sim_thread_sleep(arg, 100);
    sim_cause_clock_read(arg);
}

static void begin_to_measure(void *arg)
{
    struct measure *m = arg;
    sim_cause_clock_read(m->sim);
    EXPECT_EQ(sim_thread_spawn(m->sim, "other", read_the_clock_at_100, m->sim), SIM_OK);
    work_for(m, 200);
    m->found = sim_cause_path(m->sim, 100, &m->pieces, &m->count);
}

TEST(Causes, HaveNoPathBetweenTheClockReadingsOfTwoThreads)
{
    struct measure m;
    run(&m, begin_to_measure, true);
    EXPECT_FALSE(m.found);
    done(&m);
}

// A device that keeps an item, and processes it when another event makes it run.
static void keep_run(void *ctx)
{
    struct measure *m = ctx;
    sim_cause_follow(m->sim, m->kept, "device", &waiting);
    sim_condition_signal(m->sim, &m->answered);
}

static void leave_item(void *arg)
{
    struct measure *m = arg;
    sim_event_init(&m->other, keep_run, m);
    sim_event_schedule(m->sim, &m->other, 500);
    sim_cause_clock_read(m->sim);
    work_for(m, 40);
    m->kept = sim_cause_extend(m->sim, sim_cause_now(m->sim), 90, "wire", &flying);
    answer_await(m);
    sim_cause_clock_read(m->sim);
    m->found = sim_cause_path(m->sim, 500, &m->pieces, &m->count);
}

TEST(Causes, GoOnFromWhatAnItemWasKeptWith)
{
    struct measure m;
    run(&m, leave_item, true);
    EXPECT_TRUE(m.found);
    piece_is(&m, 0, &working, 0, 40);
    piece_is(&m, 1, &flying, 40, 90);
    piece_is(&m, 2, &waiting, 90, 500);
    done(&m);
}

// The wire and the device are expected to take until 90; the item is processed at 50.
static void leave_item_for_less_time(void *arg)
{
    struct measure *m = arg;
    sim_event_init(&m->other, keep_run, m);
    sim_event_schedule(m->sim, &m->other, 50);
    sim_cause_clock_read(m->sim);
    work_for(m, 40);
    m->kept = sim_cause_extend(m->sim, sim_cause_now(m->sim), 60, "wire", &flying);
    m->kept = sim_cause_extend(m->sim, m->kept, 90, "device", &working);
    answer_await(m);
    sim_cause_clock_read(m->sim);
    m->found = sim_cause_path(m->sim, 50, &m->pieces, &m->count);
}

TEST(Causes, LeaveOutEveryPieceThatWasExpectedToEndLater)
{
    struct measure m;
    run(&m, leave_item_for_less_time, true);
    EXPECT_TRUE(m.found);
    EXPECT_EQ(m.count, 3); // the third one is the wake-up
    piece_is(&m, 0, &working, 0, 40);
    piece_is(&m, 1, &waiting, 40, 50);
    done(&m);
}

static void item_arrives(void *ctx)
{
    struct measure *m = ctx;
    sim_cause_arrive(m->sim, m->kept);
    sim_condition_signal(m->sim, &m->answered);
}

static void expect_item_at_90(void *arg)
{
    struct measure *m = arg;
    sim_event_init(&m->other, item_arrives, m);
    sim_event_schedule(m->sim, &m->other, 500);
    sim_cause_clock_read(m->sim);
    work_for(m, 40);
    m->kept = sim_cause_extend(m->sim, sim_cause_now(m->sim), 90, "wire", &flying);
    answer_await(m);
    sim_cause_clock_read(m->sim);
    m->found = sim_cause_path(m->sim, 500, &m->pieces, &m->count);
}

TEST(Causes, CountTheTimeOfALateArrivalToTheWayItCame)
{
    struct measure m;
    run(&m, expect_item_at_90, true);
    EXPECT_TRUE(m.found);
    EXPECT_EQ(m.count, 4);
    piece_is(&m, 0, &working, 0, 40);
    piece_is(&m, 1, &flying, 40, 90);
    piece_is(&m, 2, &flying, 90, 500);
    piece_is(&m, 3, NULL, 500, 500); // the wake-up
    done(&m);
}

// --- only the last records ------------------------------------------------------------------------------------------

enum { RING = 64 };

static void run_with_ring(struct measure *m, void (*program)(void *arg))
{
    *m = (struct measure){.sim = helper_sim_create()};
    sim_condition_init(&m->answered);
    sim_event_init(&m->answer, answer_run, m);
    sim_causes_record_last(m->sim, RING);
    EXPECT_EQ(sim_thread_spawn(m->sim, "program", program, m), SIM_OK);
    EXPECT_EQ(sim_run(m->sim), SIM_RUN_DONE);
}

// Many records, then a path that begins in the middle of a piece.
static void ask_late(void *arg)
{
    struct measure *m = arg;
    for (unsigned i = 0; i < 10 * RING; i++) {
        work_for(m, 7);
    }
    work_for(m, 10);
    uint64_t begin_ps = sim_now_ps(m->sim) - 4;
    sim_event_schedule(m->sim, &m->answer, 300);
    answer_await(m);
    work_for(m, 5);
    m->found = sim_cause_path_since(m->sim, begin_ps, &m->pieces, &m->count);
}

TEST(Causes, OfWhichOnlyTheLastAreKeptGiveThePathSinceATimeAmongThem)
{
    struct measure m;
    run_with_ring(&m, ask_late);
    const uint64_t asked_ps = 10 * RING * 7 + 10;
    ASSERT_TRUE(m.found);
    EXPECT_EQ(m.count, 4); // the third one is the wake-up, which takes no time
    piece_is(&m, 0, &working, asked_ps - 4, asked_ps);
    piece_is(&m, 1, &flying, asked_ps, asked_ps + 300);
    piece_is(&m, 3, &working, asked_ps + 300, asked_ps + 305);
    done(&m);
}

static void ask_too_late(void *arg)
{
    struct measure *m = arg;
    uint64_t begin_ps = sim_now_ps(m->sim);
    for (unsigned i = 0; i < 2 * RING; i++) {
        work_for(m, 7);
    }
    m->found = sim_cause_path_since(m->sim, begin_ps, &m->pieces, &m->count);
}

TEST(Causes, ThatAreNotKeptAnyMoreGiveNoPath)
{
    struct measure m;
    run_with_ring(&m, ask_too_late);
    EXPECT_FALSE(m.found);
    done(&m);
}
