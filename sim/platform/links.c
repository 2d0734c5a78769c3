// The links of a machine: the slots of its nodes, and the cables between boards.
#include <stdio.h>

#include "sim/platform/configs.h"
#include "sim/platform/internal.h"

// TLPs of each class that a root port accepts before the root complex has to wait. An assumption: deep enough that a
// root complex never waits for it, because its own limits are reached first.
#define ROOT_PORT_QUEUE_TLPS 64

// A board at the ends of its cables advertises infinite completion credits as well. Reads carry no data.
struct pcie_end_config plat_link_end(uint64_t tx_ps, uint64_t rx_ps, uint32_t posted_headers, uint32_t posted_data,
                                     uint32_t nonposted_headers, uint32_t tx_queue_tlps)
{
    return (struct pcie_end_config){
        .tx_ps = tx_ps,
        .rx_ps = rx_ps,
        .headers = {[PCIE_POSTED] = posted_headers,
                    [PCIE_NONPOSTED] = nonposted_headers,
                    [PCIE_COMPLETION] = PCIE_CREDITS_INFINITE},
        .data = {[PCIE_POSTED] = posted_data,
                 [PCIE_NONPOSTED] = PCIE_CREDITS_INFINITE,
                 [PCIE_COMPLETION] = PCIE_CREDITS_INFINITE},
        .tx_queue_tlps = tx_queue_tlps,
    };
}

struct pcie_end_config plat_root_port_config(const struct scn_host *host)
{
    return plat_link_end(host->root_port_tx_ps, host->root_port_rx_ps, host->posted_header_credits,
                         host->posted_data_credits, host->nonposted_header_credits, ROOT_PORT_QUEUE_TLPS);
}

struct pcie_link_config plat_link_config(const struct scn_link *link, uint32_t mps_bytes, struct pcie_end_config side0,
                                         struct pcie_end_config side1)
{
    return (struct pcie_link_config){
        .generation = link->generation,
        .lanes = link->lanes,
        .mps_bytes = mps_bytes,
        .flight_ps = link->flight_ps,
        .ack_every_tlps = link->ack_every_tlps,
        .corrupt_every_tlps = link->corrupt_every_tlps,
        .lose_every_acks = link->lose_every_acks,
        .ends = {side0, side1},
    };
}

// --- cables --------------------------------------------------------------------------------------------------------

static enum peach2_port board_port(enum scn_port port)
{
    switch (port) {
    case SCN_PORT_N:
        return PEACH2_PORT_N;
    case SCN_PORT_E:
        return PEACH2_PORT_E;
    case SCN_PORT_W:
        return PEACH2_PORT_W;
    case SCN_PORT_S:
        break;
    }
    return PEACH2_PORT_S;
}

static enum sim_status cable_check(const plat_machine_t *machine, const struct scn_cable *cable,
                                   struct plat_error *error)
{
    const struct scn_node *from = machine->nodes[cable->from_node].config, *to = machine->nodes[cable->to_node].config;
    if (cable->from_port == SCN_PORT_N || cable->to_port == SCN_PORT_N) {
        return plat_error_set(error, SIM_ERR_INVALID, "the cable from %s to %s uses port N, which is the host's",
                              from->name, to->name);
    }
    if (from->board.window_base != to->board.window_base) {
        return plat_error_set(error, SIM_ERR_INVALID,
                              "%s and %s are joined by a cable but have their windows at different addresses",
                              from->name, to->name);
    }
    return SIM_OK;
}

// An end of a board at a cable. Rings keep moving because each free place fits any packet of the ring
// (docs/decisions/0005-whole-board.md). So the receive buffer announces no more packets than it has data for at the
// largest payload: short packets would leave places that are too small for a long one.
static struct pcie_end_config cable_end(const struct scn_board *board, uint32_t mps_bytes)
{
    struct pcie_end_config end = plat_board_end(board);
    uint32_t packets = end.data[PCIE_POSTED] / (mps_bytes / 16);
    if (packets < end.headers[PCIE_POSTED]) {
        end.headers[PCIE_POSTED] = packets;
    }
    return end;
}

static enum sim_status cable_create(plat_machine_t *machine, uint32_t index, struct plat_error *error)
{
    const struct scn_cable *cable = &machine->scenario->cables[index];
    struct plat_node *from = &machine->nodes[cable->from_node], *to = &machine->nodes[cable->to_node];
    enum sim_status status = cable_check(machine, cable, error);
    if (status != SIM_OK) {
        return status;
    }
    char name[SCN_LINK_NAME_MAX];
    scn_cable_name(machine->scenario, index, name);
    uint32_t from_mps = from->config->host.mps_bytes, to_mps = to->config->host.mps_bytes;
    uint32_t mps_bytes = from_mps < to_mps ? from_mps : to_mps;
    struct pcie_link_config link = plat_link_config(&cable->link, mps_bytes, cable_end(&from->config->board, mps_bytes),
                                                    cable_end(&to->config->board, mps_bytes));
    link.is_cable = true;
    status = pcie_link_create(machine->sim, machine->pool, name, &link, &machine->cables[index]);
    if (status != SIM_OK) {
        return plat_error_set(error, status, "the cable %s cannot be built: %s", name, sim_status_text(status));
    }
    peach2_board_connect(from->board, board_port(cable->from_port), pcie_link_end(machine->cables[index], 0));
    peach2_board_connect(to->board, board_port(cable->to_port), pcie_link_end(machine->cables[index], 1));
    return SIM_OK;
}

// --- slots and cables ----------------------------------------------------------------------------------------------

enum sim_status plat_links_create(plat_machine_t *machine, struct plat_error *error)
{
    for (uint32_t i = 0; i < machine->scenario->node_count; i++) {
        enum sim_status status = plat_slots_create(&machine->nodes[i]);
        if (status != SIM_OK) {
            return plat_error_set(error, status, "the slot of %s cannot be built: %s", machine->nodes[i].config->name,
                                  sim_status_text(status));
        }
    }
    for (uint32_t i = 0; i < machine->scenario->cable_count; i++) {
        enum sim_status status = cable_create(machine, i, error);
        if (status != SIM_OK) {
            return status;
        }
    }
    enum sim_status status = plat_ib_fabric_create(machine);
    if (status != SIM_OK) {
        return plat_error_set(error, status, "the InfiniBand switches and cables cannot be built: %s",
                              sim_status_text(status));
    }
    return SIM_OK;
}

void plat_links_destroy(plat_machine_t *machine)
{
    for (uint32_t i = 0; i < machine->scenario->cable_count; i++) {
        if (machine->cables[i] != NULL) {
            pcie_link_destroy(machine->cables[i]);
        }
    }
    plat_ib_fabric_destroy(machine);
    for (uint32_t i = 0; i < machine->scenario->node_count; i++) {
        plat_slots_destroy(&machine->nodes[i]);
    }
}
