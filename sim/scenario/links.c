#include "sim/scenario/links.h"

#include <stdio.h>

#include "sim/scenario/ib_fabric.h"
#include "sim/scenario/topology.h"

void scn_cable_name(const struct scn_scenario *scenario, uint32_t index, char name[SCN_LINK_NAME_MAX])
{
    const struct scn_cable *cable = &scenario->cables[index];
    snprintf(name, SCN_LINK_NAME_MAX, "%s.%s-%s.%s", scenario->nodes[cable->from_node].name,
             scn_port_name(cable->from_port), scenario->nodes[cable->to_node].name, scn_port_name(cable->to_port));
}

static const char *ib_end(uint32_t vertex)
{
    return vertex < SCN_NODES_MAX ? "hca" : "ib";
}

void scn_ib_cable_name(const struct scn_scenario *scenario, uint32_t index, char name[SCN_LINK_NAME_MAX])
{
    const struct scn_ib_cable *cable = &scenario->ib_cables[index];
    snprintf(name, SCN_LINK_NAME_MAX, "%s.%s-%s.%s", scn_ib_vertex_name(scenario, cable->from_node),
             ib_end(cable->from_node), scn_ib_vertex_name(scenario, cable->to_node), ib_end(cable->to_node));
}

static uint64_t ib_rate(const struct scn_scenario *scenario, uint32_t vertex)
{
    return vertex < SCN_NODES_MAX ? scenario->nodes[vertex].hca.port_bytes_per_us
                                  : scenario->ib_switches[vertex - SCN_NODES_MAX].port_bytes_per_us;
}

struct slots {
    const char *node;
    struct scn_named_link link;
    scn_link_visit_fn visit;
    void *ctx;
};

static void slot_visit(struct slots *slots, const char *device, const struct scn_link *pcie)
{
    snprintf(slots->link.name, sizeof slots->link.name, "%s%s.slot", slots->node, device);
    slots->link.pcie = pcie;
    slots->visit(slots->ctx, &slots->link);
}

void scn_slots_visit(const struct scn_scenario *scenario, uint32_t node, scn_link_visit_fn visit, void *ctx)
{
    const struct scn_node *at = &scenario->nodes[node];
    struct slots slots = {.node = at->name, .visit = visit, .ctx = ctx};
    slots.link = (struct scn_named_link){.kind = SCN_LINK_SLOT, .from = node, .to = node};
    if (at->board.given) {
        slot_visit(&slots, "", &at->slot);
    }
    for (uint32_t i = 0; i < at->gpu_count; i++) {
        char device[16];
        snprintf(device, sizeof device, ".gpu%u", (unsigned)i);
        slot_visit(&slots, device, &at->gpus[i].slot);
    }
#define DEVICE(id, ID, name, kind_doc, key_doc)                                                                        \
    if (at->id.given) {                                                                                                \
        slot_visit(&slots, "." #id, &at->id.slot);                                                                     \
    }
#include "sim/scenario/devices.def"
}

void scn_links_visit(const struct scn_scenario *scenario, scn_link_visit_fn visit, void *ctx)
{
    for (uint32_t i = 0; i < scenario->node_count; i++) {
        scn_slots_visit(scenario, i, visit, ctx);
    }
    for (uint32_t i = 0; i < scenario->cable_count; i++) {
        const struct scn_cable *cable = &scenario->cables[i];
        struct scn_named_link link = {
            .kind = SCN_LINK_CABLE, .from = cable->from_node, .to = cable->to_node, .pcie = &cable->link};
        scn_cable_name(scenario, i, link.name);
        visit(ctx, &link);
    }
    for (uint32_t i = 0; i < scenario->ib_cable_count; i++) {
        const struct scn_ib_cable *cable = &scenario->ib_cables[i];
        uint64_t from = ib_rate(scenario, cable->from_node), to = ib_rate(scenario, cable->to_node);
        struct scn_named_link link = {.kind = SCN_LINK_IB_CABLE,
                                      .from = cable->from_node,
                                      .to = cable->to_node,
                                      .bytes_per_us = from < to ? from : to};
        scn_ib_cable_name(scenario, i, link.name);
        visit(ctx, &link);
    }
}
