#include "sim/cli/job.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/cli/expectations.h"
#include "sim/cli/interrupt.h"
#include "sim/cli/page.h"
#include "sim/cli/printing.h"
#include "sim/cli/progress.h"
#include "sim/cli/sweep.h"
#include "sim/cli/waves.h"
#include "sim/platform/platform.h"
#include "sim/report/json.h"
#include "sim/report/report.h"

struct running {
    const struct cli_job *job;
    report_t *report;
    junit_t *junit; // NULL: none
    struct cli_progress progress;
    struct cli_waves waves;
    uint32_t run_index;
};

static const char *series_of(const struct running *running)
{
    return running->job->scenario->runs[running->run_index].series;
}

static void point_take(void *ctx, const struct plat_point *point)
{
    struct running *running = ctx;
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
    report_add_point(running->report, &taken);
}

static void counter_take(void *ctx, const char *component, const struct sim_counter_desc *desc, uint64_t value)
{
    struct running *running = ctx;
    report_add_counter(running->report, series_of(running), component, desc->name, desc->unit, value);
}

static void trace_take(void *ctx, const struct sim_trace_record *record)
{
    struct running *running = ctx;
    cli_trace_write(running->job->trace, record);
}

static void fault_take(void *ctx, const struct plat_fault *fault)
{
    struct running *running = ctx;
    struct report_fault taken = {
        .series = series_of(running),
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
    report_add_fault(running->report, &taken);
}

static void progress_take(void *ctx, unsigned permille)
{
    struct running *running = ctx;
    unsigned all = (running->run_index * 1000 + permille) / running->job->scenario->run_count;
    cli_progress_update(&running->progress, all, series_of(running));
}

static enum cli_exit outcome_judge(const struct running *running, enum sim_status status,
                                   const struct plat_result *result)
{
    const char *path = running->job->path;
    if (status != SIM_OK) {
        cli_error("%s: series '%s': %s", path, series_of(running),
                  result->text[0] != '\0' ? result->text : sim_status_text(status));
        return CLI_EXIT_INPUT;
    }
    if (result->outcome == SIM_RUN_STUCK || result->outcome == SIM_RUN_TIME_LIMIT) {
        cli_error("%s: series '%s' %s after %llu ps of simulated time:\n%s", path, series_of(running),
                  result->outcome == SIM_RUN_STUCK ? "got stuck" : "reached the time limit",
                  (unsigned long long)result->simulated_ps, result->text);
        return CLI_EXIT_STUCK;
    }
    if (result->failed) {
        cli_error("%s: series '%s' failed: %s", path, series_of(running), result->text);
        return CLI_EXIT_EXPECT;
    }
    return CLI_EXIT_OK;
}

// Adds a testcase for a series: could it be measured?
static void series_add(const struct running *running, enum cli_exit result, const char *text)
{
    static const char *const messages[] = {[CLI_EXIT_EXPECT] = "the workload failed",
                                           [CLI_EXIT_INPUT] = "the series cannot be run",
                                           [CLI_EXIT_STUCK] = "the series got stuck, or reached the time limit"};
    char *name = NULL;
    if (result != CLI_EXIT_OK) {
        report_add_failure(running->report, series_of(running), messages[result]);
    }
    if (running->junit == NULL || asprintf(&name, "series %s", series_of(running)) < 0) {
        return;
    }
    junit_case_add(running->junit, name, 0,
                   result == CLI_EXIT_OK       ? JUNIT_PASSED
                   : result == CLI_EXIT_EXPECT ? JUNIT_FAILED
                                               : JUNIT_ERROR,
                   result != CLI_EXIT_OK ? messages[result] : NULL, text[0] != '\0' ? text : NULL);
    free(name);
}

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

static enum cli_exit series_run(struct running *running)
{
    const struct cli_job *job = running->job;
    char *waves = job->trace_rtl ? cli_waves_prefix(&running->waves, job->scenario, running->run_index) : NULL;
    if (job->trace != NULL) {
        job->trace->series = series_of(running);
    }
    const struct plat_options options = {.trace_rtl_path = waves};
    const struct plat_hooks hooks = {
        .ctx = running,
        .point = point_take,
        .counter = counter_take,
        .fault = fault_take,
        .trace = job->trace != NULL ? trace_take : NULL,
        .trace_causes = job->trace != NULL && job->trace->causes,
        .progress = progress_take,
    };
    struct plat_result result = {0};
    enum sim_status status = plat_run_series(job->scenario, running->run_index, &options, &hooks, &result);
    free(waves);
    report_add_run(running->report, series_of(running), result.simulated_ps, result.events, result.rtl_cycles);
    report_describe_run(running->report, boards_of(job->scenario, &job->scenario->runs[running->run_index]),
                        device_of(&job->scenario->runs[running->run_index]));
    cli_progress_fini(&running->progress); // a message must not follow the bar in its line
    enum cli_exit exit = outcome_judge(running, status, &result);
    series_add(running, exit, result.text);
    return exit;
}

static struct cli_judging judging_make(const struct running *running, enum cli_exit result)
{
    const struct cli_job *job = running->job;
    return (struct cli_judging){.path = job->path,
                                .scenario = job->scenario,
                                .junit = running->junit,
                                .summary = job->summary,
                                .flags = job->update_baseline ? REPORT_EXPECT_RECORD : 0,
                                .well = result == CLI_EXIT_OK,
                                .recorded = job->json ? stderr : stdout,
                                .confirmed = cli_job_prints(job) ? stdout : NULL,
                                .prefix = ""};
}

// The results as a page, if something is printed. They are complete without it.
static void page_make(const struct cli_job *job, bool wanted)
{
    char path[PATH_MAX], error[2 * PATH_MAX];
    const char *directory = job->directory;
    struct page_request request = cli_page_request(job->paths, &directory, 1);
    bool fits = (size_t)snprintf(path, sizeof path, "%s/report.html", directory) < sizeof path;
    request.name = job->scenario->name;
    if (fits && !wanted) {
        (void)unlink(path); // one of an earlier run would show other numbers
    } else if (fits && page_write(&request, path, error, sizeof error) == SIM_OK) {
        printf("Page: %s\n", path);
    } else {
        cli_error("%s", fits ? error : "the directory's name is too long for a page");
    }
}

static enum cli_exit results_publish(const struct running *running, enum cli_exit so_far)
{
    static const char *const tables[] = {"data.csv", "compare.csv", "counters.csv", NULL};
    const struct cli_job *job = running->job;
    char error[512] = "";
    cli_interrupt_hold();
    enum sim_status status = report_write(running->report, job->directory, job->path, error, sizeof error);
    cli_interrupt_release();
    if (status != SIM_OK) {
        cli_error("%s: %s", job->path, error);
        return CLI_EXIT_INPUT;
    }
    if (!job->trace_rtl) {
        cli_waves_clear(job->directory); // waveforms of an earlier run could be mistaken for these results
    }
    if (job->json && json_results_print(stdout, job->path, job->directory, tables, error, sizeof error) != SIM_OK) {
        cli_error("%s", error);
        return CLI_EXIT_INPUT;
    }
    if (cli_job_prints(job)) {
        report_print(running->report, stdout);
        if (report_point_count(running->report) > 0) {
            printf("\nResults: %s\n", job->directory);
        }
    }
    page_make(job, cli_job_prints(job) && report_point_count(running->report) > 0);
    fflush(stdout);
    const struct cli_judging judging = judging_make(running, so_far);
    return cli_expectations_judge(&judging, running->report);
}

// A series that got stuck or could not be built ends the scenario. After one that found wrong data the others still
// run, because they help to find the cause.
static enum cli_exit all_series_run(struct running *running)
{
    enum cli_exit result = CLI_EXIT_OK;
    for (uint32_t i = 0; i < running->job->scenario->run_count && result < CLI_EXIT_INPUT; i++) {
        running->run_index = i;
        result = cli_exit_worse(result, series_run(running));
    }
    if (result < CLI_EXIT_INPUT && cli_printing_is_asked(running->job->scenario)) {
        result = cli_exit_worse(result, cli_printing_measure(running->job, running->report, running->junit));
    }
    return result;
}

static enum cli_exit report_run(struct running *running)
{
    cli_progress_init(&running->progress, !running->job->quiet);
    bool sweep = running->job->scenario->sweep != NULL;
    bool merged = false; // the other points of a sweep are still useful
    enum cli_exit result =
        sweep ? cli_sweep_run(running->job, running->report, &running->progress, running->junit, &merged)
              : all_series_run(running);
    cli_progress_fini(&running->progress);
    if (sweep ? merged : result < CLI_EXIT_INPUT) {
        result = cli_exit_worse(result, results_publish(running, result));
    } else if (result != CLI_EXIT_OK) {
        const struct cli_judging judging = judging_make(running, result);
        cli_expectations_skip(&judging, running->report, "the simulation did not complete");
        report_faults_print(running->report, stderr); // there are no results that would show them
    }
    return result;
}

enum cli_exit cli_job_measure(const struct cli_job *job, report_t *report)
{
    struct running running = {.job = job, .report = report};
    cli_progress_init(&running.progress, false);
    return all_series_run(&running);
}

enum cli_exit cli_job_series_measure(const struct cli_job *job, uint32_t run_index, report_t *report, junit_t *junit)
{
    struct running running = {.job = job, .report = report, .junit = junit, .run_index = run_index};
    cli_progress_init(&running.progress, false);
    return series_run(&running);
}

static void suite_begin(struct running *running)
{
    running->junit = junit_create();
    junit_suite_begin(running->junit, running->job->scenario->name, running->job->path);
}

static void suite_end(struct running *running)
{
    if (running->junit != NULL) {
        junit_suites_write(running->junit, running->job->suites);
        fflush(running->job->suites);
        junit_destroy(running->junit);
    }
}

void cli_job_loss_set(const struct cli_job *job)
{
    cli_interrupt_loss_set(job->scenario->sweep != NULL
                               ? "finished points are kept, and the same command continues from there"
                               : "the scenario that was running leaves no results");
}

enum cli_exit cli_job_run(const struct cli_job *job)
{
    struct running running = {.job = job};
    if (job->suites != NULL) {
        suite_begin(&running);
    }
    enum sim_status status = report_create(job->scenario, job->reference_csv, &running.report);
    if (status != SIM_OK) {
        cli_error("%s: %s", job->reference_csv, sim_status_text(status));
        suite_end(&running);
        return CLI_EXIT_INPUT;
    }
    for (size_t i = 0; i < job->sets->count; i++) {
        report_add_set(running.report, job->sets->items[i]);
    }
    enum cli_exit result = CLI_EXIT_INPUT;
    cli_job_loss_set(job);
    if (!job->trace_rtl || cli_waves_init(&running.waves, job->directory)) {
        result = report_run(&running);
    }
    cli_waves_fini(&running.waves);
    suite_end(&running);
    report_destroy(running.report);
    return result;
}
