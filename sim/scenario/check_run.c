// Rules about runs, and about the values taken from them.
#include "sim/scenario/loader.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "sim/scenario/names.h"
#include "sim/scenario/units.h"

#define BOARD_DESCRIPTORS_MAX 1024
#define DMA_UNIT_BYTES        4

static bool is_good(const struct scn_loader *loader, const void *field)
{
    return !scn_loader_is_bad(loader, field, false);
}

// Grows the set of nodes that cables join to those in it, until it grows no more.
static bool is_connected(const struct scn_scenario *scenario, uint32_t from, uint32_t to)
{
    uint32_t reached = 1u << from, before = 0;
    while (reached != before) {
        before = reached;
        for (uint32_t i = 0; i < scenario->cable_count; i++) {
            uint32_t ends = 1u << scenario->cables[i].from_node | 1u << scenario->cables[i].to_node;
            reached |= (reached & ends) != 0 ? ends : 0;
        }
    }
    return (reached & 1u << to) != 0;
}

static bool are_cables_good(const struct scn_loader *loader)
{
    const struct scn_scenario *scenario = loader->scenario;
    bool good = !scn_loader_is_bad(loader, &scenario->cable_count, true);
    for (uint32_t i = 0; i < scenario->cable_count; i++) {
        const struct scn_cable *cable = &scenario->cables[i];
        good = good && is_good(loader, &cable->from_node) && is_good(loader, &cable->to_node) &&
               cable->from_node < scenario->node_count && cable->to_node < scenario->node_count;
    }
    return good;
}

static void check_peer(struct scn_loader *loader, const struct scn_run *run)
{
    const struct scn_scenario *scenario = loader->scenario;
    struct scn_place place = scn_loader_place(loader, &run->peer, run);
    bool local = run->program == SCN_PROGRAM_LOCAL_DMA;
    if (!is_good(loader, &run->program) || !is_good(loader, &run->peer) || !is_good(loader, &run->node)) {
        return;
    }
    if (local && run->peer != SCN_NODE_NONE) {
        scn_mistakes_add(&loader->mistakes, place, "peer: local-dma stays on one node and takes no peer");
    } else if (!local && run->peer == SCN_NODE_NONE) {
        if (scenario->node_count > 0) {
            scn_mistakes_add(&loader->mistakes, place, "missing key 'peer' in run: a pingpong needs one");
        }
    } else if (!local && run->peer == run->node) {
        scn_mistakes_add(&loader->mistakes, place, "peer: a pingpong needs another node than '%s'",
                         scenario->nodes[run->node].name);
    } else if (!local && are_cables_good(loader) && !is_connected(scenario, run->node, run->peer)) {
        scn_mistakes_add(&loader->mistakes, place, "peer: no cables lead from '%s' to '%s'",
                         scenario->nodes[run->node].name, scenario->nodes[run->peer].name);
    }
}

static void check_descriptors(struct scn_loader *loader, const struct scn_run *run)
{
    struct scn_place place = scn_loader_place(loader, run->descriptors, run);
    bool single = run->method == SCN_METHOD_REGISTER || run->method == SCN_METHOD_PIO;
    if (!is_good(loader, run->descriptors)) {
        return;
    }
    for (uint32_t i = 0; i < run->descriptors_count; i++) {
        uint64_t descriptors = run->descriptors[i];
        if (single && descriptors != 1) {
            scn_mistakes_add(&loader->mistakes, place, "descriptors: method %s makes one transfer, not %" PRIu64,
                             scn_method_name(run->method), descriptors);
        } else if (run->method == SCN_METHOD_CHAIN_BOARD && descriptors > BOARD_DESCRIPTORS_MAX) {
            scn_mistakes_add(&loader->mistakes, place, "descriptors: the board's memory holds %d, not %" PRIu64,
                             BOARD_DESCRIPTORS_MAX, descriptors);
        }
    }
}

static void check_bytes(struct scn_loader *loader, const struct scn_run *run)
{
    struct scn_place place = scn_loader_place(loader, run->bytes, run);
    for (uint32_t i = 0; i < run->bytes_count && run->method != SCN_METHOD_PIO; i++) {
        if (run->bytes[i] % DMA_UNIT_BYTES != 0) {
            scn_mistakes_add(&loader->mistakes, place, "bytes: %" PRIu64 " B is not a multiple of %d B, as DMA needs",
                             run->bytes[i], DMA_UNIT_BYTES);
        }
    }
}

static uint64_t largest(const uint64_t *items, uint32_t count)
{
    uint64_t value = 0;
    for (uint32_t i = 0; i < count; i++) {
        value = items[i] > value ? items[i] : value;
    }
    return value;
}

static void check_fits(struct scn_loader *loader, const struct scn_run *run, uint32_t node)
{
    const struct scn_scenario *scenario = loader->scenario;
    if (node >= scenario->node_count || scenario->nodes[node].host.memory_bytes == 0) {
        return;
    }
    uint64_t bytes = largest(run->bytes, run->bytes_count) * largest(run->descriptors, run->descriptors_count);
    if (bytes > scenario->nodes[node].host.memory_bytes / 4) {
        char text[SCN_QUANTITY_MAX];
        scn_quantity_format(SCN_QUANTITY_SIZE, bytes, text);
        scn_mistakes_add(&loader->mistakes, scn_loader_place(loader, run->bytes, run),
                         "bytes: %s do not fit into a quarter of the memory of '%s'", text, scenario->nodes[node].name);
    }
}

static void check_run(struct scn_loader *loader, const struct scn_run *run)
{
    check_peer(loader, run);
    if (!is_good(loader, &run->method)) {
        return;
    }
    if (run->program == SCN_PROGRAM_LOCAL_DMA && run->method == SCN_METHOD_PIO && is_good(loader, &run->program)) {
        scn_mistakes_add(&loader->mistakes, scn_loader_place(loader, &run->method, run),
                         "method: local-dma needs a DMA method, not pio");
    }
    check_descriptors(loader, run);
    if (is_good(loader, run->bytes)) {
        check_bytes(loader, run);
        check_fits(loader, run, run->node);
        check_fits(loader, run, run->peer);
    }
}

static void check_series_names(struct scn_loader *loader)
{
    const struct scn_scenario *scenario = loader->scenario;
    for (uint32_t i = 0; i < scenario->run_count; i++) {
        for (uint32_t j = 0; j < i; j++) {
            const struct scn_run *run = &scenario->runs[i];
            if (run->series[0] != '\0' && strcmp(run->series, scenario->runs[j].series) == 0) {
                scn_mistakes_add(&loader->mistakes, scn_loader_place(loader, run->series, run),
                                 "series: two runs are called '%s'", run->series);
                break;
            }
        }
    }
}

static void check_value(struct scn_loader *loader, const struct scn_value *value)
{
    const struct scn_scenario *scenario = loader->scenario;
    struct scn_place place = scn_loader_place(loader, value->series, value);
    struct scn_nearest nearest;
    if (!value->given || !is_good(loader, value->series)) {
        return;
    }
    scn_nearest_init(&nearest, value->series);
    bool known = false;
    for (uint32_t i = 0; i < scenario->run_count; i++) {
        known =
            known || strcmp(scenario->runs[i].series, value->series) == 0 || !is_good(loader, scenario->runs[i].series);
        scn_nearest_offer(&nearest, scenario->runs[i].series);
    }
    if (!known && scenario->run_count > 0 && nearest.name != NULL) {
        scn_mistakes_add(&loader->mistakes, place, "series: no run is called '%s' (did you mean '%s'?)", value->series,
                         nearest.name);
    } else if (!known && scenario->run_count > 0) {
        scn_mistakes_add(&loader->mistakes, place, "series: no run is called '%s'", value->series);
    }
    if (value->bytes_min > value->bytes_max || value->descriptors_min > value->descriptors_max) {
        scn_mistakes_add(&loader->mistakes, scn_loader_place(loader, value, value), "value: from is larger than to");
    }
}

static void check_check(struct scn_loader *loader, const struct scn_check *check)
{
    check_value(loader, &check->value);
    check_value(loader, &check->over);
    struct scn_place place = scn_loader_place(loader, check, check);
    if ((check->per_row || check->first_reaching != 0) && !check->over.given &&
        !scn_loader_is_bad(loader, &check->over, true)) {
        scn_mistakes_add(&loader->mistakes, place, "%s needs over:", check->per_row ? "per_row:" : "first_reaching:");
    }
    if (check->per_row && check->first_reaching != 0) {
        scn_mistakes_add(&loader->mistakes, place, "'per_row' and 'first_reaching' exclude each other");
    }
}

static void check_bounds(struct scn_loader *loader, const struct scn_check *expect)
{
    struct scn_place place = scn_loader_place(loader, expect, expect);
    if (!is_good(loader, &expect->min) || !is_good(loader, &expect->max)) {
        return;
    }
    if (isinf(expect->min) && isinf(expect->max)) {
        scn_mistakes_add(&loader->mistakes, place, "expect: needs min: or max:");
    } else if (expect->min > expect->max) {
        scn_mistakes_add(&loader->mistakes, place, "expect: min is larger than max");
    }
}

void scn_check_runs(struct scn_loader *loader)
{
    const struct scn_scenario *scenario = loader->scenario;
    for (uint32_t i = 0; i < scenario->run_count; i++) {
        check_run(loader, &scenario->runs[i]);
    }
    check_series_names(loader);
    for (uint32_t i = 0; i < scenario->expect_count; i++) {
        check_check(loader, &scenario->expects[i]);
        check_bounds(loader, &scenario->expects[i]);
    }
    for (uint32_t i = 0; i < scenario->compare_count; i++) {
        check_check(loader, &scenario->compares[i]);
    }
}
