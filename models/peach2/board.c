#include "models/peach2/board.h"

#include <stdlib.h>
#include <string.h>

#include "models/peach2/ddr3.h"
#include "sim/kernel/counter.h"

enum { BAR_REGISTERS = 0, BAR_WINDOW = 2 };

enum counter { UNCONNECTED, UNCLAIMED_WRITES, UNCLAIMED_READS, LOST, STALLS, RESETS, COUNTERS };

static const struct sim_counter_desc counter_descs[COUNTERS] = {
    [UNCONNECTED] = {"unconnected_tlps", "TLPs", "sent by the chip to a port without a cable, dropped"},
    [UNCLAIMED_WRITES] = {"unclaimed_writes", "TLPs", "writes from the host that hit no BAR, dropped"},
    [UNCLAIMED_READS] = {"unclaimed_reads", "TLPs",
                         "reads from the host that hit no BAR, answered Unsupported Request"},
    [LOST] = {"lost_tlps", "TLPs", "lost because a link went down"},
    [RESETS] = {"resets", "events", "times the board was reset while programs ran"},
    [STALLS] = {"transmit_stalls", "stalls", "times a hard IP had no room and stalled the chip"},
};

struct port {
    peach2_board_t *board;
    unsigned index;
    pcie_end_t *end; // NULL: not connected
    // TLPs that the link refused, in order. The chip is stalled meanwhile.
    pcie_tlp_t *first, *last;
};

struct peach2_board {
    sim_t *sim;
    char *name;
    uint64_t bar0_base, window_base, beat_ps;
    const struct peach2_core_ops *ops;
    void *core;
    struct port ports[PEACH2_PORTS];
    peach2_ddr3_t *ddr3; // NULL: packets wait in the hard IPs' buffers
    uint64_t counters[COUNTERS];
};

// --- creation and destruction --------------------------------------------------------------------------------------

enum sim_status peach2_board_create(sim_t *sim, const char *name, uint64_t bar0_base, uint64_t window_base,
                                    uint64_t beat_ps, peach2_board_t **board_out)
{
    peach2_board_t *board = calloc(1, sizeof *board);
    if (board == NULL) {
        return SIM_ERR_NO_MEMORY;
    }
    board->name = strdup(name);
    if (board->name == NULL) {
        free(board);
        return SIM_ERR_NO_MEMORY;
    }
    board->sim = sim;
    board->bar0_base = bar0_base;
    board->window_base = window_base;
    board->beat_ps = beat_ps;
    for (unsigned i = 0; i < PEACH2_PORTS; i++) {
        board->ports[i].board = board;
        board->ports[i].index = i;
    }
    enum sim_status status = sim_counters_register(sim, name, counter_descs, board->counters, COUNTERS);
    if (status != SIM_OK) {
        free(board->name);
        free(board);
        return status;
    }
    *board_out = board;
    return SIM_OK;
}

static pcie_tlp_t *held_take(struct port *port)
{
    pcie_tlp_t *tlp = port->first;
    port->first = tlp->next;
    tlp->next = NULL;
    return tlp;
}

void peach2_board_destroy(peach2_board_t *board)
{
    if (board == NULL) {
        return;
    }
    for (unsigned i = 0; i < PEACH2_PORTS; i++) {
        while (board->ports[i].first != NULL) {
            pcie_tlp_unref(held_take(&board->ports[i]));
        }
    }
    peach2_ddr3_destroy(board->ddr3);
    sim_counters_unregister(board->sim, board->counters);
    free(board->name);
    free(board);
}

void peach2_board_set_core(peach2_board_t *board, const struct peach2_core_ops *ops, void *core)
{
    board->ops = ops;
    board->core = core;
}

// --- chip to link --------------------------------------------------------------------------------------------------

// When the packet whose last beat moves now moved its first beat: one header beat, then payload on the lanes of its
// address.
static uint64_t packet_begun_ps(const peach2_board_t *board, const pcie_tlp_t *tlp)
{
    uint64_t now_ps = sim_now_ps(board->sim);
    uint32_t lane_bytes = tlp->kind == PCIE_TLP_CPLD ? tlp->lower_address & 12u : (uint32_t)(tlp->address & 12u);
    uint32_t bytes = pcie_tlp_payload_bytes(tlp);
    uint64_t took_ps = bytes == 0 ? 0 : (lane_bytes + bytes + 15) / 16 * board->beat_ps;
    return took_ps < now_ps ? now_ps - took_ps : 0;
}

// The link takes the TLP, or the port holds it and stalls the chip until the link has room again. Packets that the chip
// still finishes, and answers made here, queue up behind it.
static void port_send(struct port *port, pcie_tlp_t *tlp)
{
    bool waiting = port->first != NULL;
    if (!waiting && pcie_end_offer_begun(port->end, tlp, packet_begun_ps(port->board, tlp))) {
        return;
    }
    tlp->next = NULL;
    if (waiting) {
        port->last->next = tlp;
    } else {
        port->first = tlp;
    }
    port->last = tlp;
    if (!waiting) {
        port->board->counters[STALLS]++;
        port->board->ops->set_tx_ready(port->board->core, port->index, false);
    }
}

static void link_ready(void *ctx, pcie_end_t *end)
{
    struct port *port = ctx;
    if (port->first == NULL) {
        return;
    }
    while (port->first != NULL) {
        pcie_tlp_t *rest = port->first->next;
        if (!pcie_end_offer(end, port->first)) {
            return;
        }
        port->first = rest;
    }
    port->board->ops->set_tx_ready(port->board->core, port->index, true);
}

void peach2_board_tx(void *ctx, unsigned port_index, pcie_tlp_t *tlp)
{
    peach2_board_t *board = ctx;
    struct port *port = &board->ports[port_index];
    if (port->end == NULL) {
        board->counters[UNCONNECTED]++;
        pcie_tlp_unref(tlp);
        return;
    }
    port_send(port, tlp);
}

// --- link to chip --------------------------------------------------------------------------------------------------

static bool lies_in(uint64_t address, uint64_t base, uint64_t bytes)
{
    return address >= base && address - base < bytes;
}

// The BAR that the request hit. false: none, as when a host programs its root complex differently from the board.
static bool bar_decode(const peach2_board_t *board, const pcie_tlp_t *tlp, unsigned *bar_out)
{
    switch (tlp->kind) {
    case PCIE_TLP_CPL:
    case PCIE_TLP_CPLD:
        *bar_out = BAR_REGISTERS; // completions are routed by their requester; the chip ignores the BAR
        return true;
    case PCIE_TLP_MRD:
    case PCIE_TLP_MWR:
        break;
    }
    if (lies_in(tlp->address, board->bar0_base, PEACH2_BAR0_BYTES)) {
        *bar_out = BAR_REGISTERS;
        return true;
    }
    *bar_out = BAR_WINDOW;
    return lies_in(tlp->address, board->window_base, PEACH2_WINDOW_BYTES);
}

static void request_refuse(struct port *port, pcie_tlp_t *tlp)
{
    peach2_board_t *board = port->board;
    pcie_end_release(port->end, tlp);
    if (tlp->kind == PCIE_TLP_MRD) {
        board->counters[UNCLAIMED_READS]++;
        port_send(port, pcie_tlp_error(tlp, 0, PCIE_CPL_UR));
    } else {
        board->counters[UNCLAIMED_WRITES]++;
    }
    pcie_tlp_unref(tlp);
}

static void link_receive(void *ctx, pcie_end_t *end, pcie_tlp_t *tlp)
{
    struct port *port = ctx;
    (void)end;
    unsigned bar = BAR_WINDOW;
    if (port->index == PEACH2_PORT_N && !bar_decode(port->board, tlp, &bar)) {
        request_refuse(port, tlp);
        return;
    }
    if (port->board->ddr3 == NULL || !peach2_ddr3_keeps(port->board->ddr3, port->index, bar, tlp)) {
        port->board->ops->rx(port->board->core, port->index, bar, tlp);
    }
}

void peach2_board_rx_taken(void *ctx, unsigned port_index, pcie_tlp_t *tlp)
{
    peach2_board_t *board = ctx;
    if (board->ddr3 == NULL || !peach2_ddr3_taken(board->ddr3, port_index, sim_now_ps(board->sim))) {
        pcie_end_release(board->ports[port_index].end, tlp);
    }
    pcie_tlp_unref(tlp);
}

void peach2_board_rx_taken_at(void *ctx, unsigned port_index, pcie_tlp_t *tlp, uint64_t taken_ps)
{
    peach2_board_t *board = ctx;
    if (board->ddr3 == NULL || !peach2_ddr3_taken(board->ddr3, port_index, taken_ps)) {
        pcie_end_release_at(board->ports[port_index].end, tlp, taken_ps);
    }
    pcie_tlp_unref(tlp);
}

// --- packet buffer ---------------------------------------------------------------------------------------------------

static void ddr3_deliver(void *ctx, unsigned port, unsigned bar, pcie_tlp_t *tlp)
{
    peach2_board_t *board = ctx;
    board->ops->rx(board->core, port, bar, tlp);
}

static void ddr3_release(void *ctx, unsigned port, pcie_tlp_t *tlp)
{
    pcie_end_release(((peach2_board_t *)ctx)->ports[port].end, tlp);
}

enum sim_status peach2_board_add_ddr3(peach2_board_t *board, const struct peach2_ddr3_config *config)
{
    static const struct peach2_ddr3_ops ops = {.deliver = ddr3_deliver, .release = ddr3_release};
    return peach2_ddr3_create(board->sim, board->name, config, &ops, board, &board->ddr3);
}

// The link lost what it had accepted; packets held here are offered to it, and it drops them.
static void link_down(void *ctx, pcie_end_t *end, unsigned lost_tlps)
{
    struct port *port = ctx;
    port->board->counters[LOST] += lost_tlps;
    link_ready(port, end);
}

void peach2_board_reset(peach2_board_t *board)
{
    for (unsigned i = 0; i < PEACH2_PORTS; i++) {
        if (board->ports[i].end != NULL) {
            pcie_end_flush(board->ports[i].end);
        }
    }
    board->ops->reset(board->core);
    if (board->ddr3 != NULL) {
        peach2_ddr3_reset(board->ddr3);
    }
    board->counters[RESETS]++;
}

static void link_room(void *ctx, pcie_end_t *end, bool room)
{
    struct port *port = ctx;
    (void)end;
    port->board->ops->set_tx_room(port->board->core, port->index, room);
}

static void link_writes_on(void *ctx, pcie_end_t *end, struct flow_path *path, uint64_t address, uint64_t bytes)
{
    struct port *port = ctx;
    const peach2_board_t *board = port->board;
    (void)end;
    bool in_window = lies_in(address, board->window_base, PEACH2_WINDOW_BYTES);
    if (board->ops->writes_on == NULL || board->ddr3 != NULL || !in_window) {
        path->refused = true;
        return;
    }
    board->ops->writes_on(board->core, port->index, BAR_WINDOW, path, address, bytes);
}

static const struct pcie_end_ops end_ops = {
    .receive = link_receive, .ready = link_ready, .room = link_room, .down = link_down, .writes_on = link_writes_on};

pcie_end_t *peach2_board_end(void *ctx, unsigned port)
{
    return ((peach2_board_t *)ctx)->ports[port].end;
}

void peach2_board_connect(peach2_board_t *board, enum peach2_port port, pcie_end_t *end)
{
    board->ports[port].end = end;
    pcie_end_attach(end, &end_ops, &board->ports[port]);
}
