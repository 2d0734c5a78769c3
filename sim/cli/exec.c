// `tcasim exec`: programs of the machine on the nodes of a scenario.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cli/load.h"
#include "sim/cli/observing.h"
#include "sim/cli/paths.h"
#include "sim/cli/programs.h"
#include "sim/cli/seeds.h"
#include "sim/cli/selection.h"
#include "sim/report/report.h"

enum { WALL_LIMIT_S = 60, WALL_LIMIT_MAX_S = 86400 };

struct exec_options {
    struct cli_list nodes;
    struct cli_list sets;
    const char *wall_limit, *out, *crossings;
    struct cli_observing_options observing;
    struct cli_seeds_options seeds;
    bool functional, together, any_cpu, gpu_mpi;
};

static const struct cli_option options[] = {
    {"on", "NODE", "the program that follows runs on this node; may be given more than once", CLI_OPTION_LIST,
     offsetof(struct exec_options, nodes)},
    {"set", "PATH=VALUE", "override a key; may be given more than once", CLI_OPTION_LIST,
     offsetof(struct exec_options, sets)},
    {"out", "DIR", "write counters.csv, the manifest and exec.yaml with the run's hash there", CLI_OPTION_TEXT,
     offsetof(struct exec_options, out)},
    {"crossings", "FILE", "write a line for every turn of a program there: what two runs are compared by",
     CLI_OPTION_TEXT, offsetof(struct exec_options, crossings)},
    {"trace", "FILE.csv", "write every TLP, packet and verbs call, in the order of simulated time", CLI_OPTION_TEXT,
     offsetof(struct exec_options, observing.trace)},
    {"trace-only", "GLOB", "only components or points of that name ('*.verbs', tlp_sent); may be given more than once",
     CLI_OPTION_LIST, offsetof(struct exec_options, observing.trace_only)},
    {"explain", "SELECT",
     "where the time of an operation goes: of each kind the median, or 'send 4 KiB #100', 'write qp 5'",
     CLI_OPTION_MAYBE, offsetof(struct exec_options, observing.explain)},
    {"timeline", "FILE.json", "with --explain: the paths as a trace for Perfetto or chrome://tracing", CLI_OPTION_TEXT,
     offsetof(struct exec_options, observing.timeline)},
    {"summary", NULL, "print what each program did at the end: operations, rates, waits, and hints", CLI_OPTION_FLAG,
     offsetof(struct exec_options, observing.summary)},
    {"quiet-diagnosis", NULL, "no lines for refused verbs calls and completions in error", CLI_OPTION_FLAG,
     offsetof(struct exec_options, observing.quiet_diagnosis)},
    {"adversarial", "SEED",
     "whatever the specification leaves open happens: late, batched, retried, other schedules; drawn from the seed",
     CLI_OPTION_TEXT, offsetof(struct exec_options, seeds.adversarial)},
    {"seeds", "A..B", "run with each of these seeds, side by side, and name those that fail", CLI_OPTION_TEXT,
     offsetof(struct exec_options, seeds.seeds)},
    {"jobs", "N", "with --seeds: how many runs side by side (default: the processors)", CLI_OPTION_TEXT,
     offsetof(struct exec_options, seeds.jobs)},
    {"functional", NULL, "without simulated time: real clocks, threads run freely", CLI_OPTION_FLAG,
     offsetof(struct exec_options, functional)},
    {"together", NULL, "start all programs at once, not each when those before wait for others", CLI_OPTION_FLAG,
     offsetof(struct exec_options, together)},
    {"wall-limit", "SECONDS",
     "how long a program may run without calling in, or all may wait (default: 60; with --functional: for ever)",
     CLI_OPTION_TEXT, offsetof(struct exec_options, wall_limit)},
    {"gpu-mpi", NULL, "the MPI of the programs takes pointers to device memory (docs/attached-programs.md)",
     CLI_OPTION_FLAG, offsetof(struct exec_options, gpu_mpi)},
    {"any-cpu", NULL, "let the machine choose on which processors simulator and programs run", CLI_OPTION_FLAG,
     offsetof(struct exec_options, any_cpu)},
};

static const struct cli_syntax syntax = {
    .usage = "tcasim exec FILE.yaml [--on NODE 'PROGRAM ARGUMENT...']... [--set PATH=VALUE]... [--out DIR]\n"
             "                   [--trace FILE.csv [--trace-only GLOB]...] [--summary] [--quiet-diagnosis]\n"
             "                   [--explain [SELECT] [--timeline FILE.json]]\n"
             "                   [--adversarial SEED | --seeds A..B [--jobs N]]\n"
             "                   [--crossings FILE] [--functional] [--together] [--wall-limit SECONDS] [--gpu-mpi] "
             "[--any-cpu]",
    .doc =
        "Runs programs of this machine on the nodes of the scenario, those of its key `programs` and then those given\n"
        "here: they see its devices and its time. Their output is their own; the exit status is the worst of theirs,\n"
        "2 or 3 where the simulation could not go on. A node with a board has the device tca0, one with an HCA "
        "ibsim0;\n"
        "where it has both, perftest takes tca0 unless told otherwise (-d ibsim0).",
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .operands_min = 1,
    .operands_max = 1 + ATTACH_RUN_PROGRAMS_MAX,
    .is_value = cli_selection_is,
    .operand = "a scenario file",
};

static bool node_find(const struct scn_scenario *scenario, const char *name, uint32_t *node_out)
{
    const char *names[SCN_NODES_MAX];
    for (uint32_t i = 0; i < scenario->node_count; i++) {
        names[i] = scenario->nodes[i].name;
        if (strcmp(names[i], name) == 0) {
            *node_out = i;
            return true;
        }
    }
    const char *nearest = cli_nearest(name, names, scenario->node_count);
    if (nearest != NULL) {
        cli_error("--on %s: there is no such node; did you mean '%s'?", name, nearest);
    } else {
        cli_error("--on %s: there is no such node", name);
    }
    return false;
}

static bool programs_read(struct cli_programs *programs, const struct scn_scenario *scenario,
                          const struct exec_options *given, const struct cli_list *operands)
{
    if (given->nodes.count != operands->count - 1) {
        cli_error("every program follows an --on NODE: there are %zu of these and %zu programs", given->nodes.count,
                  operands->count - 1);
        return false;
    }
    if (!cli_programs_of_scenario(programs, scenario)) {
        return false;
    }
    for (uint32_t i = 0; i < given->nodes.count; i++) {
        uint32_t node;
        if (!node_find(scenario, given->nodes.items[i], &node) ||
            !cli_programs_add(programs, scenario, node, operands->items[i + 1])) {
            return false;
        }
    }
    for (uint32_t i = 0; i < programs->count; i++) {
        programs->list[i].gpu_mpi = programs->list[i].gpu_mpi || given->gpu_mpi;
    }
    if (programs->count == 0) {
        cli_error("there is nothing to run: the scenario has no programs, and none follows an --on NODE");
    }
    return programs->count > 0;
}

// --- results --------------------------------------------------------------------------------------------------------

struct executing {
    report_t *report; // NULL: no results are written
    struct cli_observing observing;
};

static void counter_take(void *ctx, const char *component, const struct sim_counter_desc *desc, uint64_t value)
{
    struct executing *executing = ctx;
    report_add_counter(executing->report, "exec", component, desc->name, desc->unit, value);
}

static void trace_take(void *ctx, uint64_t time_ps, const char *component, const struct sim_trace_point *point,
                       const uint64_t *values)
{
    cli_observing_trace(&((struct executing *)ctx)->observing, time_ps, component, point, values);
}

static void diagnosis_take(void *ctx, const char *line)
{
    (void)ctx;
    cli_observing_diagnosis(line);
}

static void observed_take(void *ctx, observe_t *observe)
{
    cli_observing_take(&((struct executing *)ctx)->observing, observe);
}

static bool hash_write(const struct exec_options *given, const struct cli_programs *programs,
                       const struct attach_run_result *result, const char *verbs)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/exec.yaml", given->out);
    FILE *file = fopen(path, "w");
    if (file == NULL) {
        cli_error("%s cannot be written", path);
        return false;
    }
    fprintf(file, "# Every grant to a program, its simulated time, and all events; equal from run to run.\n");
    fprintf(file, "hash: %016llx\ncrossings: %llu\nsimulated_ps: %llu\n", (unsigned long long)result->hash,
            (unsigned long long)result->crossings, (unsigned long long)result->simulated_ps);
    if (given->seeds.adversarial != NULL) {
        fprintf(file, "adversarial: %s\n", given->seeds.adversarial);
    }
    cli_programs_outside_tell(result, "# Another run may differ", file);
    fprintf(file, "programs:\n");
    for (uint32_t i = 0; i < programs->count; i++) {
        fprintf(file, "  - {program: %s, status: %d}\n", programs->list[i].argv[0], result->statuses[i]);
    }
    fputs(verbs != NULL ? verbs : "", file);
    return fclose(file) == 0;
}

static bool results_write(const struct exec_options *given, const char *path, const struct executing *executing,
                          const struct cli_programs *programs, const struct attach_run_result *result)
{
    char error[512] = "";
    report_t *report = executing->report;
    report_add_run(report, "exec", result->simulated_ps, result->events, result->rtl_cycles);
    for (size_t i = 0; i < given->sets.count; i++) {
        report_add_set(report, given->sets.items[i]);
    }
    if (report_write(report, given->out, path, error, sizeof error) != SIM_OK) {
        cli_error("%s: %s", path, error);
        return false;
    }
    return hash_write(given, programs, result, executing->observing.yaml);
}

static int programs_run(const struct exec_options *given, const char *path, const struct scn_scenario *scenario,
                        const struct cli_programs *programs, struct attach_run_options *run,
                        const struct cli_paths *paths)
{
    struct attach_run_result result;
    struct executing executing = {.report = NULL};
    if (!cli_observing_begin(&executing.observing, &given->observing, path, paths, run)) {
        return CLI_EXIT_INPUT;
    }
    if (given->out != NULL && report_create(scenario, paths->reference, &executing.report) != SIM_OK) {
        cli_error("%s cannot be read", paths->reference);
        (void)cli_observing_end(&executing.observing, NULL);
        return CLI_EXIT_INPUT;
    }
    run->counter = executing.report != NULL ? counter_take : NULL;
    run->trace = executing.observing.tracing ? trace_take : NULL;
    run->diagnosis = given->observing.quiet_diagnosis ? NULL : diagnosis_take;
    run->summary = run->summary || given->out != NULL;
    run->observed = run->summary || run->explain ? observed_take : NULL;
    run->ctx = &executing;
    enum sim_status built;
    (void)cli_programs_run(scenario, run, &built, &result);
    int status = cli_programs_judge(path, programs, built, &result);
    cli_programs_outside_tell(&result, "tcasim: another run may differ", stderr);
    if (executing.report != NULL && built == SIM_OK && !result.interrupted &&
        !results_write(given, path, &executing, programs, &result)) {
        status = status != 0 ? status : CLI_EXIT_INPUT;
    }
    report_destroy(executing.report);
    if (!cli_observing_end(&executing.observing, given->out)) {
        status = status != 0 ? status : CLI_EXIT_INPUT;
    }
    return status;
}

static bool seconds_read(const char *text, uint64_t *ms_out)
{
    unsigned long seconds = text != NULL ? strtoul(text, NULL, 10) : WALL_LIMIT_S;
    if (text != NULL && (text[strspn(text, "0123456789")] != '\0' || seconds < 1 || seconds > WALL_LIMIT_MAX_S)) {
        cli_error("--wall-limit %s: expected a number of seconds from 1 to %d", text, WALL_LIMIT_MAX_S);
        return false;
    }
    *ms_out = seconds * 1000;
    return true;
}

static bool writes_files(const struct exec_options *given)
{
    const struct cli_observing_options *observing = &given->observing;
    return given->out != NULL || given->crossings != NULL || observing->trace != NULL || observing->timeline != NULL;
}

static int scenario_run(const struct exec_options *given, const struct cli_list *operands, char **argv)
{
    struct cli_paths paths;
    struct cli_programs programs = {0};
    struct attach_run_options run = {.programs = programs.list,
                                     .functional = given->functional,
                                     .together = given->together,
                                     .any_cpu = given->any_cpu,
                                     .crossings = given->crossings};
    cli_paths_find(&paths);
    if (!seconds_read(given->wall_limit, &run.wall_limit_ms) ||
        !cli_seeds_read(&given->seeds, writes_files(given), &run)) {
        return CLI_EXIT_INPUT;
    }
    run.silence_limit_ms = given->wall_limit != NULL ? run.wall_limit_ms : 0;
    struct scn_scenario *scenario = cli_scenario_load(operands->items[0], &paths, &given->sets);
    int status = CLI_EXIT_INPUT;
    if (scenario != NULL && programs_read(&programs, scenario, given, operands)) {
        run.program_count = programs.count;
        run.library_directory = paths.libraries;
        status = given->seeds.seeds != NULL
                     ? cli_seeds_run(&given->seeds, argv)
                     : programs_run(given, operands->items[0], scenario, &programs, &run, &paths);
    }
    cli_programs_free(&programs);
    scn_free(scenario);
    return status;
}

enum cli_exit cli_exec(int argc, char **argv)
{
    struct exec_options given = {0};
    struct cli_list operands = {0};
    int status = 0;
    enum cli_parsed parsed = cli_options_parse(&syntax, argc, argv, &given, &operands);
    if (parsed == CLI_PARSED_RUN) {
        status = scenario_run(&given, &operands, argv);
    }
    cli_list_free(&given.nodes);
    cli_list_free(&given.sets);
    cli_list_free(&given.observing.trace_only);
    cli_list_free(&operands);
    return parsed == CLI_PARSED_WRONG ? CLI_EXIT_INPUT : (enum cli_exit)status;
}
