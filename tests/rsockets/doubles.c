#include "doubles.h"

#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "tests/shim/test.h"
#include "verbs-shim/attach/attach.h"

struct doubles doubles;

#define UNREACHED() FAIL("%s is called", __func__)

// --- a connected stream ---------------------------------------------------------------------------------------------

static struct ibv_context verbs;
static struct ibv_cq queue = {.context = &verbs};
static struct ibv_qp queue_pair = {.context = &verbs};
static struct rdma_cm_id identifier = {.qp = &queue_pair};

static int poll_cq(struct ibv_cq *cq, int max, struct ibv_wc *wc)
{
    (void)cq;
    bool comes = ++doubles.polls == doubles.comes_at && max > 0;
    if (comes) { // the operation is in the upper bits, 0 for data
        *wc = (struct ibv_wc){.opcode = IBV_WC_RECV_RDMA_WITH_IMM, .imm_data = htobe32(doubles.bytes)};
    }
    return comes;
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    (void)qp;
    (void)wr;
    (void)bad;
    return 0;
}

struct rs *doubles_connected(const char *received)
{
    doubles = (struct doubles){0};
    verbs.ops.poll_cq = poll_cq;
    verbs.ops.post_recv = post_recv;
    int fd = rsocket(AF_INET, SOCK_STREAM, 0);
    struct rs *rs = rs_find(fd);
    EXPECT_NOT_NULL(rs);
    rs->state = RS_CONNECTED;
    rs->cq = &queue;
    rs->rq_size = DOUBLE_RECEIVES;
    rs->messages = calloc(DOUBLE_RECEIVES + RS_EXTRA_RECEIVES, sizeof *rs->messages);
    rs->receive_buffer = calloc(1, (size_t)rs->receive_bytes);
    memcpy(rs->receive_buffer, received, strlen(received));
    rs->granted = DOUBLE_RECEIVES; // no grant is due
    return rs;
}

void doubles_close(struct rs *rs)
{
    free(rs->messages);
    free(rs->receive_buffer);
    rs->state = RS_NEW;
    EXPECT_EQ(rclose(rs->fd), 0);
}

// --- the connection manager -----------------------------------------------------------------------------------------

int cm_errno(int status)
{
    errno = status < 0 ? -status : errno;
    return status < 0 ? -1 : 0;
}

uint64_t cm_now_ns(void)
{
    static uint64_t now_ns;
    return now_ns += 1000;
}

struct rdma_event_channel *rdma_create_event_channel(void)
{
    struct rdma_event_channel *channel = malloc(sizeof *channel);
    channel->fd = eventfd(0, EFD_CLOEXEC);
    return channel;
}

void rdma_destroy_event_channel(struct rdma_event_channel *channel)
{
    (void)close(channel->fd);
    free(channel);
}

int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id_out, void *context,
                   enum rdma_port_space ps)
{
    (void)channel;
    (void)context;
    (void)ps;
    *id_out = &identifier;
    return 0;
}

int rdma_destroy_id(struct rdma_cm_id *id)
{
    (void)id;
    return 0;
}

int rdma_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **event_out)
{
    static struct rdma_cm_event event = {.event = RDMA_CM_EVENT_DISCONNECTED};
    uint64_t count;
    EXPECT_EQ(read(channel->fd, &count, sizeof count), sizeof count);
    *event_out = &event;
    return 0;
}

int rdma_ack_cm_event(struct rdma_cm_event *event)
{
    (void)event;
    return 0;
}

#define UNREACHED_CALL(name_, ...)                                                                                     \
    int name_(__VA_ARGS__)                                                                                             \
    {                                                                                                                  \
        UNREACHED();                                                                                                   \
        return -1;                                                                                                     \
    }
// None of the doubles below reads its arguments.
#pragma GCC diagnostic ignored "-Wunused-parameter"
UNREACHED_CALL(rdma_bind_addr, struct rdma_cm_id *id, struct sockaddr *address)
UNREACHED_CALL(rdma_listen, struct rdma_cm_id *id, int backlog)
UNREACHED_CALL(rdma_resolve_addr, struct rdma_cm_id *id, struct sockaddr *source, struct sockaddr *to, int timeout_ms)
UNREACHED_CALL(rdma_resolve_route, struct rdma_cm_id *id, int timeout_ms)
UNREACHED_CALL(rdma_connect, struct rdma_cm_id *id, struct rdma_conn_param *param)
UNREACHED_CALL(rdma_accept, struct rdma_cm_id *id, struct rdma_conn_param *param)
UNREACHED_CALL(rdma_disconnect, struct rdma_cm_id *id)
UNREACHED_CALL(rdma_migrate_id, struct rdma_cm_id *id, struct rdma_event_channel *channel)

// --- verbs, the transport, datagrams, the simulator -----------------------------------------------------------------

UNREACHED_CALL(ibv_get_cq_event, struct ibv_comp_channel *channel, struct ibv_cq **cq, void **context)
void ibv_ack_cq_events(struct ibv_cq *cq, unsigned count)
{
    UNREACHED();
}

UNREACHED_CALL(rs_transport_make, struct rs *rs)
void rs_transport_end(struct rs *rs)
{
}

int rs_receive_post(const struct rs *rs)
{
    struct ibv_recv_wr wr = {0}, *bad;
    return -ibv_post_recv(rs->id->qp, &wr, &bad);
}

void rs_hello_fill(const struct rs *rs, struct rs_hello *hello)
{
    UNREACHED();
}

void rs_connected(struct rs *rs)
{
    UNREACHED();
}

UNREACHED_CALL(rs_datagrams_make, struct rs *rs)
void rs_datagrams_end(struct rs *rs)
{
}

UNREACHED_CALL(rs_datagrams_bind, struct rs *rs, const struct sockaddr *address)
UNREACHED_CALL(rs_datagrams_connect, struct rs *rs, const struct sockaddr *address)
void rs_datagrams_completed(struct rs *rs, const struct ibv_wc *wc)
{
    UNREACHED();
}

void rs_datagrams_met(struct rs *rs)
{
    UNREACHED();
}

bool rs_datagrams_can_send(const struct rs *rs)
{
    return false;
}

bool rs_datagrams_can_receive(const struct rs *rs)
{
    return false;
}

ssize_t rs_datagram_send(struct rs *rs, const void *data, size_t bytes, int flags, const struct sockaddr *to)
{
    UNREACHED();
    return -1;
}

ssize_t rs_datagram_receive(struct rs *rs, void *buffer, size_t bytes, int flags, struct sockaddr *from,
                            socklen_t *from_bytes)
{
    UNREACHED();
    return -1;
}

UNREACHED_CALL(rgetpeername, int fd, struct sockaddr *address, socklen_t *bytes)

struct backend_process *backend_current(void)
{
    return NULL;
}
