// The help of a command in other forms, from the same table of options: a manual page, and words for shells.
#pragma once

#include "sim/cli/options.h"

enum cli_help_form {
    CLI_HELP_TEXT,
    CLI_HELP_MAN,  // troff
    CLI_HELP_WORDS // the options, each in a line
};

// The form of all further help of this process.
void cli_help_form_set(enum cli_help_form form);
enum cli_help_form cli_help_form(void);

// command: argv[0] of the command, "run".
void cli_manual_print(const char *command, const struct cli_syntax *syntax, const struct cli_option *help, FILE *out);
void cli_words_print(const struct cli_syntax *syntax, const struct cli_option *help, FILE *out);

// The page of the program itself.
void cli_manual_of_program_print(const struct cli_command *commands, size_t count, FILE *out);
// tcasim-scenario(5), from the table of keys.
enum cli_exit cli_manual_of_scenario_print(FILE *out);
