#include "sim/cli/waves.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#include "sim/cli/cli.h"
#include "sim/cli/interrupt.h"

#define INTERRUPT_SLOT 1 // the first one

static char *checked(int length, char *text)
{
    if (length < 0) {
        cli_error("out of memory");
        exit(CLI_EXIT_INPUT);
    }
    return text;
}

static void file_add(struct cli_waves *waves, const char *node, const char *suffix)
{
    char *file = NULL;
    int length = asprintf(&file, "%s-%s%s", waves->prefix, node, suffix);
    waves->files[waves->count] = checked(length, file);
    cli_interrupt_file_set(INTERRUPT_SLOT + waves->count, file);
    waves->count++;
}

void cli_waves_init(struct cli_waves *waves, const char *directory, const struct scn_scenario *scenario,
                    uint32_t run_index)
{
    *waves = (struct cli_waves){0};
    char series[SCN_NAME_MAX];
    snprintf(series, sizeof series, "%s", scenario->runs[run_index].series);
    for (char *c = series; *c != '\0'; c++) {
        *c = isalnum((unsigned char)*c) != 0 ? *c : '-';
    }
    int length = asprintf(&waves->prefix, "%s/%s", directory, series);
    waves->prefix = checked(length, waves->prefix);
    for (uint32_t i = 0; i < scenario->node_count; i++) {
        file_add(waves, scenario->nodes[i].name, ".fst");
        file_add(waves, scenario->nodes[i].name, ".fst.hier"); // the writer's own scratch file
    }
}

void cli_waves_fini(struct cli_waves *waves)
{
    for (unsigned i = 0; i < waves->count; i++) {
        cli_interrupt_file_set(INTERRUPT_SLOT + i, NULL);
        free(waves->files[i]);
    }
    free(waves->prefix);
}
