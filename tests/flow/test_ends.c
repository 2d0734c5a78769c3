// Streams that end early: interrupted, stopped, dropped, without their memory.
#include "bench.h"

enum { QUANTUM = FLOW_QUANTUM_BYTES, BYTES = 20 * QUANTUM };

static struct bench_stream *pair_start(struct bench *bench)
{
    bench_begin(bench);
    for (unsigned i = 0; i < 2; i++) { // the second one shares the first stage with it
        struct flow_path path = bench_path(bench);
        bench_step(bench, &path, 0, i);
        bench_step(bench, &path, 1 + i, 0);
        bench_start(bench, &path, BYTES);
    }
    return &bench->streams[0];
}

static void interrupt(void *ctx)
{
    flow_stage_interrupt(&((struct bench *)ctx)->stages[1]);
}

TEST(FlowEnds, AnInterruptedStreamKeepsWhatItCarried)
{
    struct bench bench;
    struct bench_stream *first = pair_start(&bench);
    bench_at(&bench, 10 * QUANTUM + 5, interrupt, &bench);
    bench_run(&bench);
    EXPECT_EQ(first->done_ps, 10 * QUANTUM + 5);
    EXPECT_EQ(first->left_ps, 0); // its source had more
    EXPECT_EQ(first->got, 5 * QUANTUM);
    bench_check(first, first->got);
    EXPECT_EQ(bench.streams[1].done_ps, (10 + 15) * QUANTUM + 5);
    bench_check(&bench.streams[1], BYTES);
    bench_end(&bench);
}

// What an interrupted stream has copied is a multiple of its grain, whatever the grain is.
TEST(FlowEnds, AnInterruptedStreamEndsAtAGrain)
{
    static const uint32_t grains[] = {512,         3 * QUANTUM / 4, 3 * QUANTUM / 2, 5 * QUANTUM - 4,
                                      5 * QUANTUM, 5 * QUANTUM + 4};
    for (unsigned i = 0; i < sizeof grains / sizeof grains[0]; i++) {
        TEST_TRACE("grain of %u B", grains[i]);
        struct bench bench;
        bench_begin(&bench);
        struct flow_path path = bench_path(&bench);
        path.grain_bytes = grains[i];
        bench_step(&bench, &path, 1, 0);
        struct bench_stream *stream = bench_start(&bench, &path, BYTES);
        bench_at(&bench, 5 * QUANTUM + 5, interrupt, &bench);
        bench_run(&bench);
        EXPECT_EQ(stream->got, 5 * QUANTUM / grains[i] * grains[i]);
        bench_check(stream, stream->got);
        bench_end(&bench);
    }
}

static void stop(void *ctx)
{
    struct bench_stream *stream = &((struct bench *)ctx)->streams[0];
    stream->got = flow_stop(stream->flow);
}

TEST(FlowEnds, AStoppedStreamKeepsWhatItCarried)
{
    struct bench bench;
    struct bench_stream *first = pair_start(&bench);
    bench_at(&bench, 10 * QUANTUM + 5, stop, &bench);
    bench_run(&bench);
    EXPECT_EQ(first->done_ps, 0);
    EXPECT_EQ(first->got, 5 * QUANTUM);
    bench_check(first, first->got);
    bench_check(&bench.streams[1], BYTES);
    bench_end(&bench);
}

static void drop(void *ctx)
{
    flow_drop(((struct bench *)ctx)->streams[0].flow);
}

TEST(FlowEnds, ADroppedStreamCopiesNothing)
{
    struct bench bench;
    struct bench_stream *first = pair_start(&bench);
    bench_at(&bench, 10 * QUANTUM, drop, &bench);
    bench_run(&bench);
    EXPECT_EQ(first->done_ps, 0);
    bench_check(first, 0);
    bench_check(&bench.streams[1], BYTES);
    bench_end(&bench);
}

TEST(FlowEnds, WithoutItsMemoryAStreamCarriesNothing)
{
    struct bench bench;
    struct bench_stream *first = pair_start(&bench);
    first->gone = true;
    bench_run(&bench);
    EXPECT_GT(first->done_ps, 0);
    EXPECT_EQ(first->got, 0);
    bench_check(first, 0);
    bench_end(&bench);
}

TEST(FlowEnds, ARefusedOrEmptyPathIsNoStream)
{
    struct bench bench;
    bench_begin(&bench);
    struct flow_path path = bench_path(&bench);
    EXPECT_NULL(bench_start(&bench, &path, BYTES)->flow);
    path = bench_path(&bench);
    bench_step(&bench, &path, 0, 0);
    EXPECT_NULL(bench_start(&bench, &path, 0)->flow);
    path = bench_path(&bench);
    for (unsigned i = 0; i <= FLOW_STEPS_MAX; i++) {
        bench_step(&bench, &path, 0, 0);
    }
    EXPECT_TRUE(path.refused);
    EXPECT_NULL(bench_start(&bench, &path, BYTES)->flow);
    path = bench_path(&bench);
    bench_step(&bench, &path, 0, FLOW_INPUTS_MAX);
    EXPECT_TRUE(path.refused);
    bench_end(&bench);
}
