#include "sim/cli/series.h"

#include <stdio.h>
#include <stdlib.h>

#include "sim/platform/platform.h"

_Static_assert(sizeof((struct cli_series *)0)->text >= sizeof((struct plat_result *)0)->text,
               "room for a result's text");

const char *cli_series_name(const struct cli_series *series)
{
    return series->job->scenario->runs[series->run_index].series;
}

// --- what it reports ------------------------------------------------------------------------------------------------

static void point_take(void *ctx, const struct plat_point *point)
{
    struct cli_series *series = ctx;
    const struct report_point taken = {
        .series = point->series,
        .bytes = point->bytes,
        .descriptors = point->descriptors,
        .operations = point->operations,
        .total_ps = point->total_ps,
        .min_ps = point->min_ps,
        .max_ps = point->max_ps,
        .ranks = point->ranks,
        .memory_bytes = point->memory_bytes,
    };
    report_add_point(series->report, &taken);
}

static void counter_take(void *ctx, const char *component, const struct sim_counter_desc *desc, uint64_t value)
{
    struct cli_series *series = ctx;
    report_add_counter(series->report, cli_series_name(series), component, desc->name, desc->unit, value);
}

static void trace_take(void *ctx, const struct sim_trace_record *record)
{
    struct cli_series *series = ctx;
    cli_trace_write(series->job->trace, record);
}

static void fault_take(void *ctx, const struct plat_fault *fault)
{
    struct cli_series *series = ctx;
    struct report_fault taken = {
        .series = cli_series_name(series),
        .what = fault->what,
        .happened = fault->happened,
        .at_ps = fault->at_ps,
        .after_start_ps = fault->after_start_ps,
        .back_ps = fault->back_ps,
    };
    for (unsigned side = 0; side < 2; side++) {
        const struct plat_fault_end *end = &fault->ends[side];
        taken.ends[side] = (struct report_fault_end){end->name, end->sent, end->lost, end->dropped};
    }
    report_add_fault(series->report, &taken);
}

static void progress_take(void *ctx, unsigned permille)
{
    struct cli_series *series = ctx;
    unsigned all = (series->run_index * 1000 + permille) / series->job->scenario->run_count;
    cli_progress_update(series->progress, all, cli_series_name(series));
    if (series->permille != NULL) {
        *series->permille = permille;
    }
}

// --- how it ends ----------------------------------------------------------------------------------------------------

static enum cli_exit outcome_judge(const struct cli_series *series, enum sim_status status,
                                   const struct plat_result *result)
{
    const char *path = series->job->path;
    if (status != SIM_OK) {
        cli_error("%s: series '%s': %s", path, cli_series_name(series),
                  result->text[0] != '\0' ? result->text : sim_status_text(status));
        return CLI_EXIT_INPUT;
    }
    if (result->outcome == SIM_RUN_STUCK || result->outcome == SIM_RUN_TIME_LIMIT) {
        cli_error("%s: series '%s' %s after %llu ps of simulated time:\n%s", path, cli_series_name(series),
                  result->outcome == SIM_RUN_STUCK ? "got stuck" : "reached the time limit",
                  (unsigned long long)result->simulated_ps, result->text);
        return CLI_EXIT_STUCK;
    }
    if (result->failed) {
        cli_error("%s: series '%s' failed: %s", path, cli_series_name(series), result->text);
        return CLI_EXIT_EXPECT;
    }
    return CLI_EXIT_OK;
}

void cli_series_judge(const struct cli_series *series, enum cli_exit result, junit_t *junit)
{
    static const char *const messages[] = {[CLI_EXIT_EXPECT] = "the workload failed",
                                           [CLI_EXIT_INPUT] = "the series cannot be run",
                                           [CLI_EXIT_STUCK] = "the series got stuck, or reached the time limit"};
    char *name = NULL;
    if (result != CLI_EXIT_OK) {
        report_add_failure(series->report, cli_series_name(series), messages[result]);
    }
    if (junit == NULL || asprintf(&name, "series %s", cli_series_name(series)) < 0) {
        return;
    }
    junit_case_add(junit, name, 0,
                   result == CLI_EXIT_OK       ? JUNIT_PASSED
                   : result == CLI_EXIT_EXPECT ? JUNIT_FAILED
                                               : JUNIT_ERROR,
                   result != CLI_EXIT_OK ? messages[result] : NULL, series->text[0] != '\0' ? series->text : NULL);
    free(name);
}

// --- from its beginning to its end ----------------------------------------------------------------------------------

// The fidelity of the boards that it uses.
static const char *boards_of(const struct scn_scenario *scenario, const struct scn_run *run)
{
    static const char *const names[] = {"", "rtl", "twin", "both", "flow", "rtl and flow", "twin and flow", "all"};
    unsigned found = 0; // one bit for each fidelity
    for (uint32_t i = 0; i < scenario->node_count && run->verbs.device != SCN_DEVICE_IBSIM0; i++) {
        const struct scn_board *board = &scenario->nodes[i].board;
        found |= board->given ? 1u << board->fidelity : 0;
    }
    return names[found];
}

static const char *device_of(const struct scn_run *run)
{
    static const char *const names[] = {
        [SCN_DEVICE_NONE] = "", [SCN_DEVICE_TCA0] = "tca0", [SCN_DEVICE_IBSIM0] = "ibsim0"};
    return names[run->verbs.device];
}

enum cli_exit cli_series_measure(struct cli_series *series)
{
    const struct cli_job *job = series->job;
    char *waves = job->trace_rtl ? cli_waves_prefix(series->waves, job->scenario, series->run_index) : NULL;
    if (job->trace != NULL) {
        job->trace->series = cli_series_name(series);
    }
    const struct plat_options options = {.trace_rtl_path = waves};
    const struct plat_hooks hooks = {
        .ctx = series,
        .point = point_take,
        .counter = counter_take,
        .fault = fault_take,
        .trace = job->trace != NULL ? trace_take : NULL,
        .trace_causes = job->trace != NULL && job->trace->causes,
        .progress = progress_take,
    };
    struct plat_result result = {0};
    enum sim_status status = plat_run_series(job->scenario, series->run_index, &options, &hooks, &result);
    free(waves);
    report_add_run(series->report, cli_series_name(series), result.simulated_ps, result.events, result.rtl_cycles);
    report_describe_run(series->report, boards_of(job->scenario, &job->scenario->runs[series->run_index]),
                        device_of(&job->scenario->runs[series->run_index]));
    cli_progress_fini(series->progress); // a message must not follow the bar in its line
    snprintf(series->text, sizeof series->text, "%s", result.text);
    return outcome_judge(series, status, &result);
}

// --- all of them ----------------------------------------------------------------------------------------------------

static enum cli_exit in_turn_measure(const struct cli_series_all *all)
{
    struct cli_series series = {.job = all->job, .report = all->report, .progress = all->progress, .waves = all->waves};
    enum cli_exit worst = CLI_EXIT_OK;
    for (uint32_t i = 0; i < all->job->scenario->run_count && worst < CLI_EXIT_INPUT; i++) {
        series.run_index = i;
        enum cli_exit result = cli_series_measure(&series);
        cli_series_judge(&series, result, all->junit);
        worst = cli_exit_worse(worst, result);
    }
    return worst;
}

enum cli_exit cli_series_all_measure(const struct cli_series_all *all)
{
    const struct cli_job *job = all->job;
    bool traced = job->trace != NULL || job->trace_rtl; // into one file, or into files of this process
    bool abreast = job->jobs > 1 && job->scenario->run_count > 1 && !traced;
    return abreast ? cli_series_abreast_measure(all) : in_turn_measure(all);
}
