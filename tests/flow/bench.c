#include "bench.h"

#include <stdlib.h>
#include <string.h>

enum { PACKET_BYTES = 256, GRAIN_BYTES = 512, BUFFER_BYTES = 12288 };

static sim_event_t later;

void bench_begin(struct bench *bench)
{
    const struct sim_config config = {.seed = 1};
    memset(bench, 0, sizeof *bench);
    ASSERT_EQ(sim_create(&config, &bench->sim), SIM_OK);
    ASSERT_EQ(flow_net_create(bench->sim, &bench->net), SIM_OK);
}

void bench_end(struct bench *bench)
{
    for (unsigned i = 0; i < BENCH_STAGES; i++) {
        TEST_TRACE("stage %u", i);
        EXPECT_NULL(bench->stages[i].serving);
        EXPECT_NULL(bench->stages[i].waiting);
        EXPECT_NULL(bench->stages[i].behind);
        EXPECT_NULL(bench->stages[i].crossings);
        EXPECT_EQ(bench->stages[i].behind_bytes, 0);
    }
    for (unsigned i = 0; i < bench->count; i++) {
        free(bench->streams[i].from);
        free(bench->streams[i].to);
    }
    flow_net_destroy(bench->net);
    sim_destroy(bench->sim);
}

static bool read_bytes(void *ctx, uint64_t address, void *data, uint32_t bytes)
{
    const struct bench_stream *stream = ctx;
    memcpy(data, stream->from + address, bytes);
    return true;
}

static bool write_bytes(void *ctx, uint64_t address, const void *data, uint32_t bytes)
{
    struct bench_stream *stream = ctx;
    if (stream->gone) {
        return false;
    }
    memcpy(stream->to + address, data, bytes);
    return true;
}

static void count(void *ctx, uint64_t bytes, uint32_t packet_bytes)
{
    struct bench_stream *stream = ctx;
    stream->counted += bytes;
    stream->packets += (bytes + packet_bytes - 1) / packet_bytes;
}

struct flow_path bench_path(struct bench *bench)
{
    struct bench_stream *stream = &bench->streams[bench->count];
    struct flow_path path = {.packet_bytes = PACKET_BYTES,
                             .grain_bytes = GRAIN_BYTES,
                             .from = {.read = read_bytes, .ctx = stream},
                             .to = {write_bytes, stream, 0}};
    flow_path_count(&path, count, stream);
    return path;
}

void bench_step(struct bench *bench, struct flow_path *path, unsigned stage, uint32_t input)
{
    path->input = input;
    flow_path_step(path, &bench->stages[stage], 1, BUFFER_BYTES);
}

static void left(void *ctx)
{
    struct bench_stream *stream = ctx;
    EXPECT_EQ(stream->left_ps, 0);
    stream->left_ps = sim_now_ps(stream->bench->sim);
}

static void done(void *ctx, uint64_t bytes)
{
    struct bench_stream *stream = ctx;
    EXPECT_EQ(stream->done_ps, 0);
    stream->done_ps = sim_now_ps(stream->bench->sim);
    stream->got = bytes;
    stream->flow = NULL;
}

struct bench_stream *bench_start(struct bench *bench, const struct flow_path *path, uint64_t bytes)
{
    static const struct flow_ops ops = {left, done};
    struct bench_stream *stream = &bench->streams[bench->count++];
    stream->bench = bench;
    stream->bytes = bytes;
    stream->from = malloc(BENCH_BYTES);
    stream->to = calloc(1, BENCH_BYTES);
    for (uint64_t i = 0; i < BENCH_BYTES; i++) {
        stream->from[i] = (uint8_t)(1 + (i * 31 + bench->count) % 255);
    }
    stream->flow = flow_start(bench->net, path, bytes, &ops, stream);
    return stream;
}

void bench_run(struct bench *bench)
{
    EXPECT_EQ(sim_run(bench->sim), SIM_RUN_DONE);
}

void bench_at(struct bench *bench, uint64_t time_ps, void (*run)(void *ctx), void *ctx)
{
    sim_event_init(&later, run, ctx);
    sim_event_schedule_at(bench->sim, &later, time_ps);
}

void bench_check(const struct bench_stream *stream, uint64_t bytes)
{
    EXPECT_EQ(stream->counted, bytes);
    EXPECT_EQ(stream->packets, (bytes + PACKET_BYTES - 1) / PACKET_BYTES);
    EXPECT_MEMEQ(stream->to, stream->from, bytes);
    uint64_t beyond = 0;
    for (uint64_t i = bytes; i < BENCH_BYTES; i++) {
        beyond += stream->to[i] != 0;
    }
    EXPECT_EQ(beyond, 0);
}
