// The inputs: packets received by the hard IP pass, in order, a FIFO of four beats and the register in which the
// destination of a packet is decided.
#include <stdlib.h>

#include "models/peach2/twin_internal.h"

// Beats that can be inside before their predecessors have left: in the FIFO and in the register.
enum { INSIDE_BEATS = 5, FIRST_CAPACITY = 16 };

static struct twin_arrival *arrival_at(const struct twin_ingress *ingress, uint32_t number)
{
    return &ingress->arrivals[number & (ingress->capacity - 1)];
}

void twin_moves_add(struct twin_moves *moves, uint64_t last, uint32_t count)
{
    moves->count += count;
    if (count >= TWIN_MOVES_KEPT) {
        for (uint64_t i = 0; i < TWIN_MOVES_KEPT; i++) {
            moves->edges[i] = last - (moves->count - 1 - i) % TWIN_MOVES_KEPT;
        }
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        moves->edges[(moves->count - 1 - i) % TWIN_MOVES_KEPT] = last - i;
    }
}

// --- taking beats from the hard IP ----------------------------------------------------------------------------------

// The edge at which the packet's last beat enters; TWIN_NEVER: not known yet.
static uint64_t taken_edge(const struct twin_ingress *ingress, const struct twin_arrival *arrival)
{
    uint64_t edge = twin_later(arrival->edge, ingress->last_taken + 1) + arrival->beats - 1;
    if (arrival->end <= INSIDE_BEATS) {
        return edge;
    }
    uint64_t freed = twin_moved(&ingress->moves, arrival->end - 1 - INSIDE_BEATS); // of the last beat's slot
    return freed == TWIN_NEVER ? TWIN_NEVER : twin_later(edge, freed + 1);
}

// Called after each packet that came or moved on: which packets follow into the FIFO, and when?
static void time_arrivals(struct twin_ingress *ingress)
{
    while (ingress->timed != ingress->tail) {
        struct twin_arrival *arrival = arrival_at(ingress, ingress->timed);
        uint64_t edge = taken_edge(ingress, arrival);
        if (edge == TWIN_NEVER) {
            break;
        }
        ingress->last_taken = edge;
        ingress->timed++;
        ingress->twin->ops->rx_taken(ingress->twin->ctx, ingress->port, arrival->tlp,
                                     edge * ingress->twin->config.period_ps);
    }
}

// --- offering packets to the router ---------------------------------------------------------------------------------

// The packet's first beat comes to the register in which its destination is decided at that edge.
static uint8_t dest_find(struct twin_ingress *ingress, const struct twin_arrival *arrival, uint64_t edge,
                         bool *unsupported_out)
{
    const peach2_twin_t *twin = ingress->twin;
    bool north = ingress->port == TWIN_N, in_window;
    *unsupported_out = false;
    if (pcie_tlp_class(arrival->tlp) == PCIE_COMPLETION) {
        return north ? TWIN_DMAC : TWIN_DISCARD;
    }
    if (north && arrival->bar == 0) {
        return TWIN_LOCAL;
    }
    const struct twin_routing *routing = edge <= twin->routing_written ? &twin->routing_before : &twin->routing;
    uint8_t hit = twin_route_find(routing, arrival->tlp->address, &in_window);
    if (arrival->tlp->kind == PCIE_TLP_MRD) {
        *unsupported_out = !(north && hit == TWIN_LOCAL);
        return TWIN_LOCAL;
    }
    // A packet sent back to its port of entry would bounce between two boards for ever.
    return !north && hit == ingress->port ? TWIN_DISCARD : hit;
}

// Destinations that take a beat at every edge.
static void sink(struct twin_ingress *ingress, struct twin_arrival *arrival, uint8_t dest, uint64_t from)
{
    if (dest == TWIN_DMAC) {
        twin_dmac_complete(ingress->twin, arrival->tlp, from);
    } else if (pcie_tlp_class(arrival->tlp) == PCIE_COMPLETION) {
        ingress->unexpected++;
    } else {
        ingress->unroutable++;
    }
    ingress->last_move = from + arrival->beats - 1;
    twin_moves_add(&ingress->moves, ingress->last_move, arrival->beats);
    time_arrivals(ingress);
    pcie_tlp_unref(arrival->tlp);
    ingress->head++;
}

// Registers that are written meanwhile may change the way of a packet that is decided at that edge. All that it sees is
// written one edge before; only the last word, which it does not see, may be as well.
static bool is_too_early(const peach2_twin_t *twin, uint64_t edge)
{
    bool writes = twin->local.write != NULL || (twin->offered[TWIN_LOCAL] >> TWIN_N & 1) != 0;
    return writes && edge > twin_edge(twin) + 1;
}

static void head_offer(struct twin_ingress *ingress)
{
    while (ingress->head != ingress->tail) {
        struct twin_arrival *arrival = arrival_at(ingress, ingress->head);
        uint64_t from = twin_later(arrival->edge + 2, ingress->last_move + 1);
        bool unsupported;
        if (is_too_early(ingress->twin, from - 1)) {
            twin_event_set(ingress->twin, &ingress->route_event, from - 2);
            return;
        }
        uint8_t dest = dest_find(ingress, arrival, from - 1, &unsupported);
        ingress->tlps++;
        if (dest <= TWIN_LOCAL) {
            const struct twin_offer offer = {arrival->tlp, from, arrival->beats, arrival->beats, dest, unsupported};
            ingress->offered = true;
            twin_offer_put(ingress->twin, ingress->port, &offer);
            return;
        }
        sink(ingress, arrival, dest, from);
    }
}

static void route_run(void *ctx)
{
    head_offer(ctx);
}

void twin_ingress_moved(struct twin_ingress *ingress, uint64_t last, uint32_t count, bool whole)
{
    twin_moves_add(&ingress->moves, last, count);
    time_arrivals(ingress);
    if (whole) {
        pcie_tlp_unref(arrival_at(ingress, ingress->head)->tlp);
        ingress->last_move = last;
        ingress->offered = false;
        ingress->head++;
        head_offer(ingress);
    }
}

static void grow(struct twin_ingress *ingress)
{
    uint32_t capacity = ingress->capacity == 0 ? FIRST_CAPACITY : ingress->capacity * 2;
    struct twin_arrival *arrivals = malloc(capacity * sizeof *arrivals);
    if (arrivals == NULL) {
        sim_panic(ingress->twin->name, "no memory for %u packets", capacity);
    }
    uint32_t oldest = ingress->tail - ingress->capacity;
    for (uint32_t number = oldest; number != ingress->tail; number++) {
        arrivals[number & (capacity - 1)] = *arrival_at(ingress, number);
    }
    free(ingress->arrivals);
    ingress->arrivals = arrivals;
    ingress->capacity = capacity;
}

void twin_core_rx(void *core, unsigned port, unsigned bar, pcie_tlp_t *tlp)
{
    peach2_twin_t *twin = core;
    struct twin_ingress *ingress = &twin->ingresses[port];
    uint32_t waiting = ingress->tail - ingress->head, outside = ingress->tail - ingress->timed;
    if ((waiting > outside ? waiting : outside) == ingress->capacity) {
        grow(ingress);
    }
    uint32_t beats = twin_beats(tlp);
    ingress->beats += beats;
    *arrival_at(ingress, ingress->tail++) = (struct twin_arrival){
        .tlp = tlp, .edge = twin_next_edge(twin), .end = ingress->beats, .beats = beats, .bar = (uint8_t)bar};
    pcie_tlp_ref(tlp); // one reference for the input, one for the way through
    time_arrivals(ingress);
    if (!ingress->offered && !sim_event_pending(&ingress->route_event)) {
        head_offer(ingress);
    }
}

// --- creation and destruction ---------------------------------------------------------------------------------------

void twin_ingresses_init(peach2_twin_t *twin)
{
    for (unsigned port = 0; port < PEACH2_PORTS; port++) {
        struct twin_ingress *ingress = &twin->ingresses[port];
        ingress->twin = twin;
        ingress->port = (uint8_t)port;
        sim_event_init(&ingress->route_event, route_run, ingress);
    }
}

void twin_ingresses_release(peach2_twin_t *twin)
{
    for (unsigned port = 0; port < PEACH2_PORTS; port++) {
        struct twin_ingress *ingress = &twin->ingresses[port];
        for (; ingress->timed != ingress->tail; ingress->timed++) {
            twin->ops->rx_taken(twin->ctx, port, arrival_at(ingress, ingress->timed)->tlp, sim_now_ps(twin->sim));
        }
    }
}

void twin_ingresses_fini(peach2_twin_t *twin)
{
    for (unsigned port = 0; port < PEACH2_PORTS; port++) {
        struct twin_ingress *ingress = &twin->ingresses[port];
        sim_event_cancel(twin->sim, &ingress->route_event);
        for (; ingress->head != ingress->tail; ingress->head++) {
            pcie_tlp_unref(arrival_at(ingress, ingress->head)->tlp);
        }
        for (; ingress->timed != ingress->tail; ingress->timed++) {
            pcie_tlp_unref(arrival_at(ingress, ingress->timed)->tlp);
        }
        free(ingress->arrivals);
    }
}
