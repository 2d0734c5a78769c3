// What flow.c and stage.c share. Internal to models/flow.
#pragma once

#include "models/flow/flow.h"

// A quantum's place in the buffer behind a stage.
struct flow_place {
    struct flow_quantum *quantum;
    struct flow_place *next;
    bool asked; // for the next stage
};

// A part of a stream. It is in service at one stage or between the ends of its services at two, and waits for the next
// one or for its turn to ask for it.
struct flow_quantum {
    flow_stream_t *stream;
    unsigned step; // the next stage, or the last one that serves it
    uint32_t bytes;
    uint64_t end_ps; // when its end has passed the last stage
    bool final;      // the last one of its stream
    struct flow_quantum *next_waiting;
    sim_event_t ask;
    struct flow_quantum *next; // of the stream, or of the free ones
    struct flow_place places[FLOW_STEPS_MAX];
};

// A stream at a stage.
struct flow_crossing {
    flow_stream_t *stream;
    struct flow_crossing *next, **link;
};

struct flow_stream {
    flow_net_t *net;
    struct flow_path path;
    const struct flow_ops *ops;
    void *ctx;
    uint64_t bytes, begun, carried; // begun: given to quanta
    uint64_t next_ps;               // the source does not send before it
    uint64_t earliest_ps;           // its first bytes would arrive
    sim_event_t finish;             // then the landing
    sim_event_t leave;              // the source is as slow as its limits, and path.lead_ps early
    bool has_left;
    bool finished;                       // done was called, or is not due
    bool lands;                          // it is copied later
    bool ended;                          // it crosses no stage any more
    flow_stream_t *next_landing, **link; // of the net
    struct flow_quantum *quanta;
    struct flow_crossing crossings[FLOW_STEPS_MAX];
};

struct flow_net {
    sim_t *sim;
    struct flow_quantum *free;
    flow_stream_t *landing;
    uint8_t *buffer; // of a copy
};

// stage.c
void flow_quantum_ask(struct flow_quantum *quantum); // for its next stage
void flow_quantum_ask_later(void *quantum);          // event
void flow_stage_try(struct flow_stage *stage);       // something may be able to go
void flow_stage_forget(struct flow_stage *stage, const flow_stream_t *stream);
void flow_stage_init(struct flow_stage *stage, flow_net_t *net);

// flow.c
void flow_stream_feed(flow_stream_t *stream);           // the source may send
void flow_stream_leaves(struct flow_quantum *quantum);  // its service at the first stage begins, it is the final one
void flow_stream_ends(struct flow_quantum *quantum);    // its service at the last stage begins
void flow_stream_carried(struct flow_quantum *quantum); // its end has passed the last stage; it is freed
