// `tcasim run`: reads and checks every file before it runs the first.
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cli/engine.h"
#include "sim/cli/interrupt.h"
#include "sim/cli/interval.h"
#include "sim/cli/job.h"
#include "sim/cli/pool.h"
#include "sim/cli/load.h"
#include "sim/cli/output.h"
#include "sim/cli/point.h"
#include "sim/cli/printing.h"
#include "sim/cli/side.h"
#include "sim/cli/junit.h"
#include "sim/report/summary.h"

struct run_options {
    const char *out;
    struct cli_list sets;
    const char *trace;
    struct cli_list trace_only;
    bool trace_causes;
    const char *jobs;
    uint32_t job_count; // of --jobs
    struct cli_engine_settings engine;
    const struct cli_engine *engine_chosen; // of --engine
    const char *interval;
    uint32_t draws; // of --interval
    const char *point;
    const char *junit;
    bool quiet, json, trace_rtl, fresh, update_baseline;
};

static const struct cli_option options[] = {
    {"out", "DIR", "write the results to DIR (default: results/<scenario name>)", CLI_OPTION_TEXT,
     offsetof(struct run_options, out)},
    {"set", "PATH=VALUE", "override a key; may be given several times", CLI_OPTION_LIST,
     offsetof(struct run_options, sets)},
    {"jobs", "N", "number of parallel scenarios, series or points of a sweep (default: the number of processors)",
     CLI_OPTION_TEXT, offsetof(struct run_options, jobs)},
    {"engine", "NAME", "measure the points of a sweep as processes (local, the default) or as a job array (slurm)",
     CLI_OPTION_TEXT, offsetof(struct run_options, engine.engine)},
    {"partition", "P", "with --engine slurm: the partition of the jobs (default: Slurm's)", CLI_OPTION_TEXT,
     offsetof(struct run_options, engine.partition)},
    {"array-size", "N", "with --engine slurm: at most N tasks, which share the points (default: Slurm's MaxArraySize)",
     CLI_OPTION_TEXT, offsetof(struct run_options, engine.array_size)},
    {"time", "T", "with --engine slurm: the time limit of a task, as sbatch takes it (default: Slurm's)",
     CLI_OPTION_TEXT, offsetof(struct run_options, engine.time)},
    {"detach", NULL, "with --engine slurm: return when the jobs are submitted", CLI_OPTION_FLAG,
     offsetof(struct run_options, engine.detach)},
    {"resume", NULL, "wait for the submitted jobs of a sweep and collect their points; submit and measure nothing",
     CLI_OPTION_FLAG, offsetof(struct run_options, engine.resume)},
    {"point", "K[:NAME]", "measure only point K of a sweep (from 1) into DIR/points, without results; jobs use this",
     CLI_OPTION_TEXT, offsetof(struct run_options, point)},
    {"interval", "N",
     "say how far each result can be trusted: the values that 5 and 95 % of N draws (default: all that\n"
     "                         there are) from the ranges of the presets are below",
     CLI_OPTION_MAYBE, offsetof(struct run_options, interval)},
    {"fresh", NULL, "measure every point of a sweep again", CLI_OPTION_FLAG, offsetof(struct run_options, fresh)},
    {"quiet", NULL, "print nothing but errors", CLI_OPTION_FLAG, offsetof(struct run_options, quiet)},
    {"json", NULL, "print the tables of each scenario as one JSON object, and no text", CLI_OPTION_FLAG,
     offsetof(struct run_options, json)},
    {"trace", "FILE.csv", "write every TLP at every end of a link; FILE.json: as trace events for Perfetto",
     CLI_OPTION_TEXT, offsetof(struct run_options, trace)},
    {"trace-causes", NULL, "also write a number for each record of the trace, and that of its cause", CLI_OPTION_FLAG,
     offsetof(struct run_options, trace_causes)},
    {"trace-only", "GLOB", "trace only matching components or points ('node0.*', tlp_sent); may be given several times",
     CLI_OPTION_LIST, offsetof(struct run_options, trace_only)},
    {"junit", "FILE.xml", "write the test results as JUnit XML", CLI_OPTION_TEXT, offsetof(struct run_options, junit)},
    {"update-baseline", NULL, "record the numbers of expectations with of: in their baseline files", CLI_OPTION_FLAG,
     offsetof(struct run_options, update_baseline)},
    {"trace-rtl", NULL, "write a waveform (FST) of each RTL board and series to DIR/waves", CLI_OPTION_FLAG,
     offsetof(struct run_options, trace_rtl)},
};

// Whether a word behind --interval is its number, and no file.
static bool is_number(const char *word)
{
    return word[0] != '\0' && strspn(word, "0123456789") == strlen(word);
}

static const char *const exclusive[] = {"quiet", "json", NULL};

static const struct cli_syntax syntax = {
    .exclusive = exclusive,
    .usage = "tcasim run [FILE.yaml...] [--out DIR] [--set PATH=VALUE]... [--quiet | --json]\n"
             "                  [--jobs N] [--interval [N]] [--fresh]\n"
             "                  [--trace FILE.csv [--trace-causes] [--trace-only GLOB]...]\n"
             "                  [--trace-rtl] [--junit FILE.xml] [--update-baseline] [--point K[:NAME]]\n"
             "                  [--engine local|slurm [--partition P] [--array-size N] [--time T]\n"
             "                   [--detach|--resume]]",
    .doc = "Runs each scenario, writes its results and prints them. Without a file it runs the ping-pong of\n"
           "hanawa2013, figures 7 and 8. With several files and --out, each one has its own directory in DIR.",
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .is_value = is_number,
    .operands_max = SIZE_MAX,
    .operand = "a scenario file",
};

static bool directory_choose(struct cli_job *job, const char *out, bool several)
{
    int length;
    if (out == NULL) {
        length = asprintf(&job->directory, "results/%s", job->scenario->name);
    } else if (several) {
        length = asprintf(&job->directory, "%s/%s", out, job->scenario->name);
    } else {
        length = asprintf(&job->directory, "%s", out);
    }
    if (length < 0) {
        job->directory = NULL;
        cli_error("out of memory");
    }
    return length >= 0;
}

static bool job_prepare(struct cli_job *job, const char *path, const struct cli_paths *paths,
                        const struct run_options *given, bool several)
{
    *job = (struct cli_job){.path = path,
                            .sets = &given->sets,
                            .paths = paths,
                            .jobs = given->job_count,
                            .fresh = given->fresh,
                            .engine = given->engine_chosen,
                            .engine_settings = &given->engine,
                            .reference_csv = paths->reference,
                            .quiet = given->quiet,
                            .json = given->json,
                            .trace_rtl = given->trace_rtl,
                            .update_baseline = given->update_baseline};
    job->scenario = cli_scenario_load(path, paths, &given->sets);
    if (job->scenario == NULL) {
        return false;
    }
    if (job->scenario->sweep != NULL && (given->trace != NULL || given->trace_rtl)) {
        cli_error("%s: a sweep cannot be traced", path);
        return false;
    }
    const char *needs = given->point != NULL                        ? "--point"
                        : given->engine_chosen != &cli_engine_local ? "--engine slurm"
                                                                    : NULL;
    if (job->scenario->sweep == NULL && given->draws == 0 && needs != NULL) {
        cli_error("%s: %s takes a scenario with a sweep, and this one has none", path, needs);
        return false;
    }
    if (scn_series(job->scenario, 0) == NULL && !cli_printing_is_asked(job->scenario)) {
        cli_error("%s: it has no runs, and no program with results or expectations; `tcasim exec` runs programs on it",
                  path);
        return false;
    }
    if (given->draws > 0 && (job->draws = cli_draws_read(job, given->draws)) == NULL) {
        return false;
    }
    cli_job_loss_set(job); // trying the folder makes it
    return directory_choose(job, given->out, several) && cli_output_directory_usable(job->directory);
}

// Two scenarios of the same name would overwrite each other's results.
static bool directories_differ(const struct cli_job *jobs, size_t count)
{
    bool differ = true;
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < i; k++) {
            if (jobs[i].directory != NULL && jobs[k].directory != NULL &&
                strcmp(jobs[i].directory, jobs[k].directory) == 0) {
                cli_error("%s and %s would both write to %s", jobs[k].path, jobs[i].path, jobs[i].directory);
                differ = false;
            }
        }
    }
    return differ;
}

static enum cli_exit jobs_run(struct cli_job *jobs, size_t count, const struct run_options *given)
{
    struct cli_trace trace;
    if (count > 1 && given->job_count > 1) { // there is no trace with several scenarios
        return cli_side_run(jobs, count, given->job_count);
    }
    const char *trace_path = given->trace;
    if (trace_path != NULL && !cli_trace_open(&trace, trace_path, &given->trace_only, given->trace_causes)) {
        return CLI_EXIT_INPUT;
    }
    enum cli_exit worst = CLI_EXIT_OK;
    for (size_t i = 0; i < count; i++) {
        jobs[i].trace = trace_path != NULL ? &trace : NULL;
        enum cli_exit result = given->point != NULL ? cli_point_run(&jobs[i], given->point) : cli_job_run(&jobs[i]);
        worst = result > worst ? result : worst;
    }
    // The trace of a run that got stuck is kept: it is needed to find the cause.
    if (trace_path != NULL && !cli_trace_close(&trace, true) && worst < CLI_EXIT_INPUT) {
        worst = CLI_EXIT_INPUT;
    }
    cli_interrupt_loss_set(NULL);
    return worst;
}

// What a run that merges no points cannot do.
static bool partial_right(const struct run_options *given, const char *option)
{
    const char *other = given->junit != NULL ? "--junit" : given->update_baseline ? "--update-baseline" : NULL;
    if (other != NULL) {
        cli_error("%s writes no results that %s could use", option, other);
    }
    return other == NULL;
}

static bool engine_right(struct run_options *given, size_t files)
{
    const struct cli_engine_settings *engine = &given->engine;
    given->engine_chosen = cli_engine_choose(engine);
    if (given->engine_chosen == NULL) {
        return false;
    }
    bool slurm = given->engine_chosen != &cli_engine_local;
    if (files > 1 && (slurm || given->point != NULL)) {
        cli_error("%s takes one scenario at a time", slurm ? "--engine slurm" : "--point");
        return false;
    }
    if (given->point != NULL && (engine->engine != NULL || engine->resume)) {
        cli_error("--point measures in this process; it takes no %s", engine->resume ? "--resume" : "--engine");
        return false;
    }
    if (engine->resume && given->fresh) {
        cli_error("--resume collects what was submitted; it takes no --fresh");
        return false;
    }
    return (given->point == NULL || partial_right(given, "--point")) &&
           (!engine->detach || partial_right(given, "--detach"));
}

static bool interval_right(struct run_options *given)
{
    given->draws = given->interval != NULL ? cli_interval_count("interval", given->interval) : 0;
    const char *other = given->interval == NULL ? NULL
                        : given->trace != NULL  ? "--trace"
                        : given->trace_rtl      ? "--trace-rtl"
                        : given->engine.detach  ? "--detach"
                        : given->engine.resume  ? "--resume"
                                                : NULL;
    if (other != NULL) {
        cli_error("--interval runs a scenario many times; it takes no %s", other);
    }
    return other == NULL && (given->interval == NULL || given->draws > 0);
}

static bool options_right(struct run_options *given, size_t files)
{
    if (!engine_right(given, files)) {
        return false;
    }
    if (!cli_jobs_read(given->jobs, &given->job_count)) {
        return false;
    }
    if (!interval_right(given)) {
        return false;
    }
    if (given->trace == NULL && given->trace_only.count > 0) {
        cli_error("--trace-only needs --trace FILE.csv");
        return false;
    }
    if (given->trace == NULL && given->trace_causes) {
        cli_error("--trace-causes needs --trace FILE.csv");
        return false;
    }
    if (given->trace != NULL && files > 1) {
        cli_error("--trace takes one scenario at a time");
        return false;
    }
    return true;
}

// Runs all jobs, and prints a table of all of them at the end.
static enum cli_exit jobs_summarize(struct cli_job *jobs, size_t count, const struct run_options *given)
{
    FILE *rows = given->quiet || given->json ? NULL : tmpfile();
    for (size_t i = 0; i < count; i++) {
        jobs[i].summary = rows;
    }
    enum cli_exit result = jobs_run(jobs, count, given);
    if (rows != NULL) {
        report_summary_print(rows, count > 1, stdout);
        (void)fclose(rows);
    }
    return result;
}

// Runs all jobs, and writes the file of --junit if requested.
static enum cli_exit jobs_test(struct cli_job *jobs, size_t count, const struct run_options *given,
                               const struct cli_paths *paths)
{
    struct cli_junit tests;
    const char **scenarios = calloc(count, sizeof *scenarios);
    for (size_t i = 0; i < count && scenarios != NULL; i++) {
        scenarios[i] = jobs[i].path;
    }
    enum cli_exit result = CLI_EXIT_INPUT;
    if (scenarios != NULL && cli_junit_begin(&tests, given->junit, scenarios, count, paths)) {
        for (size_t i = 0; i < count; i++) {
            jobs[i].suites = tests.suites;
        }
        result = jobs_summarize(jobs, count, given);
        result = cli_junit_end(&tests) ? result : cli_exit_worse(result, CLI_EXIT_INPUT);
    }
    free(scenarios);
    return result;
}

static enum cli_exit files_run(const struct run_options *given, const struct cli_list *files)
{
    struct cli_paths paths;
    cli_paths_find(&paths);
    size_t count = files->count > 0 ? files->count : 1;
    struct cli_job *jobs = calloc(count, sizeof *jobs);
    if (jobs == NULL) {
        cli_error("out of memory");
        return CLI_EXIT_INPUT;
    }
    bool right = true;
    for (size_t i = 0; i < count; i++) {
        const char *path = files->count > 0 ? files->items[i] : paths.main_scenario;
        right = job_prepare(&jobs[i], path, &paths, given, count > 1) && right;
    }
    right = directories_differ(jobs, count) && right;
    right = (given->trace == NULL || cli_output_usable(given->trace, jobs[0].path, &paths)) && right;
    enum cli_exit result = right ? jobs_test(jobs, count, given, &paths) : CLI_EXIT_INPUT;
    for (size_t i = 0; i < count; i++) {
        cli_draws_free(jobs[i].draws);
        scn_free(jobs[i].scenario);
        free(jobs[i].directory);
    }
    free(jobs);
    return result;
}

enum cli_exit cli_run(int argc, char **argv)
{
    struct run_options given = {0};
    struct cli_list files = {0};
    enum cli_exit result = CLI_EXIT_OK;
    enum cli_parsed parsed = cli_options_parse(&syntax, argc, argv, &given, &files);
    if (parsed == CLI_PARSED_RUN && !options_right(&given, files.count)) {
        parsed = CLI_PARSED_WRONG;
    }
    if (parsed == CLI_PARSED_RUN) {
        result = files_run(&given, &files);
    }
    cli_list_free(&given.sets);
    cli_list_free(&given.trace_only);
    cli_list_free(&files);
    return parsed == CLI_PARSED_WRONG ? CLI_EXIT_INPUT : result;
}
