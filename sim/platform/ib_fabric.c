// The InfiniBand switches, their routes, and the cables between them and the HCAs of nodes.
#include "sim/platform/internal.h"

// The properties of a port of an HCA or a switch.
struct ib_port {
    uint64_t bytes_per_us;
    uint32_t gap_bytes, buffer_bytes;
};

static struct ib_port port_of(const struct scn_scenario *scenario, uint32_t vertex)
{
    if (vertex >= SCN_NODES_MAX) {
        const struct scn_ib_switch *at = &scenario->ib_switches[vertex - SCN_NODES_MAX];
        return (struct ib_port){at->port_bytes_per_us, at->port_gap_bytes, at->port_buffer_bytes};
    }
    const struct scn_hca *hca = &scenario->nodes[vertex].hca;
    return (struct ib_port){hca->port_bytes_per_us, hca->port_gap_bytes, hca->port_buffer_bytes};
}

// The largest of all HCAs, because any of their packets may pass any cable.
static uint32_t mtu_find(const struct scn_scenario *scenario)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < scenario->node_count; i++) {
        const struct scn_hca *hca = &scenario->nodes[i].hca;
        most = hca->given && hca->active_mtu_bytes > most ? hca->active_mtu_bytes : most;
    }
    return most;
}

// The LID of a node is its index plus 1.
static void end_connect(plat_machine_t *machine, uint32_t vertex, ib_end_t *end)
{
    if (vertex < SCN_NODES_MAX) {
        hca_connect_port(machine->nodes[vertex].hca, end, (uint16_t)(vertex + 1));
        return;
    }
    (void)ib_switch_add_port(machine->ib_switches[vertex - SCN_NODES_MAX], end);
}

// The slower end sets the rate of the link, as in link training.
static enum sim_status cable_create(plat_machine_t *machine, uint32_t index, uint32_t mtu_bytes)
{
    const struct scn_ib_cable *cable = &machine->scenario->ib_cables[index];
    const struct ib_port a = port_of(machine->scenario, cable->from_node),
                         b = port_of(machine->scenario, cable->to_node);
    uint64_t bytes_per_us = a.bytes_per_us < b.bytes_per_us ? a.bytes_per_us : b.bytes_per_us;
    char name[SCN_LINK_NAME_MAX];
    scn_ib_cable_name(machine->scenario, index, name);
    const struct ib_link_config link = {
        .ps_per_byte = (uint32_t)(SIM_PS_PER_US / bytes_per_us),
        .flight_ps = cable->flight_ps,
        .buffer_blocks = {a.buffer_bytes / IB_BLOCK_BYTES, b.buffer_bytes / IB_BLOCK_BYTES},
        .mtu_bytes = mtu_bytes,
        .gap_bytes = a.gap_bytes > b.gap_bytes ? a.gap_bytes : b.gap_bytes,
    };
    enum sim_status status = ib_link_create(machine->sim, machine->packets, name, &link, &machine->ib_cables[index]);
    if (status == SIM_OK) {
        end_connect(machine, cable->from_node, ib_link_end(machine->ib_cables[index], 0));
        end_connect(machine, cable->to_node, ib_link_end(machine->ib_cables[index], 1));
    }
    return status;
}

static enum sim_status routes_set(plat_machine_t *machine, uint32_t index)
{
    enum sim_status status = SIM_OK;
    for (uint32_t node = 0; node < machine->scenario->node_count && status == SIM_OK; node++) {
        uint8_t port = scn_ib_port(machine->ib_fabric, index, node);
        if (port != SCN_IB_NO_PORT) {
            status = ib_switch_set_route(machine->ib_switches[index], (uint16_t)(node + 1), port);
        }
    }
    return status;
}

// Acts as the subnet manager: each switch forwards a group's packets towards its members, along a spanning tree.
static void group_changed(void *ctx, hca_t *hca, uint16_t mlid, bool joins)
{
    const struct plat_node *node = ctx;
    const plat_machine_t *machine = node->machine;
    uint8_t ports[SCN_IB_SWITCHES_MAX];
    (void)hca;
    scn_ib_tree_ports(machine->ib_fabric, node->index, ports);
    for (uint32_t i = 0; i < machine->scenario->ib_switch_count; i++) {
        if (ports[i] != SCN_IB_NO_PORT) {
            (void)ib_switch_group_change(machine->ib_switches[i], mlid, ports[i], joins);
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
    uint32_t mtu_bytes = mtu_find(scenario);
    for (uint32_t i = 0; i < scenario->ib_cable_count && status == SIM_OK; i++) {
        status = cable_create(machine, i, mtu_bytes);
    }
    for (uint32_t i = 0; i < scenario->ib_switch_count && status == SIM_OK; i++) {
        status = routes_set(machine, i);
    }
    for (uint32_t i = 0; i < scenario->node_count; i++) {
        if (machine->nodes[i].hca != NULL) {
            hca_set_joined(machine->nodes[i].hca, group_changed, &machine->nodes[i]);
        }
    }
    return status;
}

void plat_ib_fabric_destroy(plat_machine_t *machine)
{
    for (uint32_t i = 0; i < machine->scenario->ib_switch_count; i++) {
        ib_switch_destroy(machine->ib_switches[i]);
    }
    for (uint32_t i = 0; i < machine->scenario->ib_cable_count; i++) {
        if (machine->ib_cables[i] != NULL) {
            ib_link_destroy(machine->ib_cables[i]);
        }
    }
}
