// A net of streams between buffers of the test.
#pragma once

#include "models/flow/flow.h"
#include "tests/shim/test.h"

enum { BENCH_STAGES = 8, BENCH_BYTES = 100 * FLOW_QUANTUM_BYTES + 4096, BENCH_STREAMS = 16 };

struct bench_stream {
    struct bench *bench;
    flow_stream_t *flow;
    uint64_t bytes;                 // of the stream
    uint64_t left_ps, done_ps, got; // 0: not yet
    uint64_t counted, packets;
    bool gone; // its target does not exist any more
    uint8_t *from, *to;
};

struct bench {
    sim_t *sim;
    flow_net_t *net;
    struct flow_stage stages[BENCH_STAGES];
    struct bench_stream streams[BENCH_STREAMS];
    unsigned count;
};

void bench_begin(struct bench *bench);
void bench_end(struct bench *bench); // and every stage must be empty

// A path of the stream number bench->count, without stages.
struct flow_path bench_path(struct bench *bench);
// Adds a stage that takes 1 ps for a byte.
void bench_step(struct bench *bench, struct flow_path *path, unsigned stage, uint32_t input);
struct bench_stream *bench_start(struct bench *bench, const struct flow_path *path, uint64_t bytes);
void bench_run(struct bench *bench);
void bench_at(struct bench *bench, uint64_t time_ps, void (*run)(void *ctx),
              void *ctx);                                            // once in a test, before the run
void bench_check(const struct bench_stream *stream, uint64_t bytes); // so many have come, and nothing else
