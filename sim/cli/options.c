#include "sim/cli/options.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cli/manual.h"

#define NAMES_MAX 32
#define WORD_MAX  32

static const struct cli_option help_option = {.name = "help", .doc = "print this and exit", .kind = CLI_OPTION_FLAG};

static size_t min3(size_t a, size_t b, size_t c)
{
    size_t least = a < b ? a : b;
    return least < c ? least : c;
}

// The number of letters to insert, delete or replace to change one word into the other.
static size_t distance(const char *from, const char *to)
{
    size_t length = strlen(to);
    size_t row[WORD_MAX + 1];
    for (size_t k = 0; k <= length; k++) {
        row[k] = k;
    }
    for (size_t i = 1; from[i - 1] != '\0'; i++) {
        size_t corner = row[0];
        row[0] = i;
        for (size_t k = 1; k <= length; k++) {
            size_t above = row[k];
            row[k] = min3(above + 1, row[k - 1] + 1, corner + (from[i - 1] != to[k - 1]));
            corner = above;
        }
    }
    return row[length];
}

const char *cli_nearest(const char *word, const char *const *names, size_t count)
{
    const char *nearest = NULL;
    size_t least = strlen(word) > 4 ? 3 : 2; // a larger distance is not a typing mistake
    for (size_t i = 0; i < count; i++) {
        if (strlen(names[i]) > WORD_MAX || strlen(word) > WORD_MAX) {
            continue;
        }
        size_t far = distance(word, names[i]);
        if (far < least) {
            least = far;
            nearest = names[i];
        }
    }
    return nearest;
}

static void unknown_report(const struct cli_syntax *syntax, const char *name)
{
    const char *names[NAMES_MAX] = {help_option.name};
    size_t count = 1;
    for (size_t i = 0; i < syntax->option_count && count < NAMES_MAX; i++) {
        names[count++] = syntax->options[i].name;
    }
    const char *nearest = cli_nearest(name, names, count);
    if (nearest != NULL) {
        cli_error("unknown option '--%s'; did you mean '--%s'?", name, nearest);
    } else {
        cli_error("unknown option '--%s'", name);
    }
}

static void help_line(const struct cli_option *option)
{
    char left[64];
    bool maybe = option->kind == CLI_OPTION_MAYBE;
    snprintf(left, sizeof left, "--%s%s%s%s%s", option->name, option->value != NULL ? " " : "", maybe ? "[" : "",
             option->value != NULL ? option->value : "", maybe ? "]" : "");
    printf("  %-22s %s\n", left, option->doc);
}

static void help_print(const char *command, const struct cli_syntax *syntax)
{
    if (cli_help_form() == CLI_HELP_MAN) {
        cli_manual_print(command, syntax, &help_option, stdout);
        return;
    }
    if (cli_help_form() == CLI_HELP_WORDS) {
        cli_words_print(syntax, &help_option, stdout);
        return;
    }
    printf("usage: %s\n\n%s\n\n", syntax->usage, syntax->doc);
    for (size_t i = 0; i < syntax->option_count; i++) {
        help_line(&syntax->options[i]);
    }
    help_line(&help_option);
}

static void list_add(struct cli_list *list, const char *item)
{
    const char **items = realloc(list->items, (list->count + 1) * sizeof *items);
    if (items == NULL) {
        cli_error("out of memory");
        exit(CLI_EXIT_INPUT);
    }
    list->items = items;
    items[list->count++] = item;
}

void cli_list_free(struct cli_list *list)
{
    free(list->items);
    *list = (struct cli_list){0};
}

static void option_set(const struct cli_option *option, void *values, const char *value)
{
    void *variable = (char *)values + option->offset;
    switch (option->kind) {
    case CLI_OPTION_FLAG:
        *(bool *)variable = true;
        break;
    case CLI_OPTION_TEXT:
    case CLI_OPTION_MAYBE:
        *(const char **)variable = value;
        break;
    case CLI_OPTION_LIST:
        list_add(variable, value);
        break;
    }
}

static const struct cli_option *option_find(const struct cli_syntax *syntax, const char *name)
{
    for (size_t i = 0; i < syntax->option_count; i++) {
        const struct cli_option *option = &syntax->options[i];
        if (strcmp(option->name, name) == 0) {
            return option;
        }
    }
    return NULL;
}

static const char *name_now(const struct cli_syntax *syntax, const char *name)
{
    for (const struct cli_renamed *renamed = syntax->renamed; renamed != NULL && renamed->was != NULL; renamed++) {
        if (strcmp(renamed->was, name) == 0) {
            fprintf(stderr, "tcasim: --%s is called --%s now\n", name, renamed->name);
            return renamed->name;
        }
    }
    return name;
}

// argv[*index] is "--name" or "--name=value"; a value in the next word is taken, too. Returns whether it was valid.
static bool option_read(const struct cli_syntax *syntax, int argc, char **argv, int *index, void *values)
{
    char name[WORD_MAX];
    const char *word = argv[*index] + 2;
    size_t length = strcspn(word, "=");
    snprintf(name, sizeof name, "%.*s", (int)length, word);
    const char *value = word[length] == '=' ? word + length + 1 : NULL;
    const struct cli_option *option = option_find(syntax, name_now(syntax, name));
    if (option == NULL) {
        unknown_report(syntax, name);
        return false;
    }
    if (option->kind == CLI_OPTION_FLAG && value != NULL) {
        cli_error("option '--%s' takes no value", name);
        return false;
    }
    if (option->kind == CLI_OPTION_MAYBE && value == NULL) {
        bool has = *index + 1 < argc && syntax->is_value(argv[*index + 1]);
        value = has ? argv[++*index] : "";
    }
    if (option->kind != CLI_OPTION_FLAG && value == NULL) {
        if (*index + 1 >= argc) {
            cli_error("option '--%s' needs a value: --%s %s", name, name, option->value);
            return false;
        }
        value = argv[++*index];
    }
    option_set(option, values, value);
    return true;
}

static bool help_wanted(int argc, char **argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            return true;
        }
    }
    return false;
}

static bool operands_right(const struct cli_syntax *syntax, const struct cli_list *operands)
{
    if (operands->count < syntax->operands_min) {
        cli_error("%s is missing; usage: %s", syntax->operand, syntax->usage);
        return false;
    }
    if (operands->count > syntax->operands_max) {
        cli_error("too many arguments: '%s'; usage: %s", operands->items[syntax->operands_max], syntax->usage);
        return false;
    }
    return true;
}

static bool exclusive_right(const struct cli_syntax *syntax, const void *values)
{
    const char *first = NULL;
    for (const char *const *name = syntax->exclusive; name != NULL && *name != NULL; name++) {
        for (size_t i = 0; i < syntax->option_count; i++) {
            const struct cli_option *option = &syntax->options[i];
            bool given = strcmp(option->name, *name) == 0 && *((const bool *)values + option->offset);
            if (given && first != NULL) {
                cli_error("--%s and --%s exclude each other", first, *name);
                return false;
            }
            first = given ? *name : first;
        }
    }
    return true;
}

enum cli_parsed cli_options_parse(const struct cli_syntax *syntax, int argc, char **argv, void *values,
                                  struct cli_list *operands)
{
    if (help_wanted(argc, argv)) {
        help_print(argv[0], syntax);
        return CLI_PARSED_HELP;
    }
    bool right = true;
    bool options_over = false;
    for (int i = 1; i < argc; i++) {
        if (options_over || argv[i][0] != '-' || argv[i][1] == '\0') {
            list_add(operands, argv[i]);
        } else if (strcmp(argv[i], "--") == 0) {
            options_over = true;
        } else if (argv[i][1] != '-') {
            cli_error("unknown option '%s'; options begin with two dashes, see 'tcasim %s --help'", argv[i], argv[0]);
            right = false;
        } else {
            right = option_read(syntax, argc, argv, &i, values) && right;
        }
    }
    right = right && operands_right(syntax, operands) && exclusive_right(syntax, values);
    return right ? CLI_PARSED_RUN : CLI_PARSED_WRONG;
}

bool cli_number_read(const char *text, char **end_out, uint64_t *number_out)
{
    errno = 0;
    *number_out = strtoull(text, end_out, 10);
    return text[0] >= '0' && text[0] <= '9' && errno == 0;
}

bool cli_percent_read(const char *text, double *percent_out)
{
    char *end;
    bool begins = text[0] >= '0' && text[0] <= '9' && text[strspn(text, "0123456789.e+-")] != 'x';
    *percent_out = strtod(text, &end);
    bool ends = *end == '\0' || strcmp(end, "%") == 0 || strcmp(end, " %") == 0;
    return begins && ends && *percent_out < INFINITY;
}
