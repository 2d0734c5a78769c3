#include "sim/cli/job.h"

#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "sim/cli/expectations.h"
#include "sim/cli/interrupt.h"
#include "sim/cli/interval.h"
#include "sim/cli/page.h"
#include "sim/cli/printing.h"
#include "sim/cli/progress.h"
#include "sim/cli/series.h"
#include "sim/cli/sweep.h"
#include "sim/cli/waves.h"
#include "sim/report/json.h"
#include "sim/report/report.h"

struct running {
    const struct cli_job *job;
    report_t *report;
    junit_t *junit; // NULL: none
    struct cli_progress progress;
    struct cli_waves waves;
};

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

// After series with wrong data the programs still run, because they help to find the cause.
static enum cli_exit all_measure(struct running *running)
{
    const struct cli_series_all all = {.job = running->job,
                                       .report = running->report,
                                       .junit = running->junit,
                                       .progress = &running->progress,
                                       .waves = &running->waves};
    enum cli_exit result = cli_series_all_measure(&all);
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
              : all_measure(running);
    cli_progress_fini(&running->progress);
    if (running->job->draws != NULL && (sweep ? merged : result < CLI_EXIT_INPUT)) {
        result = cli_exit_worse(result, cli_interval_measure(running->job, running->report, &running->progress));
        merged = true;
    }
    if (sweep ? merged : merged || result < CLI_EXIT_INPUT) {
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
    return all_measure(&running);
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
