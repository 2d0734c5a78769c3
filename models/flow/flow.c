// Streams: their quanta, their ends, and the copying of what they carried.
#include "models/flow/flow.h"

#include <stdlib.h>

#include "models/flow/internal.h"

enum { COPY_BYTES = 4096 }; // at once: within a page of the target

enum sim_status flow_net_create(sim_t *sim, flow_net_t **net_out)
{
    flow_net_t *net = calloc(1, sizeof *net);
    uint8_t *buffer = malloc(COPY_BYTES);
    if (net == NULL || buffer == NULL) {
        free(buffer);
        free(net);
        return SIM_ERR_NO_MEMORY;
    }
    net->sim = sim;
    net->buffer = buffer;
    *net_out = net;
    return SIM_OK;
}

void flow_net_destroy(flow_net_t *net)
{
    if (net == NULL) {
        return;
    }
    while (net->landing != NULL) {
        flow_stream_t *stream = net->landing;
        net->landing = stream->next_landing;
        sim_event_cancel(net->sim, &stream->finish);
        free(stream);
    }
    while (net->free != NULL) {
        struct flow_quantum *quantum = net->free;
        net->free = quantum->next;
        free(quantum);
    }
    free(net->buffer);
    free(net);
}

// --- quanta ---------------------------------------------------------------------------------------------------------

static struct flow_quantum *quantum_take(flow_stream_t *stream, uint32_t bytes)
{
    flow_net_t *net = stream->net;
    struct flow_quantum *quantum = net->free;
    if (quantum == NULL) {
        quantum = malloc(sizeof *quantum);
        if (quantum == NULL) {
            sim_panic("flow", "no memory for a part of a stream");
        }
    } else {
        net->free = quantum->next;
    }
    quantum->stream = stream;
    quantum->step = 0;
    quantum->bytes = bytes;
    quantum->next = stream->quanta;
    sim_event_init(&quantum->ask, flow_quantum_ask_later, quantum);
    stream->quanta = quantum;
    return quantum;
}

static void quantum_give(struct flow_quantum *quantum)
{
    flow_stream_t *stream = quantum->stream;
    struct flow_quantum **link = &stream->quanta;
    while (*link != quantum) {
        link = &(*link)->next;
    }
    *link = quantum->next;
    quantum->next = stream->net->free;
    stream->net->free = quantum;
}

void flow_stream_feed(flow_stream_t *stream)
{
    uint64_t left = stream->bytes - stream->begun;
    if (left == 0) {
        return;
    }
    uint32_t bytes = (uint32_t)(left < FLOW_QUANTUM_BYTES ? left : FLOW_QUANTUM_BYTES);
    struct flow_quantum *quantum = quantum_take(stream, bytes);
    stream->begun += bytes;
    quantum->final = stream->begun == stream->bytes;
    // As if its end came when the source can send it.
    quantum->end_ps = stream->next_ps + (uint64_t)(stream->path.steps[0].ps_per_byte * bytes);
    flow_quantum_ask(quantum);
}

void flow_stream_leaves(struct flow_quantum *quantum)
{
    flow_stream_t *stream = quantum->stream;
    uint64_t now_ps = sim_now_ps(stream->net->sim), lead_ps = stream->path.lead_ps;
    sim_event_schedule_at(stream->net->sim, &stream->leave,
                          quantum->end_ps > now_ps + lead_ps ? quantum->end_ps - lead_ps : now_ps);
}

// --- copies ---------------------------------------------------------------------------------------------------------

static bool copy(const flow_stream_t *stream, uint64_t bytes)
{
    const struct flow_source *from = &stream->path.from;
    const struct flow_target *to = &stream->path.to;
    uint8_t *buffer = stream->net->buffer;
    bool intact = true;
    for (uint64_t done = 0; done < bytes && intact;) {
        uint64_t left = bytes - done, room = COPY_BYTES - (to->address + done) % COPY_BYTES;
        uint32_t piece = (uint32_t)(left < room ? left : room);
        const void *data = from->at != NULL ? from->at(from->ctx, from->address + done, piece) : NULL;
        intact = (data != NULL || from->read(from->ctx, from->address + done, buffer, piece)) &&
                 to->write(to->ctx, to->address + done, data != NULL ? data : buffer, piece);
        done += piece;
    }
    return intact;
}

// Copies and counts what has been carried. Returns its bytes; 0: a memory does not exist any more.
static uint64_t deliver(flow_stream_t *stream, uint64_t bytes)
{
    if (bytes == 0 || !copy(stream, bytes)) {
        return 0;
    }
    for (unsigned i = 0; i < stream->path.count_count; i++) {
        const struct flow_count *count = &stream->path.counts[i];
        count->fn(count->ctx, bytes, count->packet_bytes);
    }
    sim_progress(stream->net->sim);
    return bytes;
}

// The device has no reference any more, and neither has a stage or the landing.
static void stream_free(flow_stream_t *stream)
{
    if (stream->ended && stream->finished && stream->has_left && !stream->lands) {
        free(stream);
    }
}

static void landing_run(void *ctx)
{
    flow_stream_t *stream = ctx;
    *stream->link = stream->next_landing;
    if (stream->next_landing != NULL) {
        stream->next_landing->link = stream->link;
    }
    stream->lands = false;
    (void)deliver(stream, stream->bytes - stream->path.tail_bytes); // memory that was given back gets nothing
    stream_free(stream);
}

// A short stream on a long way ends before its first bytes would arrive: they are copied then, and still before the
// packets that follow.
static bool lands_later(flow_stream_t *stream)
{
    flow_net_t *net = stream->net;
    if (stream->earliest_ps <= sim_now_ps(net->sim)) {
        return false;
    }
    stream->lands = true;
    stream->next_landing = net->landing;
    stream->link = &net->landing;
    if (net->landing != NULL) {
        net->landing->link = &stream->next_landing;
    }
    net->landing = stream;
    sim_event_init(&stream->finish, landing_run, stream);
    sim_event_schedule_at(net->sim, &stream->finish, stream->earliest_ps);
    return true;
}

static void leave_run(void *ctx)
{
    flow_stream_t *stream = ctx;
    stream->has_left = true;
    if (stream->ops->left != NULL) {
        stream->ops->left(stream->ctx);
    }
    stream_free(stream);
}

static void finish_run(void *ctx)
{
    flow_stream_t *stream = ctx;
    uint64_t bytes = stream->bytes - stream->path.tail_bytes;
    stream->finished = true;
    stream->ops->done(stream->ctx, lands_later(stream) ? bytes : deliver(stream, bytes));
    stream_free(stream);
}

// --- beginning and end ----------------------------------------------------------------------------------------------

static void crossing_add(flow_stream_t *stream, unsigned step)
{
    struct flow_crossing **first = &stream->path.steps[step].stage->crossings, *crossing = &stream->crossings[step];
    *crossing = (struct flow_crossing){.stream = stream, .next = *first, .link = first};
    if (crossing->next != NULL) {
        crossing->next->link = &crossing->next;
    }
    *first = crossing;
}

static void crossing_remove(struct flow_crossing *crossing)
{
    *crossing->link = crossing->next;
    if (crossing->next != NULL) {
        crossing->next->link = crossing->link;
    }
}

flow_stream_t *flow_start(flow_net_t *net, const struct flow_path *path, uint64_t bytes, const struct flow_ops *ops,
                          void *ctx)
{
    if (path->refused || bytes <= path->tail_bytes || path->step_count == 0) {
        return NULL;
    }
    flow_stream_t *stream = malloc(sizeof *stream);
    if (stream == NULL) {
        sim_panic("flow", "no memory for a stream");
    }
    *stream = (struct flow_stream){.net = net, .path = *path, .ops = ops, .ctx = ctx, .bytes = bytes};
    sim_event_init(&stream->finish, finish_run, stream);
    sim_event_init(&stream->leave, leave_run, stream);
    stream->earliest_ps = sim_now_ps(net->sim) + path->latency_ps;
    for (unsigned i = 0; i < path->step_count; i++) {
        flow_stage_init(path->steps[i].stage, net);
        crossing_add(stream, i);
        flow_stage_take(path->steps[i].stage, path->before_bytes * path->steps[i].ps_per_byte);
    }
    if (path->delay_ps > 0) {
        stream->next_ps = sim_now_ps(net->sim) + path->delay_ps;
    }
    flow_stream_feed(stream);
    return stream;
}

static void stream_leave(flow_stream_t *stream)
{
    const struct flow_path *path = &stream->path;
    if (stream->ended) {
        return;
    }
    stream->ended = true;
    if (stream->quanta != NULL) {
        for (unsigned i = 0; i < path->step_count; i++) {
            flow_stage_forget(path->steps[i].stage, stream);
        }
        while (stream->quanta != NULL) {
            sim_event_cancel(stream->net->sim, &stream->quanta->ask);
            quantum_give(stream->quanta);
        }
        for (unsigned i = 0; i < path->step_count; i++) {
            flow_stage_try(path->steps[i].stage);
        }
    }
    for (unsigned i = 0; i < path->step_count; i++) {
        crossing_remove(&stream->crossings[i]);
    }
}

// The device's packets for the tail go when all before it has passed the last stage.
void flow_stream_ends(struct flow_quantum *quantum)
{
    flow_stream_t *stream = quantum->stream;
    const struct flow_step *last = &stream->path.steps[stream->path.step_count - 1];
    if (quantum->final) {
        double source = stream->path.least_ps_per_byte,
               slower = source > last->ps_per_byte ? source : last->ps_per_byte;
        uint64_t tail_ps = (uint64_t)(slower * stream->path.tail_bytes), now_ps = sim_now_ps(stream->net->sim);
        uint64_t at_ps = quantum->end_ps > tail_ps ? quantum->end_ps - tail_ps : 0;
        sim_event_schedule_at(stream->net->sim, &stream->finish, at_ps > now_ps ? at_ps : now_ps);
    }
}

void flow_stream_carried(struct flow_quantum *quantum)
{
    flow_stream_t *stream = quantum->stream;
    stream->carried += quantum->bytes;
    quantum_give(quantum);
    if (stream->carried == stream->bytes) {
        stream_leave(stream);
        stream_free(stream);
    }
}

// Returns the bytes that have been copied.
static uint64_t stop(flow_stream_t *stream)
{
    uint64_t most = stream->bytes - stream->path.tail_bytes - 1; // it is not whole
    uint64_t carried = stream->carried < most ? stream->carried : most;
    sim_event_cancel(stream->net->sim, &stream->finish);
    sim_event_cancel(stream->net->sim, &stream->leave);
    stream_leave(stream);
    return deliver(stream, carried - carried % stream->path.grain_bytes);
}

uint64_t flow_stop(flow_stream_t *stream)
{
    uint64_t carried = stop(stream);
    free(stream);
    return carried;
}

void flow_drop(flow_stream_t *stream)
{
    stream_leave(stream);
    stream->finished = stream->has_left = true;
    sim_event_cancel(stream->net->sim, &stream->leave);
    if (!stream->lands) {
        sim_event_cancel(stream->net->sim, &stream->finish);
    }
    stream_free(stream);
}

void flow_stage_interrupt(struct flow_stage *stage)
{
    while (stage->crossings != NULL) {
        flow_stream_t *stream = stage->crossings->stream;
        if (stream->finished) { // its tail goes as packets already
            stream_leave(stream);
            stream_free(stream);
        } else {
            stream->ops->done(stream->ctx, stop(stream));
            free(stream);
        }
    }
}
