// Packets between programs of a run go over the machine's loopback network. The kernel puts them into a queue of the
// sender's processor and mostly empties it before the call returns, but on a busy machine a kernel thread does this
// later. A thread that waits for a packet would then check too early, and find it at another simulated time than in
// other runs.
//
// A datagram that a socket sends to itself is in the queue after everything that was sent before. When it has arrived,
// that has arrived too.
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "verbs-shim/attach/kernel_call.h"
#include "verbs-shim/attach/real_time.h"
#include "verbs-shim/world/world.h"

enum { TRIES = 50 };

// false: it did not come in time. It may be lost if a queue of the kernel is full.
static bool datagram_pass(int fd)
{
    char byte = 0;
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    uint64_t latest_ms = attach_real_time(attach_environment()->real_percent, ATTACH_REAL_LOOPBACK_MS);
    const struct timespec latest = {.tv_sec = (time_t)(latest_ms / 1000),
                                    .tv_nsec = (long)(latest_ms % 1000) * 1000000};
    const long at = (long)(uintptr_t)&byte;
    bool sent = kernel_call(SYS_sendto, fd, at, sizeof byte, MSG_DONTWAIT, 0, 0) == (long)sizeof byte;
    bool came = sent && kernel_call(SYS_ppoll, (long)(uintptr_t)&ready, 1, (long)(uintptr_t)&latest, 0, 0, 0) == 1;
    if (came) {
        (void)kernel_call(SYS_recvfrom, fd, at, sizeof byte, MSG_DONTWAIT, 0, 0);
    }
    return came || !sent;
}

// One that comes later than another one that was lost shows the same.
static void packet_settle(int fd)
{
    unsigned tries = TRIES;
    while (!datagram_pass(fd)) {
        if (--tries == 0) {
            attach_outside(ATTACH_OUTSIDE_LATE);
            return;
        }
    }
}

bool world_loopback_uses(int fd)
{
    int domain, error = errno;
    socklen_t bytes = sizeof domain;
    bool uses =
        getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &bytes) == 0 && (domain == AF_INET || domain == AF_INET6);
    errno = error;
    return uses;
}

// The socket exists only during this call: a program may close all numbers that it does not know.
void world_loopback_settle(unsigned packets)
{
    int error = errno;
    struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof own;
    const long address = (long)(uintptr_t)&own;
    long fd = kernel_call(SYS_socket, AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0, 0, 0, 0);
    if (fd >= 0 && kernel_call(SYS_bind, fd, address, sizeof own, 0, 0, 0) == 0 &&
        kernel_call(SYS_getsockname, fd, address, (long)(uintptr_t)&bytes, 0, 0, 0) == 0 &&
        kernel_call(SYS_connect, fd, address, sizeof own, 0, 0, 0) == 0) {
        while (packets-- > 0) {
            packet_settle((int)fd);
        }
    }
    if (fd >= 0) {
        (void)kernel_call(SYS_close, fd, 0, 0, 0, 0, 0);
    }
    errno = error;
}
