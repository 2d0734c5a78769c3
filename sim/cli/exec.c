// `tcasim exec`: runs unmodified programs on the nodes of a scenario.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cli/exec_results.h"
#include "sim/cli/load.h"
#include "sim/cli/observing.h"
#include "sim/cli/output.h"
#include "sim/cli/paths.h"
#include "sim/cli/programs.h"
#include "sim/cli/seeds.h"
#include "sim/cli/selection.h"
#include "sim/cli/junit.h"

enum { WALL_LIMIT_S = 60, WALL_LIMIT_MAX_S = 86400 };

struct exec_options {
    struct cli_list nodes;
    struct cli_list sets;
    const char *wall_limit, *out, *json, *ipc_trace, *junit;
    struct cli_observing_options observing;
    struct cli_seeds_options seeds;
    bool every_poll, functional, together, servers, any_cpu, gpu_mpi, update_baseline;
};

static const struct cli_option options[] = {
    {"on", "NODE", "run the program that follows on this node; may be given several times", CLI_OPTION_LIST,
     offsetof(struct exec_options, nodes)},
    {"set", "PATH=VALUE", "override a key; may be given several times", CLI_OPTION_LIST,
     offsetof(struct exec_options, sets)},
    {"out", "DIR", "write counters.csv, the manifest and exec.yaml with the run's hash to DIR", CLI_OPTION_TEXT,
     offsetof(struct exec_options, out)},
    {"json", "FILE.json", "with --out: write exec.yaml and all tables of DIR as one JSON object to FILE.json",
     CLI_OPTION_TEXT, offsetof(struct exec_options, json)},
    {"ipc-trace", "FILE", "write a line for every attach call of a program to FILE, to compare two runs",
     CLI_OPTION_TEXT, offsetof(struct exec_options, ipc_trace)},
    {"trace", "FILE.csv",
     "write every TLP, packet and verbs call in the order of simulated time; FILE.json: as trace events for Perfetto",
     CLI_OPTION_TEXT, offsetof(struct exec_options, observing.trace)},
    {"trace-causes", NULL, "also write a number for each record of the trace, and that of its cause", CLI_OPTION_FLAG,
     offsetof(struct exec_options, observing.trace_causes)},
    {"trace-only", "GLOB", "trace only matching components or points ('*.verbs', tlp_sent); may be given several times",
     CLI_OPTION_LIST, offsetof(struct exec_options, observing.trace_only)},
    {"explain", "SELECT",
     "split the time of operations: the median of each kind, or the selected ones ('send 4 KiB #100', 'write qp 5', "
     "'#1..40')",
     CLI_OPTION_MAYBE, offsetof(struct exec_options, observing.explain)},
    {"timeline", "FILE.json", "with --explain: write the paths for Perfetto or chrome://tracing", CLI_OPTION_TEXT,
     offsetof(struct exec_options, observing.timeline)},
    {"summary", NULL, "print at the end what each program did: operations, rates, waits, hints", CLI_OPTION_FLAG,
     offsetof(struct exec_options, observing.summary)},
    {"check", NULL, "find mistakes that a real device cannot see; with a finding the status is at least 1",
     CLI_OPTION_FLAG, offsetof(struct exec_options, observing.check)},
    {"quiet-diagnosis", NULL, "print no lines for refused verbs calls and completions in error", CLI_OPTION_FLAG,
     offsetof(struct exec_options, observing.quiet_diagnosis)},
    {"junit", "FILE.xml", "write statuses and expectations as JUnit XML", CLI_OPTION_TEXT,
     offsetof(struct exec_options, junit)},
    {"update-baseline", NULL, "record the numbers of expectations with of: in their baseline files", CLI_OPTION_FLAG,
     offsetof(struct exec_options, update_baseline)},
    {"adversarial", "SEED",
     "use what the specification allows: late, batched, retried, other schedules; drawn from SEED", CLI_OPTION_TEXT,
     offsetof(struct exec_options, seeds.adversarial)},
    {"seeds", "A..B", "run with each of these seeds, in parallel, and name those that fail", CLI_OPTION_TEXT,
     offsetof(struct exec_options, seeds.seeds)},
    {"jobs", "N", "with --seeds: the number of parallel runs (default: the number of processors)", CLI_OPTION_TEXT,
     offsetof(struct exec_options, seeds.jobs)},
    {"every-poll", NULL,
     "carry out every empty poll and every reading of a clock by itself: the reference of fast-forward, and slow",
     CLI_OPTION_FLAG, offsetof(struct exec_options, every_poll)},
    {"functional", NULL, "run without simulated time: with real clocks and free-running threads", CLI_OPTION_FLAG,
     offsetof(struct exec_options, functional)},
    {"together", NULL, "start all programs at once; the default starts each when the earlier ones wait",
     CLI_OPTION_FLAG, offsetof(struct exec_options, together)},
    {"servers", NULL,
     "end programs that wait for more when others have ended: servers that never end by themselves (key `ends`)",
     CLI_OPTION_FLAG, offsetof(struct exec_options, servers)},
    {"wall-limit", "SECONDS",
     "limit on real time without an attach call, or with all programs waiting (default: 60; with --functional: none)",
     CLI_OPTION_TEXT, offsetof(struct exec_options, wall_limit)},
    {"gpu-mpi", NULL, "let MPI accept pointers to device memory (docs/attached-programs.md)", CLI_OPTION_FLAG,
     offsetof(struct exec_options, gpu_mpi)},
    {"any-cpu", NULL, "let the machine choose the processors for the simulator and the programs", CLI_OPTION_FLAG,
     offsetof(struct exec_options, any_cpu)},
};

static const struct cli_renamed renamed[] = {{"crossings", "ipc-trace"}, {NULL, NULL}};

static const struct cli_syntax syntax = {
    .renamed = renamed,
    .usage = "tcasim exec FILE.yaml [--on NODE 'PROGRAM ARGUMENT...']... [--set PATH=VALUE]...\n"
             "                   [--out DIR [--json FILE.json]]\n"
             "                   [--trace FILE.csv [--trace-causes] [--trace-only GLOB]...] [--summary] [--check]\n"
             "                   [--quiet-diagnosis]\n"
             "                   [--explain [SELECT] [--timeline FILE.json]]\n"
             "                   [--adversarial SEED | --seeds A..B [--jobs N]]\n"
             "                   [--ipc-trace FILE] [--every-poll] [--functional] [--together]\n"
             "                   [--servers] [--wall-limit SECONDS] [--gpu-mpi] [--any-cpu]\n"
             "                   [--junit FILE.xml] [--update-baseline]",
    .doc =
        "Runs programs of this machine on the nodes of the scenario: first those of its key `programs`, then those\n"
        "given here. They see the node's devices and simulated time. Their output is not changed. A node with a board\n"
        "has the device tca0, one with an HCA ibsim0. On a node with both, perftest uses tca0; -d ibsim0 selects the\n"
        "other. The exit status is the worst of the programs', at least 1 if an expect: of the scenario does not\n"
        "hold, and 2 or 3 if the simulation did not complete.",
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
        const char *explain = given->observing.explain;
        bool may_be_select = explain != NULL && explain[0] == '\0' && operands->count > given->nodes.count + 1;
        cli_error("every program needs an --on NODE before it: there are %zu --on and %zu programs%s",
                  given->nodes.count, operands->count - 1,
                  may_be_select ? "; a selection of --explain begins with a kind (send, write, read, atomic, dma), a "
                                  "size (4 KiB), a queue pair (qp 5) or a number (#100)"
                                : "");
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
        cli_error("there is nothing to run: the scenario has no programs, and there is no --on NODE");
    }
    return programs->count > 0;
}

// --- running --------------------------------------------------------------------------------------------------------

static void counter_take(void *ctx, const char *component, const struct sim_counter_desc *desc, uint64_t value)
{
    const struct cli_exec *exec = ctx;
    if (exec->report != NULL) {
        report_add_counter(exec->report, "exec", component, desc->name, desc->unit, value);
    }
}

static void schedule_once(void *ctx)
{
    const struct cli_exec *exec = ctx;
    cli_captures_show(exec->captures);
}

static void trace_take(void *ctx, const struct sim_trace_record *record)
{
    cli_observing_trace(((struct cli_exec *)ctx)->observing, record);
}

static void diagnosis_take(void *ctx, const char *line)
{
    cli_observing_diagnosis(((struct cli_exec *)ctx)->observing, line);
}

static void observed_take(void *ctx, observe_t *observe)
{
    cli_observing_take(((struct cli_exec *)ctx)->observing, observe);
}

// Captures only programs that an expectation examines; the others write to standard output directly.
static bool outputs_capture(const struct cli_exec *exec)
{
    const struct scn_scenario *scenario = exec->job.scenario;
    bool captured = true;
    for (uint32_t i = 0; i < scenario->outside_count && cli_exec_expects(exec) && captured; i++) {
        captured = !scn_outside_is_observed(scenario, i) || cli_captures_add(exec->captures, exec->programs, i);
    }
    return captured;
}

// Sets the callbacks that report what happens in the run.
static void listeners_set(struct cli_exec *exec, bool wanted, struct attach_run_options *run)
{
    const struct cli_observing *observing = exec->observing;
    run->counter = wanted ? counter_take : NULL;
    run->scheduled = exec->captures->any ? schedule_once : NULL;
    run->trace = observing->tracing ? trace_take : NULL;
    run->trace_causes = observing->tracing && observing->trace.causes;
    bool quiet = observing->given->quiet_diagnosis && !observing->given->check;
    run->diagnosis = quiet ? NULL : diagnosis_take;
    run->summary = run->summary || exec->job.directory != NULL;
    run->fingerprint = exec->job.directory != NULL;
    run->observed = run->summary || run->explain ? observed_take : NULL;
    run->ctx = exec;
}

static int programs_run(struct cli_exec *exec, struct attach_run_options *run)
{
    const struct cli_job *job = &exec->job;
    bool wanted = job->directory != NULL || job->suites != NULL || cli_exec_expects(exec);
    if (!outputs_capture(exec)) {
        return CLI_EXIT_INPUT;
    }
    if (wanted && report_create(job->scenario, job->reference_csv, &exec->report) != SIM_OK) {
        cli_error("%s cannot be read", job->reference_csv);
        return CLI_EXIT_INPUT;
    }
    listeners_set(exec, wanted, run);
    enum sim_status built;
    (void)cli_programs_run(job->scenario, run, &built, &exec->result);
    cli_captures_show(exec->captures);
    exec->went_on = cli_programs_went_on(built, &exec->result);
    int status = cli_programs_judge(job->path, exec->programs, built, &exec->result);
    status = status == 0 && exec->result.findings > 0 ? CLI_EXIT_EXPECT : status;
    cli_programs_outside_print(&exec->result, "tcasim: another run may differ", stderr);
    if (exec->result.asked[0] != '\0') {
        cli_error("programs asked for what their nodes have not: %s", exec->result.asked);
    }
    if (exec->report != NULL && built == SIM_OK) {
        report_set_programs(exec->report, "exec");
        status = cli_exec_results(exec, status);
    }
    report_destroy(exec->report);
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

// Runs the programs and writes the file of --junit.
static int scenario_exec(struct cli_exec *exec, const struct exec_options *given, struct attach_run_options *run)
{
    struct cli_junit tests;
    struct cli_observing observing;
    int status = CLI_EXIT_INPUT;
    exec->observing = &observing;
    if (!cli_exec_expectations_check(exec) ||
        !cli_junit_begin(&tests, given->junit, &exec->job.path, 1, exec->job.paths)) {
        return status;
    }
    exec->job.suites = tests.suites;
    bool good = cli_observing_begin(&observing, &given->observing, exec->job.path, exec->job.paths, run);
    status = good ? programs_run(exec, run) : status;
    good = cli_observing_end(&observing, exec->job.directory) && good;
    good = (given->json == NULL || !exec->written || cli_exec_json_write(exec, given->json)) && good;
    good = cli_junit_end(&tests) && good;
    return good || status > CLI_EXIT_INPUT ? status : CLI_EXIT_INPUT;
}

// The same with each of many seeds.
static int seeds_exec(const struct cli_exec *exec, const struct exec_options *given, char **argv)
{
    struct cli_junit tests;
    junit_t *junit = junit_create();
    int status = CLI_EXIT_INPUT;
    if (junit != NULL && cli_junit_begin(&tests, given->junit, &exec->job.path, 1, exec->job.paths)) {
        junit_suite_begin(junit, exec->job.scenario->name, exec->job.path);
        status = cli_seeds_run(&given->seeds, argv, junit);
        if (tests.suites != NULL) {
            junit_suites_write(junit, tests.suites);
        }
        status = cli_junit_end(&tests) || status > CLI_EXIT_INPUT ? status : CLI_EXIT_INPUT;
    }
    junit_destroy(junit);
    return status;
}

static bool options_right(const struct exec_options *given)
{
    const char *wrong = !given->functional       ? NULL
                        : given->junit != NULL   ? "--junit"
                        : given->update_baseline ? "--update-baseline"
                                                 : NULL;
    const char *timed = !given->functional                 ? NULL
                        : given->observing.explain != NULL ? "--explain"
                        : given->observing.summary         ? "--summary"
                        : given->observing.check           ? "--check"
                                                           : NULL;
    bool untold = given->json != NULL && given->out == NULL;
    if (untold) {
        cli_error("--json needs --out DIR, whose tables it writes");
    } else if (wrong != NULL) {
        cli_error("%s cannot be combined with --functional, which judges no expectations", wrong);
    } else if (timed != NULL) {
        cli_error("%s cannot be combined with --functional, where threads run freely and no simulated time passes",
                  timed);
    }
    return !untold && wrong == NULL && timed == NULL;
}

static bool writes_files(const struct exec_options *given)
{
    const struct cli_observing_options *observing = &given->observing;
    return given->out != NULL || given->ipc_trace != NULL || given->update_baseline || observing->trace != NULL ||
           observing->timeline != NULL;
}

static int scenario_run(const struct exec_options *given, const struct cli_list *operands, char **argv)
{
    struct cli_paths paths;
    struct cli_programs programs = {0};
    struct cli_captures captures;
    struct attach_run_options run = {.programs = programs.list,
                                     .every_poll = given->every_poll,
                                     .functional = given->functional,
                                     .together = given->together,
                                     .servers = given->servers,
                                     .any_cpu = given->any_cpu,
                                     .ipc_trace = given->ipc_trace};
    cli_paths_find(&paths);
    if (!options_right(given) || !seconds_read(given->wall_limit, &run.wall_limit_ms) ||
        !cli_seeds_read(&given->seeds, writes_files(given), &run)) {
        return CLI_EXIT_INPUT;
    }
    if ((given->ipc_trace != NULL && !cli_output_usable(given->ipc_trace, operands->items[0], &paths)) ||
        (given->json != NULL && !cli_output_usable(given->json, operands->items[0], &paths)) ||
        (given->out != NULL && !cli_output_directory_usable(given->out))) {
        return CLI_EXIT_INPUT;
    }
    run.silence_limit_ms = given->wall_limit != NULL ? run.wall_limit_ms : 0;
    struct cli_exec exec = {.job = {.path = operands->items[0],
                                    .scenario = cli_scenario_load(operands->items[0], &paths, &given->sets),
                                    .sets = &given->sets,
                                    .directory = (char *)(uintptr_t)given->out,
                                    .reference_csv = paths.reference,
                                    .paths = &paths,
                                    .quiet = true,
                                    .update_baseline = given->update_baseline},
                            .programs = &programs,
                            .captures = &captures,
                            .functional = given->functional,
                            .adversarial = given->seeds.adversarial};
    int status = CLI_EXIT_INPUT;
    cli_captures_init(&captures);
    if (exec.job.scenario != NULL && programs_read(&programs, exec.job.scenario, given, operands)) {
        run.program_count = programs.count;
        run.library_directory = paths.libraries;
        status = given->seeds.seeds != NULL ? seeds_exec(&exec, given, argv) : scenario_exec(&exec, given, &run);
    }
    cli_captures_fini(&captures);
    cli_programs_free(&programs);
    scn_free(exec.job.scenario);
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
