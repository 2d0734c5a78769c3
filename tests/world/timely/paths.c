// Paths: what a call does in /dev/shm happens in the node's part of it. It takes no time; only opening a FIFO waits. Each
// row makes what it needs and removes it again.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "timely.h"

// Programs built with _FORTIFY_SOURCE call these.
int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int folder, const char *path, int flags);
int __openat64_2(int folder, const char *path, int flags);

#define PATH  "/dev/shm/timely-path"
#define OTHER "/dev/shm/timely-other"
#define NAME  "/timely-name"
enum { MODE = 0640, OTHER_MODE = 0600, BYTES = 4 };

// Makes a file of that many bytes, in memory of the node alone.
static void file_make(void)
{
    int fd = open(PATH, O_RDWR | O_CREAT | O_EXCL, MODE);
    (void)fchmod(fd, MODE);
    (void)!write(fd, "text", BYTES);
    (void)close(fd);
}

// 1 if the descriptor is that of the file.
static long is_file(int fd)
{
    struct stat about, about_path;
    bool same = fd >= 0 && fstat(fd, &about) == 0 && stat(PATH, &about_path) == 0 && about.st_ino == about_path.st_ino;
    if (fd >= 0) {
        (void)close(fd);
    }
    return same;
}

static long there(const char *path)
{
    return access(path, F_OK) == 0;
}

// ROW(name, call): a row with a file. The result of the call, -1 as -errno.
#define ROW(name, ...)                                                                                                 \
    static long by_##name(struct timely_scene *scene)                                                                  \
    {                                                                                                                  \
        (void)scene;                                                                                                   \
        file_make();                                                                                                   \
        long result = timely_result(__VA_ARGS__);                                                                      \
        (void)unlink(PATH);                                                                                            \
        return result;                                                                                                 \
    }
// The same without a file. after: removes what the call has made.
#define ROW_WITHOUT(name, after, ...)                                                                                  \
    static long by_##name(struct timely_scene *scene)                                                                  \
    {                                                                                                                  \
        (void)scene;                                                                                                   \
        long result = timely_result(__VA_ARGS__);                                                                      \
        (void)(after);                                                                                                 \
        return result;                                                                                                 \
    }

// --- opening --------------------------------------------------------------------------------------------------------

ROW(open, is_file(open(PATH, O_RDONLY)))
ROW(open64, is_file(open64(PATH, O_RDONLY)))
ROW(open_2, is_file(__open_2(PATH, O_RDONLY)))
ROW(open64_2, is_file(__open64_2(PATH, O_RDONLY)))
ROW(openat, is_file(openat(AT_FDCWD, PATH, O_RDONLY)))
ROW(openat64, is_file(openat64(AT_FDCWD, PATH, O_RDONLY)))
ROW(openat_2, is_file(__openat_2(AT_FDCWD, PATH, O_RDONLY)))
ROW(openat64_2, is_file(__openat64_2(AT_FDCWD, PATH, O_RDONLY)))
ROW(creat, is_file(creat(PATH, MODE)))
ROW(creat64, is_file(creat64(PATH, MODE)))

// open(2): the mode counts for O_TMPFILE as for O_CREAT.
static long mode_of(int fd)
{
    struct stat about = {0};
    bool there = fd >= 0 && fstat(fd, &about) == 0;
    (void)close(fd);
    return there ? (long)(about.st_mode & 07777) : -1;
}

ROW_WITHOUT(open_unnamed, 0, mode_of(open("/dev/shm", O_TMPFILE | O_RDWR, OTHER_MODE)))
ROW_WITHOUT(open64_unnamed, 0, mode_of(open64("/dev/shm", O_TMPFILE | O_RDWR, OTHER_MODE)))
ROW_WITHOUT(openat_unnamed, 0, mode_of(openat(AT_FDCWD, "/dev/shm", O_TMPFILE | O_RDWR, OTHER_MODE)))
ROW_WITHOUT(openat64_unnamed, 0, mode_of(openat64(AT_FDCWD, "/dev/shm", O_TMPFILE | O_RDWR, OTHER_MODE)))

static long is_stream_of_file(FILE *stream)
{
    return stream != NULL && fgetc(stream) == 't' && fclose(stream) == 0;
}

ROW(fopen, is_stream_of_file(fopen(PATH, "r")))
ROW(fopen64, is_stream_of_file(fopen64(PATH, "r")))

static long is_folder(DIR *folder)
{
    return folder != NULL && closedir(folder) == 0;
}

static long by_opendir(struct timely_scene *scene)
{
    (void)scene;
    (void)mkdir(OTHER, 0700);
    long result = is_folder(opendir(OTHER));
    (void)rmdir(OTHER);
    return result;
}

// --- FIFOs: an end is opened when the other one is ------------------------------------------------------------------

static void other_end_open(void *flags)
{
    (void)close(open(OTHER, *(int *)flags));
}

#define FIFO_ROW(name, other_flags, ...)                                                                               \
    static long by_fifo_##name(struct timely_scene *scene)                                                             \
    {                                                                                                                  \
        int flags = (other_flags);                                                                                     \
        (void)mkfifo(OTHER, 0600);                                                                                     \
        timely_later(scene, TIMELY_WOKEN_US, other_end_open, &flags);                                                  \
        long result = __VA_ARGS__;                                                                                     \
        timely_later_end();                                                                                            \
        (void)unlink(OTHER);                                                                                           \
        return result;                                                                                                 \
    }

static long opened(int fd)
{
    return fd >= 0 ? close(fd) : timely_result(-1);
}

static long opened_stream(FILE *stream)
{
    return stream != NULL ? fclose(stream) : timely_result(-1);
}

FIFO_ROW(open, O_WRONLY, opened(open(OTHER, O_RDONLY)))
FIFO_ROW(open_to_write, O_RDONLY, opened(open(OTHER, O_WRONLY)))
FIFO_ROW(open64, O_WRONLY, opened(open64(OTHER, O_RDONLY)))
FIFO_ROW(openat, O_WRONLY, opened(openat(AT_FDCWD, OTHER, O_RDONLY)))
FIFO_ROW(openat64, O_RDONLY, opened(openat64(AT_FDCWD, OTHER, O_WRONLY)))
FIFO_ROW(open_2, O_WRONLY, opened(__open_2(OTHER, O_RDONLY)))
FIFO_ROW(open64_2, O_WRONLY, opened(__open64_2(OTHER, O_RDONLY)))
FIFO_ROW(openat_2, O_WRONLY, opened(__openat_2(AT_FDCWD, OTHER, O_RDONLY)))
FIFO_ROW(openat64_2, O_WRONLY, opened(__openat64_2(AT_FDCWD, OTHER, O_RDONLY)))
FIFO_ROW(fopen, O_WRONLY, opened_stream(fopen(OTHER, "r")))
FIFO_ROW(fopen64, O_RDONLY, opened_stream(fopen64(OTHER, "w")))

// The other end is a process's, which writes at once; this one reads.
static long by_fifo_of_process(struct timely_scene *scene)
{
    char text[5] = "";
    (void)scene;
    (void)mkfifo(OTHER, 0600);
    pid_t child = fork();
    if (child == 0) {
        (void)usleep(TIMELY_WOKEN_US);
        int fd = open(OTHER, O_WRONLY);
        (void)!write(fd, "text", BYTES);
        (void)usleep(TIMELY_WOKEN_US);
        _exit(0);
    }
    int fd = open(OTHER, O_RDONLY);
    long bytes = timely_result(read(fd, text, BYTES));
    (void)close(fd);
    (void)unlink(OTHER);
    (void)waitpid(child, NULL, 0);
    return bytes == BYTES && strcmp(text, "text") == 0;
}

// --- what a file is -------------------------------------------------------------------------------------------------

#define SIZE_ROW(name, type, call, field)                                                                              \
    static long size_of_##name(void)                                                                                   \
    {                                                                                                                  \
        struct type about;                                                                                             \
        return call == 0 ? (long)about.field : -1;                                                                     \
    }                                                                                                                  \
    ROW(name, size_of_##name())

SIZE_ROW(stat, stat, stat(PATH, &about), st_size)
SIZE_ROW(stat64, stat64, stat64(PATH, &about), st_size)
SIZE_ROW(lstat, stat, lstat(PATH, &about), st_size)
SIZE_ROW(lstat64, stat64, lstat64(PATH, &about), st_size)
SIZE_ROW(fstatat, stat, fstatat(AT_FDCWD, PATH, &about, 0), st_size)
SIZE_ROW(fstatat64, stat64, fstatat64(AT_FDCWD, PATH, &about, 0), st_size)
SIZE_ROW(statx, statx, statx(AT_FDCWD, PATH, 0, STATX_SIZE, &about), stx_size)
SIZE_ROW(statfs, statfs, statfs(PATH, &about), f_type)
SIZE_ROW(statfs64, statfs64, statfs64(PATH, &about), f_type)
SIZE_ROW(statvfs, statvfs, statvfs(PATH, &about), f_namemax)
SIZE_ROW(statvfs64, statvfs64, statvfs64(PATH, &about), f_namemax)
enum { TMPFS_TYPE = 0x01021994, NAME_MOST = 255 }; // linux/magic.h

ROW(access, access(PATH, R_OK))
ROW(faccessat, faccessat(AT_FDCWD, PATH, R_OK, 0))

static mode_t mode_of_file(void)
{
    struct stat about;
    return stat(PATH, &about) == 0 ? about.st_mode & 07777 : 0;
}

ROW(chmod, chmod(PATH, OTHER_MODE) == 0 ? (long)mode_of_file() : -1)
ROW(fchmodat, fchmodat(AT_FDCWD, PATH, OTHER_MODE, 0) == 0 ? (long)mode_of_file() : -1)
ROW(chown, chown(PATH, getuid(), getgid()))

static long bytes_after(int status)
{
    return status == 0 ? size_of_stat() : -1;
}

ROW(truncate, bytes_after(truncate(PATH, BYTES - 1)))
ROW(truncate64, bytes_after(truncate64(PATH, BYTES - 1)))

// Sets the times to what CLOCK_REALTIME shows.
static long by_utimensat(struct timely_scene *scene)
{
    long ns = scene->began_ns + scene->realtime_ns;
    const struct timespec now = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000}, times[] = {now, now};
    struct stat about = {0};
    file_make();
    int status = utimensat(AT_FDCWD, PATH, times, 0);
    (void)stat(PATH, &about);
    (void)unlink(PATH);
    return status == 0 && about.st_mtim.tv_sec == now.tv_sec && about.st_mtim.tv_nsec == now.tv_nsec;
}

// --- names ----------------------------------------------------------------------------------------------------------

static long moved(int status)
{
    long found = status == 0 && there(OTHER);
    (void)unlink(OTHER);
    return found;
}

ROW(link, moved(link(PATH, OTHER)))
ROW(rename, moved(rename(PATH, OTHER)))
ROW(unlink, unlink(PATH) == 0 && !there(PATH))
ROW(unlinkat, unlinkat(AT_FDCWD, PATH, 0) == 0 && !there(PATH))
ROW(remove, remove(PATH) == 0 && !there(PATH))

static long by_symlink(struct timely_scene *scene)
{
    char target[16] = "";
    (void)scene;
    int status = symlink("target", PATH);
    long bytes = readlink(PATH, target, sizeof target - 1);
    (void)unlink(PATH);
    return status == 0 && bytes == 6 && strcmp(target, "target") == 0;
}

// It shows the name that the machine knows.
static long by_realpath(struct timely_scene *scene)
{
    char real[PATH_MAX] = "";
    (void)scene;
    file_make();
    bool found = realpath(PATH, real) != NULL && strncmp(real, "/dev/shm/", 9) == 0 && strcmp(real, PATH) != 0;
    (void)unlink(PATH);
    return found;
}

ROW_WITHOUT(mkdir, rmdir(OTHER), mkdir(OTHER, 0700) == 0 && there(OTHER))
ROW_WITHOUT(mkdirat, rmdir(OTHER), mkdirat(AT_FDCWD, OTHER, 0700) == 0 && there(OTHER))
ROW_WITHOUT(rmdir, 0, mkdir(OTHER, 0700) == 0 && rmdir(OTHER) == 0 && !there(OTHER))
ROW_WITHOUT(mkfifo, unlink(OTHER), mkfifo(OTHER, 0600) == 0 && there(OTHER))

// --- names that the C library makes up ------------------------------------------------------------------------------

static long made(int fd, const char *name)
{
    bool found = fd >= 0 && strstr(name, "XXXXXX") == NULL && there(name);
    (void)close(fd);
    (void)unlink(name);
    return found;
}

#define TEMPLATE_ROW(function, ending, ...)                                                                            \
    static long by_##function(struct timely_scene *scene)                                                              \
    {                                                                                                                  \
        char name[] = PATH "-XXXXXX" ending;                                                                           \
        (void)scene;                                                                                                   \
        return made(function(name __VA_ARGS__), name);                                                                 \
    }

TEMPLATE_ROW(mkstemp, "")
TEMPLATE_ROW(mkstemp64, "")
TEMPLATE_ROW(mkostemp, "", , O_CLOEXEC)
TEMPLATE_ROW(mkostemp64, "", , O_CLOEXEC)
TEMPLATE_ROW(mkstemps, ".end", , 4)
TEMPLATE_ROW(mkstemps64, ".end", , 4)
TEMPLATE_ROW(mkostemps, ".end", , 4, O_CLOEXEC)
TEMPLATE_ROW(mkostemps64, ".end", , 4, O_CLOEXEC)

static long by_mkdtemp(struct timely_scene *scene)
{
    char name[] = PATH "-XXXXXX";
    (void)scene;
    bool found = mkdtemp(name) == name && strstr(name, "XXXXXX") == NULL && there(name);
    return found && rmdir(name) == 0;
}

// --- shared memory and semaphores -----------------------------------------------------------------------------------

// The file of that name in the folder is the object: both are the node's.
static long by_shm_open(struct timely_scene *scene)
{
    (void)scene;
    int fd = shm_open(NAME, O_RDWR | O_CREAT | O_EXCL, 0600);
    bool found = fd >= 0 && there("/dev/shm" NAME);
    (void)close(fd);
    return found && shm_unlink(NAME) == 0 && !there("/dev/shm" NAME);
}

static void semaphore_post(void *semaphore)
{
    (void)sem_post(semaphore);
}

static long by_sem_open(struct timely_scene *scene)
{
    sem_t *own = sem_open(NAME, O_CREAT | O_EXCL, 0600, 0), *same = sem_open(NAME, 0);
    int unlinked = sem_unlink(NAME);
    timely_later(scene, TIMELY_WOKEN_US, semaphore_post, same);
    long result = own != SEM_FAILED ? timely_result(sem_wait(own)) : timely_result(-1);
    timely_later_end();
    (void)sem_close(own);
    return unlinked == 0 ? result : -1;
}

// The C library reads a clock for the letters.
#define MADE  .late_ns = 100
#define WAITS .at_us = TIMELY_WOKEN_US

static const struct timely_row rows[] = {
    TIMELY_ROW(FUNCTION, "access", by_access, 0),
    TIMELY_ROW(FUNCTION, "chmod", by_chmod, OTHER_MODE),
    TIMELY_ROW(FUNCTION, "chown", by_chown, 0),
    TIMELY_ROW(FUNCTION, "creat", by_creat, 1),
    TIMELY_ROW(FUNCTION, "creat64", by_creat64, 1),
    TIMELY_ROW(FUNCTION, "faccessat", by_faccessat, 0),
    TIMELY_ROW(FUNCTION, "fchmodat", by_fchmodat, OTHER_MODE),
    TIMELY_ROW(FUNCTION, "fopen", by_fopen, 1),
    TIMELY_ROW(FUNCTION, "fopen64", by_fopen64, 1),
    TIMELY_ROW(FUNCTION, "fstatat", by_fstatat, BYTES),
    TIMELY_ROW(FUNCTION, "fstatat64", by_fstatat64, BYTES),
    TIMELY_ROW(FUNCTION, "link", by_link, 1),
    TIMELY_ROW(FUNCTION, "lstat", by_lstat, BYTES),
    TIMELY_ROW(FUNCTION, "lstat64", by_lstat64, BYTES),
    TIMELY_ROW(FUNCTION, "mkdir", by_mkdir, 1),
    TIMELY_ROW(FUNCTION, "mkdirat", by_mkdirat, 1),
    TIMELY_ROW(FUNCTION, "mkdtemp", by_mkdtemp, 1, MADE),
    TIMELY_ROW(FUNCTION, "mkfifo", by_mkfifo, 1),
    TIMELY_ROW(FUNCTION, "mkostemp", by_mkostemp, 1, MADE),
    TIMELY_ROW(FUNCTION, "mkostemp64", by_mkostemp64, 1, MADE),
    TIMELY_ROW(FUNCTION, "mkostemps", by_mkostemps, 1, MADE),
    TIMELY_ROW(FUNCTION, "mkostemps64", by_mkostemps64, 1, MADE),
    TIMELY_ROW(FUNCTION, "mkstemp", by_mkstemp, 1, MADE),
    TIMELY_ROW(FUNCTION, "mkstemp64", by_mkstemp64, 1, MADE),
    TIMELY_ROW(FUNCTION, "mkstemps", by_mkstemps, 1, MADE),
    TIMELY_ROW(FUNCTION, "mkstemps64", by_mkstemps64, 1, MADE),
    TIMELY_ROW(FUNCTION, "open", by_open, 1),
    TIMELY_ROW(FUNCTION, "open", by_open_unnamed, OTHER_MODE),
    TIMELY_ROW(FUNCTION, "open64", by_open64, 1),
    TIMELY_ROW(FUNCTION, "open64", by_open64_unnamed, OTHER_MODE),
    TIMELY_ROW(FUNCTION, "__open64_2", by_open64_2, 1),
    TIMELY_ROW(FUNCTION, "__open_2", by_open_2, 1),
    TIMELY_ROW(FUNCTION, "openat", by_openat, 1),
    TIMELY_ROW(FUNCTION, "openat", by_openat_unnamed, OTHER_MODE),
    TIMELY_ROW(FUNCTION, "openat64", by_openat64, 1),
    TIMELY_ROW(FUNCTION, "openat64", by_openat64_unnamed, OTHER_MODE),
    TIMELY_ROW(FUNCTION, "__openat64_2", by_openat64_2, 1),
    TIMELY_ROW(FUNCTION, "__openat_2", by_openat_2, 1),
    TIMELY_ROW(FUNCTION, "opendir", by_opendir, 1),
    TIMELY_ROW(FUNCTION, "readlink", by_symlink, 1),
    TIMELY_ROW(FUNCTION, "realpath", by_realpath, 1),
    TIMELY_ROW(FUNCTION, "remove", by_remove, 1),
    TIMELY_ROW(FUNCTION, "rename", by_rename, 1),
    TIMELY_ROW(FUNCTION, "rmdir", by_rmdir, 1),
    TIMELY_ROW(FUNCTION, "sem_open", by_sem_open, 0, WAITS),
    TIMELY_ROW(FUNCTION, "sem_unlink", by_sem_open, 0, WAITS),
    TIMELY_ROW(FUNCTION, "shm_open", by_shm_open, 1),
    TIMELY_ROW(FUNCTION, "shm_unlink", by_shm_open, 1),
    TIMELY_ROW(FUNCTION, "stat", by_stat, BYTES),
    TIMELY_ROW(FUNCTION, "stat64", by_stat64, BYTES),
    TIMELY_ROW(FUNCTION, "statfs", by_statfs, TMPFS_TYPE),
    TIMELY_ROW(FUNCTION, "statfs64", by_statfs64, TMPFS_TYPE),
    TIMELY_ROW(FUNCTION, "statvfs", by_statvfs, NAME_MOST),
    TIMELY_ROW(FUNCTION, "statvfs64", by_statvfs64, NAME_MOST),
    TIMELY_ROW(FUNCTION, "statx", by_statx, BYTES),
    TIMELY_ROW(FUNCTION, "symlink", by_symlink, 1),
    TIMELY_ROW(FUNCTION, "truncate", by_truncate, BYTES - 1),
    TIMELY_ROW(FUNCTION, "truncate64", by_truncate64, BYTES - 1),
    TIMELY_ROW(FUNCTION, "unlink", by_unlink, 1),
    TIMELY_ROW(FUNCTION, "unlinkat", by_unlinkat, 1),
    TIMELY_ROW(FUNCTION, "utimensat", by_utimensat, 1),
    TIMELY_ROW(FUNCTION, "open", by_fifo_open, 0, WAITS),
    TIMELY_ROW(FUNCTION, "open", by_fifo_open_to_write, 0, WAITS),
    TIMELY_ROW(FUNCTION, "open64", by_fifo_open64, 0, WAITS),
    TIMELY_ROW(FUNCTION, "openat", by_fifo_openat, 0, WAITS),
    TIMELY_ROW(FUNCTION, "openat64", by_fifo_openat64, 0, WAITS),
    TIMELY_ROW(FUNCTION, "__open_2", by_fifo_open_2, 0, WAITS),
    TIMELY_ROW(FUNCTION, "__open64_2", by_fifo_open64_2, 0, WAITS),
    TIMELY_ROW(FUNCTION, "__openat_2", by_fifo_openat_2, 0, WAITS),
    TIMELY_ROW(FUNCTION, "__openat64_2", by_fifo_openat64_2, 0, WAITS),
    TIMELY_ROW(FUNCTION, "fopen", by_fifo_fopen, 0, WAITS),
    TIMELY_ROW(FUNCTION, "fopen64", by_fifo_fopen64, 0, WAITS),
    TIMELY_ROW(FUNCTION, "open", by_fifo_of_process, 1, .at_us = 2 * TIMELY_WOKEN_US + TIMELY_END_US),
};
TIMELY_THEME(paths, rows);
