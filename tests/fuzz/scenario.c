#include "scenario.h"

#include <string.h>

#include "sim/scenario/scenario.h"

// false: refused.
static bool loads(const char *path, const char *set, struct scn_scenario **scenario_out, char **first_line)
{
    static scn_presets_t *presets; // their files do not change
    const char *const sets[] = {set};
    presets = presets != NULL ? presets : scn_presets_create();
    const struct scn_load_options options = {
        .configs_dir = TCASIM_SOURCE_DIR "/configs", .presets = presets, .sets = sets, .set_count = set != NULL};
    struct scn_messages messages = {0};
    enum sim_status status = scn_load(path, &options, scenario_out, &messages);
    FUZZ_HOLDS(status == SIM_OK || messages.count > 0, "refused without a message");
    for (size_t i = 0; i < messages.count; i++) {
        for (const char *at = messages.lines[i]; *at != '\0'; at++) {
            FUZZ_HOLDS((unsigned char)*at >= ' ' && *at != 0x7f, "a control character in: %s", messages.lines[i]);
        }
    }
    *first_line = messages.count > 0 ? strdup(messages.lines[0]) : NULL;
    scn_messages_free(&messages);
    return status == SIM_OK;
}

static char *resolved(const struct scn_scenario *scenario)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    FUZZ_HOLDS(out != NULL && scn_write_resolved(scenario, out) == SIM_OK && fclose(out) == 0, "not written");
    return text;
}

void fuzz_scenario_load(const char *path, const char *set)
{
    static struct fuzz_file file = {.fd = -1};
    struct scn_scenario *scenario, *again;
    char *line;
    if (file.fd < 0) {
        fuzz_file_make(&file);
    }
    if (loads(path, set, &scenario, &line)) {
        char *text = resolved(scenario);
        free(line);
        fuzz_file_write(&file, text, strlen(text));
        bool loaded = loads(file.path, NULL, &again, &line);
        FUZZ_HOLDS(loaded, "%s\nof the resolved scenario:\n%s", line, text);
        char *same = resolved(again);
        FUZZ_HOLDS(strcmp(same, text) == 0, "resolved twice:\n%s\n--- and\n%s", text, same);
        scn_free(scenario);
        scn_free(again);
        free(text);
        free(same);
    }
    free(line);
}
