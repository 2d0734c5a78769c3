// Random streams over random stages, some of which end early: each byte arrives once, nothing is left, and nothing goes
// faster than its stages.
#include "bench.h"

#include "sim/kernel/random.h"

enum { SEEDS = 200, LONGEST = 64 * 1024 };

// A stage is crossed in one order only, so that no circle of buffers can fill; rings have their test.
static void random_start(struct bench *bench, struct sim_random *random)
{
    struct flow_path path = bench_path(bench);
    for (unsigned stage = 0; stage < BENCH_STAGES; stage++) {
        if (sim_random_below(random, 2) == 0) {
            path.input = (uint32_t)sim_random_below(random, 4);
            double ps_per_byte = 0.5 + (double)sim_random_below(random, 6) / 2;
            flow_path_step(&path, &bench->stages[stage], ps_per_byte, (uint32_t)sim_random_below(random, 20000));
        }
    }
    if (path.step_count == 0) {
        bench_step(bench, &path, 0, 0);
    }
    if (sim_random_below(random, 3) == 0) {
        flow_path_window(&path, 1, 1 + sim_random_below(random, 6));
    }
    flow_path_aside(&path, &bench->stages[sim_random_below(random, BENCH_STAGES)], 0.1, 0);
    uint64_t bytes = 1 + sim_random_below(random, LONGEST);
    (void)bench_start(bench, &path, bytes);
}

static void disturb(void *ctx)
{
    struct bench *bench = ctx;
    unsigned which = (unsigned)(sim_now_ps(bench->sim) % 3);
    struct bench_stream *stream = &bench->streams[sim_now_ps(bench->sim) % bench->count];
    if (which == 0) {
        flow_stage_interrupt(&bench->stages[sim_now_ps(bench->sim) % BENCH_STAGES]);
    } else if (stream->flow != NULL && which == 1) {
        stream->got = flow_stop(stream->flow);
        stream->flow = NULL;
    } else if (stream->flow != NULL) {
        flow_drop(stream->flow);
        stream->flow = NULL;
    }
}

TEST(FlowRandom, EachByteArrivesOnce)
{
    for (unsigned seed = 1; seed <= SEEDS; seed++) {
        TEST_TRACE("seed %u", seed);
        struct bench bench;
        struct sim_random random;
        bench_begin(&bench);
        sim_random_init(&random, seed, "flow");
        for (unsigned i = 0; i < 6; i++) {
            random_start(&bench, &random);
        }
        if (seed % 2 == 0) {
            bench_at(&bench, 1 + sim_random_below(&random, 300000), disturb, &bench);
        }
        bench_run(&bench);
        for (unsigned i = 0; i < bench.count; i++) {
            TEST_TRACE("stream %u", i);
            const struct bench_stream *stream = &bench.streams[i];
            EXPECT_NULL(stream->flow);
            if (seed % 2 != 0) {
                EXPECT_EQ(stream->got, stream->bytes);
            }
            bench_check(stream, stream->got);
        }
        bench_end(&bench);
    }
}
