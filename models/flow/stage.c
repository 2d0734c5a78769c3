// Stages: turns, services, and the buffers behind them.
#include "models/flow/internal.h"

static struct flow_step *step_of(const struct flow_quantum *quantum, unsigned step)
{
    return &quantum->stream->path.steps[step];
}

static bool is_last(const struct flow_quantum *quantum, unsigned step)
{
    return step + 1 == quantum->stream->path.step_count;
}

// --- what waits -----------------------------------------------------------------------------------------------------

static void waiting_push(struct flow_stage *stage, struct flow_quantum *quantum)
{
    quantum->next_waiting = NULL;
    if (stage->waiting == NULL) {
        stage->waiting = quantum;
    } else {
        stage->waiting_last->next_waiting = quantum;
    }
    stage->waiting_last = quantum;
}

static void waiting_remove(struct flow_stage *stage, struct flow_quantum *quantum)
{
    struct flow_quantum *before = NULL, *at = stage->waiting;
    while (at != quantum) {
        before = at;
        at = at->next_waiting;
    }
    if (before == NULL) {
        stage->waiting = quantum->next_waiting;
    } else {
        before->next_waiting = quantum->next_waiting;
    }
    stage->waiting_last = stage->waiting_last == quantum ? before : stage->waiting_last;
}

// A quantum may be in the buffers of several stages at once.
static void behind_push(struct flow_stage *stage, struct flow_quantum *quantum)
{
    struct flow_place *place = &quantum->places[quantum->step];
    *place = (struct flow_place){.quantum = quantum};
    stage->behind_bytes += quantum->bytes;
    if (stage->behind == NULL) {
        stage->behind = place;
    } else {
        stage->behind_last->next = place;
    }
    stage->behind_last = place;
}

static const struct flow_step *step_after(const struct flow_place *place)
{
    return &place->quantum->stream->path.steps[place - place->quantum->places + 1];
}

// Whether a quantum that came earlier, of the same queue, is still in the buffer.
static bool waits_behind(const struct flow_stage *stage, const struct flow_place *place)
{
    bool sorted = (step_after(place) - 1)->sorted;
    const struct flow_place *before = stage->behind;
    while (before != place && sorted && step_after(before)->stage != step_after(place)->stage) {
        before = before->next;
    }
    return before != place;
}

// The first quantum of each queue asks for the next stage.
static void behind_ask(struct flow_stage *stage)
{
    for (struct flow_place *place = stage->behind; place != NULL; place = place->next) {
        if (!place->asked && !waits_behind(stage, place)) {
            place->asked = true;
            flow_quantum_ask(place->quantum);
        }
        if (!(step_after(place) - 1)->sorted) {
            return; // those behind wait for it
        }
    }
}

// --- turns ----------------------------------------------------------------------------------------------------------

// A buffer has room for at least two quanta. One that enters a ring leaves room for another one: then a quantum of the
// ring can always move somewhere (the bubble rule).
static bool has_room(const struct flow_stage *stage, const struct flow_quantum *quantum)
{
    const struct flow_step *step = step_of(quantum, quantum->step);
    uint64_t room = step->buffer_bytes > 2 * FLOW_QUANTUM_BYTES ? step->buffer_bytes : 2 * FLOW_QUANTUM_BYTES;
    uint64_t left = step->enters ? FLOW_QUANTUM_BYTES : 0;
    return is_last(quantum, quantum->step) || stage->behind_bytes + quantum->bytes + left <= room;
}

// The quantum whose turn it is: that of the next input after the one served last, among those with room. NULL: none.
static struct flow_quantum *turn_find(const struct flow_stage *stage)
{
    struct flow_quantum *best = NULL;
    uint32_t best_distance = UINT32_MAX;
    for (struct flow_quantum *quantum = stage->waiting; quantum != NULL; quantum = quantum->next_waiting) {
        uint32_t input = step_of(quantum, quantum->step)->input;
        uint32_t distance = (input - stage->owner - 1) % FLOW_INPUTS_MAX;
        if (distance < best_distance && has_room(stage, quantum)) {
            best = quantum;
            best_distance = distance;
        }
    }
    return best;
}

// --- services -------------------------------------------------------------------------------------------------------

static void asides_add(const flow_stream_t *stream, uint32_t bytes)
{
    for (unsigned i = 0; i < stream->path.aside_count; i++) {
        const struct flow_aside *aside = &stream->path.asides[i];
        if (stream->path.behind_streams_bytes + stream->begun > aside->after_bytes) {
            aside->stage->aside_ps += aside->ps_per_byte * bytes;
        }
    }
}

// What others took of the stage while it was idle is over.
static double aside_left(struct flow_stage *stage, uint64_t now_ps)
{
    double left = stage->aside_ps - (double)(now_ps - stage->free_ps);
    stage->aside_ps = 0;
    return left > 0 ? left : 0;
}

void flow_stage_take(struct flow_stage *stage, double takes_ps)
{
    if (stage->net == NULL) {
        return; // no stream has come yet
    }
    if (stage->serving == NULL) {
        uint64_t now_ps = sim_now_ps(stage->net->sim);
        stage->aside_ps = aside_left(stage, now_ps);
        stage->free_ps = now_ps;
    }
    stage->aside_ps += takes_ps;
}

static void serve(struct flow_stage *stage, struct flow_quantum *quantum)
{
    flow_stream_t *stream = quantum->stream;
    const struct flow_step *step = step_of(quantum, quantum->step);
    uint64_t now_ps = sim_now_ps(stage->net->sim);
    uint64_t takes_ps = (uint64_t)(step->ps_per_byte * quantum->bytes + aside_left(stage, now_ps));
    waiting_remove(stage, quantum);
    stage->owner = step->input;
    stage->serving = quantum;
    stage->serving_step = quantum->step;
    quantum->end_ps = now_ps + takes_ps;
    sim_event_schedule_at(stage->net->sim, &stage->end, quantum->end_ps);
    if (quantum->step == 0) {
        uint64_t source_ps = (uint64_t)(stream->path.least_ps_per_byte * quantum->bytes);
        stream->next_ps = now_ps + source_ps;
        quantum->end_ps = stream->next_ps > quantum->end_ps ? stream->next_ps : quantum->end_ps;
        asides_add(stream, quantum->bytes);
        if (quantum->final) {
            flow_stream_leaves(quantum);
        }
    }
    if (is_last(quantum, quantum->step)) {
        flow_stream_ends(quantum);
    } else {
        behind_push(stage, quantum);
        quantum->step++;
        behind_ask(stage);
    }
}

void flow_stage_try(struct flow_stage *stage)
{
    if (stage->serving == NULL && stage->waiting != NULL) {
        struct flow_quantum *quantum = turn_find(stage);
        if (quantum != NULL) {
            serve(stage, quantum);
        }
    }
}

void flow_quantum_ask_later(void *ctx)
{
    struct flow_quantum *quantum = ctx;
    struct flow_stage *stage = step_of(quantum, quantum->step)->stage;
    waiting_push(stage, quantum);
    flow_stage_try(stage);
}

// It asks when its end will come no later than the stage serves it.
void flow_quantum_ask(struct flow_quantum *quantum)
{
    const struct flow_step *step = step_of(quantum, quantum->step);
    uint64_t now_ps = sim_now_ps(step->stage->net->sim);
    uint64_t takes_ps = (uint64_t)(step->ps_per_byte * quantum->bytes);
    if (quantum->end_ps > now_ps + takes_ps) {
        sim_event_schedule_at(step->stage->net->sim, &quantum->ask, quantum->end_ps - takes_ps);
        return;
    }
    waiting_push(step->stage, quantum);
    flow_stage_try(step->stage);
}

static void behind_remove(struct flow_stage *stage, const struct flow_place *place)
{
    struct flow_place **link = &stage->behind, *last = NULL;
    while (*link != place) {
        last = *link;
        link = &last->next;
    }
    *link = place->next;
    stage->behind_last = stage->behind_last == place ? last : stage->behind_last;
    stage->behind_bytes -= place->quantum->bytes;
}

// The quantum has left the buffer behind that step, before the stage that has served it.
static void left_behind(struct flow_quantum *quantum, unsigned step)
{
    struct flow_stage *before = step_of(quantum, step)->stage;
    behind_remove(before, &quantum->places[step]);
    behind_ask(before);
    flow_stage_try(before);
}

static void end_run(void *ctx)
{
    struct flow_stage *stage = ctx;
    struct flow_quantum *quantum = stage->serving;
    unsigned step = stage->serving_step;
    stage->serving = NULL;
    stage->free_ps = sim_now_ps(stage->net->sim);
    if (quantum->final) {
        flow_stage_take(stage, quantum->stream->path.behind_bytes * step_of(quantum, step)->ps_per_byte);
    }
    if (step == 0) {
        flow_stream_feed(quantum->stream);
    } else {
        left_behind(quantum, step - 1);
    }
    if (is_last(quantum, step)) {
        flow_stream_carried(quantum);
    }
    flow_stage_try(stage);
}

void flow_stage_init(struct flow_stage *stage, flow_net_t *net)
{
    if (stage->net == NULL) {
        stage->net = net;
        sim_event_init(&stage->end, end_run, stage);
    }
}

// --- streams that end early -----------------------------------------------------------------------------------------

void flow_stage_forget(struct flow_stage *stage, const flow_stream_t *stream)
{
    for (struct flow_quantum *quantum = stage->waiting, *next; quantum != NULL; quantum = next) {
        next = quantum->next_waiting;
        if (quantum->stream == stream) {
            waiting_remove(stage, quantum);
        }
    }
    for (struct flow_place *place = stage->behind, *next; place != NULL; place = next) {
        next = place->next;
        if (place->quantum->stream == stream) {
            behind_remove(stage, place);
        }
    }
    if (stage->serving != NULL && stage->serving->stream == stream) {
        sim_event_cancel(stage->net->sim, &stage->end);
        stage->serving = NULL;
        stage->free_ps = sim_now_ps(stage->net->sim);
    }
    behind_ask(stage);
}
