// `tcasim schema`: the JSON Schema of scenarios.
#include <stdio.h>

#include "sim/cli/options.h"
#include "sim/scenario/scenario.h"

enum cli_exit cli_schema(int argc, char **argv)
{
    const struct cli_syntax syntax = {
        .usage = "tcasim schema",
        .doc =
            "Prints the JSON Schema (draft 2020-12) of scenarios, from the table of keys: editors complete and check\n"
            "with it. `tcasim check` knows the rules between keys as well.",
    };
    struct cli_list none = {0};
    enum cli_parsed parsed = cli_options_parse(&syntax, argc, argv, NULL, &none);
    if (parsed == CLI_PARSED_RUN) {
        (void)scn_write_schema(stdout); // main reports what cannot be written
    }
    cli_list_free(&none);
    return parsed == CLI_PARSED_WRONG ? CLI_EXIT_INPUT : CLI_EXIT_OK;
}
