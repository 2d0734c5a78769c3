// Opening a FIFO waits until its other end is open as well (fifo(7)). The kernel would wait within the call, while no
// other thread can open the other end. So it is opened without blocking: for reading that always succeeds, and a writer
// is seen by what a read would return; for writing it fails until there is a reader.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "verbs-shim/attach/kernel_call.h"
#include "verbs-shim/world/world.h"

static bool waits(int folder, const char *path, int flags)
{
    struct stat about;
    bool one_way = (flags & O_ACCMODE) == O_RDONLY || (flags & O_ACCMODE) == O_WRONLY;
    return world_timed() && one_way && path != NULL && (flags & (O_NONBLOCK | O_PATH | O_DIRECTORY)) == 0 &&
           kernel_call(SYS_newfstatat, folder, (long)(uintptr_t)path, (long)(uintptr_t)&about, 0, 0, 0) == 0 &&
           S_ISFIFO(about.st_mode);
}

// Has a writer come since this end was opened? It may have gone again (POLLHUP). Without a writer there is the end of
// the file; tee takes nothing away.
static bool has_writer(int fd)
{
    int ends[2];
    struct pollfd one = {.fd = fd, .events = POLLIN};
    const struct timespec now = {0};
    if (kernel_call(SYS_ppoll, (long)(uintptr_t)&one, 1, (long)(uintptr_t)&now, 0, 0, 0) != 0) {
        return true;
    }
    if (kernel_call(SYS_pipe2, (long)(uintptr_t)ends, 0, 0, 0, 0, 0) != 0) {
        return true; // no more descriptors: a read would tell
    }
    long got = kernel_call(SYS_tee, fd, ends[1], 1, SPLICE_F_NONBLOCK, 0, 0);
    (void)kernel_call(SYS_close, ends[0], 0, 0, 0, 0, 0);
    (void)kernel_call(SYS_close, ends[1], 0, 0, 0, 0, 0);
    return got != 0;
}

// -EINTR: a signal was handled.
static long other_end_await(int folder, const char *path, int flags)
{
    bool reads = (flags & O_ACCMODE) == O_RDONLY;
    unsigned interrupts = attach_interrupts_ending();
    bool interrupted = false;
    long fd = -ENXIO;
    for (;;) {
        if (fd == -ENXIO) {
            fd = kernel_call(SYS_openat, folder, (long)(uintptr_t)path, flags | O_NONBLOCK, 0, 0, 0);
            if (fd >= 0) {
                attach_may_wake();
            }
        }
        if (fd >= 0 ? !reads || has_writer((int)fd) : fd != -ENXIO) {
            return fd;
        }
        if (interrupted) {
            (void)(fd >= 0 ? kernel_call(SYS_close, fd, 0, 0, 0, 0, 0) : 0);
            return -EINTR;
        }
        (void)attach_wait(ATTACH_WAIT_OUTSIDE, ATTACH_NEVER_PS);
        interrupted = attach_interrupts_ending() != interrupts;
    }
}

static bool fifo_open(int folder, const char *path, int flags, int *fd_out)
{
    int error = errno;
    if (!waits(folder, path, flags)) {
        errno = error;
        return false;
    }
    long fd = other_end_await(folder, path, flags);
    if (fd >= 0) {
        (void)kernel_call(SYS_fcntl, fd, F_SETFL, flags & ~O_NONBLOCK, 0, 0, 0);
    }
    errno = fd < 0 ? (int)-fd : error;
    *fd_out = fd < 0 ? -1 : (int)fd;
    return true;
}

bool world_special_open(int folder, const char *path, int flags, int *fd_out)
{
    return world_umad_open(path, flags, fd_out) || world_uuid_open(path, flags, fd_out) ||
           fifo_open(folder, path, flags, fd_out);
}
