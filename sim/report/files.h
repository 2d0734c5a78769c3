// A set of files that appears in a directory at once: written under temporary names, renamed together at the end.
//
// Leaves out: what is in them. A name may be a path within the directory, but no part of it is created.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "sim/kernel/status.h"

#define FILES_MAX      8
#define FILES_NAME_MAX 32

struct files {
    const char *directory; // borrowed
    char names[FILES_MAX][FILES_NAME_MAX];
    unsigned count;
    char *error; // the first thing that went wrong
    size_t error_size;
    enum sim_status status;
};

// Creates the directory and its parents. Everything after a failure does nothing and keeps the first error.
void files_init(struct files *files, const char *directory, char *error, size_t error_size);

// Opens a file of the set for writing; NULL when something has failed. Ended with files_close, which notices a full
// disk.
FILE *files_open(struct files *files, const char *name);
void files_close(struct files *files, FILE *file, const char *name);

// Takes a name into the set for a file that another program writes.
void files_expect(struct files *files, const char *name);

// ".data.csv.<process>.tmp", the name a file of the set has until the commit, relative to the directory.
void files_temporary_name(const char *name, char *buffer, size_t size);

// Puts the directory, a slash and a name together. Returns SIM_ERR_RANGE when the buffer is too small.
enum sim_status files_path(const char *directory, const char *name, char *buffer, size_t size);

__attribute__((format(printf, 3, 4))) void files_fail(struct files *files, enum sim_status status, const char *format,
                                                      ...);

// One file by itself, in the same way: write is called once, with a file under a temporary name beside path.
enum sim_status files_one_write(const char *path, void (*write)(void *ctx, FILE *out), void *ctx, char *error,
                                size_t error_size);

// A double-quoted string as JSON and YAML read it; a control character becomes a space.
void files_string_write(FILE *out, const char *text);

// Renames everything when nothing has failed; removes the temporary files otherwise. Returns the status of it all.
enum sim_status files_commit(struct files *files);
