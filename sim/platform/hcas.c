// The HCA of a node, its slot, and the InfiniBand switches and cables.
#include <stdio.h>

#include "sim/platform/configs.h"
#include "sim/platform/internal.h"
#include "sim/scenario/ib_fabric.h"

// As `ibv_devinfo -v` prints them for a ConnectX-2 or ConnectX-3 under Linux' mlx4_core with its profile of 2^16 QPs,
// CQs and SRQs, 2^17 regions and 2^15 PDs, less what the firmware keeps for itself. One EQ is a process here (its UAR
// page).
enum {
    QPS = 65464,
    CQS = 65408,
    SRQS = 65472,
    PDS = 32764,
    MRS = 131056,
    EQS = HCA_UAR_PAGES,
    ENTRIES = 16384,
    CQ_ENTRIES = 4194304 // ibv_devinfo: 4194303
};

// Behind the root port after that of the FPGA.
static const uint16_t hca_requester = 0x0300 + 0x100 * SCN_GPUS_MAX;

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static uint32_t ps_per_byte(const struct scn_hca *hca)
{
    return (uint32_t)(SIM_PS_PER_US / hca->port_bytes_per_us);
}

struct hca_config plat_hca_config(const struct scn_hca *hca, const struct scn_host *host)
{
    return (struct hca_config){
        .pcie_generation = hca->slot.generation,
        .pcie_lanes = hca->slot.lanes,
        .pcie_tx_ps = hca->pcie_tx_ps,
        .pcie_rx_ps = hca->pcie_rx_ps,
        .mps_bytes = least(hca->mps_bytes, host->mps_bytes),
        .mrrs_bytes = least(hca->mrrs_bytes, host->mrrs_bytes),
        .read_tags = hca->read_tags,
        .write_tlps = hca->write_tlps,
        .requester_id = hca_requester,
        .port_ps_per_byte = ps_per_byte(hca),
        .port_gap_bytes = hca->port_gap_bytes,
        .port_tx_ps = hca->port_tx_ps,
        .port_rx_ps = hca->port_rx_ps,
        .port_buffer_blocks = hca->port_buffer_bytes / IB_BLOCK_BYTES,
        .max_mtu_bytes = hca->max_mtu_bytes,
        .active_mtu_bytes = hca->active_mtu_bytes,
        .doorbell_ps = hca->doorbell_ps,
        .send_request_ps = hca->send_request_ps,
        .send_packet_ps = hca->send_packet_ps,
        .receive_packet_ps = hca->receive_packet_ps,
        .read_packet_ps = hca->read_packet_ps,
        .write_dispatch_ps = hca->write_dispatch_ps,
        .atomic_ps = hca->atomic_ps,
        .prefetch_requests = hca->prefetch_requests,
        .gather_packets = hca->gather_packets,
        .order_entries = hca->order_entries,
        .window_packets = hca->window_packets,
        .ack_every_packets = hca->ack_every_packets,
        .max_qp = QPS,
        .max_cq = CQS,
        .max_srq = SRQS,
        .max_pd = PDS,
        .max_mr = MRS,
        .max_eq = EQS,
        .max_entries = ENTRIES,
        .max_cq_entries = CQ_ENTRIES,
        .max_inline_bytes = hca->max_inline_bytes,
        .part_id = hca->part_id,
        .responder_reads = hca->responder_reads,
        .initiator_reads = hca->initiator_reads,
        .blueflame_all = hca->blueflame == SCN_BLUEFLAME_ALL,
    };
}

enum sim_status plat_hca_create(struct plat_node *node)
{
    char name[SCN_NAME_MAX + 8];
    snprintf(name, sizeof name, "%s.hca", node->config->name);
    struct hca_config config = plat_hca_config(&node->config->hca, &node->config->host);
    config.adversary = node->machine->adversary;
    return hca_create(node->machine->sim, node->machine->pool, node->machine->packets, name, &config, &node->hca);
}

enum sim_status plat_hca_connect_host(struct plat_node *node)
{
    if (node->hca == NULL) {
        return SIM_OK;
    }
    pcie_end_t *end = pcie_link_end(node->hca_slot, 0);
    unsigned port = pcie_rc_add_port(node->rc, end);
    enum sim_status status = pcie_rc_add_window(node->rc, port, PLAT_HCA_UAR_BASE, hca_uar_bytes());
    if (status == SIM_OK && node->config->hca.socket != 0) {
        status = pcie_rc_set_port_socket(node->rc, port, node->config->hca.socket);
    }
    if (status == SIM_OK) {
        hca_connect_host(node->hca, pcie_link_end(node->hca_slot, 1), PLAT_HCA_UAR_BASE);
        plat_hca_watch(node->hca, node->memory);
    }
    return status;
}

struct pcie_end_config plat_hca_slot_end(const struct plat_node *node)
{
    const struct hca_config config = plat_hca_config(&node->config->hca, &node->config->host);
    return hca_slot_end(&config);
}

// --- switches and cables ---------------------------------------------------------------------------------------------

// What an HCA or a switch brings into a link.
struct ib_port {
    uint64_t bytes_per_us;
    uint32_t gap_bytes, buffer_bytes;
};

static struct ib_port port_of(const struct scn_scenario *scenario, uint32_t place)
{
    if (place >= SCN_NODES_MAX) {
        const struct scn_ib_switch *at = &scenario->ib_switches[place - SCN_NODES_MAX];
        return (struct ib_port){at->port_bytes_per_us, at->port_gap_bytes, at->port_buffer_bytes};
    }
    const struct scn_hca *hca = &scenario->nodes[place].hca;
    return (struct ib_port){hca->port_bytes_per_us, hca->port_gap_bytes, hca->port_buffer_bytes};
}

// Of all HCAs: any of their packets may come through any cable.
static uint32_t mtu_bytes(const struct scn_scenario *scenario)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < scenario->node_count; i++) {
        const struct scn_hca *hca = &scenario->nodes[i].hca;
        most = hca->given && hca->active_mtu_bytes > most ? hca->active_mtu_bytes : most;
    }
    return most;
}

// A place's own name ends at its first dot, whatever else is in it.
static void end_name(const struct scn_scenario *scenario, uint32_t place, char name[SCN_NAME_MAX + 8])
{
    snprintf(name, SCN_NAME_MAX + 8, "%s%s", scn_ib_place_name(scenario, place),
             place < SCN_NODES_MAX ? ".hca" : ".ib");
}

// LIDs are the nodes' numbers from 1 on.
static void end_connect(plat_machine_t *machine, uint32_t place, ib_end_t *end)
{
    if (place < SCN_NODES_MAX) {
        hca_connect_port(machine->nodes[place].hca, end, (uint16_t)(place + 1));
        return;
    }
    (void)ib_switch_add_port(machine->ib_switches[place - SCN_NODES_MAX], end);
}

// The slower of the two sets the rate of the link, as their training does.
static enum sim_status cable_create(plat_machine_t *machine, uint32_t index)
{
    const struct scn_ib_cable *cable = &machine->scenario->ib_cables[index];
    const struct ib_port a = port_of(machine->scenario, cable->from_node),
                         b = port_of(machine->scenario, cable->to_node);
    uint64_t bytes_per_us = a.bytes_per_us < b.bytes_per_us ? a.bytes_per_us : b.bytes_per_us;
    char from[SCN_NAME_MAX + 8], to[SCN_NAME_MAX + 8], name[sizeof from + sizeof to];
    end_name(machine->scenario, cable->from_node, from);
    end_name(machine->scenario, cable->to_node, to);
    snprintf(name, sizeof name, "%s-%s", from, to);
    const struct ib_link_config link = {
        .ps_per_byte = (uint32_t)(SIM_PS_PER_US / bytes_per_us),
        .flight_ps = cable->flight_ps,
        .buffer_blocks = {a.buffer_bytes / IB_BLOCK_BYTES, b.buffer_bytes / IB_BLOCK_BYTES},
        .mtu_bytes = mtu_bytes(machine->scenario),
        .gap_bytes = a.gap_bytes > b.gap_bytes ? a.gap_bytes : b.gap_bytes,
    };
    enum sim_status status = ib_link_create(machine->sim, machine->packets, name, &link, &machine->ib_cables[index]);
    if (status == SIM_OK) {
        end_connect(machine, cable->from_node, ib_link_end(machine->ib_cables[index], 0));
        end_connect(machine, cable->to_node, ib_link_end(machine->ib_cables[index], 1));
    }
    return status;
}

// A switch's ports have the order of its cables.
static unsigned port_number(const struct scn_scenario *scenario, uint32_t place, uint32_t cable)
{
    unsigned port = 0;
    for (uint32_t i = 0; i < cable; i++) {
        port += scenario->ib_cables[i].from_node == place || scenario->ib_cables[i].to_node == place;
    }
    return port;
}

static enum sim_status routes_set(plat_machine_t *machine, uint32_t index)
{
    const struct scn_scenario *scenario = machine->scenario;
    enum sim_status status = SIM_OK;
    for (uint32_t node = 0; node < scenario->node_count && status == SIM_OK; node++) {
        uint32_t cable = scn_ib_first_cable(scenario, SCN_IB_SWITCH(index), node, NULL);
        if (cable != SCN_IB_NO_CABLE) {
            status = ib_switch_set_route(machine->ib_switches[index], (uint16_t)(node + 1),
                                         port_number(scenario, SCN_IB_SWITCH(index), cable));
        }
    }
    return status;
}

// As the subnet manager would have it: each switch forwards a group's packets towards its members.
static void group_changed(void *ctx, hca_t *hca, uint16_t mlid, bool joins)
{
    plat_machine_t *machine = ctx;
    for (uint32_t node = 0; node < machine->scenario->node_count; node++) {
        for (uint32_t i = 0; machine->nodes[node].hca == hca && i < machine->scenario->ib_switch_count; i++) {
            (void)ib_switch_group_change(machine->ib_switches[i], mlid, (uint16_t)(node + 1), joins);
        }
    }
}

enum sim_status plat_ib_fabric_create(plat_machine_t *machine)
{
    const struct scn_scenario *scenario = machine->scenario;
    enum sim_status status = SIM_OK;
    for (uint32_t i = 0; i < scenario->ib_switch_count && status == SIM_OK; i++) {
        const struct scn_ib_switch *named = &scenario->ib_switches[i];
        status =
            ib_switch_create(machine->sim, machine->packets, named->name, named->latency_ps, &machine->ib_switches[i]);
    }
    for (uint32_t i = 0; i < scenario->ib_cable_count && status == SIM_OK; i++) {
        status = cable_create(machine, i);
    }
    for (uint32_t i = 0; i < scenario->ib_switch_count && status == SIM_OK; i++) {
        status = routes_set(machine, i);
    }
    for (uint32_t i = 0; i < scenario->node_count; i++) {
        if (machine->nodes[i].hca != NULL) {
            hca_set_joined(machine->nodes[i].hca, group_changed, machine);
        }
    }
    return status;
}

void plat_ib_fabric_destroy(plat_machine_t *machine)
{
    for (uint32_t i = 0; i < SCN_IB_SWITCHES_MAX; i++) {
        ib_switch_destroy(machine->ib_switches[i]);
    }
    for (uint32_t i = 0; i < SCN_IB_CABLES_MAX; i++) {
        if (machine->ib_cables[i] != NULL) {
            ib_link_destroy(machine->ib_cables[i]);
        }
    }
}
