// A set of files that appears in a directory at once: written under temporary names, renamed together at the end.
//
// Leaves out: their contents. A name may be a path within the directory, but its directories are not created.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "sim/kernel/status.h"

#define FILES_MAX      12
#define FILES_NAME_MAX 32

struct files {
    const char *directory; // borrowed
    char names[FILES_MAX][FILES_NAME_MAX];
    unsigned count;
    char *error; // the first failure
    size_t error_size;
    enum sim_status status;
};

// Creates the directory and its parents. After a failure all further calls do nothing and keep the first error.
void files_init(struct files *files, const char *directory, char *error, size_t error_size);

// Opens a file of the set for writing; NULL after a failure. To be closed with files_close, which detects a full disk.
FILE *files_open(struct files *files, const char *name);
void files_close(struct files *files, FILE *file, const char *name);

// Adds a file to the set that another program writes.
void files_expect(struct files *files, const char *name);

// ".data.csv.<process>.tmp": the name of a file of the set until the commit, relative to the directory.
void files_temporary_name(const char *name, char *buffer, size_t size);

// Joins the directory, a slash and a name. Returns SIM_ERR_RANGE if the buffer is too small.
enum sim_status files_path(const char *directory, const char *name, char *buffer, size_t size);

__attribute__((format(printf, 3, 4))) void files_fail(struct files *files, enum sim_status status, const char *format,
                                                      ...);

// The text of an open file, from its beginning up to a NUL; to be freed. NULL: it is empty, or cannot be read.
char *files_text_read(FILE *file);

// Writes a single file in the same way: write is called once, with a file under a temporary name beside path.
enum sim_status files_one_write(const char *path, void (*write)(void *ctx, FILE *out), void *ctx, char *error,
                                size_t error_size);

// Renames all files, or removes the temporary ones after a failure. Returns the status of the whole set.
enum sim_status files_commit(struct files *files);
