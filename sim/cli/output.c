#include "sim/cli/output.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "sim/cli/cli.h"

static bool is_same(const struct stat *about, const char *path)
{
    struct stat other;
    return stat(path, &other) == 0 && other.st_dev == about->st_dev && other.st_ino == about->st_ino;
}

static bool is_below(const char *path, const char *directory)
{
    char *file = realpath(path, NULL), *above = realpath(directory, NULL);
    size_t length = above != NULL ? strlen(above) : 0;
    bool below = file != NULL && above != NULL && strncmp(file, above, length) == 0 && file[length] == '/';
    free(file);
    free(above);
    return below;
}

bool cli_output_usable(const char *path, const char *scenario, const struct cli_paths *paths)
{
    struct stat about;
    const char *reason = NULL;
    if (stat(path, &about) != 0) {
        return true; // a new file; opening it reports an error
    }
    if (S_ISDIR(about.st_mode)) {
        reason = "it is a directory";
    } else if (!S_ISREG(about.st_mode)) {
        reason = "it is not a regular file";
    } else if (is_same(&about, scenario)) {
        reason = "it is the scenario itself";
    } else if (is_same(&about, paths->reference)) {
        reason = "it is the table of published values";
    } else if (is_below(path, paths->configs)) {
        reason = "it is a preset";
    }
    if (reason != NULL) {
        cli_error("cannot write %s: %s", path, reason);
    }
    return reason == NULL;
}
