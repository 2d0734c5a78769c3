#include "sim/cli/engine.h"

#include <string.h>

#define ENGINES 2

const struct cli_engine *cli_engine_choose(const struct cli_engine_settings *settings)
{
    static const struct cli_engine *const engines[ENGINES] = {&cli_engine_local, &cli_engine_slurm};
    const char *wanted = settings->engine;
    if (wanted == NULL) { // jobs to collect are always Slurm's
        wanted = settings->resume ? cli_engine_slurm.name : cli_engine_local.name;
    }
    for (size_t i = 0; i < ENGINES; i++) {
        if (strcmp(engines[i]->name, wanted) == 0) {
            return engines[i]->settings_right(settings) ? engines[i] : NULL;
        }
    }
    cli_error("--engine %s: expected local or slurm", wanted);
    return NULL;
}
