// How streams share stages: turns, queues that are held up, rings, sources that are slow.
#include "bench.h"

enum { QUANTUM = FLOW_QUANTUM_BYTES };

TEST(FlowTurns, OneStreamMovesAtTheRateOfItsSlowestStage)
{
    struct bench bench;
    bench_begin(&bench);
    struct flow_path path = bench_path(&bench);
    bench_step(&bench, &path, 0, 0);
    flow_path_step(&path, &bench.stages[1], 2, 3 * QUANTUM);
    bench_step(&bench, &path, 2, 0);
    const struct bench_stream *stream = bench_start(&bench, &path, 100 * QUANTUM);
    bench_run(&bench);
    // The last stage hands its last quantum on when its end has passed the one before.
    EXPECT_EQ(stream->done_ps, 2 * 100 * QUANTUM);
    // The source is ahead by what waits before the slow stage: three quanta, of which one is on its way.
    EXPECT_BETWEEN(stream->left_ps, 2 * 96 * QUANTUM, 2 * 99 * QUANTUM);
    bench_check(stream, 100 * QUANTUM);
    bench_end(&bench);
}

TEST(FlowTurns, PacketsBeforeAndBehindAStreamTakeTheirTime)
{
    struct bench bench;
    bench_begin(&bench);
    struct flow_path path = bench_path(&bench);
    path.before_bytes = 2 * QUANTUM;
    path.behind_bytes = QUANTUM;
    bench_step(&bench, &path, 0, 0);
    const struct bench_stream *first = bench_start(&bench, &path, 10 * QUANTUM);
    struct flow_path other = bench_path(&bench);
    bench_step(&bench, &other, 0, 1);
    const struct bench_stream *second = bench_start(&bench, &other, 20 * QUANTUM);
    bench_run(&bench);
    EXPECT_BETWEEN(first->done_ps, (10 + 9 + 2) * QUANTUM, (10 + 10 + 2) * QUANTUM);
    EXPECT_EQ(second->done_ps, (10 + 20 + 2 + 1) * QUANTUM);
    bench_check(first, 10 * QUANTUM);
    bench_end(&bench);
}

static void stage_take(void *ctx)
{
    flow_stage_take(ctx, 3 * QUANTUM);
}

TEST(FlowTurns, WhatIsNoStreamTakesAStageFromNowOn)
{
    for (unsigned late = 0; late < 2; late++) {
        TEST_TRACE("late %u", late);
        struct bench bench;
        bench_begin(&bench);
        struct flow_path path = bench_path(&bench);
        bench_step(&bench, &path, 0, 0);
        const struct bench_stream *stream = bench_start(&bench, &path, 10 * QUANTUM);
        bench_at(&bench, (late == 0 ? 5 : 20) * QUANTUM, stage_take, &bench.stages[0]);
        bench_run(&bench);
        EXPECT_EQ(stream->done_ps, (late == 0 ? 13 : 10) * QUANTUM);
        bench_end(&bench);
    }
}

TEST(FlowTurns, InputsOfAStageGetTheSame)
{
    struct bench bench;
    bench_begin(&bench);
    struct bench_stream *streams[3];
    for (unsigned i = 0; i < 3; i++) { // the first two share an input
        struct flow_path path = bench_path(&bench);
        bench_step(&bench, &path, 1 + i / 2, i);
        bench_step(&bench, &path, 0, i / 2);
        streams[i] = bench_start(&bench, &path, i < 2 ? 10 * QUANTUM : 20 * QUANTUM);
    }
    bench_run(&bench);
    for (unsigned i = 0; i < 3; i++) {
        TEST_TRACE("stream %u", i);
        EXPECT_BETWEEN(streams[i]->done_ps, 37 * QUANTUM, 40 * QUANTUM);
        bench_check(streams[i], streams[i]->bytes);
    }
    bench_end(&bench);
}

TEST(FlowTurns, AQueueThatIsHeldUpHoldsUpThoseBehindIt)
{
    struct bench bench;
    bench_begin(&bench);
    // Both cross stage 0; the first one then a stage that is four times as slow.
    struct flow_path slow = bench_path(&bench);
    bench_step(&bench, &slow, 0, 0);
    flow_path_step(&slow, &bench.stages[1], 4, 3 * QUANTUM);
    const struct bench_stream *first = bench_start(&bench, &slow, 20 * QUANTUM);
    struct flow_path free = bench_path(&bench);
    bench_step(&bench, &free, 0, 1);
    bench_step(&bench, &free, 2, 0);
    const struct bench_stream *second = bench_start(&bench, &free, 20 * QUANTUM);
    bench_run(&bench);
    // The slow stage idles while a quantum of the other stream is before its next one.
    EXPECT_BETWEEN(first->done_ps, 4 * 20 * QUANTUM, 5 * 20 * QUANTUM);
    EXPECT_BETWEEN(second->done_ps, 4 * 17 * QUANTUM, 5 * 20 * QUANTUM); // and not 40
    bench_end(&bench);
}

TEST(FlowTurns, ASortedBufferHoldsUpOnlyThoseForTheSameStage)
{
    struct bench bench;
    bench_begin(&bench);
    // As above, but the buffer behind stage 0 has a queue for each next stage, and room for what waits in one.
    struct flow_path slow = bench_path(&bench);
    flow_path_step(&slow, &bench.stages[0], 1, 8 * QUANTUM);
    flow_path_sorted(&slow);
    flow_path_step(&slow, &bench.stages[1], 4, 3 * QUANTUM);
    flow_path_window(&slow, 1, 4); // it leaves room for the other one
    const struct bench_stream *first = bench_start(&bench, &slow, 20 * QUANTUM);
    struct flow_path free = bench_path(&bench);
    free.input = 1;
    flow_path_step(&free, &bench.stages[0], 1, 8 * QUANTUM);
    flow_path_sorted(&free);
    bench_step(&bench, &free, 2, 0);
    const struct bench_stream *second = bench_start(&bench, &free, 20 * QUANTUM);
    bench_run(&bench);
    EXPECT_BETWEEN(first->done_ps, 4 * 20 * QUANTUM, 4 * 21 * QUANTUM);
    EXPECT_BETWEEN(second->done_ps, 20 * QUANTUM, 28 * QUANTUM);
    bench_check(first, 20 * QUANTUM);
    bench_check(second, 20 * QUANTUM);
    bench_end(&bench);
}

TEST(FlowTurns, AQueueOfASortedBufferKeepsItsOrder)
{
    struct bench bench;
    bench_begin(&bench);
    // Both are for stage 1. A quantum of the slow source ends late, and the next one in the queue is already there.
    struct flow_path slow = bench_path(&bench);
    flow_path_step(&slow, &bench.stages[0], 1, 8 * QUANTUM);
    flow_path_sorted(&slow);
    bench_step(&bench, &slow, 1, 0);
    flow_path_window(&slow, 1, 8);
    const struct bench_stream *first = bench_start(&bench, &slow, 5 * QUANTUM);
    struct flow_path fast = bench_path(&bench);
    fast.input = 1;
    flow_path_step(&fast, &bench.stages[0], 1, 8 * QUANTUM);
    flow_path_sorted(&fast);
    bench_step(&bench, &fast, 1, 0);
    const struct bench_stream *second = bench_start(&bench, &fast, 4 * QUANTUM);
    bench_run(&bench);
    EXPECT_BETWEEN(second->done_ps, 8 * QUANTUM, 16 * QUANTUM); // behind the first quantum of the other, and not 5
    EXPECT_BETWEEN(first->done_ps, 5 * 8 * QUANTUM, 5 * 8 * QUANTUM + 4 * QUANTUM);
    bench_end(&bench);
}

TEST(FlowTurns, AFullSortedBufferHoldsUpAllTheSame)
{
    struct bench bench;
    bench_begin(&bench);
    struct flow_path slow = bench_path(&bench);
    flow_path_step(&slow, &bench.stages[0], 1, 4 * QUANTUM);
    flow_path_sorted(&slow);
    flow_path_step(&slow, &bench.stages[1], 10, 3 * QUANTUM);
    const struct bench_stream *first = bench_start(&bench, &slow, 10 * QUANTUM);
    struct flow_path free = bench_path(&bench);
    free.input = 1;
    flow_path_step(&free, &bench.stages[0], 1, 4 * QUANTUM);
    flow_path_sorted(&free);
    bench_step(&bench, &free, 2, 0);
    const struct bench_stream *second = bench_start(&bench, &free, 40 * QUANTUM);
    bench_run(&bench);
    EXPECT_BETWEEN(first->done_ps, 100 * QUANTUM, 104 * QUANTUM);
    EXPECT_BETWEEN(second->done_ps, 60 * QUANTUM, 110 * QUANTUM); // and not 50
    bench_end(&bench);
}

TEST(FlowTurns, ASlowSourceLeavesTheStageToOthers)
{
    struct bench bench;
    bench_begin(&bench);
    struct flow_path slow = bench_path(&bench);
    bench_step(&bench, &slow, 0, 0);
    bench_step(&bench, &slow, 1, 0);
    flow_path_window(&slow, 1, 8); // a byte in 8 ps
    const struct bench_stream *first = bench_start(&bench, &slow, 10 * QUANTUM);
    struct flow_path fast = bench_path(&bench);
    bench_step(&bench, &fast, 1, 1);
    const struct bench_stream *second = bench_start(&bench, &fast, 70 * QUANTUM);
    bench_run(&bench);
    EXPECT_BETWEEN(first->done_ps, 80 * QUANTUM, 83 * QUANTUM);
    EXPECT_BETWEEN(second->done_ps, 78 * QUANTUM, 81 * QUANTUM);
    bench_end(&bench);
}

TEST(FlowTurns, WhatGoesAsideTakesItsPart)
{
    struct bench bench;
    bench_begin(&bench);
    struct flow_path path = bench_path(&bench);
    bench_step(&bench, &path, 0, 0);
    flow_path_aside(&path, &bench.stages[1], 0.25, 0);
    const struct bench_stream *first = bench_start(&bench, &path, 100 * QUANTUM);
    struct flow_path other = bench_path(&bench);
    bench_step(&bench, &other, 1, 0);
    const struct bench_stream *second = bench_start(&bench, &other, 60 * QUANTUM);
    bench_run(&bench);
    EXPECT_EQ(first->done_ps, 100 * QUANTUM);
    EXPECT_BETWEEN(second->done_ps, 74 * QUANTUM, 81 * QUANTUM); // and not 60
    bench_end(&bench);
}

TEST(FlowTurns, AsidesThatGoFirstAreOverForTheStreamThatFollows)
{
    for (unsigned follows = 0; follows < 2; follows++) {
        TEST_TRACE("follows %u", follows);
        struct bench bench;
        bench_begin(&bench);
        struct flow_path path = bench_path(&bench);
        bench_step(&bench, &path, 0, 0);
        flow_path_aside(&path, &bench.stages[0], 0.25, 20 * QUANTUM);
        path.behind_streams_bytes = follows * 16 * QUANTUM;
        const struct bench_stream *stream = bench_start(&bench, &path, 20 * QUANTUM);
        bench_run(&bench);
        // Behind 16 quanta of another stream, those after the fourth take a quarter more; the last one's comes too late.
        EXPECT_EQ(stream->done_ps, (20 * QUANTUM + follows * 15 * QUANTUM / 4));
        bench_end(&bench);
    }
}

TEST(FlowTurns, ASourceThatPreparesEarlyLosesNoTime)
{
    for (uint64_t lead_ps = 0; lead_ps <= 8; lead_ps += 4) {
        TEST_TRACE("lead %lu", (unsigned long)lead_ps);
        struct bench bench;
        bench_begin(&bench);
        struct flow_path path = bench_path(&bench);
        bench_step(&bench, &path, 0, 0);
        path.lead_ps = lead_ps;
        const struct bench_stream *stream = bench_start(&bench, &path, 5 * QUANTUM);
        bench_run(&bench);
        EXPECT_EQ(stream->left_ps, 5 * QUANTUM - lead_ps);
        EXPECT_EQ(stream->done_ps, 5 * QUANTUM);
        bench_end(&bench);
    }
}

TEST(FlowTurns, ARingThatIsFullKeepsMoving)
{
    struct bench bench;
    bench_begin(&bench);
    // Four stages in a circle, and from each of them two streams three stages on, one of odd pieces.
    for (unsigned i = 0; i < 8; i++) {
        struct flow_path path = bench_path(&bench);
        bench_step(&bench, &path, 4 + i % 4, i / 4);
        path.enters = true;
        bench_step(&bench, &path, i % 4, 1);
        bench_step(&bench, &path, (i + 1) % 4, 0);
        bench_step(&bench, &path, (i + 2) % 4, 0);
        bench_start(&bench, &path, 50 * QUANTUM + (i < 4 ? 512 : 0));
    }
    bench_run(&bench);
    for (unsigned i = 0; i < bench.count; i++) {
        TEST_TRACE("stream %u", i);
        bench_check(&bench.streams[i], bench.streams[i].bytes);
    }
    bench_end(&bench);
}
