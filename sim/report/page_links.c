#include "sim/report/page_links.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "sim/report/files.h"
#include "sim/report/json.h"
#include "sim/report/topology_svg.h"
#include "sim/scenario/links.h"

#define RATE_BYTES (UINT64_C(1) << 20) // over which the rate of a link is taken, so that nothing rounds

struct links {
    const struct page_request *request;
    FILE *out;
    bool some;
};

static double capacity_GBps(const struct links *links, const struct scn_named_link *link)
{
    return link->pcie == NULL
               ? (double)link->bytes_per_us / 1e3
               : 1e3 * (double)RATE_BYTES /
                     (double)links->request->wire_ps(link->pcie->generation, link->pcie->lanes, RATE_BYTES);
}

static void link_write(void *ctx, const struct scn_named_link *link)
{
    static const char *const kinds[] = {
        [SCN_LINK_SLOT] = "slot", [SCN_LINK_CABLE] = "cable", [SCN_LINK_IB_CABLE] = "InfiniBand cable"};
    struct links *links = ctx;
    fprintf(links->out, "%s\n{\"name\":", links->some ? "," : "");
    json_text_write(links->out, link->name);
    fputs(",\"ends\":[", links->out);
    json_text_write(links->out, link->ends[0]);
    fputc(',', links->out);
    json_text_write(links->out, link->ends[1]);
    fprintf(links->out, "],\"kind\":\"%s\",\"what\":\"", kinds[link->kind]);
    if (link->pcie != NULL) {
        fprintf(links->out, "Gen%" PRIu32 " x%" PRIu32, link->pcie->generation, link->pcie->lanes);
    }
    fprintf(links->out, "\",\"capacity_GBps\":%.9g}", capacity_GBps(links, link));
    links->some = true;
}

static void drawing_write(const struct scn_scenario *scenario, FILE *out)
{
    char *svg = NULL;
    size_t length = 0;
    FILE *memory = open_memstream(&svg, &length);
    if (memory != NULL) {
        topology_draw(scenario, memory);
        if (fclose(memory) == 0) {
            fputs(",\n\"drawing\":", out);
            json_text_write(out, svg);
        }
    }
    free(svg);
}

bool page_links_write(const struct page_request *request, const char *directory, FILE *out)
{
    char path[PATH_MAX];
    const struct scn_load_options options = {.configs_dir = request->configs_path};
    struct scn_messages messages = {0};
    struct scn_scenario *scenario = NULL;
    if (request->configs_path == NULL || files_path(directory, "resolved.yaml", path, sizeof path) != SIM_OK ||
        access(path, R_OK) != 0) {
        return false;
    }
    bool good = scn_load(path, &options, &scenario, &messages) == SIM_OK;
    if (good) {
        struct links links = {.request = request, .out = out};
        fputs(",\n\"links\":[", out);
        scn_links_visit(scenario, link_write, &links);
        fputc(']', out);
        drawing_write(scenario, out);
    }
    scn_messages_free(&messages);
    scn_free(scenario);
    return good;
}
