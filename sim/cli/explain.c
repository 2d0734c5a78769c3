// `tcasim explain`: splits the time of one operation after the warm-up.
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cli/load.h"
#include "sim/cli/options.h"
#include "sim/cli/output.h"
#include "sim/cli/progress.h"
#include "sim/platform/platform.h"
#include "sim/report/breakdown.h"
#include "sim/report/json.h"
#include "sim/scenario/units.h"

// A record of a cause is 32 B. The simulator's own memory is not included.
#define RECORDS_BYTES_MAX (2ull << 30)

struct explain_options {
    const char *bytes, *memory, *out, *timeline;
    struct cli_list series, sets;
    bool quiet, json;
};

static const struct cli_option options[] = {
    {"series", "NAME", "explain only this series; may be given several times", CLI_OPTION_LIST,
     offsetof(struct explain_options, series)},
    {"bytes", "SIZE", "one of the sizes that the series measure (default: the smallest of each)", CLI_OPTION_TEXT,
     offsetof(struct explain_options, bytes)},
    {"memory", "SIZE", "memory limit for the records of one series (default: 2 GiB)", CLI_OPTION_TEXT,
     offsetof(struct explain_options, memory)},
    {"out", "DIR", "write breakdown.csv and the plot to DIR (default: results/<scenario name>)", CLI_OPTION_TEXT,
     offsetof(struct explain_options, out)},
    {"timeline", "FILE.json", "write the path as a trace for Perfetto or chrome://tracing", CLI_OPTION_TEXT,
     offsetof(struct explain_options, timeline)},
    {"set", "PATH=VALUE", "override a key; may be given several times", CLI_OPTION_LIST,
     offsetof(struct explain_options, sets)},
    {"quiet", NULL, "print nothing but errors", CLI_OPTION_FLAG, offsetof(struct explain_options, quiet)},
    {"json", NULL, "print the pieces as JSON, and no text", CLI_OPTION_FLAG, offsetof(struct explain_options, json)},
};

static const char *const exclusive[] = {"quiet", "json", NULL};

static const struct cli_syntax syntax = {
    .exclusive = exclusive,
    .usage = "tcasim explain FILE.yaml [--series NAME]... [--bytes SIZE] [--memory SIZE] [--out DIR]\n"
             "                  [--timeline FILE.json] [--set PATH=VALUE]... [--quiet | --json]",
    .doc = "Runs each series once for one size, after its warm-up, and follows the critical path of the measured time\n"
           "back from its end: library, stores, descriptors, PCIe, board or HCA, cable, memory, polling. The pieces\n"
           "add up to the latency exactly; otherwise the command fails (exit status 3).",
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .operands_min = 1,
    .operands_max = 1,
    .operand = "a scenario file",
};

// --- selection of runs ---------------------------------------------------------------------------------------------

static bool is_chosen(const struct explain_options *given, const struct scn_run *run)
{
    for (size_t i = 0; i < given->series.count; i++) {
        if (strcmp(given->series.items[i], run->series) == 0) {
            return true;
        }
    }
    return given->series.count == 0;
}

static bool series_exist(const struct explain_options *given, const struct scn_scenario *scenario)
{
    const char *names[SCN_RUNS_MAX];
    for (uint32_t i = 0; i < scenario->run_count; i++) {
        names[i] = scenario->runs[i].series;
    }
    for (size_t k = 0; k < given->series.count; k++) {
        const char *wanted = given->series.items[k];
        bool found = false;
        for (uint32_t i = 0; i < scenario->run_count; i++) {
            found = found || strcmp(wanted, names[i]) == 0;
        }
        if (found) {
            continue;
        }
        const char *nearest = cli_nearest(wanted, names, scenario->run_count);
        cli_error("there is no series '%s'%s%s%s", wanted, nearest != NULL ? "; did you mean '" : "",
                  nearest != NULL ? nearest : "", nearest != NULL ? "'?" : "");
        return false;
    }
    return true;
}

// Narrows a run to one operation of that size, or of the smallest. False, after printing why: the size is not measured.
static bool run_narrow(struct scn_run *run, uint64_t wanted_bytes, const char *wanted)
{
    uint64_t bytes = wanted != NULL ? wanted_bytes : run->bytes[0];
    bool found = wanted == NULL;
    for (uint32_t i = 0; i < run->bytes_count; i++) {
        found = found || run->bytes[i] == wanted_bytes;
        bytes = wanted == NULL && run->bytes[i] < bytes ? run->bytes[i] : bytes;
    }
    if (!found) {
        cli_error("series '%s' does not measure %s", run->series, wanted);
        return false;
    }
    run->bytes[0] = bytes;
    run->bytes_count = 1;
    run->descriptors_count = 1;
    run->iterations = 1;
    run->warmup = run->warmup > 0 ? run->warmup : 1;
    return true;
}

static bool runs_narrow(const struct explain_options *given, struct scn_scenario *scenario)
{
    char why[SCN_WHY_MAX];
    uint64_t bytes = 0;
    if (given->bytes != NULL && !scn_quantity_parse(SCN_QUANTITY_SIZE, given->bytes, &bytes, why)) {
        cli_error("--bytes %s", why);
        return false;
    }
    if (!series_exist(given, scenario)) {
        return false;
    }
    bool good = true;
    for (uint32_t i = 0; i < scenario->run_count; i++) {
        good = (!is_chosen(given, &scenario->runs[i]) || run_narrow(&scenario->runs[i], bytes, given->bytes)) && good;
    }
    return good;
}

// --- running -------------------------------------------------------------------------------------------------------

struct explaining {
    const char *path;
    uint64_t bytes_max;
    breakdown_t *breakdown;
    enum cli_exit result;
    struct cli_progress progress;
    const char *series;  // that runs
    unsigned begun, all; // of the chosen ones
};

static void progress_take(void *ctx, unsigned permille)
{
    struct explaining *explaining = ctx;
    unsigned all = ((explaining->begun - 1) * 1000 + permille) / explaining->all;
    cli_progress_update(&explaining->progress, all, explaining->series);
}

static void path_take(void *ctx, const struct plat_point *point, const char *node, const struct sim_piece *pieces,
                      size_t count)
{
    struct explaining *explaining = ctx;
    char error[512];
    const struct breakdown_case of = {point->series, node, point->bytes, point->operations, point->total_ps};
    if (pieces == NULL) {
        cli_error("%s: series '%s' does not measure its operations as one interval of time", explaining->path,
                  point->series);
        explaining->result = cli_exit_worse(explaining->result, CLI_EXIT_INPUT);
    } else if (breakdown_add(explaining->breakdown, &of, pieces, count, error, sizeof error) != SIM_OK) {
        cli_error("%s: %s", explaining->path, error);
        explaining->result = cli_exit_worse(explaining->result, CLI_EXIT_STUCK);
    }
}

static enum cli_exit series_explain(struct explaining *explaining, const struct scn_scenario *scenario, uint32_t index)
{
    const struct plat_hooks hooks = {
        .ctx = explaining, .path = path_take, .path_bytes_max = explaining->bytes_max, .progress = progress_take};
    struct plat_result result = {0};
    explaining->begun++;
    explaining->series = scenario->runs[index].series;
    enum sim_status status = plat_run_series(scenario, index, NULL, &hooks, &result);
    cli_progress_fini(&explaining->progress);
    if (result.causes_full) {
        char limit[SCN_QUANTITY_MAX];
        scn_quantity_format(SCN_QUANTITY_SIZE, explaining->bytes_max, limit);
        cli_error("%s: series '%s' has more causes than fit into %s, after %" PRIu64
                  " ns; select a smaller size, or raise --memory",
                  explaining->path, scenario->runs[index].series, limit, result.simulated_ps / 1000);
        return CLI_EXIT_INPUT;
    }
    bool stuck = result.outcome == SIM_RUN_STUCK || result.outcome == SIM_RUN_TIME_LIMIT;
    if (status == SIM_OK && !stuck && !result.failed) {
        return explaining->result;
    }
    cli_error("%s: series '%s' %s: %s", explaining->path, scenario->runs[index].series,
              status != SIM_OK ? "cannot be built"
              : stuck          ? "got stuck"
                               : "failed",
              result.text[0] != '\0' ? result.text : sim_status_text(status));
    return status != SIM_OK ? CLI_EXIT_INPUT : stuck ? CLI_EXIT_STUCK : CLI_EXIT_EXPECT;
}

static bool directory_choose(const struct explain_options *given, const char *name, char directory[PATH_MAX])
{
    int length = given->out != NULL ? snprintf(directory, PATH_MAX, "%s", given->out)
                                    : snprintf(directory, PATH_MAX, "results/%s", name);
    if (length < 0 || length >= PATH_MAX) {
        cli_error("the directory's name is too long");
        return false;
    }
    return cli_output_directory_usable(directory);
}

static enum cli_exit results_write(const struct explain_options *given, const char *path,
                                   const struct scn_scenario *scenario, const char *directory,
                                   const breakdown_t *breakdown)
{
    char title[SCN_TEXT_MAX + 64], error[PATH_MAX + 256];
    snprintf(title, sizeof title, "Where the time goes: %s",
             scenario->title[0] != '\0' ? scenario->title : scenario->name);
    enum sim_status status = breakdown_write(breakdown, directory, title, error, sizeof error);
    if (status == SIM_OK && given->timeline != NULL) {
        status = breakdown_timeline_write(breakdown, given->timeline, error, sizeof error);
    }
    if (status != SIM_OK) {
        cli_error("%s", error);
        return CLI_EXIT_INPUT;
    }
    static const char *const tables[] = {"breakdown.csv", NULL};
    if (given->json && json_results_print(stdout, path, directory, tables, error, sizeof error) != SIM_OK) {
        cli_error("%s", error);
        return CLI_EXIT_INPUT;
    }
    if (!given->quiet && !given->json) {
        breakdown_print(breakdown, stdout);
        printf("\nResults: %s/breakdown.csv, breakdown.svg\n", directory);
    }
    return CLI_EXIT_OK;
}

static enum cli_exit scenario_explain(const struct explain_options *given, const char *path,
                                      struct scn_scenario *scenario)
{
    struct explaining explaining = {.path = path, .bytes_max = RECORDS_BYTES_MAX};
    char why[SCN_WHY_MAX], directory[PATH_MAX];
    if (given->memory != NULL && !scn_quantity_parse(SCN_QUANTITY_SIZE, given->memory, &explaining.bytes_max, why)) {
        cli_error("--memory %s", why);
        return CLI_EXIT_INPUT;
    }
    if (explaining.bytes_max == 0) {
        cli_error("--memory must be more than 0 B");
        return CLI_EXIT_INPUT;
    }
    if (!runs_narrow(given, scenario) || !directory_choose(given, scenario->name, directory)) {
        return CLI_EXIT_INPUT;
    }
    if (breakdown_create(&explaining.breakdown) != SIM_OK) {
        cli_error("out of memory");
        return CLI_EXIT_INPUT;
    }
    enum cli_exit result = CLI_EXIT_OK;
    cli_progress_init(&explaining.progress, !given->quiet);
    for (uint32_t i = 0; i < scenario->run_count; i++) {
        explaining.all += is_chosen(given, &scenario->runs[i]) ? 1 : 0;
    }
    for (uint32_t i = 0; i < scenario->run_count && result == CLI_EXIT_OK; i++) {
        if (is_chosen(given, &scenario->runs[i])) {
            result = series_explain(&explaining, scenario, i);
        }
    }
    if (result == CLI_EXIT_OK) {
        result = results_write(given, path, scenario, directory, explaining.breakdown);
    }
    breakdown_destroy(explaining.breakdown);
    return result;
}

// The scenario, or the one point of its sweep that --set leaves. NULL: reported.
static struct scn_scenario *point_choose(const char *path, const struct cli_paths *paths, const struct cli_list *sets)
{
    struct scn_scenario *scenario = cli_scenario_load(path, paths, sets);
    const struct scn_sweep *sweep = scenario != NULL ? scenario->sweep : NULL;
    struct scn_scenario *point = NULL;
    if (sweep == NULL) {
        return scenario;
    }
    if (sweep->point_count == 1) {
        point = cli_point_load(path, paths, sets, &sweep->points[0], NULL);
    } else {
        cli_error("explain cannot run the %" PRIu32 " points of a sweep; select one with --set, for example --set '%s'",
                  sweep->point_count, sweep->points[0].sets[0]);
    }
    scn_free(scenario);
    return point;
}

enum cli_exit cli_explain(int argc, char **argv)
{
    struct explain_options given = {0};
    struct cli_list files = {0};
    enum cli_exit result = CLI_EXIT_INPUT;
    enum cli_parsed parsed = cli_options_parse(&syntax, argc, argv, &given, &files);
    if (parsed == CLI_PARSED_RUN) {
        struct cli_paths paths;
        cli_paths_find(&paths);
        struct scn_scenario *scenario = point_choose(files.items[0], &paths, &given.sets);
        if (scenario != NULL && (given.timeline == NULL || cli_output_usable(given.timeline, files.items[0], &paths))) {
            result = scenario_explain(&given, files.items[0], scenario);
        }
        scn_free(scenario);
    }
    cli_list_free(&given.series);
    cli_list_free(&given.sets);
    cli_list_free(&files);
    return parsed == CLI_PARSED_HELP ? CLI_EXIT_OK : result;
}
