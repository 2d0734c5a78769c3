#include "sim/cli/repeats.h"
#include "sim/cli/printing.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/cli/capture.h"
#include "sim/cli/expectations.h"
#include "sim/cli/programs.h"
#include "sim/report/printed.h"

enum { WALL_LIMIT_MS = 60000, NOT_FOUND = 127 };

struct printing {
    const struct cli_job *job;
    report_t *report;
    struct cli_programs programs;
    struct cli_captures captures; // of all programs except those whose output goes to a file of the scenario
    struct attach_run_result result;
    struct cli_repeats repeats; // of diagnoses
};

bool cli_printing_is_asked(const struct scn_scenario *scenario)
{
    bool counters = false, printed = false;
    for (uint32_t i = 0; i < scenario->expect_count; i++) {
        counters = counters || scn_check_subject(&scenario->expects[i]) == SCN_SUBJECT_COUNTER;
    }
    for (uint32_t i = 0; i < scenario->outside_count; i++) {
        printed = printed || scenario->outsides[i].results.series[0] != '\0' || scn_outside_is_observed(scenario, i);
    }
    return printed || (counters && scenario->outside_count > 0);
}

// --- prerequisites --------------------------------------------------------------------------------------------------

static bool is_program(const char *directory, size_t length, const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%.*s/%s", (int)length, directory, name);
    return access(path, X_OK) == 0;
}

// Is it in PATH, or among the programs that belong to this one?
static bool is_installed(const char *name, const char *libraries)
{
    const char *path = getenv("PATH");
    bool found = strchr(name, '/') != NULL ? access(name, X_OK) == 0 : is_program(libraries, strlen(libraries), name);
    while (!found && path != NULL && *path != '\0') {
        size_t length = strcspn(path, ":");
        found = is_program(path, length, name);
        path += length + (path[length] == ':');
    }
    return found;
}

static bool program_needs_check(const struct cli_job *job, const struct scn_outside *program)
{
    char *needs = cli_programs_text(job->scenario, program->needs), *rest = NULL;
    bool there = needs != NULL;
    for (char *name = there ? strtok_r(needs, " ", &rest) : NULL; name != NULL; name = strtok_r(NULL, " ", &rest)) {
        if (!is_installed(name, job->paths->libraries)) {
            cli_error("%s: %s is not installed (docs/attached-programs.md)", job->path, name);
            there = false;
        }
    }
    free(needs);
    return there;
}

static bool needs_check(const struct printing *printing)
{
    const struct cli_job *job = printing->job;
    bool there = true;
    for (uint32_t i = 0; i < job->scenario->outside_count; i++) {
        there = program_needs_check(job, &job->scenario->outsides[i]) && there;
    }
    return there;
}

// --- output ---------------------------------------------------------------------------------------------------------

static bool outputs_open(struct printing *printing)
{
    bool open = true;
    for (uint32_t i = 0; i < printing->programs.count && open; i++) {
        bool file = printing->programs.list[i].stdout_path != NULL;
        open = file || cli_captures_add(&printing->captures, &printing->programs, i);
    }
    return open;
}

static void tail_print(const char *text)
{
    const char *from = text + strlen(text);
    for (unsigned lines = 0; from > text && lines < 6; from--) {
        lines += from[-1] == '\n';
    }
    fprintf(stderr, "%s%s", from, text[0] != '\0' && text[strlen(text) - 1] != '\n' ? "\n" : "");
}

// --- results --------------------------------------------------------------------------------------------------------

static void heading_make(const struct printing *printing, uint32_t i, char *heading, size_t size)
{
    const struct attach_program *program = &printing->programs.list[i];
    size_t length = (size_t)snprintf(heading, size, "%s:", printing->job->scenario->nodes[program->node].name);
    for (size_t k = 0; program->argv[k] != NULL && length < size; k++) {
        length += (size_t)snprintf(heading + length, size - length, " %s", program->argv[k]);
    }
}

static enum cli_exit output_take(struct printing *printing, uint32_t i, bool ended_well)
{
    const struct scn_outside *outside = &printing->job->scenario->outsides[i];
    char heading[SCN_NAME_MAX + SCN_COMMAND_MAX], error[256];
    size_t length;
    char *text = cli_captures_read(&printing->captures, i, &length);
    if (text == NULL) {
        return CLI_EXIT_OK; // its output goes to a file
    }
    report_add_output(printing->report, i, text, length);
    heading_make(printing, i, heading, sizeof heading);
    report_add_text(printing->report, heading, text);
    enum cli_exit exit = CLI_EXIT_OK;
    if (ended_well && outside->results.series[0] != '\0' &&
        report_add_printed(printing->report, &outside->results, text, error, sizeof error) != SIM_OK) {
        cli_error("%s: series '%s': %s: %s", printing->job->path, outside->results.series,
                  printing->programs.list[i].argv[0], error);
        exit = CLI_EXIT_INPUT;
    }
    if (!ended_well || exit != CLI_EXIT_OK) {
        tail_print(text);
    }
    free(text);
    return exit;
}

static void diagnosis_take(void *ctx, const char *line)
{
    cli_repeats_print(&((struct printing *)ctx)->repeats, line);
}

static void counter_take(void *ctx, const char *component, const struct sim_counter_desc *desc, uint64_t value)
{
    struct printing *printing = ctx;
    report_add_counter(printing->report, "programs", component, desc->name, desc->unit, value);
}

// Converts the status of a run of programs to that of a scenario: a program's own status is not an expectation.
static enum cli_exit status_judge(struct printing *printing, int status)
{
    const struct cli_programs *programs = &printing->programs;
    for (uint32_t i = 0; i < programs->count; i++) {
        if (status != 0 && printing->result.statuses[i] == NOT_FOUND && programs->expected[i] != NOT_FOUND) {
            cli_error("%s: %s is not installed, or needs a program that is not installed", printing->job->path,
                      programs->list[i].argv[0]);
            return CLI_EXIT_INPUT;
        }
    }
    if (status == CLI_EXIT_INPUT || status == CLI_EXIT_STUCK || status == 0) {
        return (enum cli_exit)status;
    }
    cli_error("%s: a program ended with %d", printing->job->path, status);
    return CLI_EXIT_EXPECT;
}

static enum cli_exit programs_run(struct printing *printing, junit_t *junit)
{
    const struct cli_job *job = printing->job;
    const struct attach_run_options options = {.programs = printing->programs.list,
                                               .program_count = printing->programs.count,
                                               .library_directory = job->paths->libraries,
                                               .wall_limit_ms = WALL_LIMIT_MS,
                                               .counter = counter_take,
                                               .diagnosis = diagnosis_take,
                                               .ctx = printing};
    enum sim_status built;
    int signal_number = cli_programs_run(job->scenario, &options, &built, &printing->result);
    if (signal_number != 0) {
        (void)raise(signal_number); // with its previous action
    }
    cli_repeats_end(&printing->repeats);
    int status = cli_programs_judge(job->path, &printing->programs, built, &printing->result);
    cli_programs_outside_print(&printing->result, "tcasim: another run may differ", stderr);
    report_set_programs(printing->report, "programs");
    cli_statuses_add(junit, job->scenario, &printing->programs, printing->result.statuses,
                     cli_programs_went_on(built, &printing->result) ? NULL : printing->result.text);
    report_add_run(printing->report, "programs", printing->result.simulated_ps, printing->result.events,
                   printing->result.rtl_cycles);
    enum cli_exit exit = built == SIM_OK ? status_judge(printing, status) : CLI_EXIT_INPUT;
    for (uint32_t i = 0; i < printing->programs.count && built == SIM_OK; i++) {
        exit = cli_exit_worse(exit, output_take(printing, i, status == 0));
    }
    return exit;
}

enum cli_exit cli_printing_measure(const struct cli_job *job, report_t *report, junit_t *junit)
{
    enum cli_exit exit = CLI_EXIT_INPUT;
    struct printing *printing = calloc(1, sizeof *printing);
    if (printing == NULL) {
        cli_error("out of memory");
        return exit;
    }
    printing->job = job;
    printing->report = report;
    cli_captures_init(&printing->captures);
    if (needs_check(printing) && cli_programs_of_scenario(&printing->programs, job->scenario) &&
        outputs_open(printing)) {
        exit = programs_run(printing, junit);
    }
    cli_captures_fini(&printing->captures);
    cli_programs_free(&printing->programs);
    free(printing);
    return exit;
}
