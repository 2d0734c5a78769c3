// `tcasim topo`: prints and draws the fabric of a scenario.
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "sim/cli/load.h"
#include "sim/cli/output.h"
#include "sim/cli/topo_folded.h"
#include "sim/cli/topo_json.h"
#include "sim/platform/routes.h"
#include "sim/report/report.h"
#include "sim/report/topology_svg.h"
#include "sim/scenario/ib_fabric.h"
#include "sim/scenario/links.h"
#include "sim/scenario/routes.h"
#include "sim/scenario/units.h"

#define TEXT_MAX 512

struct topo_options {
    const char *out;
    struct cli_list sets;
    bool full, json;
};

static const struct cli_option options[] = {
    {"out", "FILE.svg", "write the drawing to FILE.svg (default: results/<scenario name>/topology.svg)",
     CLI_OPTION_TEXT, offsetof(struct topo_options, out)},
    {"full", NULL, "print every node, cable and register also of more than 16 nodes", CLI_OPTION_FLAG,
     offsetof(struct topo_options, full)},
    {"json", NULL, "print nodes, cables, switches and hops as one JSON object; draw only with --out", CLI_OPTION_FLAG,
     offsetof(struct topo_options, json)},
    {"set", "PATH=VALUE", "override a key; may be given several times", CLI_OPTION_LIST,
     offsetof(struct topo_options, sets)},
};

static const struct cli_syntax syntax = {
    .usage = "tcasim topo FILE.yaml [--out FILE.svg] [--full | --json] [--set PATH=VALUE]...",
    .doc = "Prints the nodes, switches and cables of a scenario, the number of cables between any two nodes, and the\n"
           "route registers that each board's driver programs. Draws it as SVG. Runs nothing. More than 16 nodes are\n"
           "folded: sub-clusters and switches that are alike are one line.",
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .operands_min = 1,
    .operands_max = 1,
    .operand = "a scenario file",
};

static int name_width(const struct scn_scenario *scenario)
{
    size_t widest = 0;
    for (uint32_t i = 0; i < scenario->node_count; i++) {
        size_t length = strlen(scenario->nodes[i].name);
        widest = length > widest ? length : widest;
    }
    return (int)widest;
}

static void nodes_print(const struct scn_scenario *scenario)
{
    int width = name_width(scenario);
    printf("\nnodes\n");
    for (uint32_t i = 0; i < scenario->node_count; i++) {
        const struct scn_node *node = &scenario->nodes[i];
        const char *comma = node->preset[0] != '\0' && node->hca.given ? ", " : "";
        printf("  %2" PRIu32 "  %-*s  %s%s%s\n", i, width, node->name, node->preset, comma,
               node->hca.given ? "HCA" : "");
    }
}

static void cables_print(const struct scn_scenario *scenario)
{
    int width = name_width(scenario) + 2;
    if (scenario->cable_count == 0) {
        return;
    }
    printf("\ncables\n      %-*s  %-*s\n", width, "root", width, "endpoint");
    for (uint32_t i = 0; i < scenario->cable_count; i++) {
        const struct scn_cable *cable = &scenario->cables[i];
        char root[SCN_LINK_END_MAX], endpoint[SCN_LINK_END_MAX], flight[SCN_QUANTITY_MAX];
        scn_quantity_format(SCN_QUANTITY_TIME, cable->link.flight_ps, flight);
        scn_cable_ends(scenario, i, root, endpoint);
        printf("  %2" PRIu32 "  %-*s  %-*s  Gen%" PRIu32 " x%" PRIu32 ", %s\n", i, width, root, width, endpoint,
               cable->link.generation, cable->link.lanes, flight);
    }
}

static void ib_switches_print(const struct scn_scenario *scenario)
{
    if (scenario->ib_switch_count > 0) {
        printf("\nInfiniBand switches\n");
    }
    for (uint32_t i = 0; i < scenario->ib_switch_count; i++) {
        const struct scn_ib_switch *named = &scenario->ib_switches[i];
        char latency[SCN_QUANTITY_MAX];
        uint32_t used = 0;
        for (uint32_t j = 0; j < scenario->ib_cable_count; j++) {
            used += scenario->ib_cables[j].from_node == SCN_IB_SWITCH(i);
            used += scenario->ib_cables[j].to_node == SCN_IB_SWITCH(i);
        }
        scn_quantity_format(SCN_QUANTITY_TIME, named->latency_ps, latency);
        printf("  %2" PRIu32 "  %s  %" PRIu32 " of %" PRIu32 " ports, %s\n", i, named->name, used, named->ports,
               latency);
    }
}

static void ib_cables_print(const struct scn_scenario *scenario)
{
    if (scenario->ib_cable_count > 0) {
        printf("\nInfiniBand cables\n");
    }
    for (uint32_t i = 0; i < scenario->ib_cable_count; i++) {
        const struct scn_ib_cable *cable = &scenario->ib_cables[i];
        char flight[SCN_QUANTITY_MAX];
        scn_quantity_format(SCN_QUANTITY_TIME, cable->flight_ps, flight);
        printf("  %2" PRIu32 "  %s - %s  %s\n", i, scn_ib_vertex_name(scenario, cable->from_node),
               scn_ib_vertex_name(scenario, cable->to_node), flight);
    }
}

// The routes of both networks.
struct topo {
    const struct scn_scenario *scenario;
    struct scn_routes *routes;
    struct scn_ib_fabric *ib;
};

// The number of cables between any two nodes.
static void hops_print(const struct topo *topo, bool ib, const char *title)
{
    const struct scn_scenario *scenario = topo->scenario;
    int width = name_width(scenario);
    uint32_t most = 0, pairs = 0, sum = 0;
    printf("\n%s, from the node on the left\n  %-*s", title, width, "");
    for (uint32_t i = 0; i < scenario->node_count; i++) {
        printf("  %s", scenario->nodes[i].name);
    }
    for (uint32_t from = 0; from < scenario->node_count; from++) {
        printf("\n  %-*s", width, scenario->nodes[from].name);
        for (uint32_t to = 0; to < scenario->node_count; to++) {
            uint32_t hops = ib ? scn_ib_cables(topo->ib, from, to) : scn_routes_hops(topo->routes, from, to);
            int column = 2 + (int)strlen(scenario->nodes[to].name);
            if (from == to || hops == SCN_UNREACHED) {
                printf("%*s", column, "-");
                continue;
            }
            printf("%*" PRIu32, column, hops);
            most = hops > most ? hops : most;
            sum += hops;
            pairs++;
        }
    }
    printf("\n  at most %" PRIu32 ", on average %.2f\n", most, pairs > 0 ? (double)sum / pairs : 0.0);
}

static bool routes_print(const struct topo *topo, uint32_t node)
{
    const struct scn_scenario *scenario = topo->scenario;
    static const char *const ports[] = {"N", "E", "W", "S", "board"};
    struct peach2_route routes[PEACH2_ROUTES_MAX];
    const struct peach2_routing routing = plat_routing_of(topo->routes, node);
    if (peach2_routes_make(&routing, routes) != 0) {
        cli_error("the routes of %s do not fit the board's registers", scenario->nodes[node].name);
        return false;
    }
    printf("\nroutes of %s\n  entry  port   %-12s  %-12s  %s\n", scenario->nodes[node].name, "mask", "lower", "upper");
    for (unsigned i = 0; i < PEACH2_ROUTES_MAX; i++) {
        const struct peach2_route *route = &routes[i];
        if (route->enabled) {
            printf("  %5u  %-5s  0x%010" PRIx64 "  0x%010" PRIx64 "  0x%010" PRIx64 "\n", i, ports[route->port],
                   route->mask, route->lower, route->upper);
        }
    }
    return true;
}

static void heading_print(const struct scn_scenario *scenario)
{
    printf("%s: %s\n%" PRIu32 " nodes, %" PRIu32 " cables", scenario->name, scenario->title, scenario->node_count,
           scenario->cable_count);
    if (scenario->ib_cable_count > 0) {
        printf(", %" PRIu32 " InfiniBand cables", scenario->ib_cable_count);
    }
    putchar('\n');
}

static bool all_print(const struct topo *topo)
{
    const struct scn_scenario *scenario = topo->scenario;
    bool good = true;
    nodes_print(scenario);
    cables_print(scenario);
    if (scenario->cable_count > 0 || scenario->ib_cable_count == 0) {
        hops_print(topo, false, "hops");
    }
    ib_switches_print(scenario);
    ib_cables_print(scenario);
    if (scenario->ib_cable_count > 0) {
        hops_print(topo, true, "InfiniBand cables between nodes");
    }
    for (uint32_t node = 0; node < scenario->node_count; node++) {
        good = (!scenario->nodes[node].board.given || routes_print(topo, node)) && good;
    }
    return good;
}

static void folded_print(const struct topo *topo)
{
    topo_sub_clusters_print(topo->scenario, topo->routes);
    topo_switches_print(topo->scenario, topo->ib);
    if (topo->scenario->ib_cable_count > 0) {
        topo_ib_routes_print(topo->scenario, topo->ib);
    }
}

static bool print(const struct topo *topo, bool full)
{
    heading_print(topo->scenario);
    if (topo->scenario->node_count <= SCN_WINDOW_NODES_MAX || full) {
        return all_print(topo);
    }
    folded_print(topo);
    return true;
}

static bool draw(const struct scn_scenario *scenario, const struct topo_options *given, const char *file,
                 const struct cli_paths *paths)
{
    const char *out = given->out;
    char path[PATH_MAX], error[PATH_MAX + TEXT_MAX];
    enum sim_status status = SIM_OK;
    if (out == NULL) {
        snprintf(path, sizeof path, "results/%s", scenario->name);
        status = report_directory_create(path, error, sizeof error);
        snprintf(path, sizeof path, "results/%s/topology.svg", scenario->name);
        out = path;
    }
    if (status == SIM_OK && !cli_output_usable(out, file, paths)) {
        return false;
    }
    if (status == SIM_OK) {
        status = report_topology_write(scenario, out, error, sizeof error);
    }
    if (status != SIM_OK) {
        cli_error("%s", error);
        return false;
    }
    if (!given->json) {
        printf("\ndrawing: %s\n", out);
    }
    return true;
}

static bool show(const struct scn_scenario *scenario, const struct topo_options *given, const char *file,
                 const struct cli_paths *paths)
{
    struct topo topo = {scenario, scn_routes_find(scenario), scn_ib_fabric_find(scenario)};
    bool good = true;
    if (given->json) {
        topo_json_print(scenario, topo.routes, topo.ib, stdout);
    } else {
        good = print(&topo, given->full);
    }
    good = good && ((given->json && given->out == NULL) || draw(scenario, given, file, paths));
    scn_routes_free(topo.routes);
    scn_ib_fabric_free(topo.ib);
    return good;
}

enum cli_exit cli_topo(int argc, char **argv)
{
    struct topo_options given = {0};
    struct cli_list files = {0};
    enum cli_exit result = CLI_EXIT_OK;
    enum cli_parsed parsed = cli_options_parse(&syntax, argc, argv, &given, &files);
    if (parsed == CLI_PARSED_RUN) {
        struct cli_paths paths;
        cli_paths_find(&paths);
        struct scn_scenario *scenario = cli_scenario_load(files.items[0], &paths, &given.sets);
        bool good = scenario != NULL && show(scenario, &given, files.items[0], &paths);
        result = good ? CLI_EXIT_OK : CLI_EXIT_INPUT;
        scn_free(scenario);
    }
    cli_list_free(&given.sets);
    cli_list_free(&files);
    return parsed == CLI_PARSED_WRONG ? CLI_EXIT_INPUT : result;
}
