#include "sim/cli/reproduction.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

// Is the word that option? *apart: its value is in the next word.
static bool is_option(const char *word, const char *name, bool *apart)
{
    size_t length = strlen(name);
    *apart = strcmp(word, name) == 0;
    return *apart || (strncmp(word, name, length) == 0 && word[length] == '=');
}

static bool add(char **words, size_t *count, const char *word)
{
    words[*count] = strdup(word);
    return words[(*count)++] != NULL;
}

char **cli_reproduction(char *const *argv, uint64_t seed)
{
    size_t argc = 0, count = 0;
    while (argv[argc] != NULL) {
        argc++;
    }
    char **words = calloc(argc + 2, sizeof *words);
    char number[24];
    snprintf(number, sizeof number, "%" PRIu64, seed);
    bool good = words != NULL, options_over = false;
    for (size_t i = 0; i < argc && good; i++) {
        bool apart = false, seeds = !options_over && is_option(argv[i], "--seeds", &apart);
        options_over = options_over || strcmp(argv[i], "--") == 0;
        if (seeds) {
            good = add(words, &count, "--adversarial") && add(words, &count, number);
        } else if (options_over || (!is_option(argv[i], "--jobs", &apart) && !is_option(argv[i], "--junit", &apart))) {
            good = add(words, &count, argv[i]);
        }
        i += apart;
    }
    if (!good) {
        cli_reproduction_free(words);
        return NULL;
    }
    return words;
}

void cli_reproduction_free(char **words)
{
    for (size_t i = 0; words != NULL && words[i] != NULL; i++) {
        free(words[i]);
    }
    free(words);
}

void cli_word_print(const char *word, FILE *out)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=,@%+";
    if (word[0] != '\0' && word[strspn(word, plain)] == '\0') {
        fputs(word, out);
        return;
    }
    fputc('\'', out);
    for (; *word != '\0'; word++) {
        fputs(*word == '\'' ? "'\\''" : (const char[]){*word, '\0'}, out);
    }
    fputc('\'', out);
}

void cli_reproduction_print(char *const *words, FILE *out)
{
    char name[4096] = "tcasim";
    FILE *line = fopen("/proc/self/cmdline", "re"); // its first word is the name of this program as the user called it
    if (line != NULL) {
        size_t bytes = fread(name, 1, sizeof name - 1, line);
        name[bytes] = '\0';
        (void)fclose(line);
    }
    cli_word_print(name, out);
    for (size_t i = 0; words[i] != NULL; i++) {
        fputc(' ', out);
        cli_word_print(words[i], out);
    }
    fputc('\n', out);
}
