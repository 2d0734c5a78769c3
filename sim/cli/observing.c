#include "sim/cli/observing.h"

#include <stdlib.h>
#include <string.h>

#include "sim/cli/cli.h"
#include "sim/cli/output.h"
#include "sim/cli/selection.h"

enum { EXPLAINED_MAX = 8 }; // kinds, and columns of the table

static bool trace_begin(struct cli_observing *observing, const char *scenario_path, const struct cli_paths *paths)
{
    const struct cli_observing_options *given = observing->given;
    if (given->trace == NULL && given->trace_only.count > 0) {
        cli_error("--trace-only needs --trace FILE.csv");
        return false;
    }
    if (given->trace == NULL && given->trace_causes) {
        cli_error("--trace-causes needs --trace FILE.csv");
        return false;
    }
    if (given->trace != NULL) {
        observing->tracing = cli_output_usable(given->trace, scenario_path, paths) &&
                             cli_trace_open(&observing->trace, given->trace, &given->trace_only, given->trace_causes);
        observing->trace.series = "exec";
    }
    return observing->tracing || given->trace == NULL;
}

static bool explain_begin(struct cli_observing *observing, const char *scenario_path, const struct cli_paths *paths,
                          struct attach_run_options *run)
{
    const struct cli_observing_options *given = observing->given;
    if (given->timeline != NULL && given->explain == NULL) {
        cli_error("--timeline needs --explain");
        return false;
    }
    if (given->explain == NULL) {
        return true;
    }
    run->explain = true;
    bool selected = cli_selection_parse(given->explain, &run->select);
    observing->each = run->select.last != 0;
    return selected && (given->timeline == NULL || cli_output_usable(given->timeline, scenario_path, paths)) &&
           breakdown_create(&observing->breakdown) == SIM_OK;
}

bool cli_observing_begin(struct cli_observing *observing, const struct cli_observing_options *given,
                         const char *scenario_path, const struct cli_paths *paths, struct attach_run_options *run)
{
    *observing = (struct cli_observing){.given = given};
    run->summary = given->summary;
    run->check = given->check;
    return explain_begin(observing, scenario_path, paths, run) && trace_begin(observing, scenario_path, paths);
}

static bool explain_end(struct cli_observing *observing, const char *directory)
{
    char error[512] = "";
    enum sim_status status = SIM_OK;
    if (observing->explained == 0) {
        const char *select = observing->given->explain;
        const char *what = select[0] != '\0' ? select : "any";
        cli_error("--explain: no operation (%s) could be explained; these occurred: %s", what,
                  observing->kinds[0] != '\0' ? observing->kinds : "none");
        return select[0] == '\0';
    }
    if (observing->explained <= EXPLAINED_MAX) { // else no terminal is so wide
        breakdown_print(observing->breakdown, stdout);
    }
    if (directory == NULL) {
        printf("with --out DIR: the pieces of each part, in their order, in breakdown.csv\n");
    }
    if (directory != NULL) {
        status =
            breakdown_write(observing->breakdown, directory, "Where the time of operations goes", error, sizeof error);
    }
    if (status == SIM_OK && observing->given->timeline != NULL) {
        status = breakdown_timeline_write(observing->breakdown, observing->given->timeline, error, sizeof error);
    }
    if (status != SIM_OK) {
        cli_error("%s", error);
    }
    return status == SIM_OK && !observing->inexact;
}

bool cli_observing_end(struct cli_observing *observing, const char *directory)
{
    if (directory != NULL && observing->taken) {
        breakdown_remove(directory);
    }
    cli_repeats_end(&observing->repeats);
    bool good = observing->breakdown == NULL || !observing->taken || explain_end(observing, directory);
    breakdown_destroy(observing->breakdown);
    free(observing->yaml);
    observing->breakdown = NULL;
    observing->yaml = NULL;
    // The trace of a run that got stuck is kept: it is needed to find the cause.
    return (!observing->tracing || cli_trace_close(&observing->trace, true)) && good;
}

void cli_observing_trace(struct cli_observing *observing, const struct sim_trace_record *record)
{
    cli_trace_write(&observing->trace, record);
}

void cli_observing_diagnosis(struct cli_observing *observing, const char *line)
{
    cli_repeats_print(&observing->repeats, line);
    if (strncmp(line, "check: ", 7) == 0) {
        size_t used = strlen(observing->findings);
        snprintf(observing->findings + used, sizeof observing->findings - used, "%s\n", line);
    }
}

void cli_observing_judge(const struct cli_observing *observing, unsigned findings, junit_t *junit)
{
    char message[64];
    if (!observing->given->check) {
        return;
    }
    snprintf(message, sizeof message, "findings of --check: %u", findings);
    junit_case_add(junit, "checks", 0, findings > 0 ? JUNIT_FAILED : JUNIT_PASSED, findings > 0 ? message : NULL,
                   findings > 0 ? observing->findings : NULL);
}

static void explained_take(void *ctx, const struct observe_operation *operation, const struct sim_piece *pieces,
                           size_t count)
{
    struct cli_observing *observing = ctx;
    char error[512], least[48], most[48], total[48], posted[48], bytes[32];
    const struct breakdown_case of = {operation->name, operation->node, operation->bytes, 1, operation->total_ps};
    if (observing->explained == EXPLAINED_MAX && !observing->each) {
        return;
    }
    observing->explained++;
    if (breakdown_add(observing->breakdown, &of, pieces, count, error, sizeof error) != SIM_OK) {
        cli_error("%s: %s", operation->name, error);
        observing->inexact = true;
        return;
    }
    observe_time_print(operation->total_ps, total, sizeof total);
    observe_time_print(operation->least_ps, least, sizeof least);
    observe_time_print(operation->most_ps, most, sizeof most);
    observe_bytes_print(operation->bytes, bytes, sizeof bytes);
    observe_time_print(operation->posted_ps, posted, sizeof posted);
    printf("%s, %s: %s; of %llu from %s to %s; posted at %s (%llu ps)\n", operation->name, bytes, total,
           (unsigned long long)operation->count, least, most, posted, (unsigned long long)operation->posted_ps);
}

void cli_observing_take(struct cli_observing *observing, observe_t *observe)
{
    size_t size;
    observing->taken = true;
    FILE *yaml = open_memstream(&observing->yaml, &size);
    if (yaml != NULL) {
        observe_summary_yaml(observe, yaml);
        (void)fclose(yaml);
    }
    if (observing->given->summary) {
        observe_summary_print(observe, stderr);
    }
    if (observing->breakdown != NULL) {
        observe_explained_visit(observe, explained_take, observing);
        observe_explained_kinds(observe, observing->kinds, sizeof observing->kinds);
        if (observe_explained_missed(observe) > 0) {
            printf("%llu operations are not shown by kind: there are more than 256 kinds\n",
                   (unsigned long long)observe_explained_missed(observe));
        }
    }
}
