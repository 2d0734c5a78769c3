// `tcasim crosscheck`: runs every series on two neighbouring fidelities and compares them.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sim/cli/agreement.h"
#include "sim/cli/load.h"
#include "sim/cli/progress.h"
#include "sim/kernel/text.h"
#include "sim/platform/platform.h"

// --- results of a series --------------------------------------------------------------------------------------------

struct tally {
    struct agreement_rule rule;
    struct agreement agreement;
    double seconds[2];
    struct cli_progress progress;
    uint64_t begun, all; // runs of series
    const char *series;  // that runs
};

struct outcome {
    struct tally *tally;
    struct agreement_side side;
    char *ending; // owned; NULL: the series could not be run
    double seconds;
    bool out_of_memory;
};

// Grows an array by one element of size bytes; NULL: no memory.
static void *grown(struct outcome *outcome, void *items, size_t count, size_t size)
{
    void *more = realloc(items, (count + 1) * size);
    outcome->out_of_memory = outcome->out_of_memory || more == NULL;
    return more;
}

static void point_take(void *ctx, const struct plat_point *point)
{
    struct outcome *outcome = ctx;
    struct plat_point *points = grown(outcome, outcome->side.points, outcome->side.point_count, sizeof *points);
    if (points != NULL) {
        outcome->side.points = points;
        points[outcome->side.point_count++] = *point;
    }
}

static void counter_take(void *ctx, const char *component, const struct sim_counter_desc *desc, uint64_t value)
{
    struct outcome *outcome = ctx;
    struct agreement_counter *counters =
        grown(outcome, outcome->side.counters, outcome->side.counter_count, sizeof *counters);
    if (counters == NULL) {
        return;
    }
    outcome->side.counters = counters;
    counters[outcome->side.counter_count] = (struct agreement_counter){strdup(component), desc, value};
    outcome->out_of_memory = outcome->out_of_memory || counters[outcome->side.counter_count].component == NULL;
    outcome->side.counter_count++;
}

static void counters_drop(struct outcome *outcome)
{
    for (size_t i = 0; i < outcome->side.counter_count; i++) {
        free(outcome->side.counters[i].component);
    }
    outcome->side.counter_count = 0;
}

static void outcome_free(struct outcome *outcome)
{
    counters_drop(outcome);
    free(outcome->side.counters);
    free(outcome->side.points);
    free(outcome->ending);
}

static void progress_take(void *ctx, unsigned permille)
{
    struct tally *tally = ((struct outcome *)ctx)->tally;
    unsigned all = (unsigned)(((tally->begun - 1) * 1000 + permille) / tally->all);
    cli_progress_update(&tally->progress, all, tally->series);
}

// --- running --------------------------------------------------------------------------------------------------------

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

// The end of a series in words; "" if it completed.
static char *ending_describe(const struct plat_result *result)
{
    char *text = NULL;
    int length = 0;
    if (result->outcome == SIM_RUN_STUCK) {
        length = asprintf(&text, "got stuck:\n%s", result->text);
    } else if (result->outcome == SIM_RUN_TIME_LIMIT) {
        length = asprintf(&text, "reached the time limit:\n%s", result->text);
    } else if (result->failed) {
        length = asprintf(&text, "failed: %s", result->text);
    } else {
        text = strdup("");
    }
    return length >= 0 ? text : NULL;
}

static enum cli_exit exit_of(const struct plat_result *result)
{
    if (result->outcome == SIM_RUN_STUCK || result->outcome == SIM_RUN_TIME_LIMIT) {
        return CLI_EXIT_STUCK;
    }
    return result->failed ? CLI_EXIT_EXPECT : CLI_EXIT_OK;
}

static enum cli_exit series_run(const char *path, struct scn_scenario *scenario, uint32_t run_index,
                                const struct agreement_rung *rung, struct outcome *outcome)
{
    scenario->fidelity = rung->fidelity;
    for (uint32_t i = 0; i < scenario->node_count; i++) {
        scenario->nodes[i].board.fidelity = rung->fidelity;
    }
    const struct plat_hooks hooks = {
        .ctx = outcome, .point = point_take, .counter = counter_take, .progress = progress_take};
    struct plat_result result = {0};
    double begun = seconds_now();
    enum sim_status status = plat_run_series(scenario, run_index, NULL, &hooks, &result);
    outcome->seconds = seconds_now() - begun;
    outcome->ending = status == SIM_OK ? ending_describe(&result) : NULL;
    if (outcome->ending == NULL || outcome->out_of_memory) {
        cli_error("%s: series '%s' on %s: %s", path, scenario->runs[run_index].series, rung->name,
                  result.text[0] != '\0' ? result.text
                                         : sim_status_text(status != SIM_OK ? status : SIM_ERR_NO_MEMORY));
        return CLI_EXIT_INPUT;
    }
    outcome->side.ending = outcome->ending;
    return exit_of(&result);
}

static void heading_print(const char *path, const char *series, bool json)
{
    if (json) {
        fputs("{\"scenario\":", stdout);
        sim_text_quote(stdout, path);
        fputs(",\"series\":", stdout);
        sim_text_quote(stdout, series);
    } else {
        printf("%s: %s\n", path, series);
    }
}

// A series may also get stuck or fail: then it must do so on both kinds of board in the same way.
static enum cli_exit series_check(const char *path, struct scn_scenario *scenario, uint32_t run_index,
                                  struct tally *tally)
{
    struct outcome outcomes[2] = {{.tally = tally}, {.tally = tally}};
    enum cli_exit result = CLI_EXIT_OK;
    for (unsigned i = 0; i < 2; i++) {
        tally->begun++;
        tally->series = scenario->runs[run_index].series;
        result = cli_exit_worse(result, series_run(path, scenario, run_index, &tally->rule.rungs[i], &outcomes[i]));
        cli_progress_fini(&tally->progress);
        tally->seconds[i] += outcomes[i].seconds;
    }
    if (tally->rule.estimates && scenario->runs[run_index].beside.given) {
        // A flow beside moves as many whole messages as fit into the time of the measured one: not the same number.
        counters_drop(&outcomes[0]);
        counters_drop(&outcomes[1]);
    }
    if (outcomes[0].side.ending != NULL && outcomes[1].side.ending != NULL) {
        heading_print(path, scenario->runs[run_index].series, tally->agreement.json);
        agreement_compare(&outcomes[0].side, &outcomes[1].side, &tally->agreement, stdout);
        fputs(tally->agreement.json ? "}\n" : "", stdout);
        fflush(stdout);
    }
    outcome_free(&outcomes[0]);
    outcome_free(&outcomes[1]);
    return result;
}

static enum cli_exit all_series_check(const char *path, struct scn_scenario *scenario, struct tally *tally)
{
    enum cli_exit result = CLI_EXIT_OK;
    for (uint32_t i = 0; i < scenario->run_count; i++) {
        result = cli_exit_worse(result, series_check(path, scenario, i, tally));
    }
    return result;
}

// Checks the series of every point of a sweep.
static enum cli_exit sweep_check(const char *path, const struct cli_paths *paths, const struct cli_list *sets,
                                 const struct scn_sweep *sweep, struct tally *tally)
{
    enum cli_exit result = CLI_EXIT_OK;
    for (uint32_t i = 0; i < sweep->point_count; i++) {
        char *name = NULL;
        struct scn_scenario *point = cli_point_load(path, paths, sets, &sweep->points[i], NULL);
        bool named = asprintf(&name, "%s (%s)", path, sweep->points[i].label) >= 0;
        result = cli_exit_worse(result, point != NULL && named ? all_series_check(name, point, tally) : CLI_EXIT_INPUT);
        free(named ? name : NULL);
        scn_free(point);
    }
    return result;
}

struct options {
    struct cli_list sets;
    const char *against, *within;
    bool json, all;
};

// false: reported.
static bool rule_find(const struct options *options, struct agreement_rule *rule_out)
{
    bool flow = options->against != NULL && strcmp(options->against, "flow") == 0;
    *rule_out = flow ? agreement_of_flow : agreement_of_twins;
    if (options->against != NULL && !flow && strcmp(options->against, "twin") != 0) {
        cli_error("--against takes twin or flow, not '%s'", options->against);
        return false;
    }
    if (options->within != NULL) {
        double percent;
        if (!cli_percent_read(options->within, &percent) || percent > 100) {
            cli_error("--within takes a percentage from 0 to 100, such as '3 %%', not '%s'", options->within);
            return false;
        }
        rule_out->latency_percent = rule_out->bandwidth_percent = percent;
    }
    return true;
}

// Both runs are of one fidelity each.
static bool gives_fidelity(const char *set)
{
    return scn_set_gives(set, "fidelity") || strstr(set, "fidelity:") != NULL;
}

static bool fidelity_is_refused(const char *path, const char *const *sets, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (gives_fidelity(sets[i])) {
            cli_error(
                "%s%s%s: crosscheck runs all boards on one fidelity and then on the other; --against chooses which",
                path != NULL ? path : "--set", path != NULL ? ": sweep: " : " ", sets[i]);
            return true;
        }
    }
    return false;
}

static enum cli_exit file_check(const char *path, const struct cli_paths *paths, const struct options *options)
{
    struct tally tally = {0};
    if (!rule_find(options, &tally.rule)) {
        return CLI_EXIT_INPUT;
    }
    tally.agreement.rule = &tally.rule;
    tally.agreement.json = options->json;
    tally.agreement.all = options->all;
    struct scn_scenario *scenario = cli_scenario_load(path, paths, &options->sets);
    if (scenario == NULL) {
        return CLI_EXIT_INPUT;
    }
    const struct scn_sweep *sweep = scenario->sweep;
    if (sweep != NULL && fidelity_is_refused(path, sweep->points[0].sets, sweep->points[0].set_count)) {
        scn_free(scenario);
        return CLI_EXIT_INPUT;
    }
    uint64_t points = scenario->sweep != NULL ? scenario->sweep->point_count : 1;
    tally.all = 2 * points * scenario->run_count;
    cli_progress_init(&tally.progress, true);
    enum cli_exit result = scenario->sweep != NULL ? sweep_check(path, paths, &options->sets, scenario->sweep, &tally)
                                                   : all_series_check(path, scenario, &tally);
    const struct agreement *all = &tally.agreement;
    if (options->json) {
        fputs("{\"scenario\":", stdout);
        sim_text_quote(stdout, path);
        printf(",\"points\":%zu,\"latency_percent\":%.4f,\"bandwidth_percent\":%.4f,\"counters\":%zu,\"free\":%zu,"
               "\"differ\":%zu}\n",
               all->points, all->latency_percent, all->bandwidth_percent, all->counters, all->free, all->wrong);
    } else {
        printf("%s: %zu points, largest difference of a latency %.4f %%, of a bandwidth %.4f %%; %zu counters", path,
               all->points, all->latency_percent, all->bandwidth_percent, all->counters);
        if (all->free > 0) {
            printf(", of which %zu %s have other values", all->free,
                   all->rule->estimates ? "estimates and counts of what takes time" : "counts of what takes time");
        }
        printf("; %zu differ; %s %.2f s, %s %.2f s\n", all->wrong, all->rule->rungs[0].name, tally.seconds[0],
               all->rule->rungs[1].name, tally.seconds[1]);
    }
    scn_free(scenario);
    return agreement_exit(all, result);
}

enum cli_exit cli_crosscheck(int argc, char **argv)
{
    struct cli_list files = {0};
    struct options values = {0};
    static const struct cli_option options[] = {
        {"set", "PATH=VALUE", "override a key; may be given several times", CLI_OPTION_LIST,
         offsetof(struct options, sets)},
        {"against", "FIDELITY", "twin (the default): RTL boards and their twins; flow: twins and flow", CLI_OPTION_TEXT,
         offsetof(struct options, against)},
        {"within", "PERCENT", "limit of the differences of latencies and bandwidths, instead of the usual one",
         CLI_OPTION_TEXT, offsetof(struct options, within)},
        {"all", NULL,
         "print also the counters that need not be equal: what takes time, and the packets that flow "
         "estimates",
         CLI_OPTION_FLAG, offsetof(struct options, all)},
        {"json", NULL, "print a JSON object for each series, and one with the sums", CLI_OPTION_FLAG,
         offsetof(struct options, json)},
    };
    const struct cli_syntax syntax = {
        .usage = "tcasim crosscheck FILE.yaml... [--against twin|flow] [--within PERCENT]\n"
                 "       [--set PATH=VALUE]... [--all] [--json]",
        .doc =
            "Runs every series twice, on RTL boards and on their twins, and compares. Of a sweep it runs every point.\n"
            "Exit status 1 if a latency differs by more than 2 %, a bandwidth by more than 1 %, any count of\n"
            "packets or bytes at all, or the end of a series; that of `run` if both ended badly in the same way.\n"
            "--against flow: twins against flow; mean latencies and bandwidths within 3 %, bytes within 0.1 %.",
        .options = options,
        .option_count = sizeof options / sizeof options[0],
        .operands_min = 1,
        .operands_max = SIZE_MAX,
        .operand = "a scenario file",
    };
    enum cli_exit result = CLI_EXIT_OK;
    enum cli_parsed parsed = cli_options_parse(&syntax, argc, argv, &values, &files);
    if (parsed == CLI_PARSED_RUN &&
        fidelity_is_refused(NULL, (const char *const *)values.sets.items, values.sets.count)) {
        parsed = CLI_PARSED_WRONG;
    }
    if (parsed == CLI_PARSED_RUN) {
        struct cli_paths paths;
        cli_paths_find(&paths);
        for (size_t i = 0; i < files.count; i++) {
            enum cli_exit one = file_check(files.items[i], &paths, &values);
            result = one > result ? one : result;
        }
    }
    cli_list_free(&values.sets);
    cli_list_free(&files);
    return parsed == CLI_PARSED_WRONG ? CLI_EXIT_INPUT : result;
}
