// `tcasim check`: every mistake of every file, and nothing run.
#include <stdint.h>
#include <stdio.h>

#include "sim/cli/load.h"
#include "sim/cli/options.h"
#include "sim/cli/paths.h"

enum cli_exit cli_check(int argc, char **argv)
{
    struct cli_list sets = {0};
    static const struct cli_option options[] = {
        {"set", "PATH=VALUE", "override a key; may be given more than once", CLI_OPTION_LIST, 0},
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
    enum cli_exit result = CLI_EXIT_OK;
    enum cli_parsed parsed = cli_options_parse(&syntax, argc, argv, &sets, &files);
    if (parsed == CLI_PARSED_RUN) {
        struct cli_paths paths;
        cli_paths_find(&paths);
        for (size_t i = 0; i < files.count; i++) {
            struct scn_scenario *scenario = cli_scenario_load(files.items[i], &paths, &sets);
            if (scenario == NULL) {
                result = CLI_EXIT_INPUT;
                continue;
            }
            printf("%s: ok\n", files.items[i]);
            scn_free(scenario);
        }
    }
    cli_list_free(&sets);
    cli_list_free(&files);
    return parsed == CLI_PARSED_WRONG ? CLI_EXIT_INPUT : result;
}
