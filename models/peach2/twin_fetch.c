// Descriptor fetch of a DMA channel: walks a chain ahead of the channel, in host memory by bursts or in the board's
// memory, and detects a chain that loops with Brent's algorithm.
#include <string.h>

#include "models/peach2/twin_internal.h"
#include "sim/kernel/trace.h"

enum { DESCRIPTORS_PER_PAGE = 4096 / PEACH2_DESCRIPTOR_BYTES };

static struct twin_channel *channel_of(const struct twin_fetch *fetch)
{
    return &fetch->twin->channels[fetch->channel];
}

static void enter(struct twin_fetch *fetch, enum twin_fetch_state state, uint64_t from)
{
    fetch->state = state;
    fetch->from = from;
}

// No descriptor follows those that are held.
static void enter_end(struct twin_fetch *fetch, uint64_t from)
{
    enter(fetch, TWIN_FETCH_END, from);
    twin_channel_feed(channel_of(fetch));
    twin_channel_drain(channel_of(fetch));
}

uint64_t twin_fetch_settled(const struct twin_fetch *fetch)
{
    return fetch->state == TWIN_FETCH_IDLE || fetch->state == TWIN_FETCH_END ? fetch->from : TWIN_NEVER;
}

struct twin_descriptor *twin_fetch_front(struct twin_fetch *fetch)
{
    return fetch->write == fetch->read ? NULL : &fetch->held[fetch->read % TWIN_HELD_DESCRIPTORS];
}

// --- what to request -----------------------------------------------------------------------------------------------

static bool room(const struct twin_fetch *fetch)
{
    return fetch->write - fetch->read + fetch->twin->config.prefetch <= TWIN_HELD_DESCRIPTORS;
}

uint32_t twin_fetch_burst(const struct twin_fetch *fetch)
{
    uint32_t to_boundary =
        DESCRIPTORS_PER_PAGE - (uint32_t)(fetch->next / PEACH2_DESCRIPTOR_BYTES % DESCRIPTORS_PER_PAGE);
    return to_boundary < fetch->twin->config.prefetch ? to_boundary : fetch->twin->config.prefetch;
}

uint64_t twin_fetch_wants(const struct twin_fetch *fetch)
{
    if (fetch->state != TWIN_FETCH_REQUEST || !room(fetch)) {
        return TWIN_NEVER;
    }
    uint64_t edge = twin_later(fetch->from, fetch->room_from);
    return twin_channel_failed(channel_of(fetch), edge) ? TWIN_NEVER : edge;
}

static void memory_plan(peach2_twin_t *twin);

// The next descriptor is requested from that edge on.
static void enter_request(struct twin_fetch *fetch, uint64_t from)
{
    const struct twin_channel *channel = channel_of(fetch);
    enter(fetch, TWIN_FETCH_REQUEST, from);
    if (twin_channel_failed(channel, from)) {
        enter_end(fetch, from + 1);
        return;
    }
    if (fetch->next % PEACH2_DESCRIPTOR_BYTES != 0 || (fetch->board && fetch->next >= TWIN_MEMORY_BYTES)) {
        fetch->error = PEACH2_DMA_DESCRIPTOR;
        enter_end(fetch, from + 1);
        return;
    }
    twin_fetch_stop(fetch);
    if (fetch->board) {
        memory_plan(fetch->twin);
    } else {
        twin_reader_plan(fetch->twin);
    }
}

void twin_fetch_begin(struct twin_fetch *fetch, bool board, uint64_t address, uint64_t from)
{
    fetch->board = board;
    fetch->next = address;
    fetch->error = PEACH2_DMA_OK;
    fetch->ended = false;
    fetch->half = false;
    fetch->saved = address;
    fetch->steps = 0;
    fetch->power = 1;
    fetch->write = fetch->read = 0;
    fetch->room_from = 0;
    enter_request(fetch, from);
}

// The request may still be taken before the edge that sees the error.
void twin_fetch_stop(struct twin_fetch *fetch)
{
    const struct twin_channel *channel = channel_of(fetch);
    if (fetch->state == TWIN_FETCH_REQUEST && channel->error != PEACH2_DMA_OK) {
        twin_event_set(fetch->twin, &fetch->event, twin_later(fetch->from, channel->error_from));
    }
}

void twin_fetch_pop(struct twin_fetch *fetch, uint64_t edge)
{
    if (!room(fetch)) {
        fetch->room_from = edge + 1;
    }
    fetch->read++;
    if (fetch->state == TWIN_FETCH_REQUEST) {
        if (fetch->board) {
            memory_plan(fetch->twin);
        } else {
            twin_reader_plan(fetch->twin);
        }
    }
}

// --- what arrives ---------------------------------------------------------------------------------------------------

static void brent(struct twin_fetch *fetch, uint64_t follower)
{
    fetch->steps++;
    if (fetch->steps == fetch->power) {
        fetch->saved = follower;
        fetch->steps = 0;
        fetch->power <<= 1;
    }
}

// A whole descriptor arrives at that edge.
static void arrive(struct twin_fetch *fetch, const uint64_t words[PEACH2_DESCRIPTOR_WORDS], uint64_t edge)
{
    fetch->due--;
    fetch->expected += PEACH2_DESCRIPTOR_BYTES;
    if (!fetch->follows) {
        return;
    }
    const struct peach2_descriptor descriptor = peach2_descriptor_unpack(words);
    uint64_t follower = descriptor.next;
    bool last = descriptor.last, loops = !last && follower == fetch->saved;
    struct twin_descriptor *held = &fetch->held[fetch->write++ % TWIN_HELD_DESCRIPTORS];
    memcpy(held->words, words, sizeof held->words);
    held->from = edge + 1;
    fetch->ended = fetch->ended || last;
    fetch->next = last ? fetch->next : follower;
    fetch->follows = !last && !loops && follower == fetch->expected;
    if (loops) {
        fetch->error = PEACH2_DMA_CHAIN_LOOP;
    }
    brent(fetch, follower);
}

// The last answer arrived at that edge.
static void answered(struct twin_fetch *fetch, uint64_t edge)
{
    fetch->generation = (fetch->generation + 1) & 31;
    sim_event_cancel(fetch->twin->sim, &fetch->event);
    if (fetch->error != PEACH2_DMA_OK || fetch->ended) {
        enter_end(fetch, edge + 1);
    } else {
        enter_request(fetch, edge + 1);
    }
    twin_channel_feed(channel_of(fetch));
}

static void wait_begin(struct twin_fetch *fetch, uint32_t due, uint64_t edge)
{
    enter(fetch, TWIN_FETCH_WAIT, edge + 1);
    fetch->expected = fetch->next;
    fetch->follows = true;
    fetch->due = due;
    sim_event_cancel(fetch->twin->sim, &fetch->event);
}

// --- host memory ----------------------------------------------------------------------------------------------------

void twin_fetch_trace(const struct twin_fetch *fetch, uint64_t address, uint32_t count)
{
    static const struct sim_trace_field fields[] = {
        {"channel", SIM_TRACE_DECIMAL, NULL}, {"address", SIM_TRACE_HEX, NULL}, {"count", SIM_TRACE_DECIMAL, NULL}};
    static const struct sim_trace_point requested = {"descriptors_requested", fields, 3,
                                                     "of host memory, or of the board's by its offset"};
    sim_trace(fetch->twin->sim, fetch->twin->name, &requested, (const uint64_t[]){fetch->channel, address, count});
}

void twin_fetch_taken(struct twin_fetch *fetch, uint64_t edge)
{
    wait_begin(fetch, twin_fetch_burst(fetch), edge);
    twin_event_set(fetch->twin, &fetch->event, edge + 1 + PEACH2_TIMEOUT_CYCLES);
}

// Beat by beat: each beat is half a descriptor. What follows the last descriptor is ignored. Returns the edge of the last
// beat that was used.
static uint64_t words_arrive(struct twin_fetch *fetch, pcie_tlp_t *tlp, uint64_t from)
{
    uint32_t beat = 0, beats = twin_beats(tlp) - 1;
    for (; beat < beats && fetch->due != 0; beat++) {
        if (!fetch->half) {
            twin_beat_get(tlp, beat, fetch->low);
        } else {
            uint64_t words[PEACH2_DESCRIPTOR_WORDS];
            memcpy(words, fetch->low, sizeof fetch->low);
            twin_beat_get(tlp, beat, words + 2);
            arrive(fetch, words, from + 1 + beat);
        }
        fetch->half = !fetch->half;
    }
    return from + beat;
}

bool twin_fetch_complete(peach2_twin_t *twin, pcie_tlp_t *tlp, enum peach2_dma_error answer, uint64_t from)
{
    struct twin_fetch *fetch = &twin->fetches[tlp->tag & 3];
    if (fetch->state != TWIN_FETCH_WAIT || fetch->from > from || fetch->board ||
        (tlp->tag >> 2 & 31) != fetch->generation) {
        return false;
    }
    static const struct sim_work fetch_ends = {NULL, "fetch", true};
    sim_cause_mark(twin->sim, twin->name, &fetch_ends);
    if (answer != PEACH2_DMA_OK) {
        fetch->error = answer;
        answered(fetch, from);
        return true;
    }
    uint64_t last = words_arrive(fetch, tlp, from);
    if (fetch->due == 0) {
        answered(fetch, last);
    } else {
        twin_channel_feed(channel_of(fetch));
    }
    return true;
}

// --- the board's memory, one read in progress -----------------------------------------------------------------------

static void memory_plan(peach2_twin_t *twin)
{
    struct twin_memory_port *port = &twin->memory_port;
    uint64_t next = TWIN_NEVER;
    for (unsigned i = 0; i < TWIN_CHANNELS; i++) {
        uint64_t edge = twin->fetches[i].board ? twin_fetch_wants(&twin->fetches[i]) : TWIN_NEVER;
        next = edge < next ? edge : next;
    }
    twin_event_set(twin, &port->event, next == TWIN_NEVER ? next : twin_later(next, port->free_from));
}

// The request is taken at one edge, the word arrives at the next; what follows from it is known at once.
static void memory_run(void *ctx)
{
    static const struct sim_work beginning = {"board", "DMA controller", false}; // reading takes it two cycles
    peach2_twin_t *twin = ctx;
    sim_cause_label(twin->sim, twin->name, &beginning);
    struct twin_memory_port *port = &twin->memory_port;
    uint64_t edge = twin_edge(twin);
    uint32_t candidates = 0;
    for (unsigned i = 0; i < TWIN_CHANNELS; i++) {
        bool wants = twin->fetches[i].board && twin_fetch_wants(&twin->fetches[i]) <= edge &&
                     !twin_channel_failed(&twin->channels[i], edge);
        candidates |= wants ? 1u << i : 0;
    }
    if (candidates != 0 && port->free_from <= edge) {
        uint64_t words[PEACH2_DESCRIPTOR_WORDS];
        port->owner = twin_round_robin(candidates, port->owner);
        port->free_from = edge + 2;
        struct twin_fetch *fetch = &twin->fetches[port->owner];
        twin_fetch_trace(fetch, fetch->next, 1);
        memcpy(words, &twin->memory[fetch->next], sizeof words);
        wait_begin(fetch, 1, edge);
        arrive(fetch, words, edge + 1);
        answered(fetch, edge + 1);
    }
    memory_plan(twin);
}

// The time for an answer has passed, or the channel's error ends the request.
static void fetch_run(void *ctx)
{
    struct twin_fetch *fetch = ctx;
    if (fetch->state == TWIN_FETCH_REQUEST) {
        enter_end(fetch, twin_edge(fetch->twin) + 1);
        return;
    }
    fetch->error = PEACH2_DMA_READ_LOST;
    answered(fetch, twin_edge(fetch->twin));
}

// --- creation and destruction ---------------------------------------------------------------------------------------

void twin_fetches_init(peach2_twin_t *twin)
{
    twin->memory_port.owner = TWIN_CHANNELS - 1;
    sim_event_init(&twin->memory_port.event, memory_run, twin);
    for (unsigned i = 0; i < TWIN_CHANNELS; i++) {
        struct twin_fetch *fetch = &twin->fetches[i];
        fetch->twin = twin;
        fetch->channel = i;
        sim_event_init(&fetch->event, fetch_run, fetch);
    }
}

void twin_fetches_fini(peach2_twin_t *twin)
{
    sim_event_cancel(twin->sim, &twin->memory_port.event);
    for (unsigned i = 0; i < TWIN_CHANNELS; i++) {
        sim_event_cancel(twin->sim, &twin->fetches[i].event);
    }
}
