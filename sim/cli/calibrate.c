// `tcasim calibrate`: which values of keys meet the published rows best.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cli/calibrate_measure.h"
#include "sim/cli/interrupt.h"
#include "sim/cli/options.h"
#include "sim/cli/output.h"
#include "sim/cli/pool.h"
#include "sim/report/calibration.h"
#include "sim/report/json.h"
#include "sim/scenario/keys.h"

#define POINTS_MAX 2000u

struct calibrate_options {
    const char *out, *fidelity, *check, *points, *jobs;
    bool quiet, json;
};

static const struct cli_option options[] = {
    {"fidelity", "FIDELITY", "what the search runs on: flow (the default), twin or rtl", CLI_OPTION_TEXT,
     offsetof(struct calibrate_options, fidelity)},
    {"check", "FIDELITY", "what the start and the best point also run on: rtl (the default), twin, flow or none",
     CLI_OPTION_TEXT, offsetof(struct calibrate_options, check)},
    {"points", "N", "the largest number of points (default: 200)", CLI_OPTION_TEXT,
     offsetof(struct calibrate_options, points)},
    {"out", "DIR", "write tables and the plot to DIR (default: results/<name of the file>)", CLI_OPTION_TEXT,
     offsetof(struct calibrate_options, out)},
    {"jobs", "N", "simulations at once (default: the number of processors)", CLI_OPTION_TEXT,
     offsetof(struct calibrate_options, jobs)},
    {"quiet", NULL, "print nothing but errors", CLI_OPTION_FLAG, offsetof(struct calibrate_options, quiet)},
    {"json", NULL, "print the tables as one JSON object, and no text", CLI_OPTION_FLAG,
     offsetof(struct calibrate_options, json)},
};

static const char *const exclusive[] = {"quiet", "json", NULL};

static const struct cli_syntax syntax = {
    .exclusive = exclusive,
    .usage = "tcasim calibrate FILE.yaml [--fidelity FIDELITY] [--check FIDELITY] [--points N] [--out DIR]\n"
             "                  [--jobs N] [--quiet | --json]",
    .doc =
        "FILE names scenarios, keys with their ranges and sources, and the rows that are to be met. Searches the\n"
        "values that meet these rows best, checks them on another fidelity, and shows how every compared row follows\n"
        "every key. Rows with the use `predict` are shown and never decide. See docs/commands.md.",
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .operands_min = 1,
    .operands_max = 1,
    .operand = "a calibration file",
};

struct work {
    struct calibrate_measure measure;
    calibration_t *calibration;
    struct report_references references;
    struct calibration_row *rows;
    struct scn_scenario *scenarios[CALIBRATION_SCENARIOS_MAX]; // at the start; the rows' texts are theirs
    size_t first_rows[CALIBRATION_SCENARIOS_MAX];
    struct search_point start;
    size_t points_max;
    double *values; // of all points
    search_t *search;
    struct cli_progress progress;
};

// --- what is asked --------------------------------------------------------------------------------------------------

static bool is_fidelity(const char *text)
{
    const struct scn_choice *choice = scn_choices_fidelity;
    while (choice->name != NULL && strcmp(choice->name, text) != 0) {
        choice++;
    }
    return choice->name != NULL;
}

static bool options_check(struct calibrate_options *given, struct work *work)
{
    uint64_t points = 200;
    char *end;
    given->fidelity = given->fidelity != NULL ? given->fidelity : "flow";
    given->check = given->check != NULL ? given->check : "rtl";
    if (!is_fidelity(given->fidelity)) {
        cli_error("--fidelity %s: expected rtl, twin or flow", given->fidelity);
        return false;
    }
    if (!is_fidelity(given->check) && strcmp(given->check, "none") != 0) {
        cli_error("--check %s: expected rtl, twin, flow or none", given->check);
        return false;
    }
    if (given->points != NULL &&
        (!cli_number_read(given->points, &end, &points) || *end != '\0' || points < 1 || points > POINTS_MAX)) {
        cli_error("--points %s: expected a number from 1 to %u", given->points, POINTS_MAX);
        return false;
    }
    work->points_max = points;
    return cli_jobs_read(given->jobs, &work->measure.jobs);
}

static bool calibration_read(struct work *work, const char *path)
{
    struct scn_messages messages = {0};
    enum sim_status status = calibration_load(path, &work->calibration, &messages);
    for (size_t i = 0; i < messages.count; i++) {
        fprintf(stderr, "%s\n", messages.lines[i]);
    }
    if (status != SIM_OK && messages.count == 0) {
        cli_error("%s: %s", path, sim_status_text(status));
    }
    scn_messages_free(&messages);
    return status == SIM_OK;
}

// The value of a key in a scenario: of the first path that the key's pattern names.
struct sought {
    const char *pattern;
    char value[CALIBRATION_VALUE_MAX]; // "": none
};

static bool part_matches(const char *pattern, size_t pattern_length, const char *path, size_t path_length)
{
    return (pattern_length == 1 && pattern[0] == '*') ||
           (pattern_length == path_length && memcmp(pattern, path, path_length) == 0);
}

static bool path_matches(const char *pattern, const char *path)
{
    for (;;) {
        size_t pattern_length = strcspn(pattern, "."), path_length = strcspn(path, ".");
        if (!part_matches(pattern, pattern_length, path, path_length)) {
            return false;
        }
        pattern += pattern_length;
        path += path_length;
        if (*pattern == '\0' || *path == '\0') {
            return *pattern == *path;
        }
        pattern++;
        path++;
    }
}

static void value_visit(void *ctx, const char *path, const char *value, const char *source)
{
    struct sought *sought = ctx;
    (void)source;
    if (sought->value[0] == '\0' && path_matches(sought->pattern, path)) {
        snprintf(sought->value, sizeof sought->value, "%s", value);
    }
}

// The path with the index of a node that it names: values are visited by indices.
static void path_by_index(const struct scn_scenario *scenario, const char *path, char *out, size_t size)
{
    static const char nodes[] = "nodes.";
    const char *name = path + sizeof nodes - 1;
    size_t length = strncmp(path, nodes, sizeof nodes - 1) == 0 ? strcspn(name, ".") : 0;
    snprintf(out, size, "%s", path);
    for (uint32_t i = 0; length > 0 && i < scenario->node_count; i++) {
        if (strlen(scenario->nodes[i].name) == length && memcmp(scenario->nodes[i].name, name, length) == 0) {
            snprintf(out, size, "%s%u%s", nodes, i, name + length);
            return;
        }
    }
}

// The values that the scenarios have, as far as they are in the ranges.
static void start_find(struct work *work, const struct scn_scenario *scenario, bool found[CALIBRATION_KEYS_MAX])
{
    for (size_t i = 0; i < work->calibration->key_count; i++) {
        char path[SCN_TEXT_MAX];
        struct sought sought = {.pattern = path};
        path_by_index(scenario, work->calibration->keys[i].paths[0], path, sizeof path);
        scn_visit(scenario, value_visit, &sought);
        if (!found[i]) {
            work->start.indices[i] = calibration_value_nearest(&work->calibration->keys[i], sought.value);
        }
        found[i] = found[i] || sought.value[0] != '\0';
    }
}

// Loads the scenarios at both ends of the ranges, so that a wrong path or value is found before anything runs.
static bool ends_check(const struct work *work, size_t scenario)
{
    struct search_point first = {0}, last = {0};
    for (size_t i = 0; i < work->calibration->key_count; i++) {
        last.indices[i] = work->calibration->keys[i].value_count - 1;
    }
    const struct search_point *ends[] = {&first, &last};
    for (size_t i = 0; i < 2; i++) {
        struct scn_scenario *loaded = calibrate_load(&work->measure, scenario, ends[i]);
        if (loaded == NULL) {
            return false;
        }
        scn_free(loaded);
    }
    return true;
}

static bool scenarios_load(struct work *work)
{
    bool found[CALIBRATION_KEYS_MAX] = {false};
    for (size_t i = 0; i < work->calibration->scenario_count; i++) {
        struct scn_scenario *scenario = work->scenarios[i] = calibrate_load(&work->measure, i, NULL);
        if (scenario == NULL || !ends_check(work, i)) {
            return false;
        }
        if (scenario->sweep != NULL) {
            cli_error("%s: a calibration takes scenarios without a sweep", work->calibration->scenarios[i]);
            return false;
        }
        work->first_rows[i] = work->measure.row_count;
        work->measure.row_count += scenario->compare_count;
        start_find(work, scenario, found);
    }
    for (size_t i = 0; i < work->calibration->key_count; i++) {
        if (!found[i]) {
            cli_error("the scenarios' value of %s is not known: the search starts in the middle of its range",
                      work->calibration->keys[i].paths[0]);
        }
    }
    if (work->measure.row_count == 0) {
        cli_error("%s: none of the scenarios compares with a published row", work->calibration->scenarios[0]);
        return false;
    }
    return true;
}

// --- rows -----------------------------------------------------------------------------------------------------------

static bool is_named(const struct calibration *calibration, const char *id)
{
    for (size_t i = 0; i < calibration->row_count; i++) {
        if (strcmp(calibration->rows[i], id) == 0) {
            return true;
        }
    }
    return calibration->row_count == 0;
}

static bool rows_make(struct work *work)
{
    size_t decide = 0;
    work->rows = calloc(work->measure.row_count, sizeof *work->rows);
    if (work->rows == NULL) {
        cli_error("out of memory");
        return false;
    }
    for (size_t i = 0; i < work->calibration->scenario_count; i++) {
        for (uint32_t k = 0; k < work->scenarios[i]->compare_count; k++) {
            const struct scn_check *check = &work->scenarios[i]->compares[k];
            struct calibration_row *row = &work->rows[work->first_rows[i] + k];
            row->reference = report_references_find(&work->references, check->id);
            row->what = check->what[0] != '\0' ? check->what : row->reference->what;
            row->decides = strcmp(row->reference->use, "calibrate") == 0 && isfinite(calibration_error(row, 1)) &&
                           is_named(work->calibration, check->id);
            decide += row->decides;
        }
    }
    if (decide == 0 && work->calibration->row_count == 0) {
        cli_error("the scenarios compare with no row of the use `calibrate` that has a number");
    }
    return decide > 0 || work->calibration->row_count != 0;
}

// Every row that the file names is compared, and may decide.
static bool names_check(const struct work *work, const char *path)
{
    bool good = true;
    for (size_t i = 0; i < work->calibration->row_count; i++) {
        const char *id = work->calibration->rows[i];
        const struct report_reference *reference = report_references_find(&work->references, id);
        bool compared = false;
        for (size_t k = 0; k < work->measure.row_count; k++) {
            compared = compared || work->rows[k].reference == reference;
        }
        const char *why = reference == NULL                          ? "there is no such published row"
                          : strcmp(reference->use, "calibrate") != 0 ? "its use is not `calibrate`: it never decides"
                          : reference->published.kind == REPORT_PUBLISHED_TEXT ? "it is no number"
                          : !compared                                          ? "no scenario compares with it"
                                                                               : NULL;
        if (why != NULL) {
            cli_error("%s: row %s: %s", path, id, why);
            good = false;
        }
    }
    return good;
}

// --- the search -----------------------------------------------------------------------------------------------------

static double cost_of(const struct work *work, const double *values)
{
    double cost = 0;
    for (size_t i = 0; i < work->measure.row_count; i++) {
        double error = work->rows[i].decides ? calibration_error(&work->rows[i], values[i]) : 0;
        cost += isfinite(error) ? error * error : INFINITY;
    }
    return cost;
}

static bool points_search(struct work *work)
{
    const struct search_point *points;
    size_t count, rows = work->measure.row_count;
    while (search_next(work->search, &points, &count)) {
        double *values = work->values + search_count(work->search) * rows;
        double *costs = calloc(count, sizeof *costs);
        if (costs == NULL || !calibrate_measure(&work->measure, points, count, values)) {
            free(costs);
            return false;
        }
        for (size_t i = 0; i < count; i++) {
            costs[i] = cost_of(work, values + i * rows);
        }
        search_take(work->search, costs);
        free(costs);
        if (!isfinite(cost_of(work, work->values))) {
            cli_error("the simulations at the start have no value for a row that decides");
            return false;
        }
    }
    return true;
}

static enum cli_exit results_publish(struct work *work, const struct calibrate_options *given, const char *path,
                                     const char *directory)
{
    struct calibration_results results = {.calibration = work->calibration,
                                          .search = work->search,
                                          .rows = work->rows,
                                          .row_count = work->measure.row_count,
                                          .values = work->values,
                                          .fidelity = given->fidelity};
    double *checked = calloc(2 * results.row_count, sizeof *checked);
    const struct search_point ends[] = {*search_point_at(work->search, 0),
                                        *search_point_at(work->search, search_best(work->search))};
    work->measure.fidelity = given->check;
    bool check = strcmp(given->check, "none") != 0;
    if (checked == NULL || (check && !calibrate_measure(&work->measure, ends, 2, checked))) {
        free(checked);
        return CLI_EXIT_INPUT;
    }
    results.check_fidelity = check ? given->check : NULL;
    results.checked[0] = checked;
    results.checked[1] = checked + results.row_count;
    char error[512] = "";
    if (!given->quiet && !given->json) {
        calibration_print(&results, stdout);
    }
    enum sim_status status = calibration_write(&results, directory, error, sizeof error);
    static const char *const tables[] = {"points.csv", "rows.csv", "sensitivity.csv", NULL};
    if (status == SIM_OK && given->json) {
        status = json_results_print(stdout, path, directory, tables, error, sizeof error);
    }
    if (status != SIM_OK) {
        cli_error("%s", error);
    } else if (!given->quiet && !given->json) {
        printf("\nResults: %s\n", directory);
    }
    free(checked);
    return status == SIM_OK ? CLI_EXIT_OK : CLI_EXIT_INPUT;
}

static bool work_prepare(struct work *work, const char *path)
{
    if (!calibration_read(work, path)) {
        return false;
    }
    work->measure.calibration = work->calibration;
    work->measure.first_rows = work->first_rows;
    enum sim_status status = report_references_read(&work->references, work->measure.paths->reference);
    if (status != SIM_OK) {
        cli_error("%s: %s", work->measure.paths->reference, sim_status_text(status));
        return false;
    }
    if (!scenarios_load(work) || !rows_make(work) || !names_check(work, path)) {
        return false;
    }
    work->values = calloc(work->points_max * work->measure.row_count, sizeof *work->values);
    work->search = search_create(work->calibration, &work->start, work->points_max);
    if (work->values == NULL || work->search == NULL) {
        cli_error("out of memory");
        return false;
    }
    return true;
}

static void work_free(struct work *work)
{
    search_destroy(work->search);
    free(work->values);
    free(work->rows);
    for (size_t i = 0; i < CALIBRATION_SCENARIOS_MAX; i++) {
        scn_free(work->scenarios[i]);
    }
    report_references_free(&work->references);
    calibration_free(work->calibration);
}

// "results/<name of the file>". To be freed.
static char *directory_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;
    const char *dot = strrchr(name, '.');
    char *directory = NULL;
    int length = dot != NULL && dot != name ? (int)(dot - name) : (int)strlen(name);
    return asprintf(&directory, "results/%.*s", length, name) >= 0 ? directory : NULL;
}

static enum cli_exit file_calibrate(struct calibrate_options *given, const char *path)
{
    struct cli_paths paths;
    struct work work = {.measure = {.paths = &paths}};
    enum cli_exit result = CLI_EXIT_INPUT;
    cli_paths_find(&paths);
    char *directory = given->out != NULL ? strdup(given->out) : directory_name(path);
    cli_progress_init(&work.progress, !given->quiet);
    work.measure.progress = &work.progress;
    if (directory != NULL && options_check(given, &work) && cli_output_directory_usable(directory)) {
        work.measure.fidelity = given->fidelity;
        cli_interrupt_loss_set("a calibration that is stopped leaves no results");
        if (work_prepare(&work, path) && points_search(&work)) {
            result = results_publish(&work, given, path, directory);
        }
        cli_interrupt_loss_set(NULL);
    }
    work_free(&work);
    free(directory);
    return result;
}

enum cli_exit cli_calibrate(int argc, char **argv)
{
    struct calibrate_options given = {0};
    struct cli_list files = {0};
    enum cli_exit result = CLI_EXIT_OK;
    enum cli_parsed parsed = cli_options_parse(&syntax, argc, argv, &given, &files);
    if (parsed == CLI_PARSED_RUN) {
        result = file_calibrate(&given, files.items[0]);
    }
    cli_list_free(&files);
    return parsed == CLI_PARSED_WRONG ? CLI_EXIT_INPUT : result;
}
