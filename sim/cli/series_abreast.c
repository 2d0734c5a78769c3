// Series in parallel children of this process. Each child leaves its measurements, and its errors, in scratch files; the
// parent adds them in the order of the series.
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sim/cli/output.h"
#include "sim/cli/pool.h"
#include "sim/cli/series.h"
#include "sim/report/records.h"

struct child {
    FILE *records, *text, *errors; // NULL: never started
};

struct abreast {
    const struct cli_series_all *all;
    struct child *children;
    enum cli_exit worst;        // of those that were added
    size_t end;                 // the first series that ends the scenario: those behind it are left out
    report_t *blank;            // of a child
    _Atomic unsigned *permille; // of each series, shared with its child
};

static void scratches_close(struct child *child)
{
    FILE **const files[] = {&child->records, &child->text, &child->errors};
    for (unsigned i = 0; i < sizeof files / sizeof files[0]; i++) {
        if (*files[i] != NULL) {
            (void)fclose(*files[i]);
            *files[i] = NULL;
        }
    }
}

static const char *series_title(void *ctx, size_t i)
{
    static char title[4096];
    const struct abreast *abreast = ctx;
    const struct cli_job *job = abreast->all->job;
    snprintf(title, sizeof title, "%s: series '%s'", job->path, job->scenario->runs[i].series);
    return title;
}

static unsigned series_permille(void *ctx, size_t i)
{
    const struct abreast *abreast = ctx;
    return abreast->permille[i];
}

static bool series_prepare(void *ctx, size_t i, enum cli_exit *result)
{
    struct abreast *abreast = ctx;
    struct child *child = &abreast->children[i];
    if (i > abreast->end) {
        *result = CLI_EXIT_OK;
        return false;
    }
    child->records = cli_scratch_open();
    child->text = cli_scratch_open();
    child->errors = cli_scratch_open();
    if (child->records != NULL && child->text != NULL && child->errors != NULL) {
        return true;
    }
    cli_progress_fini(abreast->all->progress);
    cli_error("%s: no scratch file for its measurements", series_title(ctx, i));
    scratches_close(child);
    *result = CLI_EXIT_INPUT;
    return false;
}

static bool series_unwanted(void *ctx, size_t i)
{
    const struct abreast *abreast = ctx;
    return i > abreast->end;
}

static enum cli_exit series_run(void *ctx, size_t i)
{
    const struct abreast *abreast = ctx;
    const struct child *child = &abreast->children[i];
    struct cli_progress progress;
    struct cli_series series = {.job = abreast->all->job,
                                .report = abreast->blank,
                                .progress = &progress,
                                .run_index = (uint32_t)i,
                                .permille = &abreast->permille[i]};
    if (dup2(fileno(child->errors), STDERR_FILENO) < 0) {
        return CLI_EXIT_INPUT;
    }
    cli_progress_init(&progress, false);
    enum cli_exit result = cli_series_measure(&series);
    report_records_write(series.report, child->records);
    bool written = fputs(series.text, child->text) >= 0 && fflush(child->text) == 0 && fflush(child->records) == 0 &&
                   ferror(child->records) == 0;
    return written ? result : cli_exit_worse(result, CLI_EXIT_INPUT);
}

// A child that was killed left no measurements, or a part of them.
static void series_add(struct abreast *abreast, size_t i, enum cli_exit result)
{
    const struct cli_series_all *all = abreast->all;
    struct child *child = &abreast->children[i];
    struct cli_series series = {.job = all->job, .report = all->report, .run_index = (uint32_t)i};
    cli_progress_fini(all->progress); // a message must not follow the bar in its line
    if (child->records != NULL) {
        cli_output_copy(child->errors, stderr);
        rewind(child->text);
        series.text[fread(series.text, 1, sizeof series.text - 1, child->text)] = '\0';
        if (report_records_add(all->report, child->records, 0) != SIM_OK) {
            cli_error("%s: its measurements are incomplete", series_title(abreast, i));
            result = cli_exit_worse(result, CLI_EXIT_INPUT);
        }
    }
    cli_series_judge(&series, result, all->junit);
    abreast->worst = cli_exit_worse(abreast->worst, result);
}

static void series_ended(void *ctx, size_t i, enum cli_exit result)
{
    struct abreast *abreast = ctx;
    abreast->end = result >= CLI_EXIT_INPUT && i < abreast->end ? i : abreast->end;
}

static void series_in_order(void *ctx, size_t i, enum cli_exit result)
{
    struct abreast *abreast = ctx;
    if (abreast->worst < CLI_EXIT_INPUT) {
        series_add(abreast, i, result <= CLI_EXIT_STUCK ? result : CLI_EXIT_INPUT); // a sanitizer has its own status
    }
    scratches_close(&abreast->children[i]);
}

enum cli_exit cli_series_abreast_measure(const struct cli_series_all *all)
{
    static const struct cli_pool_ops ops = {.prepare = series_prepare,
                                            .run = series_run,
                                            .ended = series_ended,
                                            .in_order = series_in_order,
                                            .name = series_title,
                                            .permille = series_permille,
                                            .unwanted = series_unwanted};
    const struct cli_job *job = all->job;
    uint32_t count = job->scenario->run_count;
    size_t bytes = count * sizeof(_Atomic unsigned);
    struct abreast abreast = {.all = all, .children = calloc(count, sizeof *abreast.children), .end = SIZE_MAX};
    const struct cli_pool pool = {&ops, &abreast, count, job->jobs, "series", all->progress};
    abreast.permille = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (abreast.children == NULL || abreast.permille == MAP_FAILED) {
        cli_error("out of memory");
        abreast.worst = CLI_EXIT_INPUT;
    } else if (report_create(job->scenario, job->reference_csv, &abreast.blank) != SIM_OK) {
        cli_error("%s: cannot be read again", job->reference_csv);
        abreast.worst = CLI_EXIT_INPUT;
    } else if (!cli_pool_run(&pool)) {
        abreast.worst = CLI_EXIT_INPUT;
    }
    if (abreast.permille != MAP_FAILED) {
        (void)munmap(abreast.permille, bytes);
    }
    report_destroy(abreast.blank);
    free(abreast.children);
    return abreast.worst;
}
