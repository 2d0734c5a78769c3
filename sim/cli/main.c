// The program `tcasim`: finds the command and runs it.
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "sim/cli/cli.h"
#include "sim/cli/interrupt.h"
#include "sim/cli/manual.h"
#include "sim/cli/options.h"
#include "sim/kernel/sim.h"
#include "sim/report/report.h"

static const struct cli_command commands[] = {
    {"new", "write a scenario to start from", cli_new},
    {"run", "run scenarios and write their results", cli_run},
    {"explain", "split a latency into the pieces of its critical path", cli_explain},
    {"exec", "run programs of the machine on simulated nodes", cli_exec},
    {"predict", "run with intervals, into one file that can be published", cli_predict},
    {"compare", "compare two directories of results", cli_compare},
    {"watch", "run a scenario again whenever its file changes", cli_watch},
    {"report", "make one page of results, to open in a browser", cli_report},
    {"check", "read scenarios and report every mistake", cli_check},
    {"topo", "draw a fabric; print its hops and route registers", cli_topo},
    {"params", "list every key of a scenario", cli_params},
    {"counters", "list what the components of scenarios count", cli_counters},
    {"schema", "print the JSON Schema of scenarios, for editors", cli_schema},
    {"crosscheck", "run on RTL boards and on their twins, and compare", cli_crosscheck},
    {"calibrate", "find the values of keys that meet published rows best", cli_calibrate},
    {"bench", "measure the simulator's own speed", cli_bench},
};
#define COMMAND_COUNT (sizeof commands / sizeof commands[0])

static void help_print(FILE *out)
{
    fputs("usage: tcasim COMMAND [--help] ...\n\n"
          "Simulates GPU-cluster nodes joined by PEACH2 boards over PCI Express.\n\n",
          out);
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        fprintf(out, "  %-10s %s\n", commands[i].name, commands[i].summary);
    }
    fputs("  help       explain a command: tcasim help run\n\n  --version, --help\n\n"
          "Exit status: 0 fine, 1 an expectation does not hold, 2 bad input, 3 the simulation got stuck,\n"
          "130 stopped by Ctrl-C.\n",
          out);
}

static enum cli_exit unknown_report(const char *word)
{
    const char *names[COMMAND_COUNT];
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        names[i] = commands[i].name;
    }
    const char *nearest = cli_nearest(word, names, COMMAND_COUNT);
    if (nearest != NULL) {
        cli_error("unknown command '%s'; did you mean '%s'?", word, nearest);
    } else {
        cli_error("unknown command '%s'; see 'tcasim --help'", word);
    }
    return CLI_EXIT_INPUT;
}

// The help of all commands, or of the program, in the form that is set.
static void overview_print(void)
{
    if (cli_help_form() == CLI_HELP_MAN) {
        cli_manual_of_program_print(commands, COMMAND_COUNT, stdout);
    } else if (cli_help_form() == CLI_HELP_WORDS) {
        for (size_t i = 0; i < COMMAND_COUNT; i++) {
            printf("%s\n", commands[i].name);
        }
    } else {
        help_print(stdout);
    }
}

// "help [--man|--words] [COMMAND]".
static enum cli_exit help_run(int argc, char **argv)
{
    bool man = argc > 2 && strcmp(argv[2], "--man") == 0, words = argc > 2 && strcmp(argv[2], "--words") == 0;
    if (man || words) {
        cli_help_form_set(man ? CLI_HELP_MAN : CLI_HELP_WORDS);
        argc--;
        argv++;
    }
    if (argc < 3) {
        overview_print();
        return CLI_EXIT_OK;
    }
    if (man && strcmp(argv[2], "scenario") == 0) {
        return cli_manual_of_scenario_print(stdout);
    }
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        if (strcmp(argv[2], commands[i].name) == 0) {
            char *arguments[] = {argv[2], "--help", NULL};
            return commands[i].main(2, arguments);
        }
    }
    return unknown_report(argv[2]);
}

static enum cli_exit dispatch(int argc, char **argv)
{
    if (argc < 2) {
        help_print(stderr);
        return CLI_EXIT_INPUT;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        help_print(stdout);
        return CLI_EXIT_OK;
    }
    if (strcmp(argv[1], "help") == 0) {
        return help_run(argc, argv);
    }
    if (strcmp(argv[1], "--version") == 0) {
        report_version_print(stdout);
        return CLI_EXIT_OK;
    }
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        if (strcmp(argv[1], commands[i].name) == 0) {
            return commands[i].main(argc - 1, argv + 1);
        }
    }
    return unknown_report(argv[1]);
}

static int program(int argc, char **argv)
{
    // The parent process may ignore SIGCHLD, which is inherited; this program needs the exit statuses of its children.
    (void)signal(SIGCHLD, SIG_DFL);
    cli_interrupt_init();
    enum cli_exit result = dispatch(argc, argv);
    // A closed reader (`tcasim run | head`) ends the program by SIGPIPE without a message; a full disk is reported.
    if (fflush(stdout) != 0 || ferror(stdout) != 0) {
        cli_error("standard output could not be written");
        return CLI_EXIT_INPUT;
    }
    return (int)result;
}

// Programs on nodes inherit the limit: that of Linux, or a larger one of the user's. false: there is too little.
static bool stack_limit_raise(void)
{
    const rlim_t usual = 8u << 20, least = 1u << 20;
    struct rlimit limit;
    if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur >= usual) {
        return true;
    }
    limit.rlim_cur = limit.rlim_max < usual ? limit.rlim_max : usual;
    return setrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur >= least;
}

// Processes of a run share memory by files that no folder has; they count.
static bool file_limit_suffices(void)
{
    const rlim_t least = 16u << 20;
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur >= least;
}

int main(int argc, char **argv)
{
    if (!file_limit_suffices()) {
        cli_error("the limit of files (ulimit -f) is below 16 MiB");
        return CLI_EXIT_INPUT;
    }
    if (!stack_limit_raise()) {
        cli_error("the limit of the stack (ulimit -Hs) is below 1 MiB");
        return CLI_EXIT_INPUT;
    }
    (void)signal(SIGXFSZ, SIG_IGN); // a file that must not grow is reported like a full disk
    return sim_main(argc, argv, program);
}
