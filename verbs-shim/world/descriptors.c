// Calls that wait for a descriptor: reads, writes, connections.
//
// The kernel is asked whether a descriptor is ready; if it is not, the thread sleeps until it is. With a non-blocking
// descriptor the program loops itself: a call that finds nothing is an iteration of that loop.
//
// A signal with a handler ends a wait with EINTR, unless the handler was set with SA_RESTART and the wait has no time-out.
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/major.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <termios.h>
#include <unistd.h>

#include "verbs-shim/attach/kernel_call.h"
#include "verbs-shim/world/calls.h"
#include "verbs-shim/world/descriptors.h"
#include "verbs-shim/world/reach.h"
#include "verbs-shim/world/world.h"

static long kernel(long number, const long *a)
{
    return kernel_call(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

static bool ready(int fd, short events)
{
    struct pollfd one = {.fd = fd, .events = events};
    const struct timespec now = {0};
    return kernel_call(SYS_ppoll, (long)(uintptr_t)&one, 1, (long)(uintptr_t)&now, 0, 0, 0) !=
           0; // also if the descriptor does not exist
}

bool world_blocks(int fd, int flags)
{
    long status = kernel_call(SYS_fcntl, fd, F_GETFL, 0, 0, 0, 0);
    return status >= 0 && (status & O_NONBLOCK) == 0 && (flags & MSG_DONTWAIT) == 0;
}

uint64_t world_socket_deadline(int fd, int option)
{
    struct timeval limit = {0};
    socklen_t bytes = sizeof limit;
    if (kernel_call(SYS_getsockopt, fd, SOL_SOCKET, option, (long)(uintptr_t)&limit, (long)(uintptr_t)&bytes, 0) != 0 ||
        (limit.tv_sec == 0 && limit.tv_usec == 0)) {
        return ATTACH_NEVER_PS;
    }
    const struct timespec delay = {.tv_sec = limit.tv_sec, .tv_nsec = limit.tv_usec * 1000};
    return world_deadline_after(&delay);
}

long world_ready_await(int fd, short events, int flags)
{
    attach_progress();
    if (ready(fd, events) || !world_blocks(fd, flags)) {
        return 0;
    }
    const struct attach_watch watch = {fd, events};
    uint64_t deadline_ps = world_socket_deadline(fd, events == POLLIN ? SO_RCVTIMEO : SO_SNDTIMEO);
    const bool restarts = deadline_ps == ATTACH_NEVER_PS; // signal(7): not with a time-out
    unsigned interrupts = world_interrupts(restarts);
    while (!ready(fd, events)) {
        bool in_time = attach_wait_descriptors(&watch, 1, deadline_ps) != ATTACH_WOKEN_DEADLINE;
        if (!in_time) {
            return -EAGAIN;
        }
        if (world_interrupts(restarts) != interrupts && !ready(fd, events)) {
            return -EINTR;
        }
    }
    return 0;
}

static long found(long result)
{
    attach_found();
    return result;
}

// An iteration of a loop over a non-blocking descriptor.
static long polled(int fd, long result)
{
    if (result == -EAGAIN) {
        (void)attach_poll_call(ATTACH_WAIT_MEMORY | ATTACH_WAIT_OUTSIDE, (uint64_t)fd);
    } else {
        attach_found();
    }
    return result;
}

// A file on a disk, or in /proc.
static bool is_stored(const struct stat *about)
{
    return S_ISREG(about->st_mode) || S_ISDIR(about->st_mode) || S_ISBLK(about->st_mode);
}

// A read makes room for writers, so both directions may let others go on. A read from a file does not; programs read
// files whose number and length depend on the machine. Nor does a write to the user, whose terminal shows each line.
long world_moved(int fd, long result)
{
    if (result >= 0 && world_is_users(fd)) {
        return result;
    }
    if (result >= 0) {
        attach_may_wake();
    }
    return polled(fd, result);
}

// The same for data that goes to another program.
long world_sent(int fd, long result)
{
    if (result > 0 && world_loopback_uses(fd)) {
        world_loopback_settle(WORLD_DATA_PACKETS);
    }
    return world_moved(fd, result);
}

// --- reading --------------------------------------------------------------------------------------------------------

// An end of a pseudo-terminal (pty(7)) that is read neither line by line nor in packets, each of which has a byte before it
// (TIOCPKT of ioctl_tty(2)).
static bool is_raw_terminal(int fd, const struct stat *about)
{
    unsigned kind = major(about->st_rdev);
    struct termios settings;
    int packets = 0;
    if (!S_ISCHR(about->st_mode)) {
        return false;
    }
    if (about->st_rdev == makedev(TTYAUX_MAJOR, 2)) {
        return kernel_call(SYS_ioctl, fd, (long)TIOCGPKT, (long)(uintptr_t)&packets, 0, 0, 0) == 0 && packets == 0;
    }
    bool slave = kind >= UNIX98_PTY_SLAVE_MAJOR && kind < UNIX98_PTY_SLAVE_MAJOR + UNIX98_PTY_MAJOR_COUNT;
    return slave && WORLD_REAL(tcgetattr)(fd, &settings) == 0 && (settings.c_lflag & ICANON) == 0;
}

// What was written to the other end, a line and its end for example, arrives piece by piece, when a worker of the kernel has
// time: a read takes all of it. Asking a terminal that has nothing left (poll) does the worker's work. Leaves out readv.
static long terminal_read(const long *a, long result)
{
    while (result > 0 && result < a[2] && ready((int)a[0], POLLIN)) {
        long more = kernel_call(SYS_read, a[0], a[1] + result, a[2] - result, 0, 0, 0);
        if (more <= 0) {
            break;
        }
        result += more;
    }
    return result;
}

static long read_with(long number, const long *a, int flags)
{
    long status = world_ready_await((int)a[0], POLLIN, flags);
    if (status != 0) {
        return status;
    }
    long result = kernel(number, a);
    struct stat about = {0};
    (void)(result >= 0 ? kernel_call(SYS_fstat, a[0], (long)(uintptr_t)&about, 0, 0, 0, 0) : 0);
    if (world_random_is(&about)) {
        const struct iovec whole = {(void *)a[1], (size_t)a[2]};
        world_random_read(number == SYS_readv ? (const struct iovec *)a[1] : &whole, result);
        return found(result);
    }
    if (number == SYS_read && is_raw_terminal((int)a[0], &about)) {
        result = terminal_read(a, result);
    }
    return is_stored(&about) ? found(result) : world_moved((int)a[0], result);
}

// A read of 0 bytes returns at once.
long world_call_read(const long *a)
{
    return a[2] == 0 ? kernel(SYS_read, a) : read_with(SYS_read, a, 0);
}

long world_call_readv(const long *a)
{
    return read_with(SYS_readv, a, 0);
}

// MSG_WAITALL: one piece at a time, because other threads must run in between.
static long receive_all(int fd, char *buffer, size_t bytes, int flags)
{
    size_t have = 0;
    while (have < bytes) {
        long got = world_ready_await(fd, POLLIN, flags);
        got = got == 0
                  ? kernel_call(SYS_recvfrom, fd, (long)(uintptr_t)(buffer + have), (long)(bytes - have), flags, 0, 0)
                  : got;
        attach_may_wake();
        if (got <= 0) {
            return have > 0 ? (long)have : got;
        }
        have += (size_t)got;
    }
    return (long)have;
}

long world_call_recvfrom(const long *a)
{
    int flags = (int)a[3];
    if ((flags & (MSG_WAITALL | MSG_PEEK | MSG_DONTWAIT)) == MSG_WAITALL && a[4] == 0) {
        return receive_all((int)a[0], (char *)a[1], (size_t)a[2], flags & ~MSG_WAITALL);
    }
    return read_with(SYS_recvfrom, a, flags);
}

// --- writing --------------------------------------------------------------------------------------------------------

bool world_sent_piece(int fd, long result)
{
    if (result > 0 && world_loopback_uses(fd)) {
        world_loopback_settle(WORLD_DATA_PACKETS);
    }
    attach_may_wake();
    bool waits = result == -EAGAIN && world_socket_deadline(fd, SO_SNDTIMEO) == ATTACH_NEVER_PS;
    if (waits) {
        (void)attach_wait(ATTACH_WAIT_OUTSIDE, ATTACH_NEVER_PS); // it had room for less than this
    }
    return waits;
}

// A blocking write of more than fits would hold the run token until the data is read: it is done in pieces.
static long stream_write(int fd, const char *data, size_t bytes, int flags)
{
    size_t done = 0;
    while (done < bytes) {
        long put = world_ready_await(fd, POLLOUT, flags);
        put = put == 0 ? kernel_call(SYS_sendto, fd, (long)(uintptr_t)(data + done), (long)(bytes - done),
                                     flags | MSG_DONTWAIT, 0, 0)
                       : put;
        if (world_sent_piece(fd, put)) {
            continue;
        }
        if (put < 0) {
            return done > 0 ? (long)done : put;
        }
        done += (size_t)put;
    }
    return (long)done;
}

// The same; a piece fits if the pipe is ready.
long world_pipe_write(int fd, const char *data, size_t bytes)
{
    bool is_users = world_is_users(fd);
    size_t done = 0;
    while (done < bytes) {
        long put = world_ready_await(fd, POLLOUT, 0);
        size_t piece = bytes - done < PIPE_BUF ? bytes - done : PIPE_BUF;
        put = put == 0 ? kernel_call(SYS_write, fd, (long)(uintptr_t)(data + done), (long)piece, 0, 0, 0) : put;
        if (!is_users) {
            attach_may_wake();
        }
        if (put < 0) {
            return done > 0 ? (long)done : put;
        }
        done += (size_t)put;
    }
    return (long)done;
}

enum world_descriptor world_descriptor_of(int fd)
{
    int type;
    socklen_t bytes = sizeof type;
    if (kernel_call(SYS_getsockopt, fd, SOL_SOCKET, SO_TYPE, (long)(uintptr_t)&type, (long)(uintptr_t)&bytes, 0) == 0) {
        return type == SOCK_STREAM ? WORLD_STREAM : WORLD_OTHER;
    }
    return kernel_call(SYS_fcntl, fd, F_GETPIPE_SZ, 0, 0, 0, 0) > 0 ? WORLD_PIPE : WORLD_FILE;
}

static long write_with(long number, const long *a, int flags)
{
    long status = world_ready_await((int)a[0], POLLOUT, flags);
    return status == 0 ? world_sent((int)a[0], kernel(number, a)) : status;
}

long world_call_write(const long *a)
{
    long result;
    if (world_umad_write((int)a[0], (const void *)a[1], (size_t)a[2], &result)) {
        return result;
    }
    enum world_descriptor kind = world_descriptor_of((int)a[0]);
    if (kind == WORLD_FILE || a[2] == 0 || !world_blocks((int)a[0], 0)) {
        return world_sent((int)a[0], kernel(SYS_write, a));
    }
    return kind == WORLD_OTHER  ? write_with(SYS_write, a, 0)
           : kind == WORLD_PIPE ? world_pipe_write((int)a[0], (const char *)a[1], (size_t)a[2])
                                : stream_write((int)a[0], (const char *)a[1], (size_t)a[2], 0);
}

long world_call_sendto(const long *a)
{
    int error = world_unreachable((const struct sockaddr *)a[4], (socklen_t)a[5]);
    if (error != 0) {
        return -error;
    }
    if (world_descriptor_of((int)a[0]) == WORLD_STREAM && a[2] > 0 && a[4] == 0 && world_blocks((int)a[0], (int)a[3])) {
        return stream_write((int)a[0], (const char *)a[1], (size_t)a[2], (int)a[3]);
    }
    return write_with(SYS_sendto, a, (int)a[3]);
}

// --- connections ----------------------------------------------------------------------------------------------------

// TCP holds small segments back while an acknowledgement is outstanding (Nagle), and real time decides when that
// arrives. Does nothing if the socket is not TCP.
void world_connected(int fd)
{
    const int on = 1;
    (void)kernel_call(SYS_setsockopt, fd, IPPROTO_TCP, TCP_NODELAY, (long)(uintptr_t)&on, sizeof on, 0);
}

static long accept_with(long number, const long *a)
{
    long connection = read_with(number, a, 0);
    if (connection >= 0) {
        world_connected((int)connection);
    }
    return connection;
}

long world_call_accept(const long *a)
{
    return accept_with(SYS_accept, a);
}

long world_call_accept4(const long *a)
{
    return accept_with(SYS_accept4, a);
}
