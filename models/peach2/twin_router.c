// The outputs: the next packet, the N port's translation, and the buffer before the hard IP.
#include <string.h>

#include "models/peach2/twin_internal.h"

// Sources whose packets are on the ring of an output already; all sources if the output has no ring (the bubble rule).
static const uint8_t on_ring[PEACH2_PORTS] = {0x7f, 1u << TWIN_W, 1u << TWIN_E, 0x7f};

bool twin_is_on_ring(uint8_t port, unsigned source)
{
    return (on_ring[port] >> source & 1) != 0;
}

uint32_t twin_beats(const pcie_tlp_t *tlp)
{
    uint32_t bytes = pcie_tlp_payload_bytes(tlp);
    if (bytes == 0) {
        return 1;
    }
    uint32_t lane = tlp->kind == PCIE_TLP_CPLD ? tlp->lower_address & 12u : (uint32_t)(tlp->address & 12u);
    return 1 + (lane + bytes + TWIN_BEAT_BYTES - 1) / TWIN_BEAT_BYTES;
}

void twin_beat_get(pcie_tlp_t *tlp, uint32_t beat, uint64_t words[2])
{
    uint32_t lane = tlp->lower_address & (TWIN_BEAT_BYTES - 4), end = lane + pcie_tlp_payload_bytes(tlp);
    uint32_t begin = beat * TWIN_BEAT_BYTES, first = begin < lane ? lane : begin;
    uint32_t last = begin + TWIN_BEAT_BYTES < end ? begin + TWIN_BEAT_BYTES : end;
    memset(words, 0, TWIN_BEAT_BYTES);
    memcpy((uint8_t *)words + (first - begin), pcie_tlp_data(tlp) + (first - lane), last - first);
}

unsigned twin_round_robin(uint32_t candidates, unsigned owner)
{
    uint32_t above = candidates & ~((2u << owner) - 1);
    return (unsigned)__builtin_ctz(above != 0 ? above : candidates);
}

// The destination of each route, as the table of rtl/peach2_route.sv.
static const uint8_t route_dest[] = {TWIN_N, TWIN_E, TWIN_W, TWIN_S, TWIN_LOCAL, TWIN_E, TWIN_W, TWIN_S};
_Static_assert(sizeof route_dest == TWIN_ROUTES && TWIN_ROUTES <= 8, "every route leads somewhere, and has a bit");

uint8_t twin_route_find(const struct twin_routing *routing, uint64_t address, bool *in_window_out)
{
    uint64_t offset = address & ((1ull << PEACH2_WINDOW_BITS) - 1);
    *in_window_out = address - offset == routing->window_base;
    for (unsigned left = *in_window_out ? routing->enabled : 0; left != 0; left &= left - 1) {
        unsigned k = (unsigned)__builtin_ctz(left);
        const struct twin_route *route = &routing->routes[k];
        if ((offset & route->mask) >= route->lower && (offset & route->mask) <= route->upper) {
            return route_dest[k];
        }
    }
    return TWIN_DISCARD;
}

// --- offers ---------------------------------------------------------------------------------------------------------

static bool is_ready(const struct twin_output *output)
{
    return (output->twin->inputs.ready_wanted >> output->port & 1) != 0;
}

// The edge from which the buffer takes another packet; TWIN_NEVER: not known before one has left. Behind a stalled
// packet of a single beat there is one more slot.
static uint64_t space_from(const struct twin_output *output)
{
    if (output->held_count == 0) {
        return output->free_from;
    }
    bool behind = output->held_count == 1 && output->due == TWIN_NEVER && output->held[0].span == 1;
    return behind ? output->held[0].since + 1 : TWIN_NEVER;
}

static bool has_room(const struct twin_output *output, uint64_t edge)
{
    const struct twin_inputs *inputs = &output->twin->inputs;
    return ((edge < inputs->edge ? inputs->room : inputs->room_wanted) >> output->port & 1) != 0;
}

// The sources that offer at that edge; change_inout: lowered to the edge of the next offer, if that is earlier.
static uint32_t waiting_at(const struct twin_output *output, uint64_t edge, uint64_t *change_inout)
{
    uint32_t waiting = 0;
    for (unsigned left = output->twin->offered[output->port]; left != 0; left &= left - 1) {
        unsigned source = (unsigned)__builtin_ctz(left);
        uint64_t from = output->twin->offers[source].from;
        if (from <= edge) {
            waiting |= 1u << source;
        } else if (from < *change_inout) {
            *change_inout = from;
        }
    }
    return waiting;
}

static uint64_t turn_search(const struct twin_output *output, uint64_t edge, uint64_t end, unsigned *source_out,
                            uint32_t *hold_out)
{
    const struct twin_inputs *inputs = &output->twin->inputs;
    uint32_t hold = output->hold_cycles;
    while (edge < end) {
        uint64_t change = edge < inputs->edge && inputs->edge < end ? inputs->edge : end;
        uint32_t waiting = waiting_at(output, edge, &change);
        uint32_t ring = waiting & on_ring[output->port];
        bool room = has_room(output, edge);
        uint32_t allowed = room || hold != 0 ? waiting : ring;
        if (allowed != 0) {
            unsigned source = twin_round_robin(allowed, output->owner);
            if (room || (ring >> source & 1) != 0) {
                *source_out = source;
                *hold_out = hold;
                return edge;
            }
            uint64_t begin = twin_later(edge, output->free_from + 1);
            if (ring != 0 && output->held_count == 0 && begin < change) {
                change = begin + hold < change ? begin + hold : change;
                hold -= (uint32_t)(change - begin);
            }
        }
        edge = change;
    }
    *hold_out = hold;
    return end;
}

// The first edge before `end` at which a packet begins, and its source; `end` if none begins. hold_out: how long a
// packet of the ring may be held from there on.
static inline uint64_t turn_find(const struct twin_output *output, uint64_t end, unsigned *source_out,
                                 uint32_t *hold_out)
{
    uint64_t edge = twin_later(space_from(output), output->hold_edge);
    if (edge >= end || output->twin->offered[output->port] == 0) {
        *hold_out = output->hold_cycles; // no packet waits
        return end;
    }
    return turn_search(output, edge, end, source_out, hold_out);
}

static void output_plan(struct twin_output *output)
{
    unsigned source;
    uint32_t hold;
    if (output->running) {
        return;
    }
    uint64_t next = output->held_count != 0 ? output->due : TWIN_NEVER;
    if (next != TWIN_NEVER) { // the buffer is full until then
        twin_event_set(output->twin, &output->event, next);
        return;
    }
    twin_event_set(output->twin, &output->event, turn_find(output, next, &source, &hold));
}

void twin_offer_put(peach2_twin_t *twin, unsigned source, const struct twin_offer *offer)
{
    twin->offers[source] = *offer;
    twin->offered[offer->dest] |= (uint8_t)(1u << source);
    if (offer->dest == TWIN_LOCAL) {
        twin_local_offered(twin, offer->from);
        return;
    }
    output_plan(&twin->outputs[offer->dest]);
}

void twin_offer_clear(peach2_twin_t *twin, unsigned source)
{
    twin->offered[twin->offers[source].dest] &= (uint8_t) ~(1u << source);
    twin->offers[source].tlp = NULL;
}

void twin_source_moved(peach2_twin_t *twin, unsigned source, uint64_t last, uint32_t count, bool whole)
{
    switch (source) {
    case TWIN_SOURCE_LOCAL:
        if (whole) {
            twin_local_answered(twin, last);
        }
        break;
    case TWIN_SOURCE_READ:
        twin_reader_moved(twin, last);
        break;
    case TWIN_SOURCE_WRITE:
        twin_writer_moved(twin, last, count, whole);
        break;
    default:
        twin_ingress_moved(&twin->ingresses[source], last, count, whole);
        break;
    }
}

// --- a packet leaves ------------------------------------------------------------------------------------------------

// While its completion stalls, LOCAL goes on until it has a third beat, with four registers at two cycles each, behind the
// two in the buffer: that part of the completion's span has passed when the stall ends.
enum { STALLED_BEATS = 3, STALLED_CYCLES = 2 * 4 + 1 };

// The packet at the front of the buffer begins to leave at edge `first`.
static void leave_begin(struct twin_output *output, uint64_t first)
{
    struct twin_leaving *front = &output->held[0];
    output->due = twin_later(first + front->beats - 1, front->since + front->span);
    if (front->span > front->beats && front->beats > STALLED_BEATS) {
        output->due = twin_later(output->due, first + front->span - STALLED_CYCLES);
    }
    if (front->moved < front->beats) {
        uint32_t rest = front->beats - front->moved;
        front->moved = front->beats;
        twin_source_moved(output->twin, front->source, output->due - 1, rest, true);
    }
}

static bool in_window(const peach2_twin_t *twin, uint64_t address, uint64_t edge)
{
    return address >> PEACH2_WINDOW_BITS << PEACH2_WINDOW_BITS ==
           twin_register64_at(twin, PEACH2_CHIP_BASE + PEACH2_CHIP_WINDOW_BASE, edge);
}

static bool is_translated(const struct twin_output *output, const pcie_tlp_t *tlp, uint64_t edge)
{
    return output->port == TWIN_N && pcie_tlp_class(tlp) != PCIE_COMPLETION &&
           in_window(output->twin, tlp->address, edge);
}

// At N, a request to the shared window leaves with the offset of its block subtracted.
uint64_t twin_host_address(const peach2_twin_t *twin, uint64_t address, uint64_t edge)
{
    uint32_t block = address >> PEACH2_BLOCK_BITS & (TWIN_BLOCKS - 1);
    uint32_t offset = PEACH2_OFFSET_BASE + block * PEACH2_OFFSET_STRIDE + PEACH2_OFFSET_SUBTRACT;
    return in_window(twin, address, edge) ? (address - twin_register64_at(twin, offset, edge)) & ~3ull : address;
}

// Decides the next hold when a packet of `source` begins and packets of the ring could have been held for `hold` more
// cycles.
static void hold_next(struct twin_output *output, unsigned source, uint32_t hold)
{
    bool passes = (on_ring[output->port] >> source & 1) != 0;
    uint32_t full = PEACH2_RING_HOLD_CYCLES << output->hold_level;
    output->holds += output->rest_tlps == 0 && hold != full;
    if (passes && output->rest_tlps != 0) {
        output->rest_tlps--;
    } else if (passes && hold == 0) { // without effect: the link is slower than that, or stalls
        output->rest_tlps = PEACH2_RING_REST_TLPS << output->hold_level;
        output->hold_level += output->hold_level < PEACH2_RING_LEVELS - 1;
    } else if (!passes && hold != full && hold >= full - full / 4 && output->hold_level != 0) {
        output->hold_level--; // a quarter of it was enough
    }
    output->hold_cycles = output->rest_tlps != 0 ? 0 : PEACH2_RING_HOLD_CYCLES << output->hold_level;
}

static void output_grant(struct twin_output *output, unsigned source, uint64_t edge)
{
    peach2_twin_t *twin = output->twin;
    struct twin_offer *offer = &twin->offers[source];
    bool behind = output->held_count != 0;
    struct twin_leaving *held = &output->held[output->held_count++];
    // A port's packet still belongs to the neighbour's transmitter, which may have to send it again unchanged.
    pcie_tlp_t *tlp = offer->tlp;
    bool changed = is_translated(output, tlp, edge), shared = source < PEACH2_PORTS;
    if (shared && changed) {
        tlp = pcie_tlp_copy(tlp);
    } else if (shared) {
        pcie_tlp_ref(tlp);
    }
    if (changed) {
        tlp->address = twin_host_address(twin, tlp->address, edge);
    }
    *held = (struct twin_leaving){
        .tlp = tlp, .since = edge, .span = offer->span, .beats = offer->beats, .source = (uint8_t)source};
    output->owner = (uint8_t)source;
    twin_offer_clear(twin, source);
    if (!behind && is_ready(output)) {
        held->moved = held->beats;
        output->due = edge + held->span;
        twin_source_moved(twin, source, output->due - 1, held->beats, true);
        return;
    }
    // The two slots of the buffer fill, and the packet stalls there.
    held->moved = behind || held->beats == 1 ? 1 : 2;
    if (!behind) {
        output->due = TWIN_NEVER;
    }
    twin_source_moved(twin, source, edge + held->moved - 1, held->moved, held->moved == held->beats);
}

static void output_emit(struct twin_output *output, uint64_t edge)
{
    pcie_tlp_t *tlp = output->held[0].tlp;
    output->held[0] = output->held[1];
    output->held_count--;
    output->free_from = edge;
    output->due = TWIN_NEVER;
    output->tlps++;
    output->twin->inputs.emitting = true;
    output->twin->ops->tx(output->twin->ctx, output->port, tlp);
    output->twin->inputs.emitting = false;
    if (output->held_count != 0) {
        struct twin_leaving *front = &output->held[0];
        front->since = edge;
        if (is_ready(output)) {
            leave_begin(output, edge + 1);
        } else if (front->moved == 1 && front->beats > 1) { // there is a slot for one more beat
            front->moved = 2;
            twin_source_moved(output->twin, front->source, edge + 1, 1, front->beats == 2);
        }
    }
}

static void output_run(void *ctx)
{
    static const struct sim_work routing = {"board", "router and output", false};
    struct twin_output *output = ctx;
    sim_cause_label(output->twin->sim, output->twin->name, &routing);
    uint64_t edge = twin_edge(output->twin);
    output->running = true;
    if (output->held_count != 0 && output->due == edge) {
        output_emit(output, edge);
    }
    unsigned source;
    uint32_t hold;
    if (turn_find(output, edge + 1, &source, &hold) <= edge) {
        hold_next(output, source, hold);
        output_grant(output, source, edge);
    }
    output->running = false;
    output_plan(output);
}

// --- from the board -------------------------------------------------------------------------------------------------

// A stalled packet leaves at the first edge that samples its port as ready.
static void resume(struct twin_output *output, uint64_t edge)
{
    const struct twin_inputs *inputs = &output->twin->inputs;
    if (output->held_count == 0 || output->due != TWIN_NEVER) {
        return;
    }
    uint64_t first = twin_later(edge, output->held[0].since + 1);
    if (first < inputs->edge && (inputs->ready >> output->port & 1) != 0) {
        leave_begin(output, first);
    } else if (is_ready(output)) {
        leave_begin(output, twin_later(first, inputs->edge));
    }
}

static void hold_settle(struct twin_output *output, uint64_t edge)
{
    unsigned source;
    if (output->hold_edge < edge) {
        (void)turn_find(output, edge, &source, &output->hold_cycles);
        output->hold_edge = edge;
    }
}

static void inputs_change(peach2_twin_t *twin, uint8_t *wanted, unsigned port, bool set)
{
    struct twin_inputs *inputs = &twin->inputs;
    uint8_t value = (uint8_t)(set ? *wanted | 1u << port : *wanted & ~(1u << port));
    if (value == *wanted) {
        return;
    }
    uint64_t edge = twin_edge(twin), next = twin_next_edge(twin);
    // Decisions made with the old values stay valid.
    for (unsigned i = 0; i < PEACH2_PORTS; i++) {
        hold_settle(&twin->outputs[i], edge);
    }
    if (inputs->edge < next) { // in force at an edge that may be in the future
        inputs->ready = inputs->ready_wanted;
        inputs->room = inputs->room_wanted;
    }
    *wanted = value;
    inputs->edge = next;
    if (!inputs->emitting) {
        resume(&twin->outputs[port], edge);
        output_plan(&twin->outputs[port]);
    }
}

void twin_core_set_tx_ready(void *core, unsigned port, bool ready)
{
    peach2_twin_t *twin = core;
    inputs_change(twin, &twin->inputs.ready_wanted, port, ready);
}

void twin_core_set_tx_room(void *core, unsigned port, bool room)
{
    peach2_twin_t *twin = core;
    inputs_change(twin, &twin->inputs.room_wanted, port, room);
}

// --- creation and destruction ---------------------------------------------------------------------------------------

void twin_outputs_init(peach2_twin_t *twin)
{
    const uint8_t all = (1u << PEACH2_PORTS) - 1;
    twin->inputs = (struct twin_inputs){.ready = all, .room = all, .ready_wanted = all, .room_wanted = all};
    for (unsigned port = 0; port < PEACH2_PORTS; port++) {
        struct twin_output *output = &twin->outputs[port];
        *output = (struct twin_output){.twin = twin,
                                       .port = (uint8_t)port,
                                       .owner = TWIN_SOURCES - 1,
                                       .due = TWIN_NEVER,
                                       .hold_cycles = PEACH2_RING_HOLD_CYCLES};
        sim_event_init(&output->event, output_run, output);
    }
}

void twin_outputs_fini(peach2_twin_t *twin)
{
    for (unsigned port = 0; port < PEACH2_PORTS; port++) {
        struct twin_output *output = &twin->outputs[port];
        sim_event_cancel(twin->sim, &output->event);
        for (unsigned i = 0; i < output->held_count; i++) {
            pcie_tlp_unref(output->held[i].tlp);
        }
    }
    for (unsigned source = PEACH2_PORTS; source < TWIN_SOURCES; source++) {
        if (twin->offers[source].tlp != NULL) {
            pcie_tlp_unref(twin->offers[source].tlp);
        }
    }
}
