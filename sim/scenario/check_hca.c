// Rules about HCAs and their cables.
#include "sim/scenario/loader.h"

#include <inttypes.h>

static void check_slot(struct scn_loader *loader, const struct scn_node *node)
{
    if (node->hca.given && node->hca.socket != 0 && node->host.qpi_peer_lines_max == 0) {
        scn_mistakes_add(&loader->mistakes, scn_loader_place(loader, &node->hca.socket, node),
                         "socket: the host of '%s' has one socket; a second one needs qpi_peer_lines_max", node->name);
    }
}

// *used: the HCA has a cable.
static void check_end(struct scn_loader *loader, const struct scn_ib_cable *cable, const uint32_t *end, bool *used)
{
    const struct scn_node *node = &loader->scenario->nodes[*end];
    struct scn_place place = scn_loader_place(loader, end, cable);
    const char *key = end == &cable->from_node ? "from" : "to";
    if (!node->hca.given && !scn_loader_is_bad(loader, node, true) && !scn_loader_is_bad(loader, &node->hca, true)) {
        scn_mistakes_add(&loader->mistakes, place, "%s: node '%s' has no HCA", key, node->name);
    }
    if (*used) {
        scn_mistakes_add(&loader->mistakes, place, "%s: the HCA of '%s' already has a cable", key, node->name);
    }
    *used = true;
}

void scn_check_hcas(struct scn_loader *loader)
{
    const struct scn_scenario *scenario = loader->scenario;
    bool used[SCN_NODES_MAX] = {false};
    for (uint32_t i = 0; i < scenario->node_count; i++) {
        check_slot(loader, &scenario->nodes[i]);
    }
    for (uint32_t i = 0; i < scenario->ib_cable_count; i++) {
        const struct scn_ib_cable *cable = &scenario->ib_cables[i];
        if (!scn_loader_is_bad(loader, &cable->from_node, false) && cable->from_node < scenario->node_count) {
            check_end(loader, cable, &cable->from_node, &used[cable->from_node]);
        }
        if (!scn_loader_is_bad(loader, &cable->to_node, false) && cable->to_node < scenario->node_count) {
            check_end(loader, cable, &cable->to_node, &used[cable->to_node]);
        }
    }
}
