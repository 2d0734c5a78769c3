// The command that repeats one run of many: the same words, with `--adversarial SEED` instead of `--seeds`.
#pragma once

#include <stdint.h>
#include <stdio.h>

// argv: of the command, from its name on, with `--seeds` and possibly `--jobs` and `--junit`. Returns a list that ends
// with NULL, to be freed with cli_reproduction_free; NULL: no memory.
char **cli_reproduction(char *const *argv, uint64_t seed);
void cli_reproduction_free(char **words);

// Prints a word as a shell reads it.
void cli_word_print(const char *word, FILE *out);
// Prints it as a line for a shell, beginning with the name by which this program was started.
void cli_reproduction_print(char *const *words, FILE *out);
