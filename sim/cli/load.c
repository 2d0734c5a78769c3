#include "sim/cli/load.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "sim/cli/expectations.h"
#include "sim/kernel/terminal.h"
#include "sim/report/report.h"

static void mistakes_print(struct scn_messages *messages)
{
    for (size_t i = 0; i < messages->count; i++) {
        const char *line = messages->lines[i], *text = strstr(line, ": ");
        int place = text != NULL ? (int)(text - line) : 0;
        fprintf(stderr, "%s%.*s%s%s\n", sim_terminal_colour(stderr, SIM_COLOUR_BOLD), place, line,
                sim_terminal_colour(stderr, SIM_COLOUR_PLAIN), line + place);
    }
    scn_messages_free(messages);
}

static void columns_check(void *ctx, const struct scn_scenario *scenario, scn_complain_fn complain, void *complain_ctx)
{
    const struct cli_paths *paths = ctx;
    report_check_scenario(scenario, paths->reference, complain, complain_ctx);
}

// A program of this machine where a scenario should be: the user means `exec`.
static bool is_program(const char *path)
{
    char head[4] = "";
    struct stat about;
    const char *dot = strrchr(path, '.'); // a scenario may begin with "#!", which is a comment
    bool is_yaml = dot != NULL && (strcmp(dot, ".yaml") == 0 || strcmp(dot, ".yml") == 0);
    FILE *file = stat(path, &about) == 0 && S_ISREG(about.st_mode) ? fopen(path, "rbe") : NULL;
    bool program = file != NULL && fread(head, 1, sizeof head, file) >= 2 &&
                   (memcmp(head, "\177ELF", sizeof head) == 0 || (memcmp(head, "#!", 2) == 0 && !is_yaml));
    if (file != NULL) {
        (void)fclose(file);
    }
    return program;
}

struct scn_scenario *cli_scenario_load(const char *path, const struct cli_paths *paths, const struct cli_list *sets)
{
    const struct scn_load_options options = {
        .configs_dir = paths->configs,
        .sets = sets->items,
        .set_count = sets->count,
        .check = columns_check,
        .check_ctx = (void *)(uintptr_t)paths,
    };
    struct scn_messages messages = {0};
    struct scn_scenario *scenario = NULL;
    if (is_program(path)) {
        cli_error("%s is a program, not a scenario; 'tcasim exec FILE.yaml --on NODE %s' runs it on a simulated node",
                  path, path);
        return NULL;
    }
    enum sim_status status = scn_load(path, &options, &scenario, &messages);
    if (status != SIM_OK && messages.count == 0) {
        fprintf(stderr, "%s: %s\n", path, sim_status_text(status));
    }
    mistakes_print(&messages);
    if (status == SIM_OK && !cli_expectations_foresee(path, scenario)) {
        scn_free(scenario);
        return NULL;
    }
    return status == SIM_OK ? scenario : NULL;
}

struct scn_scenario *cli_point_load(const char *path, const struct cli_paths *paths, const struct cli_list *sets,
                                    const struct scn_sweep_point *point, bool *sets_used)
{
    const struct scn_load_options options = {.configs_dir = paths->configs,
                                             .sets = sets->items,
                                             .set_count = sets->count,
                                             .presets_may_be_unused = true,
                                             .sets_used = sets_used};
    struct scn_messages messages = {0};
    struct scn_scenario *scenario = NULL;
    enum sim_status status = scn_load_point(path, &options, point, &scenario, &messages);
    if (status != SIM_OK) { // warnings were already printed for the whole scenario
        mistakes_print(&messages);
    }
    scn_messages_free(&messages);
    return status == SIM_OK ? scenario : NULL;
}
