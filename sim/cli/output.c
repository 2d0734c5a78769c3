#include "sim/cli/output.h"

#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

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

// Tries it: permissions do not tell about file systems that take no files.
static bool takes_files(const char *directory)
{
    char path[PATH_MAX];
    if ((size_t)snprintf(path, sizeof path, "%s/.tcasim-XXXXXX", directory) >= sizeof path) {
        errno = ENAMETOOLONG;
        return false;
    }
    return mkdtemp(path) != NULL && rmdir(path) == 0;
}

bool cli_output_directory_usable(const char *directory)
{
    char path[PATH_MAX];
    if ((size_t)snprintf(path, sizeof path, "%s", directory) >= sizeof path || path[0] == '\0') {
        cli_error("cannot write to '%s': not a usable name", directory);
        return false;
    }
    // The nearest existing directory above it is where the first new one will be created.
    struct stat about;
    char *existing = path;
    while (stat(existing, &about) != 0) {
        if (errno != ENOENT) {
            cli_error("cannot write to %s: %s", directory, strerror(errno));
            return false;
        }
        existing = dirname(existing);
    }
    if (!S_ISDIR(about.st_mode)) {
        cli_error("cannot write to %s: %s is not a directory", directory, existing);
        return false;
    }
    if (!takes_files(existing)) {
        cli_error("cannot write to %s: %s", directory, strerror(errno));
        return false;
    }
    return true;
}

static bool new_file_usable(const char *path)
{
    char copy[PATH_MAX];
    bool usable =
        (size_t)snprintf(copy, sizeof copy, "%s", path) < sizeof copy && path[0] != '\0' && takes_files(dirname(copy));
    if (!usable) {
        cli_error("cannot write %s: its folder does not exist or is not writable", path[0] != '\0' ? path : "''");
    }
    return usable;
}

bool cli_output_usable(const char *path, const char *scenario, const struct cli_paths *paths)
{
    struct stat about;
    const char *reason = NULL;
    if (stat(path, &about) != 0) {
        return new_file_usable(path);
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

FILE *cli_scratch_open(void)
{
    int fd = memfd_create("tcasim-child", MFD_CLOEXEC);
    FILE *file = fd >= 0 ? fdopen(fd, "w+") : NULL;
    if (file == NULL && fd >= 0) {
        (void)close(fd);
    }
    return file;
}

void cli_output_copy(FILE *from, FILE *to)
{
    char buffer[4096];
    size_t bytes;
    rewind(from);
    while ((bytes = fread(buffer, 1, sizeof buffer, from)) > 0) {
        (void)fwrite(buffer, 1, bytes, to);
    }
    fflush(to);
}
