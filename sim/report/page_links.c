#include "sim/report/page_links.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "sim/report/files.h"
#include "sim/report/json.h"
#include "sim/report/table.h"
#include "sim/report/topology_svg.h"
#include "sim/scenario/links.h"

#define DRAWINGS_MAX 128 // of values of a sweep; the page has the links of others without their capacity
#define RATE_BYTES   (UINT64_C(1) << 20) // over which the rate of a link is taken, so that nothing rounds

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

// Of the scenario in the folder's resolved.yaml; before: what is written before them. false: nothing was written.
static bool scenario_write(const struct page_request *request, const char *folder, const char *before, FILE *out)
{
    char path[PATH_MAX];
    const struct scn_load_options options = {.configs_dir = request->configs_path};
    struct scn_messages messages = {0};
    struct scn_scenario *scenario = NULL;
    if (files_path(folder, "resolved.yaml", path, sizeof path) != SIM_OK || access(path, R_OK) != 0) {
        return false;
    }
    bool good = scn_load(path, &options, &scenario, &messages) == SIM_OK;
    if (good) {
        struct links links = {.request = request, .out = out};
        fprintf(out, "%s\"links\":[", before);
        scn_links_visit(scenario, link_write, &links);
        fputc(']', out);
        drawing_write(scenario, out);
    }
    scn_messages_free(&messages);
    scn_free(scenario);
    return good;
}

// Of each point of a sweep.
static bool values_write(const struct page_request *request, const char *directory, FILE *out)
{
    char path[PATH_MAX], error[256];
    struct table table;
    if (files_path(directory, "values/index.csv", path, sizeof path) != SIM_OK ||
        table_read(path, &table, error, sizeof error) != SIM_OK) {
        return false;
    }
    size_t value = table_column(&table, "value"), folder = table_column(&table, "folder");
    bool some = false;
    for (size_t row = 0; row + 1 < table.rows && row < DRAWINGS_MAX && value < table.columns && folder < table.columns;
         row++) {
        char place[PATH_MAX];
        int length = snprintf(place, sizeof place, "%s/values/%s", directory, table_field(&table, row, folder));
        if (length < (int)sizeof place && scenario_write(request, place, some ? ",\n{" : ",\n\"values\":[{", out)) {
            fputs(",\"value\":", out);
            json_text_write(out, table_field(&table, row, value));
            fputc('}', out);
            some = true;
        }
    }
    fputs(some ? "]" : "", out);
    table_free(&table);
    return some;
}

bool page_links_write(const struct page_request *request, const char *directory, FILE *out)
{
    return request->configs_path != NULL &&
           (scenario_write(request, directory, ",\n", out) || values_write(request, directory, out));
}
