// Rules about nodes and cables that no single key can state.
#include "sim/scenario/loader.h"

#include <inttypes.h>
#include <string.h>

#include "sim/scenario/names.h"
#include "sim/scenario/routes.h"

static void check_node_names(struct scn_loader *loader)
{
    const struct scn_scenario *scenario = loader->scenario;
    for (uint32_t i = 0; i < scenario->node_count; i++) {
        const char *name = scenario->nodes[i].name;
        struct scn_location location = scn_loader_location(loader, name, &scenario->nodes[i]);
        if (name[0] == '\0') {
            continue;
        }
        if (!scn_name_is_plain(name, false)) {
            scn_mistakes_add(&loader->mistakes, location, "name: '%s' may hold letters, digits, - and _ only", name);
        }
        if (scn_loader_find_node(loader, name) < i) {
            scn_mistakes_add(&loader->mistakes, location, "two nodes are called '%s'", name);
        }
    }
}

static void check_scenario_name(struct scn_loader *loader)
{
    const struct scn_scenario *scenario = loader->scenario;
    if (scenario->name[0] == '.' || strchr(scenario->name, '/') != NULL) {
        scn_mistakes_add(&loader->mistakes, scn_loader_location(loader, scenario->name, scenario),
                         "name: may not hold '/' nor start with '.'");
    }
}

// --- devices in slots ------------------------------------------------------------------------------------------------

// The field of the device's key of that name; NULL: it has no such key.
static const uint32_t *field_find(const struct scn_kind *kind, const char *name, const void *device)
{
    void *base = (void *)(uintptr_t)device;
    const struct scn_key *key = scn_key_find(kind, name, &base);
    return key != NULL ? (const uint32_t *)((const char *)base + key->offset) : NULL;
}

// A receive buffer that cannot hold the largest packet blocks its link for ever.
static void check_credits(struct scn_loader *loader, const uint32_t *credits, const void *owner, uint32_t mps_bytes)
{
    if (*credits != 0 && *credits < mps_bytes / 16) {
        scn_mistakes_add(&loader->mistakes, scn_loader_location(loader, credits, owner),
                         "posted_data_credits: %" PRIu32 " of 16 B cannot hold one packet of mps %" PRIu32 " B",
                         *credits, mps_bytes);
    }
}

static void check_device(struct scn_loader *loader, const struct scn_node *node, const struct scn_kind *kind,
                         const void *device, uint32_t mps_bytes)
{
    const uint32_t *credits = field_find(kind, "posted_data_credits", device);
    const uint32_t *socket = field_find(kind, "socket", device);
    if (credits != NULL) {
        check_credits(loader, credits, node, mps_bytes);
    }
    if (socket != NULL && *socket != 0 && node->host.qpi_peer_lines_max == 0) {
        scn_mistakes_add(&loader->mistakes, scn_loader_location(loader, socket, node),
                         "socket: the host of '%s' has one socket; a second one needs qpi_peer_lines_max", node->name);
    }
}

static void check_devices(struct scn_loader *loader, const struct scn_node *node, uint32_t mps_bytes)
{
    if (node->board.given) {
        check_device(loader, node, &scn_kind_board, &node->board, mps_bytes);
        if (node->slot.generation == 0 && !scn_loader_is_bad(loader, &node->slot, true)) {
            scn_mistakes_add(&loader->mistakes, scn_loader_location(loader, &node->slot, node),
                             "missing key 'slot' in node: a board needs the link that joins it with its host");
        }
    }
    for (uint32_t i = 0; i < node->gpu_count; i++) {
        check_device(loader, node, &scn_kind_gpu, &node->gpus[i], mps_bytes);
    }
#define DEVICE(id, ID, name, kind_doc, key_doc)                                                                        \
    if (node->id.given) {                                                                                              \
        check_device(loader, node, &scn_kind_##id, &node->id, mps_bytes);                                              \
    }
#include "sim/scenario/devices.def"
}

// A link may carry packets of any node, so the largest payload of all nodes counts.
static void check_slots(struct scn_loader *loader)
{
    const struct scn_scenario *scenario = loader->scenario;
    uint32_t mps_bytes = 0;
    for (uint32_t i = 0; i < scenario->node_count; i++) {
        if (scenario->nodes[i].host.mps_bytes > mps_bytes) {
            mps_bytes = scenario->nodes[i].host.mps_bytes;
        }
    }
    for (uint32_t i = 0; i < scenario->node_count; i++) {
        const struct scn_node *node = &scenario->nodes[i];
        check_credits(loader, &node->host.posted_data_credits, node, mps_bytes);
        check_devices(loader, node, mps_bytes);
    }
}

// --- cables ----------------------------------------------------------------------------------------------------------

static bool check_end(struct scn_loader *loader, const struct scn_cable *cable, bool is_from)
{
    enum scn_port port = is_from ? cable->from_port : cable->to_port;
    const uint32_t *field = is_from ? &cable->from_node : &cable->to_node;
    if (port == SCN_PORT_N) {
        scn_mistakes_add(&loader->mistakes, scn_loader_location(loader, field, cable),
                         "%s: port N is the host's port; a cable joins E, W or S", is_from ? "from" : "to");
        return false;
    }
    const struct scn_node *node = &loader->scenario->nodes[*field];
    if (!node->board.given && !scn_loader_is_bad(loader, node, true) &&
        !scn_loader_is_bad(loader, &node->board, true)) {
        scn_mistakes_add(&loader->mistakes, scn_loader_location(loader, field, cable), "%s: node '%s' has no board",
                         is_from ? "from" : "to", node->name);
        return false;
    }
    return true;
}

static void check_cable(struct scn_loader *loader, const struct scn_cable *cable)
{
    bool ends = check_end(loader, cable, true);
    ends = check_end(loader, cable, false) && ends;
    struct scn_location location = scn_loader_location(loader, &cable->to_node, cable);
    if (cable->from_node == cable->to_node) {
        scn_mistakes_add(&loader->mistakes, location, "to: the cable joins node '%s' to itself",
                         loader->scenario->nodes[cable->from_node].name);
    } else if (ends && cable->from_port == cable->to_port && cable->from_port != SCN_PORT_S) {
        scn_mistakes_add(
            &loader->mistakes, location,
            "to: the cable joins two %s (%s to %s); a link needs one of each: E is an endpoint, W a root complex, "
            "S either",
            cable->from_port == SCN_PORT_E ? "endpoints" : "root complexes", scn_port_name(cable->from_port),
            scn_port_name(cable->to_port));
    }
}

// *user: the line of the cable that uses the port; 0: free.
static void check_port_free(struct scn_loader *loader, const uint32_t *node_field, const struct scn_cable *cable,
                            enum scn_port port, unsigned *user)
{
    struct scn_location location = scn_loader_location(loader, node_field, cable);
    if (*user != 0) {
        scn_mistakes_add(&loader->mistakes, location, "%s: port %s.%s already has a cable (line %u); take another one",
                         node_field == &cable->from_node ? "from" : "to", loader->scenario->nodes[*node_field].name,
                         scn_port_name(port), *user);
    }
    *user = location.line != 0 ? location.line : 1;
}

// Returns whether every cable has two good ends.
static bool check_cables(struct scn_loader *loader)
{
    const struct scn_scenario *scenario = loader->scenario;
    bool good = !scn_loader_is_bad(loader, &scenario->cable_count, true) &&
                !scn_loader_is_bad(loader, &scenario->node_count, true);
    unsigned users[SCN_NODES_MAX][4] = {{0}};
    for (uint32_t i = 0; i < scenario->cable_count; i++) {
        const struct scn_cable *cable = &scenario->cables[i];
        if (scn_loader_is_bad(loader, &cable->from_node, false) || scn_loader_is_bad(loader, &cable->to_node, false) ||
            cable->from_node >= scenario->node_count || cable->to_node >= scenario->node_count) {
            good = false;
            continue;
        }
        check_cable(loader, cable);
        check_port_free(loader, &cable->from_node, cable, cable->from_port, &users[cable->from_node][cable->from_port]);
        check_port_free(loader, &cable->to_node, cable, cable->to_port, &users[cable->to_node][cable->to_port]);
    }
    return good;
}

// Boards that cables join share one map of the window. Each is compared with the first node that cables join it with.
static void check_windows(struct scn_loader *loader)
{
    const struct scn_scenario *scenario = loader->scenario;
    struct scn_routes *routes = scn_routes_find(scenario);
    for (uint32_t i = 0; i < scenario->node_count; i++) {
        const struct scn_sub_cluster *of = &routes->sub_clusters[routes->sub_cluster_of[i]];
        const struct scn_node *first = &scenario->nodes[of->joined ? of->nodes[0] : i];
        const uint64_t *base = &scenario->nodes[i].board.window_base;
        if (*base != 0 && first->board.window_base != 0 && *base != first->board.window_base) {
            scn_mistakes_add(&loader->mistakes, scn_loader_location(loader, base, &scenario->nodes[i]),
                             "window_base: 0x%" PRIx64 " differs from that of '%s'; joined boards share one window",
                             *base, first->name);
        }
    }
    scn_routes_free(routes);
}

void scn_check_hardware(struct scn_loader *loader)
{
    size_t before = loader->mistakes.count;
    check_scenario_name(loader);
    check_node_names(loader);
    check_slots(loader);
    scn_check_hcas(loader);
    bool good = check_cables(loader);
    if (good) {
        check_windows(loader);
    }
    if (good && loader->mistakes.count == before) {
        scn_check_routes(loader);
    }
}
