#include "sim/report/files.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sim/kernel/text.h"

void files_fail(struct files *files, enum sim_status status, const char *format, ...)
{
    if (files->status != SIM_OK) {
        return;
    }
    files->status = status;
    va_list args;
    va_start(args, format);
    vsnprintf(files->error, files->error_size, format, args);
    va_end(args);
}

static int directory_make(const char *path)
{
    if (mkdir(path, 0777) == 0) {
        return 0;
    }
    struct stat about;
    if (errno == EEXIST && stat(path, &about) == 0 && S_ISDIR(about.st_mode)) {
        return 0;
    }
    if (errno == EEXIST) {
        errno = ENOTDIR;
    }
    return -1;
}

static int directories_make(const char *path)
{
    char part[PATH_MAX];
    size_t length = strlen(path);
    if (length == 0 || length >= sizeof part) {
        errno = length == 0 ? ENOENT : ENAMETOOLONG;
        return -1;
    }
    for (size_t i = 1; i < length; i++) {
        if (path[i] == '/') {
            memcpy(part, path, i);
            part[i] = '\0';
            if (directory_make(part) != 0) {
                return -1;
            }
        }
    }
    return directory_make(path);
}

void files_init(struct files *files, const char *directory, char *error, size_t error_size)
{
    *files = (struct files){.directory = directory, .error = error, .error_size = error_size, .status = SIM_OK};
    if (directories_make(directory) != 0) {
        files_fail(files, SIM_ERR_IO, "cannot create the directory %s: %s", directory, strerror(errno));
    }
}

void files_temporary_name(const char *name, char *buffer, size_t size)
{
    // The process id in the name keeps two runs in one directory from overwriting each other's files.
    snprintf(buffer, size, ".%s.%ld.tmp", name, (long)getpid());
}

enum sim_status files_path(const char *directory, const char *name, char *buffer, size_t size)
{
    int length = snprintf(buffer, size, "%s/%s", directory, name);
    return length >= 0 && (size_t)length < size ? SIM_OK : SIM_ERR_RANGE;
}

static void temporary_path(const struct files *files, const char *name, char buffer[PATH_MAX])
{
    char temporary[FILES_NAME_MAX + 32];
    files_temporary_name(name, temporary, sizeof temporary);
    // A path that is too long is cut; opening it then fails with an error.
    (void)files_path(files->directory, temporary, buffer, PATH_MAX);
}

void files_expect(struct files *files, const char *name)
{
    if (files->count == FILES_MAX) {
        sim_panic("report", "more than %d files in a set", FILES_MAX);
    }
    snprintf(files->names[files->count++], FILES_NAME_MAX, "%s", name);
}

FILE *files_open(struct files *files, const char *name)
{
    if (files->status != SIM_OK) {
        return NULL;
    }
    char path[PATH_MAX];
    temporary_path(files, name, path);
    FILE *file = fopen(path, "w");
    if (file == NULL) {
        files_fail(files, SIM_ERR_IO, "cannot write %s/%s: %s", files->directory, name, strerror(errno));
        return NULL;
    }
    files_expect(files, name);
    return file;
}

void files_close(struct files *files, FILE *file, const char *name)
{
    int written = ferror(file);
    int error = errno;
    if (fclose(file) != 0) {
        written = 1;
        error = errno;
    }
    if (written != 0) {
        files_fail(files, SIM_ERR_IO, "cannot write %s/%s: %s", files->directory, name, strerror(error));
    }
}

enum sim_status files_commit(struct files *files)
{
    for (unsigned i = 0; i < files->count; i++) {
        char from[PATH_MAX];
        char to[PATH_MAX];
        temporary_path(files, files->names[i], from);
        (void)files_path(files->directory, files->names[i], to, sizeof to);
        if (files->status == SIM_OK && rename(from, to) != 0) {
            files_fail(files, SIM_ERR_IO, "cannot write %s: %s", to, strerror(errno));
        }
        if (files->status != SIM_OK) {
            unlink(from);
        }
    }
    return files->status;
}

enum sim_status files_one_write(const char *path, void (*write)(void *ctx, FILE *out), void *ctx, char *error,
                                size_t error_size)
{
    char temporary[PATH_MAX + 32];
    snprintf(temporary, sizeof temporary, "%s.%ld.tmp", path, (long)getpid());
    FILE *out = fopen(temporary, "w");
    bool written = out != NULL;
    if (written) {
        write(ctx, out);
        written = ferror(out) == 0;
        written = fclose(out) == 0 && written;
        written = written && rename(temporary, path) == 0;
    }
    if (!written) {
        snprintf(error, error_size, "cannot write %s: %s", path, strerror(errno));
        if (out != NULL) {
            (void)unlink(temporary);
        }
    }
    return written ? SIM_OK : SIM_ERR_IO;
}

char *files_text_read(FILE *file)
{
    char *text = NULL;
    size_t size = 0;
    rewind(file);
    if (getdelim(&text, &size, '\0', file) < 0) {
        free(text);
        return NULL;
    }
    return text;
}
