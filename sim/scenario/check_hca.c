// Rules about HCAs, InfiniBand switches and cables.
#include "sim/scenario/loader.h"

#include <inttypes.h>
#include <string.h>

#include "sim/scenario/ib_fabric.h"
#include "sim/scenario/names.h"

#define CIRCLE_BYTES_MAX 2048

// --- switches --------------------------------------------------------------------------------------------------------

static void check_switch(struct scn_loader *loader, uint32_t index)
{
    const struct scn_scenario *scenario = loader->scenario;
    const struct scn_ib_switch *named = &scenario->ib_switches[index];
    struct scn_location location = scn_loader_location(loader, named->name, named);
    if (named->name[0] == '\0') {
        return;
    }
    if (!scn_name_is_plain(named->name, false)) {
        scn_mistakes_add(&loader->mistakes, location, "name: '%s' may hold letters, digits, - and _ only", named->name);
    }
    bool taken = scn_loader_find_node(loader, named->name) != SCN_NODE_NONE;
    for (uint32_t i = 0; i < index; i++) {
        taken = taken || strcmp(scenario->ib_switches[i].name, named->name) == 0;
    }
    if (taken) {
        scn_mistakes_add(&loader->mistakes, location, "name: another node or switch is called '%s'", named->name);
    }
}

// --- cables ----------------------------------------------------------------------------------------------------------

struct fabric {
    uint32_t used[SCN_NODES_MAX + SCN_IB_SWITCHES_MAX]; // ports of each vertex that have a cable
};

static void check_end(struct scn_loader *loader, const struct scn_ib_cable *cable, const uint32_t *end,
                      struct fabric *fabric)
{
    const struct scn_scenario *scenario = loader->scenario;
    struct scn_location location = scn_loader_location(loader, end, cable);
    const char *key = end == &cable->from_node ? "from" : "to";
    uint32_t used = fabric->used[*end]++;
    if (*end >= SCN_NODES_MAX) {
        const struct scn_ib_switch *at = &scenario->ib_switches[*end - SCN_NODES_MAX];
        if (used == at->ports && at->ports != 0) {
            scn_mistakes_add(&loader->mistakes, location, "%s: all %" PRIu32 " ports of switch '%s' have a cable", key,
                             at->ports, at->name);
        }
        return;
    }
    const struct scn_node *node = &scenario->nodes[*end];
    if (!node->hca.given && !scn_loader_is_bad(loader, node, true) && !scn_loader_is_bad(loader, &node->hca, true)) {
        scn_mistakes_add(&loader->mistakes, location, "%s: node '%s' has no HCA", key, node->name);
    }
    if (used > 0) {
        scn_mistakes_add(&loader->mistakes, location, "%s: the HCA of '%s' already has a cable", key, node->name);
    }
}

static void check_mtu(struct scn_loader *loader, const struct scn_node *node)
{
    const struct scn_hca *hca = &node->hca;
    if (hca->given && !scn_loader_is_bad(loader, hca, true) && hca->active_mtu_bytes > hca->max_mtu_bytes) {
        scn_mistakes_add(&loader->mistakes, scn_loader_location(loader, &hca->active_mtu_bytes, hca),
                         "active_mtu: %u B of the HCA of '%s' is more than its max_mtu, %u B", hca->active_mtu_bytes,
                         node->name, hca->max_mtu_bytes);
    }
}

static bool is_end_good(const struct scn_loader *loader, const uint32_t *end)
{
    return !scn_loader_is_bad(loader, end, false) && scn_ib_vertex_name(loader->scenario, *end)[0] != '\0';
}

static void check_cables(struct scn_loader *loader)
{
    const struct scn_scenario *scenario = loader->scenario;
    struct fabric fabric = {{0}};
    for (uint32_t i = 0; i < scenario->ib_cable_count; i++) {
        const struct scn_ib_cable *cable = &scenario->ib_cables[i];
        bool from = is_end_good(loader, &cable->from_node), to = is_end_good(loader, &cable->to_node);
        if (from) {
            check_end(loader, cable, &cable->from_node, &fabric);
        }
        if (to && cable->to_node != cable->from_node) {
            check_end(loader, cable, &cable->to_node, &fabric);
        }
        if (from && to && cable->from_node == cable->to_node) {
            scn_mistakes_add(&loader->mistakes, scn_loader_location(loader, &cable->to_node, cable),
                             "to: the cable joins '%s' to itself", scn_ib_vertex_name(scenario, cable->to_node));
        }
    }
}

// Only shortest routes that the scenario asks for may have a cycle.
static void check_routes(struct scn_loader *loader)
{
    const struct scn_scenario *scenario = loader->scenario;
    char circle[CIRCLE_BYTES_MAX];
    struct scn_ib_fabric *fabric = scn_ib_fabric_find(scenario);
    if (!fabric->safe && !scn_ib_is_safe(fabric, scenario, circle, sizeof circle)) {
        scn_mistakes_add(&loader->mistakes,
                         scn_loader_location(loader, &scenario->ib_routing, &scenario->ib_cable_count),
                         "ib_routing: on shortest routes full buffers can wait for one another in a circle (%s); take "
                         "up-down or auto",
                         circle);
    }
    scn_ib_fabric_free(fabric);
}

void scn_check_hcas(struct scn_loader *loader)
{
    const struct scn_scenario *scenario = loader->scenario;
    size_t before = loader->mistakes.count;
    for (uint32_t i = 0; i < scenario->node_count; i++) {
        check_mtu(loader, &scenario->nodes[i]);
    }
    for (uint32_t i = 0; i < scenario->ib_switch_count; i++) {
        check_switch(loader, i);
    }
    check_cables(loader);
    if (loader->mistakes.count == before && scenario->ib_switch_count > 1) {
        check_routes(loader);
    }
}
