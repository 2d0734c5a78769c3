// `tcasim crosscheck`: every series on RTL boards and on their twins, and what differs.
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sim/cli/load.h"
#include "sim/platform/platform.h"

#define LATENCY_PERCENT   2.0
#define BANDWIDTH_PERCENT 1.0

// --- what a series gave ---------------------------------------------------------------------------------------------

struct counted {
    char *component;
    const struct sim_counter_desc *desc;
    uint64_t value;
};

struct outcome {
    struct plat_point *points;
    size_t point_count;
    struct counted *counters;
    size_t counter_count;
    double seconds;
    bool out_of_memory;
};

struct tally {
    double latency_percent, bandwidth_percent; // the largest
    size_t points, counters, wrong;
    double rtl_seconds, twin_seconds;
};

// A place for one more of size bytes, or NULL.
static void *grown(struct outcome *outcome, void *items, size_t count, size_t size)
{
    void *more = realloc(items, (count + 1) * size);
    outcome->out_of_memory = outcome->out_of_memory || more == NULL;
    return more;
}

static void point_take(void *ctx, const struct plat_point *point)
{
    struct outcome *outcome = ctx;
    struct plat_point *points = grown(outcome, outcome->points, outcome->point_count, sizeof *points);
    if (points != NULL) {
        outcome->points = points;
        points[outcome->point_count++] = *point;
    }
}

static void counter_take(void *ctx, const char *component, const struct sim_counter_desc *desc, uint64_t value)
{
    struct outcome *outcome = ctx;
    struct counted *counters = grown(outcome, outcome->counters, outcome->counter_count, sizeof *counters);
    if (counters == NULL) {
        return;
    }
    outcome->counters = counters;
    counters[outcome->counter_count] = (struct counted){strdup(component), desc, value};
    outcome->out_of_memory = outcome->out_of_memory || counters[outcome->counter_count].component == NULL;
    outcome->counter_count++;
}

static void outcome_free(struct outcome *outcome)
{
    for (size_t i = 0; i < outcome->counter_count; i++) {
        free(outcome->counters[i].component);
    }
    free(outcome->counters);
    free(outcome->points);
}

// --- running --------------------------------------------------------------------------------------------------------

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static const char *fidelity_name(enum scn_fidelity fidelity)
{
    switch (fidelity) {
    case SCN_FIDELITY_RTL:
        return "rtl";
    case SCN_FIDELITY_TWIN:
        break;
    }
    return "twin";
}

static enum cli_exit series_run(const char *path, struct scn_scenario *scenario, uint32_t run_index,
                                enum scn_fidelity fidelity, struct outcome *outcome)
{
    for (uint32_t i = 0; i < scenario->node_count; i++) {
        scenario->nodes[i].board.fidelity = fidelity;
    }
    const struct plat_hooks hooks = {.ctx = outcome, .point = point_take, .counter = counter_take};
    struct plat_result result = {0};
    double begun = seconds_now();
    enum sim_status status = plat_run_series(scenario, run_index, NULL, &hooks, &result);
    outcome->seconds = seconds_now() - begun;
    const char *series = scenario->runs[run_index].series, *name = fidelity_name(fidelity);
    if (status != SIM_OK || outcome->out_of_memory) {
        cli_error("%s: series '%s' on %s: %s", path, series, name,
                  result.text[0] != '\0' ? result.text
                                         : sim_status_text(status != SIM_OK ? status : SIM_ERR_NO_MEMORY));
        return CLI_EXIT_INPUT;
    }
    if (result.outcome == SIM_RUN_STUCK || result.outcome == SIM_RUN_TIME_LIMIT) {
        cli_error("%s: series '%s' on %s got stuck:\n%s", path, series, name, result.text);
        return CLI_EXIT_STUCK;
    }
    if (result.failed) {
        cli_error("%s: series '%s' on %s failed: %s", path, series, name, result.text);
        return CLI_EXIT_EXPECT;
    }
    return CLI_EXIT_OK;
}

// --- comparing ------------------------------------------------------------------------------------------------------

static double percent(double rtl, double twin)
{
    return rtl == twin ? 0.0 : rtl == 0.0 ? INFINITY : (twin - rtl) / rtl * 100.0;
}

static double mean_us(const struct plat_point *point)
{
    return (double)point->total_ps / (double)point->operations * 1e-6;
}

static bool point_compare(const struct plat_point *rtl, const struct plat_point *twin, struct tally *tally)
{
    double latency = percent(mean_us(rtl), mean_us(twin));
    double bandwidth = percent(1.0 / mean_us(rtl), 1.0 / mean_us(twin));
    double least = percent((double)rtl->min_ps, (double)twin->min_ps);
    double most = percent((double)rtl->max_ps, (double)twin->max_ps);
    bool same =
        rtl->bytes == twin->bytes && rtl->descriptors == twin->descriptors && rtl->operations == twin->operations;
    double worst = fmax(fabs(latency), fmax(fabs(least), fabs(most)));
    bool held = same && worst <= LATENCY_PERCENT && fabs(bandwidth) <= BANDWIDTH_PERCENT;
    printf("  %10llu %11llu %12.6f %12.6f %+9.4f %+9.4f%s\n", (unsigned long long)rtl->bytes,
           (unsigned long long)rtl->descriptors, mean_us(rtl), mean_us(twin), latency, bandwidth,
           held ? "" : "  DIFFERS");
    tally->latency_percent = fmax(tally->latency_percent, worst);
    tally->bandwidth_percent = fmax(tally->bandwidth_percent, fabs(bandwidth));
    return held;
}

static void points_compare(const struct outcome *rtl, const struct outcome *twin, struct tally *tally)
{
    printf("  %10s %11s %12s %12s %9s %9s\n", "bytes", "descriptors", "rtl [us]", "twin [us]", "latency %", "bandw. %");
    size_t count = rtl->point_count < twin->point_count ? rtl->point_count : twin->point_count;
    for (size_t i = 0; i < count; i++) {
        tally->wrong += point_compare(&rtl->points[i], &twin->points[i], tally) ? 0 : 1;
    }
    if (rtl->point_count != twin->point_count) {
        printf("  %zu points on rtl, %zu on twin  DIFFERS\n", rtl->point_count, twin->point_count);
        tally->wrong++;
    }
    tally->points += count;
}

// Counts of what moved are held to be equal. Those that only tell when (polls, DLLPs, stalls, picoseconds) follow from
// the latencies; they are shown.
static bool counter_is_held(const struct sim_counter_desc *desc)
{
    static const char *const units[] = {"DLLPs", "turns", "ps", "stalls", "events"};
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (strcmp(desc->unit, units[i]) == 0) {
            return false;
        }
    }
    return strcmp(desc->name, "wire_bytes_sent") != 0; // DLLPs included
}

static void counters_compare(const struct outcome *rtl, const struct outcome *twin, struct tally *tally)
{
    if (rtl->counter_count != twin->counter_count) {
        printf("  %zu counters on rtl, %zu on twin  DIFFERS\n", rtl->counter_count, twin->counter_count);
        tally->wrong++;
        return;
    }
    for (size_t i = 0; i < rtl->counter_count; i++) {
        const struct counted *a = &rtl->counters[i], *b = &twin->counters[i];
        bool same_counter = strcmp(a->component, b->component) == 0 && strcmp(a->desc->name, b->desc->name) == 0;
        if (same_counter && a->value == b->value) {
            continue;
        }
        bool held = same_counter && !counter_is_held(a->desc);
        printf("  %s.%s: rtl %llu, twin %llu %s%s\n", a->component, a->desc->name, (unsigned long long)a->value,
               (unsigned long long)b->value, a->desc->unit, held ? "" : "  DIFFERS");
        tally->wrong += held ? 0 : 1;
    }
    tally->counters += rtl->counter_count;
}

static enum cli_exit series_check(const char *path, struct scn_scenario *scenario, uint32_t run_index,
                                  struct tally *tally)
{
    struct outcome rtl = {0}, twin = {0};
    enum cli_exit result = series_run(path, scenario, run_index, SCN_FIDELITY_RTL, &rtl);
    if (result == CLI_EXIT_OK) {
        result = series_run(path, scenario, run_index, SCN_FIDELITY_TWIN, &twin);
    }
    if (result == CLI_EXIT_OK) {
        printf("%s: %s\n", path, scenario->runs[run_index].series);
        points_compare(&rtl, &twin, tally);
        counters_compare(&rtl, &twin, tally);
        fflush(stdout);
        tally->rtl_seconds += rtl.seconds;
        tally->twin_seconds += twin.seconds;
    }
    outcome_free(&rtl);
    outcome_free(&twin);
    return result;
}

static enum cli_exit file_check(const char *path, const struct cli_paths *paths, const struct cli_list *sets)
{
    struct scn_scenario *scenario = cli_scenario_load(path, paths, sets);
    if (scenario == NULL) {
        return CLI_EXIT_INPUT;
    }
    struct tally tally = {0};
    enum cli_exit result = CLI_EXIT_OK;
    for (uint32_t i = 0; i < scenario->run_count; i++) {
        enum cli_exit one = series_check(path, scenario, i, &tally);
        result = one > result ? one : result;
    }
    printf("%s: %zu points, largest difference of a latency %.4f %%, of a bandwidth %.4f %%; %zu counters; %zu differ; "
           "rtl %.2f s, twin %.2f s\n",
           path, tally.points, tally.latency_percent, tally.bandwidth_percent, tally.counters, tally.wrong,
           tally.rtl_seconds, tally.twin_seconds);
    scn_free(scenario);
    return tally.wrong != 0 && result == CLI_EXIT_OK ? CLI_EXIT_EXPECT : result;
}

enum cli_exit cli_crosscheck(int argc, char **argv)
{
    struct cli_list sets = {0}, files = {0};
    static const struct cli_option options[] = {
        {"set", "PATH=VALUE", "override a key; may be given more than once", CLI_OPTION_LIST, 0},
    };
    const struct cli_syntax syntax = {
        .usage = "tcasim crosscheck FILE.yaml... [--set PATH=VALUE]...",
        .doc = "Runs every series twice, on RTL boards and on their twins, and compares. Exit status 1 when a latency\n"
               "differs by more than 2 %, a bandwidth by more than 1 %, or any count of packets or bytes at all.",
        .options = options,
        .option_count = 1,
        .operands_min = 1,
        .operands_max = SIZE_MAX,
        .operand = "a scenario file",
    };
    enum cli_exit result = CLI_EXIT_OK;
    enum cli_parsed parsed = cli_options_parse(&syntax, argc, argv, &sets, &files);
    if (parsed == CLI_PARSED_RUN) {
        struct cli_paths paths;
        cli_paths_find(&paths);
        for (size_t i = 0; i < files.count; i++) {
            enum cli_exit one = file_check(files.items[i], &paths, &sets);
            result = one > result ? one : result;
        }
    }
    cli_list_free(&sets);
    cli_list_free(&files);
    return parsed == CLI_PARSED_WRONG ? CLI_EXIT_INPUT : result;
}
