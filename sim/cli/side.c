#include "sim/cli/side.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "sim/cli/interrupt.h"
#include "sim/cli/output.h"
#include "sim/cli/pool.h"

struct child {
    enum cli_exit result;
    FILE *output, *errors; // what it prints; NULL: already printed, or never started
    FILE *suites;          // its part of the JUnit XML; NULL: none, or as above
    FILE *summary;         // its rows of the summary; as above
};

struct side {
    const struct cli_job *jobs;
    struct child *children;
    size_t count;
    uint32_t limit; // at most so many processes in total
    struct cli_progress progress;
};

static const char *child_name(void *ctx, size_t i)
{
    const struct side *side = ctx;
    return side->jobs[i].path;
}

static bool child_prepare(void *ctx, size_t i, enum cli_exit *result)
{
    struct side *side = ctx;
    struct child *child = &side->children[i];
    child->output = cli_scratch_open();
    child->errors = cli_scratch_open();
    child->suites = side->jobs[i].suites != NULL ? cli_scratch_open() : NULL;
    child->summary = side->jobs[i].summary != NULL ? cli_scratch_open() : NULL;
    bool summary = child->summary != NULL || side->jobs[i].summary == NULL;
    bool suites = child->suites != NULL || side->jobs[i].suites == NULL;
    if (child->output != NULL && child->errors != NULL && suites && summary) {
        return true;
    }
    cli_error("%s: no scratch file for its output", child_name(ctx, i));
    *result = CLI_EXIT_INPUT;
    return false;
}

static enum cli_exit child_run(void *ctx, size_t i)
{
    const struct side *side = ctx;
    struct cli_job job = side->jobs[i];
    cli_interrupt_init(); // it registers files of its own
    if (dup2(fileno(side->children[i].output), STDOUT_FILENO) < 0 ||
        dup2(fileno(side->children[i].errors), STDERR_FILENO) < 0) {
        return CLI_EXIT_INPUT;
    }
    job.jobs = side->limit > side->count ? side->limit / (uint32_t)side->count : 1;
    job.suites = side->children[i].suites;
    job.summary = side->children[i].summary;
    enum cli_exit result = cli_job_run(&job);
    if (job.summary != NULL) {
        fflush(job.summary);
    }
    return result;
}

// --- output ----------------------------------------------------------------------------------------------------------

static void file_move(FILE *from, FILE *to)
{
    if (from != NULL) {
        cli_output_copy(from, to);
        (void)fclose(from);
    }
}

// A child that was killed left no suite. A suite with an error shows this.
static void suites_copy(const struct side *side, const struct child *child)
{
    const struct cli_job *job = &side->jobs[child - side->children];
    if (job->suites == NULL) {
        return;
    }
    if (child->suites != NULL && fseek(child->suites, 0, SEEK_END) == 0 && ftell(child->suites) > 0) {
        file_move(child->suites, job->suites);
        return;
    }
    junit_t *junit = junit_create();
    junit_suite_begin(junit, job->scenario->name, job->path);
    junit_case_add(junit, "simulation", 0, JUNIT_ERROR, "its process ended without a result", NULL);
    junit_suites_write(junit, job->suites);
    junit_destroy(junit);
    file_move(child->suites, stdout); // the file is empty: this only closes it
}

static void child_print(void *ctx, size_t i, enum cli_exit result)
{
    struct side *side = ctx;
    struct child *child = &side->children[i];
    child->result = result;
    cli_progress_fini(&side->progress);
    file_move(child->output, stdout);
    file_move(child->errors, stderr);
    suites_copy(side, child);
    file_move(child->summary, side->jobs[i].summary);
}

// --- all of them -----------------------------------------------------------------------------------------------------

enum cli_exit cli_side_run(const struct cli_job *jobs, size_t count, uint32_t limit)
{
    static const struct cli_pool_ops ops = {
        .prepare = child_prepare, .run = child_run, .in_order = child_print, .name = child_name};
    struct side side = {.jobs = jobs, .children = calloc(count, sizeof *side.children), .count = count, .limit = limit};
    if (side.children == NULL) {
        cli_error("out of memory");
        return CLI_EXIT_INPUT;
    }
    const struct cli_pool pool = {&ops, &side, count, limit, "scenarios", &side.progress};
    cli_progress_init(&side.progress, !jobs[0].quiet);
    cli_interrupt_loss_set("the scenarios that were running leave no results");
    enum cli_exit worst = cli_pool_run(&pool) ? CLI_EXIT_OK : CLI_EXIT_INPUT;
    cli_interrupt_loss_set(NULL);
    cli_progress_fini(&side.progress);
    for (size_t i = 0; i < count; i++) {
        worst = cli_exit_worse(worst, side.children[i].result);
    }
    free(side.children);
    return worst;
}
