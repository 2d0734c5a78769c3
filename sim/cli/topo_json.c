#include "sim/cli/topo_json.h"

#include <inttypes.h>

#include "sim/kernel/text.h"
#include "sim/scenario/links.h"

static void member_print(FILE *out, const char *before, const char *name, const char *text)
{
    fprintf(out, "%s\"%s\":", before, name);
    sim_text_quote(out, text);
}

static void nodes_print(FILE *out, const struct scn_scenario *scenario)
{
    fputs(",\n\"nodes\":[", out);
    for (uint32_t i = 0; i < scenario->node_count; i++) {
        const struct scn_node *node = &scenario->nodes[i];
        member_print(out, i > 0 ? ",\n{" : "\n{", "name", node->name);
        member_print(out, ",", "preset", node->preset);
        fprintf(out, ",\"board\":%s,\"hca\":%s,\"gpus\":%" PRIu32 "}", node->board.given ? "true" : "false",
                node->hca.given ? "true" : "false", node->gpu_count);
    }
    fputc(']', out);
}

static void cables_print(FILE *out, const struct scn_scenario *scenario)
{
    fputs(",\n\"cables\":[", out);
    for (uint32_t i = 0; i < scenario->cable_count; i++) {
        const struct scn_cable *cable = &scenario->cables[i];
        char root[SCN_LINK_END_MAX], endpoint[SCN_LINK_END_MAX];
        scn_cable_ends(scenario, i, root, endpoint);
        member_print(out, i > 0 ? ",\n{" : "\n{", "root", root);
        member_print(out, ",", "endpoint", endpoint);
        fprintf(out, ",\"generation\":%" PRIu32 ",\"lanes\":%" PRIu32 ",\"flight_ps\":%" PRIu64 "}",
                cable->link.generation, cable->link.lanes, cable->link.flight_ps);
    }
    fputc(']', out);
}

static void ib_print(FILE *out, const struct scn_scenario *scenario)
{
    fputs(",\n\"ib_switches\":[", out);
    for (uint32_t i = 0; i < scenario->ib_switch_count; i++) {
        const struct scn_ib_switch *named = &scenario->ib_switches[i];
        member_print(out, i > 0 ? ",\n{" : "\n{", "name", named->name);
        fprintf(out, ",\"ports\":%" PRIu32 ",\"latency_ps\":%" PRIu64 "}", named->ports, named->latency_ps);
    }
    fputs("],\n\"ib_cables\":[", out);
    for (uint32_t i = 0; i < scenario->ib_cable_count; i++) {
        const struct scn_ib_cable *cable = &scenario->ib_cables[i];
        member_print(out, i > 0 ? ",\n{" : "\n{", "from", scn_ib_vertex_name(scenario, cable->from_node));
        member_print(out, ",", "to", scn_ib_vertex_name(scenario, cable->to_node));
        fprintf(out, ",\"flight_ps\":%" PRIu64 "}", cable->flight_ps);
    }
    fputc(']', out);
}

static void hops_print(FILE *out, const struct scn_scenario *scenario, const struct scn_routes *routes,
                       const struct scn_ib_fabric *ib)
{
    fprintf(out, ",\n\"%s\":[", routes != NULL ? "hops" : "ib_hops");
    for (uint32_t from = 0; from < scenario->node_count; from++) {
        fputs(from > 0 ? ",\n[" : "\n[", out);
        for (uint32_t to = 0; to < scenario->node_count; to++) {
            uint32_t hops = routes != NULL ? scn_routes_hops(routes, from, to) : scn_ib_cables(ib, from, to);
            fputs(to > 0 ? "," : "", out);
            if (hops == SCN_UNREACHED) {
                fputs("null", out);
            } else {
                fprintf(out, "%" PRIu32, hops);
            }
        }
        fputc(']', out);
    }
    fputc(']', out);
}

void topo_json_print(const struct scn_scenario *scenario, const struct scn_routes *routes,
                     const struct scn_ib_fabric *ib, FILE *out)
{
    member_print(out, "{", "name", scenario->name);
    member_print(out, ",", "title", scenario->title);
    nodes_print(out, scenario);
    cables_print(out, scenario);
    ib_print(out, scenario);
    hops_print(out, scenario, routes, NULL);
    hops_print(out, scenario, NULL, ib);
    fputs("}\n", out);
}
