// `tcasim exec`: programs of the machine on the nodes of a scenario.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wordexp.h>

#include "sim/attach/attach_run.h"
#include "sim/cli/load.h"
#include "sim/cli/paths.h"
#include "sim/report/report.h"

enum { WALL_LIMIT_S = 60, WALL_LIMIT_MAX_S = 86400 };

struct exec_options {
    struct cli_list nodes;
    struct cli_list sets;
    const char *wall_limit, *out, *crossings;
    bool functional, together, any_cpu;
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
    {"functional", NULL, "without simulated time: real clocks, threads run freely", CLI_OPTION_FLAG,
     offsetof(struct exec_options, functional)},
    {"together", NULL, "start all programs at once, not each when those before wait for others", CLI_OPTION_FLAG,
     offsetof(struct exec_options, together)},
    {"wall-limit", "SECONDS",
     "how long a program may run without calling in, or all may wait (default: 60; with --functional: for ever)",
     CLI_OPTION_TEXT, offsetof(struct exec_options, wall_limit)},
    {"any-cpu", NULL, "let the machine choose on which processors simulator and programs run", CLI_OPTION_FLAG,
     offsetof(struct exec_options, any_cpu)},
};

static const struct cli_syntax syntax = {
    .usage = "tcasim exec FILE.yaml [--on NODE 'PROGRAM ARGUMENT...']... [--set PATH=VALUE]... [--out DIR]\n"
             "                   [--crossings FILE] [--functional] [--together] [--wall-limit SECONDS] [--any-cpu]",
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
    .operand = "a scenario file",
};

struct programs {
    struct attach_program list[ATTACH_RUN_PROGRAMS_MAX];
    wordexp_t words[ATTACH_RUN_PROGRAMS_MAX], env[ATTACH_RUN_PROGRAMS_MAX];
    int expected[ATTACH_RUN_PROGRAMS_MAX];
    uint32_t count;
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

static const char *split_error(int status)
{
    switch (status) {
    case WRDE_BADCHAR:
        return "one of | & ; < > ( ) { } or a new line is outside quotes";
    case WRDE_CMDSUB:
        return "the output of a command is to be put in";
    case WRDE_SYNTAX:
        return "a quote or a bracket is not closed";
    case WRDE_NOSPACE:
        return "there is no memory";
    }
    return "it has no word";
}

// As a shell takes it apart: quotes, variables and patterns, but no commands.
static bool line_split(const char *line, wordexp_t *words)
{
    int status = wordexp(line, words, WRDE_NOCMD);
    if (status == 0 && words->we_wordc > 0) {
        return true;
    }
    cli_error("'%s' is not a program and its arguments: %s. What a shell is to do is given to one: \"sh -c '...'\"",
              line, split_error(status));
    if (status == 0) {
        wordfree(words);
    }
    return false;
}

// NULL: one too many.
static struct attach_program *program_add(struct programs *programs, uint32_t node, const char *command)
{
    uint32_t index = programs->count;
    if (index == ATTACH_RUN_PROGRAMS_MAX) {
        cli_error("more than %d programs", ATTACH_RUN_PROGRAMS_MAX);
        return NULL;
    }
    if (!line_split(command, &programs->words[index])) {
        return NULL;
    }
    programs->count++;
    programs->list[index] = (struct attach_program){.node = node, .argv = programs->words[index].we_wordv};
    return &programs->list[index];
}

static bool outside_add(struct programs *programs, const struct scn_outside *outside)
{
    struct attach_program *program = program_add(programs, outside->node, outside->command);
    if (program == NULL) {
        return false;
    }
    uint32_t index = programs->count - 1;
    if (outside->env[0] != '\0') {
        if (!line_split(outside->env, &programs->env[index])) {
            return false;
        }
        program->env = programs->env[index].we_wordv;
    }
    for (size_t i = 0; program->env != NULL && program->env[i] != NULL; i++) {
        if (strchr(program->env[i], '=') == NULL) {
            cli_error("env: '%s' is no NAME=VALUE", program->env[i]);
            return false;
        }
    }
    program->stdin_path = outside->stdin_path[0] != '\0' ? outside->stdin_path : NULL;
    program->stdout_path = outside->stdout_path[0] != '\0' ? outside->stdout_path : NULL;
    programs->expected[index] = (int)outside->status;
    return true;
}

static bool programs_read(struct programs *programs, const struct scn_scenario *scenario,
                          const struct exec_options *given, const struct cli_list *operands)
{
    if (given->nodes.count != operands->count - 1) {
        cli_error("every program follows an --on NODE: there are %zu of these and %zu programs", given->nodes.count,
                  operands->count - 1);
        return false;
    }
    for (uint32_t i = 0; i < scenario->outside_count; i++) {
        if (!outside_add(programs, &scenario->outsides[i])) {
            return false;
        }
    }
    for (uint32_t i = 0; i < given->nodes.count; i++) {
        uint32_t node;
        if (!node_find(scenario, given->nodes.items[i], &node) ||
            program_add(programs, node, operands->items[i + 1]) == NULL) {
            return false;
        }
    }
    if (programs->count == 0) {
        cli_error("there is nothing to run: the scenario has no programs, and none follows an --on NODE");
    }
    return programs->count > 0;
}

static void programs_free(struct programs *programs)
{
    for (uint32_t i = 0; i < programs->count; i++) {
        wordfree(&programs->words[i]);
        if (programs->list[i].env != NULL) {
            wordfree(&programs->env[i]);
        }
    }
}

// --- running --------------------------------------------------------------------------------------------------------

static void interrupt(int signal_number)
{
    (void)signal_number;
    attach_run_interrupt();
}

// Programs are to be ended and reaped before this one ends.
static void interrupts_take(void)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action = {.sa_handler = interrupt};
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        struct sigaction before;
        if (sigaction(signals[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN) {
            (void)sigaction(signals[i], &action, NULL);
        }
    }
}

static void ends_tell(const char *lines)
{
    for (size_t length; *lines != '\0'; lines += length + (lines[length] == '\n')) {
        length = strcspn(lines, "\n");
        cli_error("%.*s", (int)length, lines);
    }
}

static int result_judge(const char *path, const struct programs *programs, enum sim_status status,
                        const struct attach_run_result *result)
{
    int worst = 0;
    if (status != SIM_OK) {
        cli_error("%s: %s", path, result->text[0] != '\0' ? result->text : sim_status_text(status));
        return CLI_EXIT_INPUT;
    }
    if (result->interrupted) {
        cli_error("interrupted");
        return 130;
    }
    ends_tell(result->ends);
    if (result->outcome == SIM_RUN_STUCK || result->outcome == SIM_RUN_TIME_LIMIT) {
        cli_error("%s: %s after %llu ps of simulated time:\n%s", path,
                  result->outcome == SIM_RUN_STUCK ? "the programs got stuck" : "the time limit was reached",
                  (unsigned long long)result->simulated_ps, result->text);
        return CLI_EXIT_STUCK;
    }
    if (result->failed) {
        cli_error("%s: %s", path, result->text);
        return CLI_EXIT_STUCK;
    }
    for (uint32_t i = 0; i < programs->count; i++) {
        int got = result->statuses[i], expected = programs->expected[i];
        int status_of_it = got == expected ? 0 : got != 0 ? got : CLI_EXIT_EXPECT;
        if (got != expected && expected != 0) {
            cli_error("%s ended with %d, not %d", programs->list[i].argv[0], got, expected);
        }
        worst = status_of_it > worst ? status_of_it : worst;
    }
    return worst;
}

// --- results --------------------------------------------------------------------------------------------------------

static void counter_take(void *ctx, const char *component, const struct sim_counter_desc *desc, uint64_t value)
{
    report_add_counter(ctx, "exec", component, desc->name, desc->unit, value);
}

static const struct {
    enum attach_run_outside bit;
    const char *text;
} outsides[] = {
    {ATTACH_RUN_OUTSIDE_THREAD, "a thread came in that its creator had not announced (clone by hand)"},
    {ATTACH_RUN_OUTSIDE_CHILD, "a process came in that its parent had not announced (popen, daemon, clone by hand)"},
    {ATTACH_RUN_OUTSIDE_EVENT, "programs waited for something from outside of the run, and it came"},
    {ATTACH_RUN_OUTSIDE_COMPUTE, "the time that programs compute counts (nodes.*.host.compute: scaled)"},
    {ATTACH_RUN_OUTSIDE_CLOCK, "a start, an end or what daemons do took too long in real time, and was not waited for"},
};

static bool hash_write(const char *directory, const struct programs *programs, const struct attach_run_result *result)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/exec.yaml", directory);
    FILE *file = fopen(path, "w");
    if (file == NULL) {
        cli_error("%s cannot be written", path);
        return false;
    }
    fprintf(file, "# Every grant to a program, its simulated time, and all events; equal from run to run.\n");
    fprintf(file, "hash: %016llx\ncrossings: %llu\nsimulated_ps: %llu\n", (unsigned long long)result->hash,
            (unsigned long long)result->crossings, (unsigned long long)result->simulated_ps);
    for (size_t i = 0; i < sizeof outsides / sizeof outsides[0]; i++) {
        if ((result->outside & outsides[i].bit) != 0) {
            fprintf(file, "# Another run may differ: %s.\n", outsides[i].text);
        }
    }
    fprintf(file, "programs:\n");
    for (uint32_t i = 0; i < programs->count; i++) {
        fprintf(file, "  - {program: %s, status: %d}\n", programs->list[i].argv[0], result->statuses[i]);
    }
    return fclose(file) == 0;
}

static bool results_write(const struct exec_options *given, const char *path, report_t *report,
                          const struct programs *programs, const struct attach_run_result *result)
{
    char error[512] = "";
    report_add_run(report, "exec", result->simulated_ps, result->events, result->rtl_cycles);
    for (size_t i = 0; i < given->sets.count; i++) {
        report_add_set(report, given->sets.items[i]);
    }
    if (report_write(report, given->out, path, error, sizeof error) != SIM_OK) {
        cli_error("%s: %s", path, error);
        return false;
    }
    return hash_write(given->out, programs, result);
}

static void outsides_tell(const struct attach_run_result *result)
{
    for (size_t i = 0; i < sizeof outsides / sizeof outsides[0]; i++) {
        if ((result->outside & outsides[i].bit) != 0) {
            fprintf(stderr, "tcasim: another run may differ: %s\n", outsides[i].text);
        }
    }
}

static int programs_run(const struct exec_options *given, const char *path, const struct scn_scenario *scenario,
                        const struct programs *programs, struct attach_run_options *run, const char *reference)
{
    struct attach_run_result result;
    report_t *report = NULL;
    if (given->out != NULL && report_create(scenario, reference, &report) != SIM_OK) {
        cli_error("%s cannot be read", reference);
        return CLI_EXIT_INPUT;
    }
    run->counter = report != NULL ? counter_take : NULL;
    run->ctx = report;
    interrupts_take();
    enum sim_status built = attach_run(scenario, run, &result);
    int status = result_judge(path, programs, built, &result);
    outsides_tell(&result);
    if (report != NULL && built == SIM_OK && !result.interrupted &&
        !results_write(given, path, report, programs, &result)) {
        status = status != 0 ? status : CLI_EXIT_INPUT;
    }
    report_destroy(report);
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

static int scenario_run(const struct exec_options *given, const struct cli_list *operands)
{
    struct cli_paths paths;
    struct programs programs = {0};
    struct attach_run_options run = {.programs = programs.list,
                                     .functional = given->functional,
                                     .together = given->together,
                                     .any_cpu = given->any_cpu,
                                     .crossings = given->crossings};
    cli_paths_find(&paths);
    if (!seconds_read(given->wall_limit, &run.wall_limit_ms)) {
        return CLI_EXIT_INPUT;
    }
    run.silence_limit_ms = given->wall_limit != NULL ? run.wall_limit_ms : 0;
    struct scn_scenario *scenario = cli_scenario_load(operands->items[0], &paths, &given->sets);
    int status = CLI_EXIT_INPUT;
    if (scenario != NULL && programs_read(&programs, scenario, given, operands)) {
        run.program_count = programs.count;
        run.library_directory = paths.libraries;
        status = programs_run(given, operands->items[0], scenario, &programs, &run, paths.reference);
    }
    programs_free(&programs);
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
        status = scenario_run(&given, &operands);
    }
    cli_list_free(&given.nodes);
    cli_list_free(&given.sets);
    cli_list_free(&operands);
    return parsed == CLI_PARSED_WRONG ? CLI_EXIT_INPUT : (enum cli_exit)status;
}
