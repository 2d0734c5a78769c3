// Options of a command, declared in one table from which both the parser and `--help` come.
#pragma once

#include <stddef.h>
#include <stdio.h>

#include "sim/cli/cli.h"

enum cli_option_kind {
    CLI_OPTION_FLAG,  // bool
    CLI_OPTION_TEXT,  // const char *, the last one given
    CLI_OPTION_MAYBE, // the same; "" where it has no value: the next word is its value where `is_value` of the syntax
                      // says so
    CLI_OPTION_LIST   // struct cli_list, all of them in order
};

struct cli_option {
    const char *name;  // without the dashes
    const char *value; // what stands for its value in the help; NULL for a flag
    const char *doc;
    enum cli_option_kind kind;
    size_t offset; // of the variable in the command's structure
};

// The name of an option in earlier versions, which is accepted with a warning.
struct cli_renamed {
    const char *was, *name;
};

struct cli_list {
    const char **items; // point into argv
    size_t count;
};

struct cli_syntax {
    const char *usage; // "tcasim run [FILE.yaml...]"
    const char *doc;   // a paragraph
    const struct cli_option *options;
    size_t option_count;
    size_t operands_min, operands_max;
    bool (*is_value)(const char *word); // of options whose value may be left out; NULL: there are none
    const char *operand;                // what an operand is, for messages: "a scenario file"
    const struct cli_renamed *renamed;  // ends with a NULL; NULL: none was
};

enum cli_parsed { CLI_PARSED_RUN, CLI_PARSED_HELP, CLI_PARSED_WRONG };

// Fills *values (the command's structure, zeroed) and *operands; both lists are to be freed with cli_list_free. HELP:
// the help was asked for and printed. WRONG: every mistake was printed.
enum cli_parsed cli_options_parse(const struct cli_syntax *syntax, int argc, char **argv, void *values,
                                  struct cli_list *operands);
void cli_list_free(struct cli_list *list);

// The candidate that is nearest to a mistyped word, NULL when none is near.
const char *cli_nearest(const char *word, const char *const *names, size_t count);
