// `tcasim report`: directories of results as one page.
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "sim/cli/cli.h"
#include "sim/cli/options.h"
#include "sim/cli/output.h"
#include "sim/cli/paths.h"
#include "sim/cli/page.h"

enum { DEPTH_MAX = 3 }; // of directories below one that has no results itself

struct report_options {
    const char *out;
};

static const struct cli_option options[] = {
    {"out", "FILE.html", "the page (default: results/report.html)", CLI_OPTION_TEXT,
     offsetof(struct report_options, out)},
};

static const struct cli_syntax syntax = {
    .usage = "tcasim report [RESULTS...] [--out FILE.html]",
    .doc =
        "Makes one self-contained page of directories that `tcasim run`, `explain` and `calibrate` wrote: published\n"
        "rows, figures, sweeps, timelines, the use of links, counters, and what `tcasim compare` says of results of "
        "one\n"
        "name. A directory without results stands for those below it; without any, `results` does.",
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .operands_max = SIZE_MAX,
    .operand = "a directory of results",
};

struct found {
    char **directories; // owned
    size_t count;
};

static bool found_add(struct found *found, const char *directory)
{
    char **more = realloc(found->directories, (found->count + 1) * sizeof *more);
    char *copy = strdup(directory);
    if (more != NULL) {
        found->directories = more;
    }
    if (more == NULL || copy == NULL) {
        free(copy);
        cli_error("out of memory");
        return false;
    }
    found->directories[found->count++] = copy;
    return true;
}

// "points" and "values" have the rows of a sweep's points, which the sweep's own directory has as well; "watch" has what a
// scenario gave while it was edited.
static int is_shown(const struct dirent *entry)
{
    return entry->d_name[0] != '.' && strcmp(entry->d_name, "points") != 0 && strcmp(entry->d_name, "values") != 0 &&
           strcmp(entry->d_name, "watch") != 0;
}

// Adds the directory, or those below it in the order of their names.
static bool search(struct found *found, const char *directory, unsigned depth)
{
    struct dirent **entries = NULL;
    if (page_has_results(directory)) {
        return found_add(found, directory);
    }
    int count = depth < DEPTH_MAX ? scandir(directory, &entries, is_shown, alphasort) : 0;
    bool good = true;
    for (int i = 0; i < count; i++) {
        char path[PATH_MAX];
        struct stat about;
        int length = snprintf(path, sizeof path, "%s/%s", directory, entries[i]->d_name);
        if (good && length < (int)sizeof path && stat(path, &about) == 0 && S_ISDIR(about.st_mode)) {
            good = search(found, path, depth + 1);
        }
        free(entries[i]);
    }
    free(entries);
    return good;
}

static bool directories_find(struct found *found, const struct cli_list *given)
{
    static const char *const usual[] = {"results"};
    size_t count = given->count > 0 ? given->count : 1;
    for (size_t i = 0; i < count; i++) {
        const char *directory = given->count > 0 ? given->items[i] : usual[0];
        size_t before = found->count;
        if (!search(found, directory, 0)) {
            return false;
        }
        if (found->count == before) {
            cli_error("%s: there are no results in it; `tcasim run` makes some", directory);
            return false;
        }
    }
    return true;
}

static enum cli_exit page_make(const struct report_options *given, const struct cli_list *directories)
{
    struct cli_paths paths;
    struct found found = {0};
    char error[2 * PATH_MAX] = "";
    const char *out = given->out != NULL ? given->out : "results/report.html";
    enum cli_exit result = CLI_EXIT_INPUT;
    cli_paths_find(&paths);
    if (directories_find(&found, directories) && cli_output_usable(out, NULL, &paths)) {
        const struct page_request request =
            cli_page_request(&paths, (const char *const *)found.directories, found.count);
        if (page_write(&request, out, error, sizeof error) == SIM_OK) {
            printf("%s: %zu result%s\n", out, found.count, found.count == 1 ? "" : "s");
            result = CLI_EXIT_OK;
        } else {
            cli_error("%s", error);
        }
    }
    for (size_t i = 0; i < found.count; i++) {
        free(found.directories[i]);
    }
    free(found.directories);
    return result;
}

enum cli_exit cli_report(int argc, char **argv)
{
    struct report_options given = {0};
    struct cli_list directories = {0};
    enum cli_exit result = CLI_EXIT_OK;
    enum cli_parsed parsed = cli_options_parse(&syntax, argc, argv, &given, &directories);
    if (parsed == CLI_PARSED_RUN) {
        result = page_make(&given, &directories);
    }
    cli_list_free(&directories);
    return parsed == CLI_PARSED_WRONG ? CLI_EXIT_INPUT : result;
}
