// Long transfers without packets: streams that share the bandwidth of what they cross.
//
// Models: the body of a long transfer (of a DMA, a copy engine, an RDMA message) as one object, a stream. Its device
// sends the end of the transfer as packets behind it, so that latencies, notifications and errors are those of packets.
// A stream crosses stages: directions of links, each with the output that feeds it and the buffer behind it. It moves in
// quanta of 4 KiB, which stand for its packets:
// - a stage serves one quantum at a time, and its inputs in turns;
// - a quantum passes on as soon as its beginning is there (cut-through), and no faster than its end comes;
// - the buffer behind a stage is a queue: a quantum that waits for the next stage holds up those behind it, unless the
//   buffer has a queue for each next stage, as a switch has for its outputs; a full buffer holds up the stage;
// - on a ring, a quantum that enters needs room for two, and one that stays needs room for one (the bubble rule);
// - read requests, acknowledgements and credits of the other direction take their part of a stage's time.
// Time is that of the stream's beginning: the latencies of the path are left to the packets that follow, which would
// meet an idle path.
//
// Leaves out: the capacity that packets beside streams need, unless their model takes it (flow_stage_take), and their
// waiting behind quanta; that a queue moves in packets (a slow stage idles while a quantum for a fast one is before its
// own, where a packet would be).
//
// Units: bytes, picoseconds. Deterministic.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/kernel/sim.h"

typedef struct flow_net flow_net_t;       // all streams of a simulation
typedef struct flow_stream flow_stream_t; // of which its device has the reference

struct flow_quantum;
struct flow_crossing;
struct flow_place;

#define FLOW_QUANTUM_BYTES 4096u

enum { FLOW_STEPS_MAX = 24, FLOW_ASIDES_MAX = 24, FLOW_COUNTS_MAX = 48, FLOW_INPUTS_MAX = 32 };

// Embedded in the model of what is shared; zeroed by its owner, and private to the room otherwise.
struct flow_stage {
    flow_net_t *net; // NULL: no stream has come yet
    struct flow_quantum *serving;
    unsigned serving_step;                       // of its stream
    struct flow_quantum *waiting, *waiting_last; // for a turn, in the order of their coming
    struct flow_place *behind, *behind_last;     // in the buffer behind it
    uint64_t behind_bytes;
    uint64_t free_ps;                // since when it is idle
    double aside_ps;                 // that others have taken since then, or will take
    uint32_t owner;                  // input served last
    struct flow_crossing *crossings; // streams
    sim_event_t end;                 // of the service
};

// A stage on a stream's way.
struct flow_step {
    struct flow_stage *stage;
    double ps_per_byte;
    uint32_t input;        // of the stage, < FLOW_INPUTS_MAX; streams of one input come in one queue
    uint32_t buffer_bytes; // behind the stage
    bool enters;           // a ring here
    bool sorted;           // the buffer has a queue for each next stage
};

// What a stream needs of a stage besides the way of its data, such as read requests and acknowledgements.
struct flow_aside {
    struct flow_stage *stage;
    double ps_per_byte;
    uint64_t after_bytes; // for those before, it has gone before the data: requests of the reads outstanding first
};

// Counts what a stream carried, as packets of so many bytes would have been counted.
typedef void (*flow_count_fn)(void *ctx, uint64_t bytes, uint32_t packet_bytes);
static inline uint64_t flow_packets(uint64_t bytes, uint32_t packet_bytes)
{
    return (bytes + packet_bytes - 1) / packet_bytes;
}
struct flow_count {
    flow_count_fn fn;
    void *ctx;
    uint32_t packet_bytes;
};

// Memory at the ends of a path, at the instant of the copy, in pieces within a page of the target. false: there is no
// such memory any more.
struct flow_source {
    bool (*read)(void *ctx, uint64_t address, void *data, uint32_t bytes);
    // Optional: the bytes where the simulator has them; NULL: not at one place.
    const void *(*at)(void *ctx, uint64_t address, uint32_t bytes);
    void *ctx;
    uint64_t address;
};
struct flow_target {
    bool (*write)(void *ctx, uint64_t address, const void *data, uint32_t bytes);
    void *ctx;
    uint64_t address;
};

// The way of a stream, as the models on it describe it, one after the other.
struct flow_path {
    struct flow_step steps[FLOW_STEPS_MAX];
    struct flow_aside asides[FLOW_ASIDES_MAX];
    struct flow_count counts[FLOW_COUNTS_MAX];
    unsigned step_count, aside_count, count_count;
    double least_ps_per_byte;            // of limits of the source, such as outstanding reads
    uint64_t delay_ps;                   // before its beginning
    uint64_t lead_ps;                    // so long before its end, the source prepares what follows
    uint64_t latency_ps;                 // of a packet on an idle path
    uint32_t input;                      // of the next stage
    bool enters;                         // a ring, at the next stage
    uint32_t packet_bytes;               // largest payload at this place of the path
    uint32_t grain_bytes;                // an interrupted stream ends after a multiple of it
    uint32_t tail_bytes;                 // at its end, that packets carry: they take their time in the stages
    uint32_t before_bytes, behind_bytes; // that the device sends as packets beside it: the stages are busy for them
    uint64_t behind_streams_bytes;       // of streams of its source that go directly before it, as if they were one
    bool refused;                        // something on it wants packets, or it does not fit
    struct flow_source from;
    struct flow_target to;
};

// The next stage, with path->input and path->enters.
void flow_path_step(struct flow_path *path, struct flow_stage *stage, double ps_per_byte, uint32_t buffer_bytes);
// The buffer behind the last stage so far has a queue for each next stage.
void flow_path_sorted(struct flow_path *path);
void flow_path_aside(struct flow_path *path, struct flow_stage *stage, double ps_per_byte, uint64_t after_bytes);
void flow_path_count(struct flow_path *path, flow_count_fn fn, void *ctx); // in packets of path->packet_bytes
void flow_path_count_as(struct flow_path *path, uint32_t packet_bytes, flow_count_fn fn, void *ctx);
// At most window_bytes are outstanding, for round_ps each.
void flow_path_window(struct flow_path *path, uint64_t window_bytes, uint64_t round_ps);
// The time of so many bytes on an idle path, without the latency.
double flow_path_ps(const struct flow_path *path, uint64_t bytes);

enum sim_status flow_net_create(sim_t *sim, flow_net_t **net_out);
void flow_net_destroy(flow_net_t *net); // after all streams have ended

// Both are called from an event, or from inside flow_stage_interrupt.
struct flow_ops {
    // Optional. Everything has left the source, with the tail, or will have in path->lead_ps: the device may begin
    // something else there. It is also called after `done` of a whole stream, but not after that of one that was
    // interrupted.
    void (*left)(void *ctx);
    // The end: `bytes` have been copied from path->from to path->to and counted. The device's reference ends with this
    // call and, of a whole stream, that of `left`. Fewer than all before the tail: the stream was interrupted, or a
    // memory was given back (0); the device sends the rest as packets, which meet the error. A stream that is shorter
    // than the latency of its path is copied a little later.
    void (*done)(void *ctx, uint64_t bytes);
};

// NULL: the path is refused; the transfer goes on in packets. ops must stay valid.
flow_stream_t *flow_start(flow_net_t *net, const struct flow_path *path, uint64_t bytes, const struct flow_ops *ops,
                          void *ctx);
// Something that is no stream takes the stage for so long, now or behind what it serves.
void flow_stage_take(struct flow_stage *stage, double takes_ps);
// Ends the stream early: what has been carried by now, in whole grains, is copied and counted. done is not called.
// Returns the number of bytes.
uint64_t flow_stop(flow_stream_t *stream);
// Ends it without a copy: its device is reset or destroyed. Also between `done` and `left`, which is not called then.
void flow_drop(flow_stream_t *stream);
// Something happened to the stage: its streams end, and their devices go on in packets. Streams that have only an aside
// there, such as acknowledges on another way, go on: their last packets meet what happened.
void flow_stage_interrupt(struct flow_stage *stage);
