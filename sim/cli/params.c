// `tcasim params`: prints the loader's table of keys.
#include <stddef.h>
#include <stdio.h>

#include "sim/cli/options.h"
#include "sim/cli/paths.h"
#include "sim/scenario/scenario.h"

static void nothing_report(const char *filter)
{
    const char *nearest = scn_key_suggest(filter);
    if (nearest != NULL) {
        cli_error("no key contains '%s'; did you mean '%s'?", filter, nearest);
    } else {
        cli_error("no key contains '%s'; 'tcasim params' lists them all", filter);
    }
}

struct params_options {
    bool markdown, json;
};

static const struct cli_option options[] = {
    {"markdown", NULL, "prints tables in Markdown", CLI_OPTION_FLAG, offsetof(struct params_options, markdown)},
    {"json", NULL, "prints JSON", CLI_OPTION_FLAG, offsetof(struct params_options, json)},
};

enum cli_exit cli_params(int argc, char **argv)
{
    static const char *const exclusive[] = {"markdown", "json", NULL};
    const struct cli_syntax syntax = {
        .exclusive = exclusive,
        .usage = "tcasim params [WORD] [--markdown | --json]",
        .doc = "Prints every key with its unit, default, range and meaning, and its value and source in each preset.\n"
               "With WORD only keys that have it, or a word that means the same, in their name, meaning, choices or\n"
               "sources are printed.",
        .options = options,
        .option_count = sizeof options / sizeof options[0],
        .operands_max = 1,
        .operand = "a filter",
    };
    struct params_options values = {0};
    struct cli_list filters = {0};
    enum cli_exit result = CLI_EXIT_OK;
    enum cli_parsed parsed = cli_options_parse(&syntax, argc, argv, &values, &filters);
    if (parsed == CLI_PARSED_RUN) {
        struct cli_paths paths;
        cli_paths_find(&paths);
        enum scn_params_form form = values.json       ? SCN_PARAMS_JSON
                                    : values.markdown ? SCN_PARAMS_MARKDOWN
                                                      : SCN_PARAMS_TEXT;
        const char *filter = filters.count > 0 ? filters.items[0] : NULL;
        enum sim_status status = scn_print_params(stdout, paths.configs, filter, form);
        if (status == SIM_ERR_NOT_FOUND) {
            nothing_report(filter);
        } else if (status != SIM_OK && ferror(stdout) == 0) {
            cli_error("the presets in %s cannot be read: %s", paths.configs, sim_status_text(status));
        }
        result = status == SIM_OK || ferror(stdout) != 0 ? CLI_EXIT_OK : CLI_EXIT_INPUT;
    }
    cli_list_free(&filters);
    return parsed == CLI_PARSED_WRONG ? CLI_EXIT_INPUT : result;
}
