// rsockets: creation, connection, end.
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "verbs-shim/rdmacm/internal.h"
#include "verbs-shim/rdmacm/rsocket.h"

enum { TIMEOUT_MS = 2000 };
enum { QUEUE_DEFAULT = 384, INLINE_DEFAULT = 64, BUFFER_DEFAULT = 1 << 17 }; // rdma-core's

static struct rs *sockets[RS_SOCKETS_MAX];

struct rs *rs_find(int fd)
{
    struct rs *rs = fd >= 0 && fd < RS_SOCKETS_MAX ? __atomic_load_n(&sockets[fd], __ATOMIC_ACQUIRE) : NULL;
    if (rs == NULL) {
        errno = EBADF;
    }
    return rs;
}

struct rs *rs_enter(int fd)
{
    struct rs *rs = rs_find(fd);
    if (rs != NULL) {
        (void)pthread_mutex_lock(&rs->lock);
    }
    return rs;
}

void rs_leave(struct rs *rs)
{
    int error = errno;
    (void)pthread_mutex_unlock(&rs->lock);
    errno = error;
}

// Leaves the socket and returns the result of the call.
static int left(struct rs *rs, int status)
{
    rs_leave(rs);
    return cm_errno(status);
}

// --- life -----------------------------------------------------------------------------------------------------------

// The event channel is non-blocking, so that ready events can be taken without waiting.
static bool channel_make(struct rs *rs)
{
    rs->channel = rdma_create_event_channel();
    if (rs->channel == NULL || rs->channel->fd >= RS_SOCKETS_MAX) {
        return false;
    }
    rs->fd = rs->channel->fd;
    return fcntl(rs->fd, F_SETFL, fcntl(rs->fd, F_GETFL) | O_NONBLOCK) == 0;
}

static void rs_free(struct rs *rs)
{
    rs_transport_end(rs);
    rs_datagrams_end(rs);
    if (rs->id != NULL) {
        (void)rdma_destroy_id(rs->id);
    }
    if (rs->channel != NULL) {
        rdma_destroy_event_channel(rs->channel);
    }
    (void)pthread_mutex_destroy(&rs->lock);
    free(rs);
}

// like: NULL, or the listener from which it inherits its settings.
static struct rs *rs_new(int domain, const struct rs *like)
{
    struct rs *rs = calloc(1, sizeof *rs);
    if (rs == NULL) {
        return NULL;
    }
    (void)pthread_mutex_init(&rs->lock, NULL);
    rs->domain = domain;
    rs->sq_size = like != NULL ? like->sq_size : QUEUE_DEFAULT;
    rs->rq_size = like != NULL ? like->rq_size : QUEUE_DEFAULT;
    rs->inline_bytes = like != NULL ? like->inline_bytes : INLINE_DEFAULT;
    rs->iomap_size = like != NULL ? like->iomap_size : 0;
    rs->send_bytes = like != NULL ? like->send_bytes : BUFFER_DEFAULT;
    rs->receive_bytes = like != NULL ? like->receive_bytes : BUFFER_DEFAULT;
    rs->options = like != NULL ? like->options : 0;
    return rs;
}

static struct rs *stream_new(int domain, const struct rs *like)
{
    struct rs *rs = rs_new(domain, like);
    if (rs != NULL && !channel_make(rs)) {
        rs_free(rs);
        errno = EMFILE;
        return NULL;
    }
    return rs;
}

int rsocket(int domain, int type, int protocol)
{
    if (domain != AF_INET && domain != AF_INET6) {
        return cm_errno(-EAFNOSUPPORT);
    }
    bool stream = type == SOCK_STREAM && (protocol == 0 || protocol == IPPROTO_TCP);
    if (!stream && (type != SOCK_DGRAM || (protocol != 0 && protocol != IPPROTO_UDP))) {
        return cm_errno(-EPROTONOSUPPORT);
    }
    struct rs *rs = stream ? stream_new(domain, NULL) : rs_new(domain, NULL);
    if (rs == NULL) {
        return -1;
    }
    int status = stream ? 0 : rs_datagrams_make(rs);
    if (status == 0 && rdma_create_id(rs->channel, &rs->id, NULL, stream ? RDMA_PS_TCP : RDMA_PS_UDP) != 0) {
        status = -errno;
    }
    if (status != 0) {
        rs_free(rs);
        return cm_errno(status);
    }
    __atomic_store_n(&sockets[rs->fd], rs, __ATOMIC_RELEASE);
    return rs->fd;
}

int rbind(int fd, const struct sockaddr *address, socklen_t bytes)
{
    struct rs *rs = rs_enter(fd);
    struct sockaddr_storage copy = {0};
    if (rs == NULL) {
        return -1;
    }
    if (rs->state != RS_NEW || bytes > sizeof copy) {
        return left(rs, -EINVAL);
    }
    memcpy(&copy, address, bytes);
    if (rs->datagrams != NULL) {
        return left(rs, rs_datagrams_bind(rs, (struct sockaddr *)&copy));
    }
    int status = rdma_bind_addr(rs->id, (struct sockaddr *)&copy) == 0 ? 0 : -errno;
    rs->state = status == 0 ? RS_BOUND : rs->state;
    return left(rs, status);
}

int rlisten(int fd, int backlog)
{
    struct rs *rs = rs_enter(fd);
    if (rs == NULL) {
        return -1;
    }
    if (rs->datagrams != NULL) {
        return left(rs, -EOPNOTSUPP);
    }
    if (rs->state == RS_LISTENING) {
        return left(rs, 0);
    }
    int status = rs->state != RS_BOUND ? -EINVAL : rdma_listen(rs->id, backlog) == 0 ? 0 : -errno;
    rs->state = status == 0 ? RS_LISTENING : rs->state;
    return left(rs, status);
}

// --- connecting -----------------------------------------------------------------------------------------------------

static int fail(struct rs *rs, int error)
{
    rs->error = error;
    rs->state = RS_FAILED;
    rs->read_end = rs->write_end = true;
    return -error;
}

static void request(struct rs *rs)
{
    struct rs_hello hello;
    int status = rs_transport_make(rs);
    rs_hello_fill(rs, &hello);
    struct rdma_conn_param param = {.private_data = &hello,
                                    .private_data_len = sizeof hello,
                                    .flow_control = 1,
                                    .retry_count = 7,
                                    .rnr_retry_count = 7};
    if (status != 0 || rdma_connect(rs->id, &param) != 0) {
        (void)fail(rs, status != 0 ? -status : errno);
    }
}

static void event_handle(struct rs *rs, const struct rdma_cm_event *event)
{
    switch ((int)event->event) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
        if (rdma_resolve_route(rs->id, TIMEOUT_MS) != 0) {
            (void)fail(rs, errno);
        }
        break;
    case RDMA_CM_EVENT_ROUTE_RESOLVED:
        request(rs);
        break;
    case RDMA_CM_EVENT_ESTABLISHED:
        if (rs->state == RS_CONNECTING && event->param.conn.private_data != NULL) {
            memcpy(&rs->peer, event->param.conn.private_data, sizeof rs->peer);
        }
        rs_connected(rs);
        break;
    case RDMA_CM_EVENT_DISCONNECTED:
        rs_reap(rs); // earlier completions
        rs->read_end = rs->write_end = true;
        break;
    case RDMA_CM_EVENT_REJECTED:
        (void)fail(rs, ECONNREFUSED);
        break;
    case RDMA_CM_EVENT_ADDR_ERROR:
    case RDMA_CM_EVENT_ROUTE_ERROR:
        (void)fail(rs, EHOSTUNREACH);
        break;
    case RDMA_CM_EVENT_UNREACHABLE:
    case RDMA_CM_EVENT_CONNECT_ERROR:
        (void)fail(rs, ETIMEDOUT);
        break;
    default:
        break;
    }
}

void rs_channel_ready(struct rs *rs)
{
    struct rdma_cm_event *event;
    if (rs->datagrams != NULL) {
        rs_datagrams_met(rs);
        return;
    }
    if (rs->state == RS_LISTENING || rdma_get_cm_event(rs->channel, &event) != 0) {
        return;
    }
    event_handle(rs, event);
    (void)rdma_ack_cm_event(event);
}

bool rs_is_decided(const struct rs *rs)
{
    return rs->state != RS_CONNECTING;
}

int rconnect(int fd, const struct sockaddr *address, socklen_t bytes)
{
    struct rs *rs = rs_enter(fd);
    struct sockaddr_storage copy = {0};
    if (rs == NULL) {
        return -1;
    }
    if (rs->datagrams != NULL && bytes <= sizeof copy) {
        memcpy(&copy, address, bytes);
        return left(rs, rs_datagrams_connect(rs, (struct sockaddr *)&copy));
    }
    if (rs->state > RS_BOUND || bytes > sizeof copy) {
        return left(rs, rs->state == RS_CONNECTED    ? -EISCONN
                        : rs->state == RS_CONNECTING ? -EALREADY
                        : rs->state == RS_FAILED     ? -rs->error
                                                     : -EINVAL);
    }
    memcpy(&copy, address, bytes);
    if (rdma_resolve_addr(rs->id, NULL, (struct sockaddr *)&copy, TIMEOUT_MS) != 0) {
        return left(rs, -errno);
    }
    rs->state = RS_CONNECTING;
    int status = rs_wait(rs, rs_is_decided, (rs->flags & O_NONBLOCK) != 0);
    status = status == -EAGAIN ? -EINPROGRESS : status == 0 && rs->state == RS_FAILED ? -rs->error : status;
    return left(rs, status);
}

// --- accepting ------------------------------------------------------------------------------------------------------

// It is connected when the peer has reported it, as the peer's queue pair accepts nothing before.
static int accept_on(struct rs *rs, const struct rs_hello *hello)
{
    struct rs_hello own;
    int status = rs_transport_make(rs);
    rs_hello_fill(rs, &own);
    struct rdma_conn_param param = {
        .private_data = &own, .private_data_len = sizeof own, .flow_control = 1, .rnr_retry_count = 7};
    if (status == 0 && rdma_accept(rs->id, &param) != 0) {
        status = -errno;
    }
    rs->peer = *hello;
    rs->state = RS_CONNECTING;
    return status;
}

// A socket number, or a negative errno.
static int accept_one(const struct rs *listener)
{
    struct rdma_cm_event *event;
    struct rs_hello hello;
    if (rdma_get_cm_event(listener->channel, &event) != 0) {
        return -errno;
    }
    if (event->event != RDMA_CM_EVENT_CONNECT_REQUEST || event->param.conn.private_data_len < sizeof hello) {
        (void)rdma_ack_cm_event(event);
        return -EAGAIN;
    }
    struct rdma_cm_id *id = event->id;
    memcpy(&hello, event->param.conn.private_data, sizeof hello);
    (void)rdma_ack_cm_event(event);
    struct rs *rs = stream_new(listener->domain, listener);
    if (rs == NULL || rdma_migrate_id(id, rs->channel) != 0) {
        int error = errno;
        (void)rdma_destroy_id(id);
        if (rs != NULL) {
            rs_free(rs);
        }
        return -error;
    }
    rs->id = id;
    int status = accept_on(rs, &hello);
    if (status != 0) {
        rs_free(rs);
        return status;
    }
    __atomic_store_n(&sockets[rs->fd], rs, __ATOMIC_RELEASE);
    return rs->fd;
}

int raccept(int fd, struct sockaddr *address, socklen_t *bytes)
{
    struct rs *rs = rs_enter(fd);
    if (rs == NULL) {
        return -1;
    }
    bool at_once = (rs->flags & O_NONBLOCK) != 0;
    int accepted = rs->datagrams != NULL ? -EOPNOTSUPP : rs->state == RS_LISTENING ? -EAGAIN : -EINVAL;
    while (accepted == -EAGAIN) {
        struct pollfd ready = {.fd = rs->fd, .events = POLLIN};
        rs_leave(rs);
        int found = poll(&ready, 1, at_once ? 0 : -1);
        (void)pthread_mutex_lock(&rs->lock);
        accepted = found > 0 ? accept_one(rs) : found < 0 ? -errno : -EAGAIN;
        if (at_once) {
            break;
        }
    }
    rs_leave(rs);
    if (accepted >= 0 && address != NULL) {
        (void)rgetpeername(accepted, address, bytes);
    }
    return accepted >= 0 ? accepted : cm_errno(accepted);
}

// --- the end --------------------------------------------------------------------------------------------------------

static bool control_is_free(const struct rs *rs)
{
    return rs->controls_free > 0 || rs->write_end;
}

int rshutdown(int fd, int how)
{
    struct rs *rs = rs_enter(fd);
    if (rs == NULL) {
        return -1;
    }
    if (rs->state != RS_CONNECTED) {
        return left(rs, -ENOTCONN);
    }
    if (rs->datagrams != NULL) {
        return left(rs, rs_wait(rs, rs_all_sent, false));
    }
    rs->read_shut = rs->read_shut || how != SHUT_WR;
    rs->read_end = rs->read_end || how != SHUT_WR;
    int status = 0;
    if (how != SHUT_RD && !rs->write_end) {
        (void)rs_wait(rs, control_is_free, false);
        status = rs->write_end ? 0 : rs_control_send(rs, how == SHUT_WR ? RS_CONTROL_SHUTDOWN : RS_CONTROL_DISCONNECT);
        (void)rs_wait(rs, rs_all_sent, false);
        rs->write_end = true;
    }
    return left(rs, status);
}

int rclose(int fd)
{
    struct rs *rs = rs_find(fd);
    if (rs == NULL) {
        return -1;
    }
    if (rs->state == RS_CONNECTED) {
        (void)rshutdown(fd, SHUT_RDWR);
        (void)(rs->datagrams == NULL && rdma_disconnect(rs->id));
    }
    __atomic_store_n(&sockets[fd], NULL, __ATOMIC_RELEASE);
    rs_free(rs);
    return 0;
}
