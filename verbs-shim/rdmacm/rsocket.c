// rsockets: not offered yet, but for waiting, which works for descriptors of any kind. The functions are here for the
// dynamic linker, and refuse.
#include <poll.h>
#include <rdma/rsocket.h>
#include <sys/select.h>

#include "verbs-shim/rdmacm/internal.h"

#define REFUSES(type, name, ...)                                                                                       \
    type name(__VA_ARGS__)                                                                                             \
    {                                                                                                                  \
        return (type)cm_errno(-EOPNOTSUPP);                                                                            \
    }

int rpoll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
    return poll(fds, count, timeout_ms);
}

int rselect(int count, fd_set *in, fd_set *out, fd_set *except, struct timeval *timeout)
{
    return select(count, in, out, except, timeout);
}

#pragma GCC diagnostic ignored "-Wunused-parameter"
REFUSES(int, rsocket, int domain, int type, int protocol)
REFUSES(int, rbind, int fd, const struct sockaddr *address, socklen_t bytes)
REFUSES(int, rlisten, int fd, int backlog)
REFUSES(int, raccept, int fd, struct sockaddr *address, socklen_t *bytes)
REFUSES(int, rconnect, int fd, const struct sockaddr *address, socklen_t bytes)
REFUSES(int, rshutdown, int fd, int how)
REFUSES(int, rclose, int fd)
REFUSES(ssize_t, rrecv, int fd, void *buffer, size_t bytes, int flags)
REFUSES(ssize_t, rrecvfrom, int fd, void *buffer, size_t bytes, int flags, struct sockaddr *from, socklen_t *from_bytes)
REFUSES(ssize_t, rrecvmsg, int fd, struct msghdr *message, int flags)
REFUSES(ssize_t, rsend, int fd, const void *data, size_t bytes, int flags)
REFUSES(ssize_t, rsendto, int fd, const void *data, size_t bytes, int flags, const struct sockaddr *to, socklen_t to_bytes)
REFUSES(ssize_t, rsendmsg, int fd, const struct msghdr *message, int flags)
REFUSES(ssize_t, rread, int fd, void *buffer, size_t bytes)
REFUSES(ssize_t, rreadv, int fd, const struct iovec *pieces, int count)
REFUSES(ssize_t, rwrite, int fd, const void *data, size_t bytes)
REFUSES(ssize_t, rwritev, int fd, const struct iovec *pieces, int count)
REFUSES(int, rgetpeername, int fd, struct sockaddr *address, socklen_t *bytes)
REFUSES(int, rgetsockname, int fd, struct sockaddr *address, socklen_t *bytes)
REFUSES(int, rsetsockopt, int fd, int level, int name, const void *value, socklen_t bytes)
REFUSES(int, rgetsockopt, int fd, int level, int name, void *value, socklen_t *bytes)
REFUSES(int, rfcntl, int fd, int command, ...)
REFUSES(off_t, riomap, int fd, void *memory, size_t bytes, int rights, int flags, off_t offset)
REFUSES(int, riounmap, int fd, void *memory, size_t bytes)
REFUSES(size_t, riowrite, int fd, const void *data, size_t bytes, off_t offset, int flags)
