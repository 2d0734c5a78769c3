// Shared by the commands of the program.
#pragma once

#include <stdbool.h>
#include <stddef.h>

// The exit status; with several files the highest one.
enum cli_exit {
    CLI_EXIT_OK = 0,
    CLI_EXIT_EXPECT = 1, // an `expect:` does not hold, or a workload reported wrong data
    CLI_EXIT_INPUT = 2,  // bad input, or a file that cannot be read or written
    CLI_EXIT_STUCK = 3
};

static inline enum cli_exit cli_exit_worse(enum cli_exit a, enum cli_exit b)
{
    return a > b ? a : b;
}

struct cli_command {
    const char *name;
    const char *summary;                          // one line
    enum cli_exit (*main)(int argc, char **argv); // argv[0] is the command's name
};

enum cli_exit cli_new(int argc, char **argv);
enum cli_exit cli_run(int argc, char **argv);
enum cli_exit cli_predict(int argc, char **argv);
enum cli_exit cli_watch(int argc, char **argv); // ends by a signal, if at all
enum cli_exit cli_exec(int argc, char **argv); // or the status of a program
enum cli_exit cli_compare(int argc, char **argv);
enum cli_exit cli_check(int argc, char **argv);
enum cli_exit cli_topo(int argc, char **argv);
enum cli_exit cli_crosscheck(int argc, char **argv);
enum cli_exit cli_explain(int argc, char **argv);
enum cli_exit cli_params(int argc, char **argv);
enum cli_exit cli_counters(int argc, char **argv);
enum cli_exit cli_schema(int argc, char **argv);
enum cli_exit cli_report(int argc, char **argv);
enum cli_exit cli_calibrate(int argc, char **argv);
enum cli_exit cli_bench(int argc, char **argv);

// Prints "tcasim: ..." and a newline to standard error.
__attribute__((format(printf, 1, 2))) void cli_error(const char *format, ...);
