// Calls that create, remove and change files by their paths, with the same redirection as in paths.c.
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/types.h>
#include <unistd.h>

#include "verbs-shim/world/world.h"

int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int folder, const char *path, int flags);
int __openat64_2(int folder, const char *path, int flags);

// --- one path, and nothing else -------------------------------------------------------------------------------------
// PATH_CALL(<name>, <parameters>, <arguments>). In the arguments `path` is the redirected path. PATH_CALL_AT: it may be
// relative to the descriptor `folder`.

#define PATH_CALL_AT(name, parameters, ...)                                                                            \
    int name parameters                                                                                                \
    {                                                                                                                  \
        char buffer[WORLD_PATH_BYTES];                                                                                 \
        path = world_path_at(folder, path, buffer);                                                                    \
        return WORLD_REAL(name)(__VA_ARGS__);                                                                          \
    }

#define PATH_CALL(name, parameters, ...)                                                                               \
    int name parameters                                                                                                \
    {                                                                                                                  \
        char buffer[WORLD_PATH_BYTES];                                                                                 \
        path = world_path(path, buffer);                                                                               \
        return WORLD_REAL(name)(__VA_ARGS__);                                                                          \
    }

// Functions that programs built with _FORTIFY_SOURCE call.
#define OPEN_CALL(name, folder, parameters, ...)                                                                       \
    int name parameters                                                                                                \
    {                                                                                                                  \
        char buffer[WORLD_PATH_BYTES];                                                                                 \
        int fd;                                                                                                        \
        path = world_path_at(folder, path, buffer);                                                                    \
        return world_special_open(folder, path, flags, &fd) ? fd : WORLD_REAL(name)(__VA_ARGS__);                      \
    }

OPEN_CALL(__open_2, AT_FDCWD, (const char *path, int flags), path, flags)
OPEN_CALL(__open64_2, AT_FDCWD, (const char *path, int flags), path, flags)
OPEN_CALL(__openat_2, folder, (int folder, const char *path, int flags), folder, path, flags)
OPEN_CALL(__openat64_2, folder, (int folder, const char *path, int flags), folder, path, flags)

PATH_CALL(creat, (const char *path, mode_t mode), path, mode)
PATH_CALL(creat64, (const char *path, mode_t mode), path, mode)
PATH_CALL(truncate, (const char *path, off_t bytes), path, bytes)
PATH_CALL(truncate64, (const char *path, off64_t bytes), path, bytes)
PATH_CALL(mkdir, (const char *path, mode_t mode), path, mode)
PATH_CALL_AT(mkdirat, (int folder, const char *path, mode_t mode), folder, path, mode)
PATH_CALL(rmdir, (const char *path), path)
PATH_CALL_AT(unlinkat, (int folder, const char *path, int flags), folder, path, flags)
PATH_CALL(chmod, (const char *path, mode_t mode), path, mode)
PATH_CALL_AT(fchmodat, (int folder, const char *path, mode_t mode, int flags), folder, path, mode, flags)
PATH_CALL(chown, (const char *path, uid_t user, gid_t group), path, user, group)
PATH_CALL(mkfifo, (const char *path, mode_t mode), path, mode)
PATH_CALL_AT(faccessat, (int folder, const char *path, int mode, int flags), folder, path, mode, flags)
PATH_CALL_AT(utimensat, (int folder, const char *path, const struct timespec times[2], int flags), folder, path, times,
             flags)
PATH_CALL(lstat64, (const char *restrict path, struct stat64 *restrict about), path, about)
PATH_CALL_AT(fstatat64, (int folder, const char *restrict path, struct stat64 *restrict about, int flags), folder, path,
             about, flags)
PATH_CALL_AT(statx, (int folder, const char *restrict path, int flags, unsigned mask, struct statx *restrict about),
             folder, path, flags, mask, about)
PATH_CALL(statfs, (const char *path, struct statfs *about), path, about)
PATH_CALL(statfs64, (const char *path, struct statfs64 *about), path, about)
PATH_CALL(statvfs, (const char *restrict path, struct statvfs *restrict about), path, about)
PATH_CALL(statvfs64, (const char *restrict path, struct statvfs64 *restrict about), path, about)

int link(const char *from, const char *to)
{
    char buffer[WORLD_PATH_BYTES], buffer_to[WORLD_PATH_BYTES];
    return WORLD_REAL(link)(world_path(from, buffer), world_path(to, buffer_to));
}

int symlink(const char *target, const char *path)
{
    char buffer[WORLD_PATH_BYTES], buffer_path[WORLD_PATH_BYTES];
    return WORLD_REAL(symlink)(world_path(target, buffer), world_path(path, buffer_path));
}

// --- names that the C library makes up ------------------------------------------------------------------------------

// Copies the last part of the name, which has the generated letters, back to the program.
static void name_back(char *name, const char *made)
{
    const char *slash = strrchr(name, '/');
    size_t bytes = strlen(slash != NULL ? slash + 1 : name);
    memcpy(name + strlen(name) - bytes, made + strlen(made) - bytes, bytes);
}

#define TEMPLATE_CALL(name, parameters, ...)                                                                           \
    int name parameters                                                                                                \
    {                                                                                                                  \
        char buffer[WORLD_PATH_BYTES];                                                                                 \
        char *path = world_path(wanted, buffer) == buffer ? buffer : wanted;                                           \
        int fd = WORLD_REAL(name)(__VA_ARGS__);                                                                        \
        if (path == buffer) {                                                                                          \
            name_back(wanted, buffer);                                                                                 \
        }                                                                                                              \
        return fd;                                                                                                     \
    }

TEMPLATE_CALL(mkstemp, (char *wanted), path)
TEMPLATE_CALL(mkstemp64, (char *wanted), path)
TEMPLATE_CALL(mkostemp, (char *wanted, int flags), path, flags)
TEMPLATE_CALL(mkostemp64, (char *wanted, int flags), path, flags)
TEMPLATE_CALL(mkstemps, (char *wanted, int suffix_bytes), path, suffix_bytes)
TEMPLATE_CALL(mkstemps64, (char *wanted, int suffix_bytes), path, suffix_bytes)
TEMPLATE_CALL(mkostemps, (char *wanted, int suffix_bytes, int flags), path, suffix_bytes, flags)
TEMPLATE_CALL(mkostemps64, (char *wanted, int suffix_bytes, int flags), path, suffix_bytes, flags)

char *mkdtemp(char *wanted)
{
    char buffer[WORLD_PATH_BYTES];
    char *path = world_path(wanted, buffer) == buffer ? buffer : wanted;
    bool made = WORLD_REAL(mkdtemp)(path) != NULL;
    if (path == buffer) {
        name_back(wanted, buffer);
    }
    return made ? wanted : NULL;
}
