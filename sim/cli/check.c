// `tcasim check`: prints every mistake of every file and runs nothing.
#include <stdint.h>
#include <stdio.h>

#include "sim/cli/load.h"
#include "sim/cli/options.h"
#include "sim/cli/paths.h"

static void summary_print(size_t files, size_t wrong)
{
    const char *scenarios = files == 1 ? "scenario" : "scenarios";
    if (wrong == 0) {
        printf("%zu %s, no mistakes\n", files, scenarios);
    } else {
        printf("%zu %s, %zu with mistakes\n", files, scenarios, wrong);
    }
}

enum cli_exit cli_check(int argc, char **argv)
{
    struct cli_list sets = {0};
    static const struct cli_option options[] = {
        {"set", "PATH=VALUE", "override a key; may be given several times", CLI_OPTION_LIST, 0},
    };
    const struct cli_syntax syntax = {
        .usage = "tcasim check FILE.yaml... [--set PATH=VALUE]...",
        .doc = "Reads and resolves each scenario and prints every mistake as file:line:column: text.",
        .options = options,
        .option_count = 1,
        .operands_min = 1,
        .operands_max = SIZE_MAX,
        .operand = "a scenario file",
    };
    struct cli_list files = {0};
    size_t wrong = 0;
    enum cli_exit result = CLI_EXIT_OK;
    enum cli_parsed parsed = cli_options_parse(&syntax, argc, argv, &sets, &files);
    if (parsed == CLI_PARSED_RUN) {
        struct cli_paths paths;
        cli_paths_find(&paths);
        for (size_t i = 0; i < files.count; i++) {
            struct scn_scenario *scenario = cli_scenario_load(files.items[i], &paths, &sets);
            wrong += scenario == NULL;
            scn_free(scenario);
        }
        summary_print(files.count, wrong);
        result = wrong > 0 ? CLI_EXIT_INPUT : CLI_EXIT_OK;
    }
    cli_list_free(&sets);
    cli_list_free(&files);
    return parsed == CLI_PARSED_WRONG ? CLI_EXIT_INPUT : result;
}
