#include "sim/cli/seeds.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/cli/interrupt.h"
#include "sim/cli/output.h"
#include "sim/cli/pool.h"
#include "sim/cli/reproduction.h"

enum { SEEDS_MAX = 1000000, LINES_MAX = 8 };

struct run {
    int status;
    FILE *errors; // its standard error; NULL: already printed, or never started
};

struct seeds {
    uint64_t first;
    char *const *argv;
    char **words; // of the run that is about to start
    struct run *runs;
    size_t count, failed;
    struct cli_progress progress;
    junit_t *junit;
};

// --- the command line -----------------------------------------------------------------------------------------------

static bool range_read(const char *text, uint64_t *first_out, uint64_t *last_out)
{
    char *end;
    return cli_number_read(text, &end, first_out) && strncmp(end, "..", 2) == 0 &&
           cli_number_read(end + 2, &end, last_out) && *end == '\0' && *first_out <= *last_out &&
           *last_out - *first_out < SEEDS_MAX;
}

bool cli_seeds_read(const struct cli_seeds_options *given, bool writes_files, struct attach_run_options *run)
{
    uint64_t first, last;
    uint32_t jobs;
    char *end;
    const char *option = given->seeds != NULL ? "--seeds" : "--adversarial";
    if (given->seeds == NULL && given->jobs != NULL) {
        cli_error("--jobs needs --seeds A..B");
        return false;
    }
    if ((given->seeds != NULL || given->adversarial != NULL) && run->functional) {
        cli_error("%s cannot be combined with --functional, which has no simulated time", option);
        return false;
    }
    if (given->seeds != NULL && given->adversarial != NULL) {
        cli_error("--seeds cannot be combined with --adversarial: the first runs many seeds, the second runs one");
        return false;
    }
    if (given->seeds != NULL && !range_read(given->seeds, &first, &last)) {
        cli_error("--seeds %s: expected two numbers, as in 1..200, at most %d of them", given->seeds, SEEDS_MAX);
        return false;
    }
    if (given->seeds != NULL && writes_files) {
        cli_error("--seeds makes many runs and writes no files; repeat one of its seeds with --adversarial");
        return false;
    }
    run->adversarial = given->adversarial != NULL;
    if (run->adversarial && (!cli_number_read(given->adversarial, &end, &run->adversarial_seed) || *end != '\0')) {
        cli_error("--adversarial %s: expected a seed, a number from 0 on", given->adversarial);
        return false;
    }
    return cli_jobs_read(given->jobs, &jobs);
}

// --- one run, in a child --------------------------------------------------------------------------------------------

static const char *run_name(void *ctx, size_t i)
{
    static char name[40];
    const struct seeds *seeds = ctx;
    snprintf(name, sizeof name, "seed %" PRIu64, seeds->first + i);
    return name;
}

static bool run_prepare(void *ctx, size_t i, enum cli_exit *result)
{
    struct seeds *seeds = ctx;
    seeds->words = cli_reproduction(seeds->argv, seeds->first + i);
    seeds->runs[i].errors =
        cli_scratch_open(); // not inherited: the programs have the same descriptors as in a single run
    *result = CLI_EXIT_INPUT;
    if (seeds->words != NULL && seeds->runs[i].errors != NULL) {
        return true;
    }
    cli_error("%s: no memory, or no scratch file for its output", run_name(ctx, i));
    cli_reproduction_free(seeds->words);
    return false;
}

// Starts a process with the same words as the command that is printed, so that it does the same.
static enum cli_exit run_start(void *ctx, size_t i)
{
    const struct seeds *seeds = ctx;
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    size_t count = 0;
    while (seeds->words[count] != NULL) {
        count++;
    }
    char **argv = calloc(count + 2, sizeof *argv);
    if (argv == NULL) {
        cli_error("out of memory");
        return CLI_EXIT_INPUT;
    }
    argv[0] = "tcasim";
    memcpy(argv + 1, seeds->words, count * sizeof *argv);
    if (nothing < 0 || dup2(fileno(seeds->runs[i].errors), STDERR_FILENO) < 0 || dup2(nothing, STDIN_FILENO) < 0 ||
        dup2(nothing, STDOUT_FILENO) < 0) {
        return CLI_EXIT_INPUT;
    }
    (void)execv("/proc/self/exe", argv);
    cli_error("cannot start itself: %s", strerror(errno));
    return CLI_EXIT_INPUT;
}

static void run_forked(void *ctx, size_t i)
{
    struct seeds *seeds = ctx;
    (void)i;
    cli_reproduction_free(seeds->words);
    seeds->words = NULL;
}

// --- results --------------------------------------------------------------------------------------------------------

static void lines_print(FILE *from, FILE *out)
{
    char *line = NULL;
    size_t room = 0;
    unsigned lines = 0;
    ssize_t length;
    rewind(from);
    while ((length = getline(&line, &room, from)) > 0) {
        if (lines++ < LINES_MAX) {
            line[length - 1] = line[length - 1] == '\n' ? '\0' : line[length - 1];
            fprintf(out, "    %s\n", line);
        }
    }
    if (lines > LINES_MAX) {
        fprintf(out, "    (%u more lines)\n", lines - LINES_MAX);
    }
    free(line);
}

// The output of a run, and the command that repeats it. NULL: no memory.
static char *failure_text(const struct seeds *seeds, size_t i)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    char **words = cli_reproduction(seeds->argv, seeds->first + i);
    if (out != NULL && seeds->runs[i].errors != NULL) {
        lines_print(seeds->runs[i].errors, out);
    }
    if (out != NULL && words != NULL) {
        fputs("  ", out);
        cli_reproduction_print(words, out);
    }
    cli_reproduction_free(words);
    return out != NULL && fclose(out) == 0 ? text : NULL;
}

static void run_report(void *ctx, size_t i, enum cli_exit result)
{
    struct seeds *seeds = ctx;
    struct run *run = &seeds->runs[i];
    run->status = (int)result;
    char *text = run->status != 0 ? failure_text(seeds, i) : NULL, message[32];
    snprintf(message, sizeof message, "status %d", run->status);
    if (run->status != 0) {
        seeds->failed++;
        cli_progress_fini(&seeds->progress);
        printf("%s: %s\n%s", run_name(seeds, i), message, text != NULL ? text : "");
        fflush(stdout);
    }
    junit_case_add(seeds->junit, run_name(seeds, i), 0, run->status != 0 ? JUNIT_FAILED : JUNIT_PASSED,
                   run->status != 0 ? message : NULL, text);
    free(text);
    if (run->errors != NULL) {
        (void)fclose(run->errors);
        run->errors = NULL;
    }
}

static int all_report(const struct seeds *seeds)
{
    int worst = 0;
    printf("%zu seeds, %zu failed%s", seeds->count, seeds->failed, seeds->failed > 0 ? ":" : "");
    for (size_t i = 0; i < seeds->count; i++) {
        int status = seeds->runs[i].status;
        worst = status > worst ? status : worst;
        if (status != 0) {
            printf(" %" PRIu64, seeds->first + i);
        }
    }
    printf("\n");
    return worst;
}

int cli_seeds_run(const struct cli_seeds_options *given, char **argv, junit_t *junit)
{
    static const struct cli_pool_ops ops = {
        .prepare = run_prepare, .run = run_start, .forked = run_forked, .in_order = run_report, .name = run_name};
    struct seeds seeds = {.argv = argv, .junit = junit};
    uint64_t last;
    uint32_t jobs;
    if (!range_read(given->seeds, &seeds.first, &last) || !cli_jobs_read(given->jobs, &jobs)) {
        return CLI_EXIT_INPUT;
    }
    seeds.count = (size_t)(last - seeds.first + 1);
    seeds.runs = calloc(seeds.count, sizeof *seeds.runs);
    if (seeds.runs == NULL) {
        cli_error("out of memory");
        return CLI_EXIT_INPUT;
    }
    const struct cli_pool pool = {&ops, &seeds, seeds.count, jobs, "seeds", &seeds.progress};
    cli_progress_init(&seeds.progress, true);
    cli_interrupt_loss_set("the running seeds are not reported");
    int worst = cli_pool_run(&pool) ? 0 : CLI_EXIT_INPUT;
    cli_interrupt_loss_set(NULL);
    cli_progress_fini(&seeds.progress);
    int status = all_report(&seeds);
    free(seeds.runs);
    return status > worst ? status : worst;
}
