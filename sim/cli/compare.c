// `tcasim compare`: compares two directories of results, or a prediction with measurements.
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cli/cli.h"
#include "sim/cli/options.h"
#include "sim/cli/output.h"
#include "sim/kernel/text.h"
#include "sim/report/difference.h"
#include "sim/report/prediction.h"

enum { LINES_MAX = 40 }; // of a table on the terminal

struct compare_options {
    const char *within, *out;
    bool json;
};

static const struct cli_option options[] = {
    {"within", "PERCENT", "tolerated difference from the first number, such as '2 %' (default: none)", CLI_OPTION_TEXT,
     offsetof(struct compare_options, within)},
    {"out", "DIR", "write every number with its difference, and a plot of both, to DIR", CLI_OPTION_TEXT,
     offsetof(struct compare_options, out)},
    {"json", NULL, "print every row and each counter that differs as one JSON object, and no text", CLI_OPTION_FLAG,
     offsetof(struct compare_options, json)},
};

static const struct cli_syntax syntax = {
    .usage = "tcasim compare DIR1 DIR2 [--within PERCENT] [--out DIR] [--json]\n"
             "       tcasim compare PREDICTION MEASURED.csv",
    .doc = "Compares two directories that `tcasim run` or `tcasim exec --out` wrote: keys of the scenario, rows, "
           "counters.\n"
           "Exit status 1 if a number differs by more than --within, or only one directory has it. Keys do not\n"
           "count.\n"
           "Or compares a file of `tcasim predict` with a CSV file of measurements: latency_us or bandwidth_GBps, and "
           "columns\n"
           "of data.csv that tell its rows apart. Exit status 1 if one is outside its interval.",
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .operands_min = 2,
    .operands_max = 2,
    .operand = "a directory of results, or a prediction and a CSV file",
};

static bool is_one_of(const char *directory, const struct cli_list *directories)
{
    char own[PATH_MAX], other[PATH_MAX];
    bool same = false;
    for (size_t i = 0; i < directories->count; i++) {
        same = same || (realpath(directory, own) != NULL && realpath(directories->items[i], other) != NULL &&
                        strcmp(own, other) == 0);
    }
    return same;
}

static void json_print(const difference_t *difference, const struct cli_list *directories)
{
    fputs("{\"first\":", stdout);
    sim_text_quote(stdout, directories->items[0]);
    fputs(",\"second\":", stdout);
    sim_text_quote(stdout, directories->items[1]);
    printf(",\"differ\":%zu,", difference_count(difference));
    difference_json_write(difference, stdout);
    puts("}");
}

static enum cli_exit directories_compare(const struct compare_options *given, const struct cli_list *directories)
{
    char error[2 * PATH_MAX];
    double within_percent = 0;
    difference_t *difference = NULL;
    if (given->within != NULL && !cli_percent_read(given->within, &within_percent)) {
        cli_error("--within takes a percentage such as '3 %%', not '%s'", given->within);
        return CLI_EXIT_INPUT;
    }
    if (given->out != NULL && is_one_of(given->out, directories)) {
        cli_error("--out %s: this is one of the directories that are compared", given->out);
        return CLI_EXIT_INPUT;
    }
    if (given->out != NULL && !cli_output_directory_usable(given->out)) {
        return CLI_EXIT_INPUT;
    }
    if (difference_create(directories->items[0], directories->items[1], within_percent, &difference, error,
                          sizeof error) != SIM_OK) {
        cli_error("%s", error);
        return CLI_EXIT_INPUT;
    }
    enum cli_exit result = difference_count(difference) > 0 ? CLI_EXIT_EXPECT : CLI_EXIT_OK;
    if (given->json) {
        json_print(difference, directories);
    } else {
        difference_print(difference, LINES_MAX, stdout);
    }
    if (given->out != NULL && difference_write(difference, given->out, error, sizeof error) != SIM_OK) {
        cli_error("%s", error);
        result = CLI_EXIT_INPUT;
    } else if (given->out != NULL && !given->json) {
        printf("Results: %s\n", given->out);
    }
    difference_destroy(difference);
    return result;
}

static enum cli_exit measurements_compare(const struct compare_options *given, const struct cli_list *files)
{
    char error[2 * PATH_MAX];
    struct prediction_count count = {0};
    if (given->within != NULL || given->out != NULL || given->json) {
        cli_error("a prediction is compared without --within, --out and --json");
        return CLI_EXIT_INPUT;
    }
    if (prediction_compare(files->items[0], files->items[1], stdout, &count, error, sizeof error) != SIM_OK) {
        cli_error("%s", error);
        return CLI_EXIT_INPUT;
    }
    return count.inside < count.measured ? CLI_EXIT_EXPECT : CLI_EXIT_OK;
}

enum cli_exit cli_compare(int argc, char **argv)
{
    struct compare_options given = {0};
    struct cli_list directories = {0};
    enum cli_exit result = CLI_EXIT_OK;
    enum cli_parsed parsed = cli_options_parse(&syntax, argc, argv, &given, &directories);
    if (parsed == CLI_PARSED_RUN) {
        result = prediction_is(directories.items[0]) ? measurements_compare(&given, &directories)
                                                     : directories_compare(&given, &directories);
    }
    cli_list_free(&directories);
    return parsed == CLI_PARSED_WRONG ? CLI_EXIT_INPUT : result;
}
