#include "sim/cli/topo_folded.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "sim/scenario/units.h"

#define RANGE_MAX (2 * SCN_NAME_MAX + 8)

// "node0 .. node15", or one name.
static void range_format(const char *first, const char *last, char range[RANGE_MAX])
{
    snprintf(range, RANGE_MAX, strcmp(first, last) == 0 ? "%s" : "%s .. %s", first, last);
}

// --- sub-clusters --------------------------------------------------------------------------------------------------

struct members {
    const struct scn_scenario *scenario;
    const struct scn_routes *routes;
};

static bool nodes_alike(const struct scn_node *a, const struct scn_node *b)
{
    return strcmp(a->preset, b->preset) == 0 && a->hca.given == b->hca.given && a->board.given == b->board.given;
}

static bool links_alike(const struct scn_link *a, const struct scn_link *b)
{
    return a->generation == b->generation && a->lanes == b->lanes && a->flight_ps == b->flight_ps;
}

static bool plugs_alike(const struct members *members, uint32_t a, uint32_t b)
{
    const struct scn_routes *routes = members->routes;
    for (unsigned port = 0; port < SCN_PORTS; port++) {
        const struct scn_plug *of_a = &routes->plugs[a][port], *of_b = &routes->plugs[b][port];
        if (of_a->node == SCN_NODE_NONE || of_b->node == SCN_NODE_NONE) {
            if (of_a->node != of_b->node) {
                return false;
            }
        } else if (routes->numbers[of_a->node] != routes->numbers[of_b->node] || of_a->port != of_b->port ||
                   !links_alike(&members->scenario->cables[of_a->cable].link,
                                &members->scenario->cables[of_b->cable].link)) {
            return false;
        }
    }
    return true;
}

static bool sub_clusters_alike(const struct members *members, uint32_t a, uint32_t b)
{
    const struct scn_sub_cluster *of_a = &members->routes->sub_clusters[a], *of_b = &members->routes->sub_clusters[b];
    bool alike = of_a->node_count == of_b->node_count;
    for (uint32_t i = 0; alike && i < of_a->node_count && i < SCN_WINDOW_NODES_MAX; i++) {
        const struct scn_node *nodes = members->scenario->nodes;
        alike = nodes_alike(&nodes[of_a->nodes[i]], &nodes[of_b->nodes[i]]) &&
                plugs_alike(members, of_a->nodes[i], of_b->nodes[i]);
    }
    return alike;
}

static uint32_t cables_of(const struct members *members, const struct scn_sub_cluster *of)
{
    uint32_t ends = 0;
    for (uint32_t i = 0; i < of->node_count && i < SCN_WINDOW_NODES_MAX; i++) {
        for (unsigned port = 0; port < SCN_PORTS; port++) {
            ends += members->routes->plugs[of->nodes[i]][port].node != SCN_NODE_NONE;
        }
    }
    return ends / 2;
}

static void shape_format(const struct members *members, uint32_t index, char shape[RANGE_MAX])
{
    const struct scn_sub_cluster *of = &members->routes->sub_clusters[index];
    uint32_t cables = cables_of(members, of);
    struct scn_rings rings;
    scn_rings_find(members->routes, index, &rings);
    if (of->node_count == 1) {
        snprintf(shape, RANGE_MAX, "one node");
    } else if (rings.count == 2 && rings.sizes[0] == rings.sizes[1] && 2 * rings.sizes[0] == of->node_count &&
               2 * cables == 3 * of->node_count) {
        snprintf(shape, RANGE_MAX, "two rings of %" PRIu32, rings.sizes[0]);
    } else if (rings.count == 1 && rings.sizes[0] == of->node_count && cables == of->node_count) {
        snprintf(shape, RANGE_MAX, "a ring of %" PRIu32, of->node_count);
    } else {
        snprintf(shape, RANGE_MAX, "%" PRIu32 " nodes, %" PRIu32 " cable%s", of->node_count, cables,
                 cables == 1 ? "" : "s");
    }
}

static void hops_format(const struct scn_sub_cluster *of, char hops[RANGE_MAX])
{
    uint32_t most = 0, sum = 0, pairs = of->node_count * (of->node_count - 1);
    for (uint32_t i = 0; i < of->node_count * of->node_count; i++) {
        uint32_t count = of->hops[i / of->node_count][i % of->node_count];
        most = count > most ? count : most;
        sum += count;
    }
    hops[0] = '\0';
    if (pairs > 0) {
        snprintf(hops, RANGE_MAX, ", at most %" PRIu32 " hop%s, on average %.2f", most, most == 1 ? "" : "s",
                 (double)sum / pairs);
    }
}

static void sub_clusters_line(const struct members *members, uint32_t first, uint32_t end)
{
    const struct scn_sub_cluster *of = &members->routes->sub_clusters[first],
                                 *last = &members->routes->sub_clusters[end - 1];
    const struct scn_node *nodes = members->scenario->nodes, *node = &nodes[of->nodes[0]];
    char range[RANGE_MAX], shape[RANGE_MAX], hops[RANGE_MAX];
    range_format(node->name, nodes[last->nodes[last->node_count - 1]].name, range);
    shape_format(members, first, shape);
    hops_format(of, hops);
    printf("  %4" PRIu32 "  %-28s  %s%s  %s%s%s\n", end - first, range, shape, hops, node->preset,
           node->preset[0] != '\0' && node->hca.given ? ", " : "", node->hca.given ? "HCA" : "");
}

void topo_sub_clusters_print(const struct scn_scenario *scenario, const struct scn_routes *routes)
{
    const struct members members = {scenario, routes};
    printf("\nsub-clusters\n");
    for (uint32_t first = 0, end; first < routes->sub_cluster_count; first = end) {
        end = first + 1;
        while (end < routes->sub_cluster_count && sub_clusters_alike(&members, first, end)) {
            end++;
        }
        sub_clusters_line(&members, first, end);
    }
}

// --- InfiniBand ----------------------------------------------------------------------------------------------------

static uint32_t nodes_at(const struct scn_ib_fabric *ib, uint32_t ib_switch)
{
    uint32_t nodes = 0;
    for (uint32_t port = 0; port < scn_ib_port_count(ib, ib_switch); port++) {
        nodes += scn_ib_plug(ib, ib_switch, port)->vertex < SCN_NODES_MAX;
    }
    return nodes;
}

// The letters of the name before its number.
static size_t stem_length(const char *name)
{
    return strcspn(name, "0123456789");
}

static bool switches_alike(const struct scn_scenario *scenario, const struct scn_ib_fabric *ib, uint32_t a, uint32_t b)
{
    const struct scn_ib_switch *of_a = &scenario->ib_switches[a], *of_b = &scenario->ib_switches[b];
    size_t stem = stem_length(of_a->name);
    return stem == stem_length(of_b->name) && strncmp(of_a->name, of_b->name, stem) == 0 &&
           of_a->ports == of_b->ports && of_a->latency_ps == of_b->latency_ps && nodes_at(ib, a) == nodes_at(ib, b);
}

static void switches_line(const struct scn_scenario *scenario, const struct scn_ib_fabric *ib, uint32_t first,
                          uint32_t end)
{
    char range[RANGE_MAX], latency[SCN_QUANTITY_MAX], used[32];
    uint32_t least = UINT32_MAX, most = 0, nodes = nodes_at(ib, first);
    for (uint32_t i = first; i < end; i++) {
        uint32_t ports = scn_ib_port_count(ib, i);
        least = ports < least ? ports : least;
        most = ports > most ? ports : most;
    }
    snprintf(used, sizeof used, least == most ? "%" PRIu32 : "%" PRIu32 " to %" PRIu32, least, most);
    range_format(scenario->ib_switches[first].name, scenario->ib_switches[end - 1].name, range);
    scn_quantity_format(SCN_QUANTITY_TIME, scenario->ib_switches[first].latency_ps, latency);
    printf("  %4" PRIu32 "  %-28s  %s of %" PRIu32 " ports, %" PRIu32 " node%s, %s\n", end - first, range, used,
           scenario->ib_switches[first].ports, nodes, nodes == 1 ? "" : "s", latency);
}

void topo_switches_print(const struct scn_scenario *scenario, const struct scn_ib_fabric *ib)
{
    if (ib->switch_count > 0) {
        printf("\nInfiniBand switches\n");
    }
    for (uint32_t first = 0, end; first < ib->switch_count; first = end) {
        end = first + 1;
        while (end < ib->switch_count && switches_alike(scenario, ib, first, end)) {
            end++;
        }
        switches_line(scenario, ib, first, end);
    }
}

void topo_ib_routes_print(const struct scn_scenario *scenario, const struct scn_ib_fabric *ib)
{
    uint32_t most = 0;
    uint64_t sum = 0, pairs = 0;
    for (uint32_t from = 0; from < ib->node_count; from++) {
        for (uint32_t to = 0; to < ib->node_count; to++) {
            uint32_t cables = from == to ? UINT32_MAX : scn_ib_cables(ib, from, to);
            if (cables != UINT32_MAX) {
                most = cables > most ? cables : most;
                sum += cables;
                pairs++;
            }
        }
    }
    printf("\nInfiniBand cables between nodes: at most %" PRIu32 ", on average %.2f\n", most,
           pairs > 0 ? (double)sum / (double)pairs : 0.0);
    if (ib->up_down) {
        printf("InfiniBand routes: up*/down*, from the root %s\n", scenario->ib_switches[ib->order[0]].name);
    } else {
        printf("InfiniBand routes: shortest\n");
    }
}
