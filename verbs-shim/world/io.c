// The C library's functions that read and write, and those that close a descriptor.
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "verbs-shim/world/calls.h"
#include "verbs-shim/world/world.h"

ssize_t read(int fd, void *buffer, size_t bytes)
{
    return world_timed() ? WORLD_CALL(world_call_read, fd, buffer, bytes) : WORLD_REAL(read)(fd, buffer, bytes);
}

ssize_t readv(int fd, const struct iovec *pieces, int count)
{
    return world_timed() ? WORLD_CALL(world_call_readv, fd, pieces, count) : WORLD_REAL(readv)(fd, pieces, count);
}

ssize_t recv(int fd, void *buffer, size_t bytes, int flags)
{
    return world_timed() ? WORLD_CALL(world_call_recvfrom, fd, buffer, bytes, flags)
                         : WORLD_REAL(recv)(fd, buffer, bytes, flags);
}

ssize_t recvfrom(int fd, void *restrict buffer, size_t bytes, int flags, __SOCKADDR_ARG from,
                 socklen_t *restrict from_bytes)
{
    return world_timed() ? WORLD_CALL(world_call_recvfrom, fd, buffer, bytes, flags, from.__sockaddr__, from_bytes)
                         : WORLD_REAL(recvfrom)(fd, buffer, bytes, flags, from, from_bytes);
}

ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
    if (!world_timed()) {
        return WORLD_REAL(recvmsg)(fd, message, flags);
    }
    ssize_t got = WORLD_CALL(world_call_recvmsg, fd, message, flags);
    if (got >= 0) {
        world_id_credentials(message, world_id_of);
    }
    return got;
}

// Files never wait: only the kernel reads and writes the program's memory.
ssize_t pread(int fd, void *buffer, size_t bytes, off_t offset)
{
    attach_window_close();
    return WORLD_REAL(pread)(fd, buffer, bytes, offset);
}

ssize_t pread64(int fd, void *buffer, size_t bytes, off64_t offset)
{
    attach_window_close();
    return WORLD_REAL(pread64)(fd, buffer, bytes, offset);
}

ssize_t pwrite(int fd, const void *buffer, size_t bytes, off_t offset)
{
    attach_window_close();
    return WORLD_REAL(pwrite)(fd, buffer, bytes, offset);
}

ssize_t pwrite64(int fd, const void *buffer, size_t bytes, off64_t offset)
{
    attach_window_close();
    return WORLD_REAL(pwrite64)(fd, buffer, bytes, offset);
}

// Functions that programs built with _FORTIFY_SOURCE call. The compiler has checked the sizes where it could.
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

ssize_t write(int fd, const void *data, size_t bytes)
{
    return world_timed() ? WORLD_CALL(world_call_write, fd, data, bytes) : WORLD_REAL(write)(fd, data, bytes);
}

ssize_t writev(int fd, const struct iovec *pieces, int count)
{
    return world_timed() ? WORLD_CALL(world_call_writev, fd, pieces, count) : WORLD_REAL(writev)(fd, pieces, count);
}

ssize_t send(int fd, const void *data, size_t bytes, int flags)
{
    return world_timed() ? WORLD_CALL(world_call_sendto, fd, data, bytes, flags)
                         : WORLD_REAL(send)(fd, data, bytes, flags);
}

ssize_t sendto(int fd, const void *data, size_t bytes, int flags, __CONST_SOCKADDR_ARG to, socklen_t to_bytes)
{
    return world_timed() ? WORLD_CALL(world_call_sendto, fd, data, bytes, flags, to.__sockaddr__, to_bytes)
                         : WORLD_REAL(sendto)(fd, data, bytes, flags, to, to_bytes);
}

// In a larger control buffer the numbers are not translated.
enum { CONTROL_BYTES = 4096 };

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    if (!world_timed()) {
        return WORLD_REAL(sendmsg)(fd, message, flags);
    }
    if (message == NULL || message->msg_control == NULL || message->msg_controllen > CONTROL_BYTES) {
        return WORLD_CALL(world_call_sendmsg, fd, message, flags);
    }
    union {
        struct cmsghdr first;
        char bytes[CONTROL_BYTES];
    } control;
    struct msghdr own = *message;
    memcpy(control.bytes, message->msg_control, message->msg_controllen);
    own.msg_control = control.bytes;
    world_id_credentials(&own, world_id_real); // the kernel expects its own numbers
    return WORLD_CALL(world_call_sendmsg, fd, &own, flags);
}

int accept(int fd, __SOCKADDR_ARG from, socklen_t *restrict from_bytes)
{
    return world_timed() ? (int)WORLD_CALL(world_call_accept, fd, from.__sockaddr__, from_bytes)
                         : WORLD_REAL(accept)(fd, from, from_bytes);
}

int accept4(int fd, __SOCKADDR_ARG from, socklen_t *restrict from_bytes, int flags)
{
    return world_timed() ? (int)WORLD_CALL(world_call_accept4, fd, from.__sockaddr__, from_bytes, flags)
                         : WORLD_REAL(accept4)(fd, from, from_bytes, flags);
}

// --- the end of a descriptor ----------------------------------------------------------------------------------------

// A program that closes all descriptors must not close those of the shim. The first from this number on; -1: none.
static int own_from(unsigned first)
{
    int connection = attach_descriptor(), end = world_umad_end_from(first);
    bool is = connection >= 0 && (unsigned)connection >= first && (end < 0 || connection < end);
    return is ? connection : end;
}

static bool is_own(int fd)
{
    return fd >= 0 && own_from((unsigned)fd) == fd;
}

// Only for a descriptor that existed: programs close every possible number. packets: it was a socket that uses them.
static void descriptor_closed(int fd, bool packets)
{
    if (packets) {
        world_loopback_settle(WORLD_DATA_PACKETS);
    }
    if (world_timed()) {
        attach_may_wake();
        world_timers_closed((unsigned)fd, (unsigned)fd);
    }
}

int close(int fd)
{
    if (is_own(fd)) {
        errno = EBADF;
        return -1;
    }
    bool packets = world_timed() && world_loopback_uses(fd);
    int status = WORLD_REAL(close)(fd);
    if (status == 0) {
        descriptor_closed(fd, packets);
    }
    return status;
}

// A program may want the connection's number for itself.
static int replace(int from, int to, int flags, bool by_dup3)
{
    if (is_own(from)) {
        errno = EBADF;
        return -1;
    }
    bool ends = from != to && fcntl(to, F_GETFD) >= 0;
    bool packets = ends && world_timed() && world_loopback_uses(to);
    if (is_own(to) && !world_umad_end_move(to)) {
        attach_descriptor_move();
    }
    int status = by_dup3 ? WORLD_REAL(dup3)(from, to, flags) : WORLD_REAL(dup2)(from, to);
    if (status >= 0 && ends) {
        descriptor_closed(to, packets);
    }
    return status;
}

int dup2(int from, int to)
{
    return replace(from, to, 0, false);
}

int dup3(int from, int to, int flags)
{
    return replace(from, to, flags, true);
}

int fclose(FILE *file)
{
    int status = WORLD_REAL(fclose)(file);
    if (world_timed()) {
        attach_may_wake();
    }
    return status;
}

int close_range(unsigned first, unsigned last, int flags)
{
    int own = own_from(first), status = 0;
    if (world_timed()) {
        attach_may_wake();
        if ((flags & CLOSE_RANGE_CLOEXEC) == 0) {
            world_timers_closed(first, last);
        }
    }
    while (status == 0 && own >= 0 && (unsigned)own <= last) {
        status = first < (unsigned)own ? WORLD_REAL(close_range)(first, (unsigned)own - 1, flags) : 0;
        first = (unsigned)own + 1;
        own = own_from(first);
    }
    return status == 0 && first <= last ? WORLD_REAL(close_range)(first, last, flags) : status;
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
