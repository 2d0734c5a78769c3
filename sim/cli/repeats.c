#include "sim/cli/repeats.h"

#include <stdlib.h>
#include <string.h>

#include "sim/cli/cli.h"

static void forget(struct cli_repeated *repeated)
{
    if (repeated->more > 0) {
        cli_error("%s (%u more time%s)", repeated->line, repeated->more, repeated->more == 1 ? "" : "s");
    }
    free(repeated->line);
    *repeated = (struct cli_repeated){0};
}

void cli_repeats_print(struct cli_repeats *repeats, const char *line)
{
    for (unsigned i = 0; i < CLI_REPEATS_LINES; i++) {
        struct cli_repeated *repeated = &repeats->list[i];
        if (repeated->line != NULL && strcmp(repeated->line, line) == 0) {
            repeated->more++;
            return;
        }
    }
    struct cli_repeated *repeated = &repeats->list[repeats->next++ % CLI_REPEATS_LINES];
    forget(repeated);
    repeated->line = strdup(line); // NULL: it is printed again
    cli_error("%s", line);
}

void cli_repeats_end(struct cli_repeats *repeats)
{
    for (unsigned i = 0; i < CLI_REPEATS_LINES; i++) { // in the order in which they came
        forget(&repeats->list[(repeats->next + i) % CLI_REPEATS_LINES]);
    }
    repeats->next = 0;
}
