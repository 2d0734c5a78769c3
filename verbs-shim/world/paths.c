// Functions of the C library that take paths or names of shared memory: they are called with what redirect.c makes of
// those.
#include <dirent.h>
#include <fcntl.h>
#include <mntent.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "verbs-shim/world/world.h"

char *__realpath_chk(const char *path, char *resolved, size_t room);
ssize_t __readlink_chk(const char *path, char *target, size_t bytes, size_t room);
ssize_t __readlinkat_chk(int folder, const char *path, char *target, size_t bytes, size_t room);

static mode_t mode_of(int flags, va_list *list)
{
    return (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(*list, mode_t) : 0;
}

int open(const char *path, int flags, ...)
{
    char buffer[WORLD_PATH_BYTES];
    va_list list;
    va_start(list, flags);
    mode_t mode = mode_of(flags, &list);
    va_end(list);
    int fd;
    path = world_path(path, buffer);
    return world_special_open(AT_FDCWD, path, flags, &fd) ? fd : WORLD_REAL(open)(path, flags, mode);
}

int open64(const char *path, int flags, ...)
{
    char buffer[WORLD_PATH_BYTES];
    va_list list;
    va_start(list, flags);
    mode_t mode = mode_of(flags, &list);
    va_end(list);
    int fd;
    path = world_path(path, buffer);
    return world_special_open(AT_FDCWD, path, flags, &fd) ? fd : WORLD_REAL(open64)(path, flags, mode);
}

int openat(int folder, const char *path, int flags, ...)
{
    char buffer[WORLD_PATH_BYTES];
    va_list list;
    va_start(list, flags);
    mode_t mode = mode_of(flags, &list);
    va_end(list);
    int fd;
    path = world_path_at(folder, path, buffer);
    return world_special_open(folder, path, flags, &fd) ? fd : WORLD_REAL(openat)(folder, path, flags, mode);
}

int openat64(int folder, const char *path, int flags, ...)
{
    char buffer[WORLD_PATH_BYTES];
    va_list list;
    va_start(list, flags);
    mode_t mode = mode_of(flags, &list);
    va_end(list);
    int fd;
    path = world_path_at(folder, path, buffer);
    return world_special_open(folder, path, flags, &fd) ? fd : WORLD_REAL(openat64)(folder, path, flags, mode);
}

// A FIFO is opened first.
static FILE *fifo_stream(const char *path, const char *mode, bool *is_fifo_out)
{
    int fd, flags = mode[0] == 'r' ? O_RDONLY : O_WRONLY;
    flags |= strchr(mode, 'e') != NULL ? O_CLOEXEC : 0;
    *is_fifo_out = strchr(mode, '+') == NULL && world_special_open(AT_FDCWD, path, flags, &fd);
    FILE *stream = *is_fifo_out && fd >= 0 ? fdopen(fd, mode) : NULL;
    if (*is_fifo_out && fd >= 0 && stream == NULL) {
        (void)close(fd);
    }
    return stream;
}

FILE *fopen(const char *restrict path, const char *restrict mode)
{
    char buffer[WORLD_PATH_BYTES];
    bool is_fifo;
    path = world_path(path, buffer);
    FILE *stream = fifo_stream(path, mode, &is_fifo);
    return is_fifo ? stream : WORLD_REAL(fopen)(path, mode);
}

FILE *fopen64(const char *restrict path, const char *restrict mode)
{
    char buffer[WORLD_PATH_BYTES];
    bool is_fifo;
    path = world_path(path, buffer);
    FILE *stream = fifo_stream(path, mode, &is_fifo);
    return is_fifo ? stream : WORLD_REAL(fopen64)(path, mode);
}

DIR *opendir(const char *path)
{
    char buffer[WORLD_PATH_BYTES];
    return WORLD_REAL(opendir)(world_path(path, buffer));
}

int access(const char *path, int mode)
{
    char buffer[WORLD_PATH_BYTES];
    return WORLD_REAL(access)(world_path(path, buffer), mode);
}

int stat(const char *restrict path, struct stat *restrict about)
{
    char buffer[WORLD_PATH_BYTES];
    return WORLD_REAL(stat)(world_path(path, buffer), about);
}

int stat64(const char *restrict path, struct stat64 *restrict about)
{
    char buffer[WORLD_PATH_BYTES];
    return WORLD_REAL(stat64)(world_path(path, buffer), about);
}

int lstat(const char *restrict path, struct stat *restrict about)
{
    char buffer[WORLD_PATH_BYTES];
    return WORLD_REAL(lstat)(world_path(path, buffer), about);
}

int fstatat(int folder, const char *restrict path, struct stat *restrict about, int flags)
{
    char buffer[WORLD_PATH_BYTES];
    return WORLD_REAL(fstatat)(folder, world_path_at(folder, path, buffer), about, flags);
}

ssize_t getxattr(const char *path, const char *name, void *value, size_t bytes)
{
    char buffer[WORLD_PATH_BYTES];
    return WORLD_REAL(getxattr)(world_path(path, buffer), name, value, bytes);
}

ssize_t lgetxattr(const char *path, const char *name, void *value, size_t bytes)
{
    char buffer[WORLD_PATH_BYTES];
    return WORLD_REAL(lgetxattr)(world_path(path, buffer), name, value, bytes);
}

ssize_t listxattr(const char *path, char *list, size_t bytes)
{
    char buffer[WORLD_PATH_BYTES];
    return WORLD_REAL(listxattr)(world_path(path, buffer), list, bytes);
}

ssize_t llistxattr(const char *path, char *list, size_t bytes)
{
    char buffer[WORLD_PATH_BYTES];
    return WORLD_REAL(llistxattr)(world_path(path, buffer), list, bytes);
}

ssize_t readlink(const char *restrict path, char *restrict target, size_t bytes)
{
    char buffer[WORLD_PATH_BYTES];
    return WORLD_REAL(readlink)(world_path(path, buffer), target, bytes);
}

ssize_t readlinkat(int folder, const char *restrict path, char *restrict target, size_t bytes)
{
    char buffer[WORLD_PATH_BYTES];
    return WORLD_REAL(readlinkat)(folder, world_path_at(folder, path, buffer), target, bytes);
}

int scandir(const char *restrict path, struct dirent ***restrict list, int (*wanted)(const struct dirent *),
            int (*order)(const struct dirent **, const struct dirent **))
{
    char buffer[WORLD_PATH_BYTES];
    return WORLD_REAL(scandir)(world_path(path, buffer), list, wanted, order);
}

int scandir64(const char *restrict path, struct dirent64 ***restrict list, int (*wanted)(const struct dirent64 *),
              int (*order)(const struct dirent64 **, const struct dirent64 **))
{
    char buffer[WORLD_PATH_BYTES];
    return WORLD_REAL(scandir64)(world_path(path, buffer), list, wanted, order);
}

FILE *setmntent(const char *path, const char *mode)
{
    char buffer[WORLD_PATH_BYTES];
    return WORLD_REAL(setmntent)(world_path(path, buffer), mode);
}

int chdir(const char *path)
{
    char buffer[WORLD_PATH_BYTES];
    return WORLD_REAL(chdir)(world_path(path, buffer));
}

char *realpath(const char *restrict path, char *restrict resolved)
{
    char buffer[WORLD_PATH_BYTES];
    return WORLD_REAL(realpath)(world_path(path, buffer), resolved);
}

char *canonicalize_file_name(const char *path)
{
    return realpath(path, NULL);
}

// Functions that programs built with _FORTIFY_SOURCE call. The C library's check the room.
char *__realpath_chk(const char *path, char *resolved, size_t room)
{
    char buffer[WORLD_PATH_BYTES];
    return WORLD_REAL(__realpath_chk)(world_path(path, buffer), resolved, room);
}

ssize_t __readlink_chk(const char *path, char *target, size_t bytes, size_t room)
{
    char buffer[WORLD_PATH_BYTES];
    return WORLD_REAL(__readlink_chk)(world_path(path, buffer), target, bytes, room);
}

ssize_t __readlinkat_chk(int folder, const char *path, char *target, size_t bytes, size_t room)
{
    char buffer[WORLD_PATH_BYTES];
    return WORLD_REAL(__readlinkat_chk)(folder, world_path_at(folder, path, buffer), target, bytes, room);
}

int unlink(const char *path)
{
    char buffer[WORLD_PATH_BYTES];
    return WORLD_REAL(unlink)(world_path(path, buffer));
}

int remove(const char *path)
{
    char buffer[WORLD_PATH_BYTES];
    return WORLD_REAL(remove)(world_path(path, buffer));
}

int rename(const char *before, const char *now)
{
    char buffer[WORLD_PATH_BYTES], buffer_now[WORLD_PATH_BYTES];
    return WORLD_REAL(rename)(world_path(before, buffer), world_path(now, buffer_now));
}

// --- names of shared memory and semaphores: "/name" or "name" -------------------------------------------------------

int shm_open(const char *name, int flags, mode_t mode)
{
    char buffer[WORLD_PATH_BYTES];
    return WORLD_REAL(shm_open)(world_shared_name(name, buffer), flags, mode);
}

int shm_unlink(const char *name)
{
    char buffer[WORLD_PATH_BYTES];
    return WORLD_REAL(shm_unlink)(world_shared_name(name, buffer));
}

sem_t *sem_open(const char *name, int flags, ...)
{
    char buffer[WORLD_PATH_BYTES];
    va_list list;
    va_start(list, flags);
    mode_t mode = mode_of(flags, &list);
    unsigned value = (flags & O_CREAT) != 0 ? va_arg(list, unsigned) : 0;
    va_end(list);
    return WORLD_REAL(sem_open)(world_shared_name(name, buffer), flags, mode, value);
}

int sem_unlink(const char *name)
{
    char buffer[WORLD_PATH_BYTES];
    return WORLD_REAL(sem_unlink)(world_shared_name(name, buffer));
}
