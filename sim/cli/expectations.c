#include "sim/cli/expectations.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "sim/report/summary.h"

// --- after the run --------------------------------------------------------------------------------------------------

static void outcomes_add(const struct cli_judging *judging, const struct report_outcomes *outcomes)
{
    for (size_t i = 0; i < outcomes->count && judging->junit != NULL; i++) {
        const struct report_outcome *outcome = &outcomes->items[i];
        junit_case_add(judging->junit, outcome->name, outcome->line,
                       outcome->message == NULL ? JUNIT_PASSED : JUNIT_FAILED, outcome->message, outcome->detail);
    }
}

static enum cli_exit baselines_record(const struct cli_judging *judging, const struct report_outcomes *outcomes)
{
    char error[PATH_MAX + SCN_TEXT_MAX];
    if (!judging->well || outcomes->failed > 0) {
        cli_error("%s: no baseline file is written, because something else in the run failed", judging->path);
        return CLI_EXIT_OK;
    }
    if (outcomes->record_count == 0) {
        cli_error("%s: --update-baseline: no expectation has of: with a baseline file", judging->path);
        return CLI_EXIT_INPUT;
    }
    if (report_outcomes_record(outcomes, judging->scenario->name, judging->recorded, error, sizeof error) != SIM_OK) {
        cli_error("%s: %s", judging->path, error);
        return CLI_EXIT_INPUT;
    }
    fflush(judging->recorded);
    return CLI_EXIT_OK;
}

static void count_print(const struct cli_judging *judging, const struct report_outcomes *outcomes)
{
    size_t count = outcomes->count, failed = outcomes->failed;
    if (failed == 0 && count > 0 && judging->confirmed != NULL) {
        fprintf(judging->confirmed, "%s%zu expectation%s\n", judging->prefix, count, count == 1 ? " holds" : "s hold");
        fflush(judging->confirmed);
    } else if (failed > 0 && count > 1) {
        fprintf(stderr, "%zu of %zu expectations %s not hold\n", failed, count, failed == 1 ? "does" : "do");
    }
}

enum cli_exit cli_expectations_judge(const struct cli_judging *judging, const report_t *report)
{
    struct report_outcomes outcomes;
    report_outcomes_make(report, judging->flags, &outcomes);
    report_outcomes_print(&outcomes, stderr);
    count_print(judging, &outcomes);
    outcomes_add(judging, &outcomes);
    if (judging->summary != NULL) {
        report_summary_write(report, &outcomes, judging->summary);
    }
    enum cli_exit result = outcomes.failed > 0 ? CLI_EXIT_EXPECT : CLI_EXIT_OK;
    if ((judging->flags & REPORT_EXPECT_RECORD) != 0) {
        result = cli_exit_worse(result, baselines_record(judging, &outcomes));
    }
    report_outcomes_free(&outcomes);
    return result;
}

void cli_expectations_skip(const struct cli_judging *judging, const report_t *report, const char *reason)
{
    if (judging->summary != NULL) {
        report_summary_write(report, NULL, judging->summary);
    }
    for (uint32_t i = 0; i < judging->scenario->expect_count; i++) {
        const struct scn_check *expect = &judging->scenario->expects[i];
        char label[SCN_TEXT_MAX + SCN_NAME_MAX];
        bool series = scn_check_subject(expect) == SCN_SUBJECT_SERIES;
        scn_check_label(expect, label, sizeof label);
        if (judging->junit != NULL && (!series || (judging->flags & REPORT_EXPECT_NO_SERIES) == 0)) {
            junit_case_add(judging->junit, label, expect->line, JUNIT_SKIPPED, reason, NULL);
        }
    }
}

static char *command_text(const struct scn_scenario *scenario, const struct attach_program *program, int expected)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (out == NULL) {
        sim_panic("cli", "out of memory for the name of a program");
    }
    fprintf(out, "%s:", scenario->nodes[program->node].name);
    for (size_t i = 0; program->argv[i] != NULL; i++) {
        fprintf(out, " %s", program->argv[i]);
    }
    fprintf(out, " ends with %d", expected);
    (void)fclose(out);
    return text;
}

void cli_statuses_add(junit_t *junit, const struct scn_scenario *scenario, const struct cli_programs *programs,
                      const int *statuses, const char *unfinished)
{
    if (junit != NULL && unfinished != NULL) {
        junit_case_add(junit, "simulation", 0, JUNIT_ERROR, "the simulation did not complete", unfinished);
    }
    for (uint32_t i = 0; junit != NULL && i < programs->count; i++) {
        char message[64], *name = command_text(scenario, &programs->list[i], programs->expected[i]);
        snprintf(message, sizeof message, "it ended with %d", statuses[i]);
        bool well = statuses[i] == programs->expected[i];
        bool waited = statuses[i] == 0 || statuses[i] == 128 + SIGKILL; // a program that waits without end is killed
        if (unfinished != NULL && (well || waited)) {
            junit_case_add(junit, name, 0, JUNIT_SKIPPED, "the simulation did not complete", NULL);
        } else {
            junit_case_add(junit, name, 0, well ? JUNIT_PASSED : JUNIT_FAILED, well ? NULL : message, NULL);
        }
        free(name);
    }
}
