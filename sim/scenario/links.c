#include "sim/scenario/links.h"

#include <stdio.h>

#include "sim/scenario/ib_fabric.h"
#include "sim/scenario/topology.h"

// --- ends -----------------------------------------------------------------------------------------------------------

static void end_name(const struct scn_scenario *scenario, uint32_t node, enum scn_port port, char end[SCN_LINK_END_MAX])
{
    snprintf(end, SCN_LINK_END_MAX, "%s.%s", scenario->nodes[node].name, scn_port_name(port));
}

static void ib_end_name(const struct scn_scenario *scenario, uint32_t vertex, char end[SCN_LINK_END_MAX])
{
    snprintf(end, SCN_LINK_END_MAX, "%s.%s", scn_ib_vertex_name(scenario, vertex),
             vertex < SCN_NODES_MAX ? "hca" : "ib");
}

static uint64_t ib_end_rate(const struct scn_scenario *scenario, uint32_t vertex)
{
    return vertex < SCN_NODES_MAX ? scenario->nodes[vertex].hca.port_bytes_per_us
                                  : scenario->ib_switches[vertex - SCN_NODES_MAX].port_bytes_per_us;
}

void scn_cable_ends(const struct scn_scenario *scenario, uint32_t index, char root[SCN_LINK_END_MAX],
                    char endpoint[SCN_LINK_END_MAX])
{
    const struct scn_cable *cable = &scenario->cables[index];
    bool from_is_root = scn_cable_from_is_root(cable);
    end_name(scenario, cable->from_node, cable->from_port, from_is_root ? root : endpoint);
    end_name(scenario, cable->to_node, cable->to_port, from_is_root ? endpoint : root);
}

// --- links ----------------------------------------------------------------------------------------------------------

static void cable_get(const struct scn_scenario *scenario, uint32_t index, struct scn_named_link *link)
{
    const struct scn_cable *cable = &scenario->cables[index];
    *link = (struct scn_named_link){.kind = SCN_LINK_CABLE, .pcie = &cable->link};
    end_name(scenario, cable->from_node, cable->from_port, link->ends[0]);
    end_name(scenario, cable->to_node, cable->to_port, link->ends[1]);
    snprintf(link->name, sizeof link->name, "%s-%s", link->ends[0], link->ends[1]);
}

// Cables with the same ends are counted.
static unsigned ib_cable_number(const struct scn_scenario *scenario, uint32_t index)
{
    const struct scn_ib_cable *cable = &scenario->ib_cables[index];
    unsigned number = 1;
    for (const struct scn_ib_cable *before = scenario->ib_cables; before < cable; before++) {
        number += before->from_node == cable->from_node && before->to_node == cable->to_node;
    }
    return number;
}

static void ib_cable_get(const struct scn_scenario *scenario, uint32_t index, struct scn_named_link *link)
{
    const struct scn_ib_cable *cable = &scenario->ib_cables[index];
    uint64_t from = ib_end_rate(scenario, cable->from_node), to = ib_end_rate(scenario, cable->to_node);
    *link = (struct scn_named_link){.kind = SCN_LINK_IB_CABLE, .bytes_per_us = from < to ? from : to};
    ib_end_name(scenario, cable->from_node, link->ends[0]);
    ib_end_name(scenario, cable->to_node, link->ends[1]);
    unsigned number = ib_cable_number(scenario, index);
    if (number == 1) {
        snprintf(link->name, sizeof link->name, "%s-%s", link->ends[0], link->ends[1]);
    } else {
        snprintf(link->name, sizeof link->name, "%s-%s#%u", link->ends[0], link->ends[1], number);
    }
}

void scn_cable_name(const struct scn_scenario *scenario, uint32_t index, char name[SCN_LINK_NAME_MAX])
{
    struct scn_named_link link;
    cable_get(scenario, index, &link);
    snprintf(name, SCN_LINK_NAME_MAX, "%s", link.name);
}

void scn_ib_cable_name(const struct scn_scenario *scenario, uint32_t index, char name[SCN_LINK_NAME_MAX])
{
    struct scn_named_link link;
    ib_cable_get(scenario, index, &link);
    snprintf(name, SCN_LINK_NAME_MAX, "%s", link.name);
}

struct slots {
    const char *node;
    scn_link_visit_fn visit;
    void *ctx;
};

// device: its name in components. named: whether it is a part of the slot's name.
static void slot_visit(const struct slots *slots, const char *device, bool named, const struct scn_link *pcie)
{
    struct scn_named_link link = {.kind = SCN_LINK_SLOT, .pcie = pcie};
    snprintf(link.ends[0], sizeof link.ends[0], "%s", slots->node);
    snprintf(link.ends[1], sizeof link.ends[1], "%s.%s", slots->node, device);
    snprintf(link.name, sizeof link.name, "%s%s%s.slot", slots->node, named ? "." : "", named ? device : "");
    slots->visit(slots->ctx, &link);
}

void scn_slots_visit(const struct scn_scenario *scenario, uint32_t node, scn_link_visit_fn visit, void *ctx)
{
    const struct scn_node *at = &scenario->nodes[node];
    const struct slots slots = {.node = at->name, .visit = visit, .ctx = ctx};
    if (at->board.given) {
        slot_visit(&slots, "board", false, &at->slot);
    }
    for (uint32_t i = 0; i < at->gpu_count; i++) {
        char device[8];
        snprintf(device, sizeof device, "gpu%u", (unsigned)i % SCN_GPUS_MAX);
        slot_visit(&slots, device, true, &at->gpus[i].slot);
    }
#define DEVICE(id, ID, name, kind_doc, key_doc)                                                                        \
    if (at->id.given) {                                                                                                \
        slot_visit(&slots, #id, true, &at->id.slot);                                                                   \
    }
#include "sim/scenario/devices.def"
}

void scn_links_visit(const struct scn_scenario *scenario, scn_link_visit_fn visit, void *ctx)
{
    struct scn_named_link link;
    for (uint32_t i = 0; i < scenario->node_count; i++) {
        scn_slots_visit(scenario, i, visit, ctx);
    }
    for (uint32_t i = 0; i < scenario->cable_count; i++) {
        cable_get(scenario, i, &link);
        visit(ctx, &link);
    }
    for (uint32_t i = 0; i < scenario->ib_cable_count; i++) {
        ib_cable_get(scenario, i, &link);
        visit(ctx, &link);
    }
}
