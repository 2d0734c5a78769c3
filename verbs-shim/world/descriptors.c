// Calls that wait for a descriptor: reads, writes, connections.
//
// Whether a descriptor is ready is asked of the kernel; where it is not, the thread waits for the others. A descriptor
// that does not block is the program's own loop: a call in vain is a turn of it.
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <unistd.h>

#include "verbs-shim/world/world.h"

static bool ready(int fd, short events)
{
    struct pollfd one = {.fd = fd, .events = events};
    const struct timespec now = {0};
    return syscall(SYS_ppoll, &one, 1, &now, NULL, 0) != 0; // also when it is no descriptor: the call says so
}

static bool blocks(int fd, int flags)
{
    int status = fcntl(fd, F_GETFL);
    return status != -1 && (status & O_NONBLOCK) == 0 && (flags & MSG_DONTWAIT) == 0;
}

// SO_RCVTIMEO and SO_SNDTIMEO.
static uint64_t socket_deadline(int fd, int option)
{
    struct timeval limit = {0};
    socklen_t bytes = sizeof limit;
    if (getsockopt(fd, SOL_SOCKET, option, &limit, &bytes) != 0 || (limit.tv_sec == 0 && limit.tv_usec == 0)) {
        return ATTACH_NEVER_PS;
    }
    const struct timespec delay = {.tv_sec = limit.tv_sec, .tv_nsec = limit.tv_usec * 1000};
    return world_deadline_after(&delay);
}

// Waits until the call would not block. false: the socket's timeout came first (errno EAGAIN).
static bool get_ready(int fd, short events, int flags)
{
    if (ready(fd, events) || !blocks(fd, flags)) {
        return true;
    }
    uint64_t deadline_ps = socket_deadline(fd, events == POLLIN ? SO_RCVTIMEO : SO_SNDTIMEO);
    while (!ready(fd, events)) {
        bool in_time = attach_wait(ATTACH_WAIT_OUTSIDE | (attach_look_progresses() ? ATTACH_WAIT_MEMORY : 0),
                                   deadline_ps) != ATTACH_WOKEN_DEADLINE;
        attach_look();
        if (!in_time) {
            errno = EAGAIN;
            return false;
        }
    }
    return true;
}

// The turn of a loop over a descriptor that does not block.
static ssize_t looked(ssize_t result)
{
    if (result < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
        int saved = errno;
        (void)attach_vain(ATTACH_WAIT_MEMORY | ATTACH_WAIT_OUTSIDE);
        errno = saved;
    } else {
        attach_found();
    }
    return result;
}

// What was read makes room for who writes, so both let others go on.
static ssize_t moved(ssize_t result)
{
    attach_may_wake();
    return looked(result);
}

// The same of what goes to another program.
static ssize_t sent(int fd, ssize_t result)
{
    if (result > 0 && world_loopback_uses(fd)) {
        world_loopback_settle(WORLD_DATA_PACKETS);
    }
    return moved(result);
}

// --- reading
// ----------------------------------------------------------------------------------------------------------

ssize_t read(int fd, void *buffer, size_t bytes)
{
    if (!world_timed()) {
        return WORLD_REAL(read)(fd, buffer, bytes);
    }
    return get_ready(fd, POLLIN, 0) ? moved(WORLD_REAL(read)(fd, buffer, bytes)) : -1;
}

ssize_t readv(int fd, const struct iovec *pieces, int count)
{
    if (!world_timed()) {
        return WORLD_REAL(readv)(fd, pieces, count);
    }
    return get_ready(fd, POLLIN, 0) ? moved(WORLD_REAL(readv)(fd, pieces, count)) : -1;
}

// MSG_WAITALL: a piece at a time, as the others must run in between.
static ssize_t receive_all(int fd, char *buffer, size_t bytes, int flags)
{
    size_t have = 0;
    while (have < bytes) {
        ssize_t got = get_ready(fd, POLLIN, flags) ? WORLD_REAL(recv)(fd, buffer + have, bytes - have, flags) : -1;
        attach_may_wake();
        if (got <= 0) {
            return have > 0 ? (ssize_t)have : got;
        }
        have += (size_t)got;
    }
    return (ssize_t)have;
}

ssize_t recv(int fd, void *buffer, size_t bytes, int flags)
{
    if (!world_timed()) {
        return WORLD_REAL(recv)(fd, buffer, bytes, flags);
    }
    if ((flags & (MSG_WAITALL | MSG_PEEK | MSG_DONTWAIT)) == MSG_WAITALL) {
        return receive_all(fd, buffer, bytes, flags & ~MSG_WAITALL);
    }
    return get_ready(fd, POLLIN, flags) ? moved(WORLD_REAL(recv)(fd, buffer, bytes, flags)) : -1;
}

ssize_t recvfrom(int fd, void *restrict buffer, size_t bytes, int flags, __SOCKADDR_ARG from,
                 socklen_t *restrict from_bytes)
{
    if (!world_timed()) {
        return WORLD_REAL(recvfrom)(fd, buffer, bytes, flags, from, from_bytes);
    }
    return get_ready(fd, POLLIN, flags) ? moved(WORLD_REAL(recvfrom)(fd, buffer, bytes, flags, from, from_bytes)) : -1;
}

ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
    if (!world_timed()) {
        return WORLD_REAL(recvmsg)(fd, message, flags);
    }
    ssize_t got = get_ready(fd, POLLIN, flags) ? moved(WORLD_REAL(recvmsg)(fd, message, flags)) : -1;
    if (got >= 0) {
        world_id_credentials(message, world_id_of);
    }
    return got;
}

// What programs built with _FORTIFY_SOURCE call. The sizes were checked by the compiler where they could be.
ssize_t __read_chk(int fd, void *buffer, size_t bytes, size_t room);
ssize_t __recv_chk(int fd, void *buffer, size_t bytes, size_t room, int flags);
ssize_t __recvfrom_chk(int fd, void *restrict buffer, size_t bytes, size_t room, int flags, __SOCKADDR_ARG from,
                       socklen_t *restrict from_bytes);
void __chk_fail(void) __attribute__((noreturn));

ssize_t __read_chk(int fd, void *buffer, size_t bytes, size_t room)
{
    if (bytes > room) {
        __chk_fail();
    }
    return read(fd, buffer, bytes);
}

ssize_t __recv_chk(int fd, void *buffer, size_t bytes, size_t room, int flags)
{
    if (bytes > room) {
        __chk_fail();
    }
    return recv(fd, buffer, bytes, flags);
}

ssize_t __recvfrom_chk(int fd, void *restrict buffer, size_t bytes, size_t room, int flags, __SOCKADDR_ARG from,
                       socklen_t *restrict from_bytes)
{
    if (bytes > room) {
        __chk_fail();
    }
    return recvfrom(fd, buffer, bytes, flags, from, from_bytes);
}

// --- writing
// ----------------------------------------------------------------------------------------------------------

// A blocking write of more than there is room for would hold the baton until it is read: it goes in pieces.
static ssize_t write_all(int fd, const char *data, size_t bytes, int flags, bool is_socket)
{
    size_t done = 0;
    while (done < bytes) {
        if (!get_ready(fd, POLLOUT, flags)) {
            return done > 0 ? (ssize_t)done : -1;
        }
        ssize_t put;
        if (is_socket) {
            put = WORLD_REAL(send)(fd, data + done, bytes - done, flags | MSG_DONTWAIT);
        } else {
            size_t piece = bytes - done < PIPE_BUF ? bytes - done : PIPE_BUF; // fits when a pipe is ready
            put = WORLD_REAL(write)(fd, data + done, piece);
        }
        if (put > 0 && is_socket && world_loopback_uses(fd)) {
            world_loopback_settle(WORLD_DATA_PACKETS);
        }
        attach_may_wake();
        if (put < 0 && errno == EAGAIN) {
            (void)attach_wait(ATTACH_WAIT_OUTSIDE, ATTACH_NEVER_PS);
        } else if (put < 0) {
            return done > 0 ? (ssize_t)done : -1;
        } else {
            done += (size_t)put;
        }
    }
    return (ssize_t)done;
}

enum descriptor { DESCRIPTOR_FILE, DESCRIPTOR_PIPE, DESCRIPTOR_STREAM, DESCRIPTOR_OTHER };

static enum descriptor descriptor_of(int fd)
{
    int type;
    socklen_t bytes = sizeof type;
    if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &bytes) == 0) {
        return type == SOCK_STREAM ? DESCRIPTOR_STREAM : DESCRIPTOR_OTHER;
    }
    return fcntl(fd, F_GETPIPE_SZ) > 0 ? DESCRIPTOR_PIPE : DESCRIPTOR_FILE;
}

ssize_t write(int fd, const void *data, size_t bytes)
{
    if (!world_timed()) {
        return WORLD_REAL(write)(fd, data, bytes);
    }
    enum descriptor kind = descriptor_of(fd);
    if (kind == DESCRIPTOR_FILE || bytes == 0 || !blocks(fd, 0)) {
        return sent(fd, WORLD_REAL(write)(fd, data, bytes));
    }
    if (kind == DESCRIPTOR_OTHER) {
        return get_ready(fd, POLLOUT, 0) ? sent(fd, WORLD_REAL(write)(fd, data, bytes)) : -1;
    }
    return write_all(fd, data, bytes, 0, kind == DESCRIPTOR_STREAM);
}

ssize_t send(int fd, const void *data, size_t bytes, int flags)
{
    if (!world_timed()) {
        return WORLD_REAL(send)(fd, data, bytes, flags);
    }
    if (descriptor_of(fd) == DESCRIPTOR_STREAM && bytes > 0 && blocks(fd, flags)) {
        return write_all(fd, data, bytes, flags, true);
    }
    return get_ready(fd, POLLOUT, flags) ? sent(fd, WORLD_REAL(send)(fd, data, bytes, flags)) : -1;
}

// Of several pieces: whole where there is room, as the kernel does; a sender of more than a socket holds would stand.
ssize_t writev(int fd, const struct iovec *pieces, int count)
{
    if (!world_timed()) {
        return WORLD_REAL(writev)(fd, pieces, count);
    }
    return get_ready(fd, POLLOUT, 0) ? sent(fd, WORLD_REAL(writev)(fd, pieces, count)) : -1;
}

ssize_t sendto(int fd, const void *data, size_t bytes, int flags, __CONST_SOCKADDR_ARG to, socklen_t to_bytes)
{
    if (!world_timed()) {
        return WORLD_REAL(sendto)(fd, data, bytes, flags, to, to_bytes);
    }
    return get_ready(fd, POLLOUT, flags) ? sent(fd, WORLD_REAL(sendto)(fd, data, bytes, flags, to, to_bytes)) : -1;
}

// In more than this numbers stay as they are.
enum { CONTROL_BYTES = 4096 };

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    if (!world_timed()) {
        return WORLD_REAL(sendmsg)(fd, message, flags);
    }
    if (!get_ready(fd, POLLOUT, flags)) {
        return -1;
    }
    if (message == NULL || message->msg_control == NULL || message->msg_controllen > CONTROL_BYTES) {
        return sent(fd, WORLD_REAL(sendmsg)(fd, message, flags));
    }
    union {
        struct cmsghdr first;
        char bytes[CONTROL_BYTES];
    } control;
    struct msghdr own = *message;
    memcpy(control.bytes, message->msg_control, message->msg_controllen);
    own.msg_control = control.bytes;
    world_id_credentials(&own, world_id_real); // the kernel wants its own
    return sent(fd, WORLD_REAL(sendmsg)(fd, &own, flags));
}

// Programs that close all that they find leave the connection alone.
static bool is_own(int fd)
{
    return fd >= 0 && fd == attach_descriptor();
}

// Only of one that is there: programs close every number there could be.
int close(int fd)
{
    if (is_own(fd)) {
        errno = EBADF;
        return -1;
    }
    bool packet = world_timed() && world_loopback_uses(fd);
    int status = WORLD_REAL(close)(fd);
    if (packet) {
        world_loopback_settle(WORLD_DATA_PACKETS);
    }
    if (status == 0 && world_timed()) {
        attach_may_wake();
        world_timer_closed(fd);
    }
    return status;
}

int close_range(unsigned first, unsigned last, int flags)
{
    int own = attach_descriptor(), status = 0;
    if (world_timed()) {
        attach_may_wake();
    }
    if (own < 0 || (unsigned)own < first || (unsigned)own > last) {
        return WORLD_REAL(close_range)(first, last, flags);
    }
    if (first < (unsigned)own) {
        status = WORLD_REAL(close_range)(first, (unsigned)own - 1, flags);
    }
    return status != 0 || (unsigned)own == last ? status : WORLD_REAL(close_range)((unsigned)own + 1, last, flags);
}

void closefrom(int first)
{
    (void)close_range(first > 0 ? (unsigned)first : 0, UINT_MAX, 0);
}

int shutdown(int fd, int how)
{
    int status = WORLD_REAL(shutdown)(fd, how);
    if (status == 0 && world_timed()) {
        if (world_loopback_uses(fd)) {
            world_loopback_settle(WORLD_DATA_PACKETS);
        }
        attach_may_wake();
    }
    return status;
}

// --- connections
// ------------------------------------------------------------------------------------------------------

// TCP keeps small pieces back while an acknowledgement is to come (Nagle), and when that comes is real time's choice.
// Nothing where it is no TCP.
void world_connected(int fd)
{
    const int on = 1;
    int saved = errno;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    errno = saved;
}

static int accepted(int connection)
{
    if (connection >= 0) {
        world_connected(connection);
    }
    return (int)moved(connection);
}

int accept(int fd, __SOCKADDR_ARG from, socklen_t *restrict from_bytes)
{
    if (!world_timed()) {
        return WORLD_REAL(accept)(fd, from, from_bytes);
    }
    return get_ready(fd, POLLIN, 0) ? accepted(WORLD_REAL(accept)(fd, from, from_bytes)) : -1;
}

int accept4(int fd, __SOCKADDR_ARG from, socklen_t *restrict from_bytes, int flags)
{
    if (!world_timed()) {
        return WORLD_REAL(accept4)(fd, from, from_bytes, flags);
    }
    return get_ready(fd, POLLIN, 0) ? accepted(WORLD_REAL(accept4)(fd, from, from_bytes, flags)) : -1;
}
