// rsockets: options and names.
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <string.h>

#include "verbs-shim/rdmacm/internal.h"
#include "verbs-shim/rdmacm/rsocket.h"

// Flags that are stored and have no effect.
static const struct {
    int level, name;
} flags[] = {
    {SOL_SOCKET, SO_REUSEADDR}, {SOL_SOCKET, SO_KEEPALIVE},  {SOL_SOCKET, SO_OOBINLINE},
    {IPPROTO_TCP, TCP_NODELAY}, {IPPROTO_TCP, TCP_KEEPIDLE}, {IPPROTO_TCP, TCP_KEEPINTVL},
    {IPPROTO_TCP, TCP_KEEPCNT}, {IPPROTO_TCP, TCP_MAXSEG},   {IPPROTO_IPV6, IPV6_V6ONLY},
};

static int flag_find(int level, int name)
{
    for (int i = 0; i < (int)(sizeof flags / sizeof flags[0]); i++) {
        if (flags[i].level == level && flags[i].name == name) {
            return i;
        }
    }
    return -1;
}

// A number of the socket that can be set before it is connected; NULL: there is no such number.
static int *number_find(struct rs *rs, int level, int name)
{
    if (level == SOL_SOCKET) {
        return name == SO_SNDBUF ? &rs->send_bytes : name == SO_RCVBUF ? &rs->receive_bytes : NULL;
    }
    return level != SOL_RDMA        ? NULL
           : name == RDMA_SQSIZE    ? &rs->sq_size
           : name == RDMA_RQSIZE    ? &rs->rq_size
           : name == RDMA_INLINE    ? &rs->inline_bytes
           : name == RDMA_IOMAPSIZE ? &rs->iomap_size
                                    : NULL;
}

// Limits a number to its valid range.
static int within(int level, int name, int value)
{
    enum { BUFFER_MIN = 4096, BUFFER_MAX = 1 << 28, QUEUE_MIN = 8, QUEUE_MAX = 1 << 14, INLINE_MAX = 1024 };
    bool buffer = level == SOL_SOCKET, queue = name == RDMA_SQSIZE || name == RDMA_RQSIZE;
    int least = buffer ? BUFFER_MIN : queue ? QUEUE_MIN : 0;
    int most = buffer ? BUFFER_MAX : queue ? QUEUE_MAX : name == RDMA_INLINE ? INLINE_MAX : RS_IOMAPS_MAX;
    value = value < least ? least : value > most ? most : value;
    return buffer ? value / 64 * 64 : value;
}

static int option_set(struct rs *rs, int level, int name, const void *value, socklen_t bytes)
{
    int *number = number_find(rs, level, name);
    int flag = flag_find(level, name);
    if (level == SOL_SOCKET && name == SO_LINGER) {
        return 0; // rclose always waits for sent data
    }
    if (number == NULL && flag < 0) {
        return -ENOPROTOOPT;
    }
    if (bytes < sizeof(int) || (number != NULL && rs->state >= RS_CONNECTING)) {
        return -EINVAL;
    }
    int asked = *(const int *)value;
    if (number != NULL) {
        *number = within(level, name, asked);
    } else {
        rs->options = asked != 0 ? rs->options | 1 << flag : rs->options & ~(1 << flag);
    }
    return 0;
}

int rsetsockopt(int fd, int level, int name, const void *value, socklen_t bytes)
{
    struct rs *rs = rs_enter(fd);
    if (rs == NULL) {
        return -1;
    }
    int status = option_set(rs, level, name, value, bytes);
    rs_leave(rs);
    return cm_errno(status);
}

static int option_get(struct rs *rs, int level, int name, int *value_out)
{
    const int *number = number_find(rs, level, name);
    int flag = flag_find(level, name);
    if (level == SOL_SOCKET && name == SO_ERROR) {
        *value_out = rs->error;
        rs->error = 0;
    } else if (level == SOL_SOCKET && name == SO_TYPE) {
        *value_out = rs->datagrams != NULL ? SOCK_DGRAM : SOCK_STREAM;
    } else if (number != NULL) {
        *value_out = *number;
    } else if (flag >= 0) {
        *value_out = (rs->options >> flag) & 1;
    } else {
        return -ENOPROTOOPT;
    }
    return 0;
}

int rgetsockopt(int fd, int level, int name, void *value, socklen_t *bytes)
{
    struct rs *rs = rs_enter(fd);
    int number = 0;
    if (rs == NULL) {
        return -1;
    }
    int status = *bytes < sizeof number ? -EINVAL : option_get(rs, level, name, &number);
    if (status == 0) {
        memcpy(value, &number, sizeof number);
        *bytes = sizeof number;
    }
    rs_leave(rs);
    return cm_errno(status);
}

int rfcntl(int fd, int command, ...)
{
    struct rs *rs = rs_enter(fd);
    if (rs == NULL) {
        return -1;
    }
    va_list list;
    va_start(list, command);
    int status = 0;
    if (command == F_GETFL) {
        status = rs->flags;
    } else if (command == F_SETFL) {
        rs->flags = va_arg(list, int) & O_NONBLOCK;
    } else {
        status = -ENOTSUP;
    }
    va_end(list);
    rs_leave(rs);
    return status >= 0 ? status : cm_errno(status);
}

// --- names ----------------------------------------------------------------------------------------------------------

static int address_get(const struct sockaddr *from, struct sockaddr *address, socklen_t *bytes)
{
    socklen_t have = from->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
    if (address == NULL || bytes == NULL) {
        return -EFAULT;
    }
    memcpy(address, from, *bytes < have ? *bytes : have);
    *bytes = have;
    return 0;
}

int rgetpeername(int fd, struct sockaddr *address, socklen_t *bytes)
{
    struct rs *rs = rs_enter(fd);
    if (rs == NULL) {
        return -1;
    }
    struct sockaddr_storage peer;
    int status = rs->datagrams != NULL ? rs_datagrams_peer(rs, &peer) : rs->state < RS_CONNECTING ? -ENOTCONN : 0;
    const struct sockaddr *found = rs->datagrams != NULL ? (struct sockaddr *)&peer : rdma_get_peer_addr(rs->id);
    status = status != 0 ? status : address_get(found, address, bytes);
    rs_leave(rs);
    return cm_errno(status);
}

int rgetsockname(int fd, struct sockaddr *address, socklen_t *bytes)
{
    struct rs *rs = rs_enter(fd);
    if (rs == NULL) {
        return -1;
    }
    int status = address_get(rdma_get_local_addr(rs->id), address, bytes);
    rs_leave(rs);
    return cm_errno(status);
}
