// The InfiniBand switches, their routes, and the cables between them and the HCAs of nodes.
#include "sim/platform/internal.h"
#include "sim/scenario/ib_fabric.h"

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
static uint32_t mtu_bytes(const struct scn_scenario *scenario)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < scenario->node_count; i++) {
        const struct scn_hca *hca = &scenario->nodes[i].hca;
        most = hca->given && hca->active_mtu_bytes > most ? hca->active_mtu_bytes : most;
    }
    return most;
}

// The name of a vertex ends at the first dot of the result.
static void end_name(const struct scn_scenario *scenario, uint32_t vertex, char name[SCN_NAME_MAX + 8])
{
    snprintf(name, SCN_NAME_MAX + 8, "%s%s", scn_ib_vertex_name(scenario, vertex),
             vertex < SCN_NODES_MAX ? ".hca" : ".ib");
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

// Ports of a switch are numbered in the order of its cables.
static unsigned port_number(const struct scn_scenario *scenario, uint32_t vertex, uint32_t cable)
{
    unsigned port = 0;
    for (uint32_t i = 0; i < cable; i++) {
        port += scenario->ib_cables[i].from_node == vertex || scenario->ib_cables[i].to_node == vertex;
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

// Acts as the subnet manager: each switch forwards a group's packets towards its members.
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
