#include "sim/cli/waves.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/cli/cli.h"
#include "sim/cli/interrupt.h"
#include "sim/report/report.h"

#define INTERRUPT_SLOT 1 // the first slot

static char *checked(int length, char *text)
{
    if (length < 0) {
        cli_error("out of memory");
        exit(CLI_EXIT_INPUT);
    }
    return text;
}

static char *folder_of(const char *directory)
{
    char *folder = NULL;
    int length = asprintf(&folder, "%s/waves", directory);
    return checked(length, folder);
}

static bool is_waveform(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot != NULL && (strcmp(dot, ".fst") == 0 || strcmp(dot, ".hier") == 0);
}

void cli_waves_clear(const char *directory)
{
    char *folder = folder_of(directory);
    DIR *entries = opendir(folder);
    for (struct dirent *entry = entries != NULL ? readdir(entries) : NULL; entry != NULL; entry = readdir(entries)) {
        if (is_waveform(entry->d_name)) {
            (void)unlinkat(dirfd(entries), entry->d_name, 0);
        }
    }
    if (entries != NULL) {
        (void)closedir(entries);
        (void)rmdir(folder); // fails if the user has put files into it
    }
    free(folder);
}

bool cli_waves_init(struct cli_waves *waves, const char *directory)
{
    char error[512];
    cli_waves_clear(directory);
    *waves = (struct cli_waves){.folder = folder_of(directory)};
    if (report_directory_create(waves->folder, error, sizeof error) != SIM_OK) {
        cli_error("%s", error);
        return false;
    }
    return true;
}

static void file_add(struct cli_waves *waves, const char *prefix, const char *node, const char *suffix)
{
    char *file = NULL;
    int length = asprintf(&file, "%s-%s%s", prefix, node, suffix);
    char **files = realloc(waves->files, (waves->count + 1) * sizeof *files);
    waves->files = (char **)checked(files != NULL ? 0 : -1, (char *)files);
    waves->files[waves->count] = checked(length, file);
    cli_interrupt_file_set(INTERRUPT_SLOT + waves->count, file);
    waves->count++;
}

char *cli_waves_prefix(struct cli_waves *waves, const struct scn_scenario *scenario, uint32_t run_index)
{
    char series[SCN_NAME_MAX];
    snprintf(series, sizeof series, "%s", scenario->runs[run_index].series);
    for (char *c = series; *c != '\0'; c++) {
        *c = isalnum((unsigned char)*c) != 0 ? *c : '-';
    }
    char *prefix = NULL;
    int length = asprintf(&prefix, "%s/%s", waves->folder, series);
    prefix = checked(length, prefix);
    for (uint32_t i = 0; i < scenario->node_count; i++) {
        file_add(waves, prefix, scenario->nodes[i].name, ".fst");
        file_add(waves, prefix, scenario->nodes[i].name, ".fst.hier"); // the writer's scratch file
    }
    return prefix;
}

void cli_waves_fini(struct cli_waves *waves)
{
    for (unsigned i = 0; i < waves->count; i++) {
        cli_interrupt_file_set(INTERRUPT_SLOT + i, NULL);
        free(waves->files[i]);
    }
    free(waves->files);
    free(waves->folder);
}
