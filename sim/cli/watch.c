// `tcasim watch`: runs a scenario again whenever its file changes, and keeps a page of the results that reloads itself.
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "sim/cli/interrupt.h"
#include "sim/cli/load.h"
#include "sim/cli/output.h"
#include "sim/cli/page.h"
#include "sim/report/report.h"

enum { LOOK_MS = 200, ARGUMENTS = 8 };

struct watch_options {
    const char *out, *fidelity;
    struct cli_list sets;
};

static const struct cli_option options[] = {
    {"fidelity", "F", "twin (the default), flow or rtl", CLI_OPTION_TEXT, offsetof(struct watch_options, fidelity)},
    {"out", "DIR", "write the results and the page to DIR (default: results/watch/<scenario name>)", CLI_OPTION_TEXT,
     offsetof(struct watch_options, out)},
    {"set", "PATH=VALUE", "override a key; may be given several times", CLI_OPTION_LIST,
     offsetof(struct watch_options, sets)},
};

static const struct cli_syntax syntax = {
    .usage = "tcasim watch FILE.yaml [--fidelity F] [--out DIR] [--set PATH=VALUE]...",
    .doc = "Runs a scenario whenever its file changes, and writes DIR/report.html, which reloads itself in a browser\n"
           "that shows it. A run that is going on when the file changes is stopped. Ctrl-C ends it.",
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .operands_min = 1,
    .operands_max = 1,
    .operand = "a scenario file",
};

struct watch {
    const struct watch_options *given;
    const char *file;
    struct cli_paths paths;
    struct stat seen;
    char fidelity[64];
    struct cli_list sets; // the fidelity, and the user's
    char directory[PATH_MAX];
    char name[SCN_NAME_MAX]; // of the scenario
};

// --- the file -------------------------------------------------------------------------------------------------------

// Editors write in place or replace the file.
static bool has_changed(const struct watch *watch)
{
    struct stat now;
    return stat(watch->file, &now) == 0 &&
           (now.st_ino != watch->seen.st_ino || now.st_size != watch->seen.st_size ||
            now.st_mtim.tv_sec != watch->seen.st_mtim.tv_sec || now.st_mtim.tv_nsec != watch->seen.st_mtim.tv_nsec);
}

static void look_sleep(void)
{
    const struct timespec time = {0, LOOK_MS * 1000000L};
    (void)nanosleep(&time, NULL);
}

// --- a run ----------------------------------------------------------------------------------------------------------

static pid_t run_start(const struct watch *watch)
{
    size_t count = 0;
    char **arguments = calloc(ARGUMENTS + 2 * watch->sets.count, sizeof *arguments);
    if (arguments == NULL) {
        return -1;
    }
    char *const first[] = {"tcasim", "run", "--out", (char *)(uintptr_t)watch->directory};
    for (; count < sizeof first / sizeof first[0]; count++) {
        arguments[count] = first[count];
    }
    for (size_t i = 0; i < watch->sets.count; i++) {
        arguments[count++] = "--set";
        arguments[count++] = (char *)(uintptr_t)watch->sets.items[i];
    }
    arguments[count++] = "--";
    arguments[count] = (char *)(uintptr_t)watch->file;
    (void)fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
        cli_interrupt_child();
        (void)execv("/proc/self/exe", arguments);
        cli_interrupt_leave(CLI_EXIT_INPUT);
    }
    free(arguments);
    return child;
}

// Waits for the run, or stops it if the file changes. true: it has left results.
static bool run_finish(const struct watch *watch, pid_t child)
{
    int status = 0;
    bool stopped = false;
    while (waitpid(child, &status, WNOHANG) == 0) {
        if (!stopped && has_changed(watch)) {
            stopped = kill(child, SIGTERM) == 0;
        }
        look_sleep();
    }
    return !stopped && WIFEXITED(status) && WEXITSTATUS(status) <= CLI_EXIT_EXPECT;
}

// --- the page -------------------------------------------------------------------------------------------------------

// The page asks the script beside it which version is the newest. Versions are times, so that pages of an earlier
// program are old.
static void page_update(const struct watch *watch)
{
    static const char name[] = "report.watch.js";
    char page[PATH_MAX + 32], script[PATH_MAX + 32], error[2 * PATH_MAX];
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    const char *directory = watch->directory;
    struct page_request request = cli_page_request(&watch->paths, &directory, 1);
    request.name = watch->name;
    request.watch.script = name;
    request.watch.version = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
    (void)snprintf(page, sizeof page, "%s/report.html", directory);
    (void)snprintf(script, sizeof script, "%s/%s", directory, name);
    if (page_write(&request, page, error, sizeof error) != SIM_OK ||
        page_watch_write(&request, script, error, sizeof error) != SIM_OK) {
        cli_error("%s", error);
    }
}

// --- the loop -------------------------------------------------------------------------------------------------------

// false: the scenario has mistakes, which are printed.
static bool directory_choose(struct watch *watch)
{
    struct scn_scenario *scenario = cli_scenario_load(watch->file, &watch->paths, &watch->sets);
    int length = 0;
    if (scenario != NULL && watch->given->out != NULL) {
        length = snprintf(watch->directory, sizeof watch->directory, "%s", watch->given->out);
    } else if (scenario != NULL) {
        length = snprintf(watch->directory, sizeof watch->directory, "results/watch/%s", scenario->name);
    }
    (void)snprintf(watch->name, sizeof watch->name, "%s", scenario != NULL ? scenario->name : "");
    bool good = scenario != NULL && length < (int)sizeof watch->directory;
    scn_free(scenario);
    return good && cli_output_directory_usable(watch->directory);
}

static void once(struct watch *watch)
{
    if (!directory_choose(watch)) {
        return;
    }
    pid_t child = run_start(watch);
    if (child < 0) {
        cli_error("cannot start a run: %s", strerror(errno));
    } else if (run_finish(watch, child)) {
        page_update(watch);
    }
}

static enum cli_exit file_watch(struct watch *watch)
{
    if (stat(watch->file, &watch->seen) != 0 || !S_ISREG(watch->seen.st_mode)) {
        cli_error("%s is not a regular file", watch->file);
        return CLI_EXIT_INPUT;
    }
    for (;;) { // until a signal
        once(watch);
        printf("Watching %s; Ctrl-C ends\n", watch->file);
        (void)fflush(stdout);
        while (!has_changed(watch)) {
            look_sleep();
        }
        (void)stat(watch->file, &watch->seen);
    }
}

// The fidelity goes first, so that --set of a board's own goes over it.
static bool sets_make(struct watch *watch)
{
    const struct cli_list *given = &watch->given->sets;
    const char *fidelity = watch->given->fidelity != NULL ? watch->given->fidelity : "twin";
    watch->sets.items = calloc(given->count + 1, sizeof *watch->sets.items);
    if (watch->sets.items == NULL) {
        cli_error("out of memory");
        return false;
    }
    (void)snprintf(watch->fidelity, sizeof watch->fidelity, "fidelity=%s", fidelity);
    watch->sets.items[0] = watch->fidelity;
    for (size_t i = 0; i < given->count; i++) {
        watch->sets.items[i + 1] = given->items[i];
    }
    watch->sets.count = given->count + 1;
    return true;
}

enum cli_exit cli_watch(int argc, char **argv)
{
    struct watch_options given = {0};
    struct watch watch = {.given = &given};
    struct cli_list files = {0};
    enum cli_exit result = CLI_EXIT_OK;
    enum cli_parsed parsed = cli_options_parse(&syntax, argc, argv, &given, &files);
    if (parsed == CLI_PARSED_RUN) {
        cli_paths_find(&watch.paths);
        watch.file = files.items[0];
        result = sets_make(&watch) ? file_watch(&watch) : CLI_EXIT_INPUT;
        free(watch.sets.items);
    }
    cli_list_free(&given.sets);
    cli_list_free(&files);
    return parsed == CLI_PARSED_WRONG ? CLI_EXIT_INPUT : result;
}
