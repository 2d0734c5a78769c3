// Options of a command, declared in one table. The parser and `--help` are both derived from it.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "sim/cli/cli.h"

enum cli_option_kind {
    CLI_OPTION_FLAG,  // bool
    CLI_OPTION_TEXT,  // const char *, the last one given
    CLI_OPTION_MAYBE, // the same; "" without a value: the next word is its value only if `is_value` of the syntax
                      // returns true
    CLI_OPTION_LIST   // struct cli_list, all of them in order
};

struct cli_option {
    const char *name;  // without the dashes
    const char *value; // the value's name in the help; NULL for a flag
    const char *doc;
    enum cli_option_kind kind;
    size_t offset; // of the variable in the command's structure
};

// An option's name in earlier versions; it is accepted with a warning.
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
    bool (*is_value)(const char *word); // for options with an optional value; NULL: there are none
    const char *operand;                // describes an operand in messages: "a scenario file"
    const char *const *exclusive;       // flags of which at most one may be given; ends with NULL; NULL: there are none
    const struct cli_renamed *renamed;  // ends with a NULL; NULL: no option was renamed
};

enum cli_parsed { CLI_PARSED_RUN, CLI_PARSED_HELP, CLI_PARSED_WRONG };

// Fills *values (the command's structure, zeroed) and *operands; free both lists with cli_list_free. HELP: the help was
// requested and printed. WRONG: every mistake was printed.
enum cli_parsed cli_options_parse(const struct cli_syntax *syntax, int argc, char **argv, void *values,
                                  struct cli_list *operands);
void cli_list_free(struct cli_list *list);

// A decimal number without a sign, which ends at *end_out. false: there is none, or 64 bits do not hold it.
bool cli_number_read(const char *text, char **end_out, uint64_t *number_out);
// "3 %", "3%" or "3", not below 0.
bool cli_percent_read(const char *text, double *percent_out);

// The candidate that is nearest to a mistyped word; NULL if none is near.
const char *cli_nearest(const char *word, const char *const *names, size_t count);
