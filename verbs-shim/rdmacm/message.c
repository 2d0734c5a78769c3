// Sending messages of the connection manager. A connection of two identifiers is a connection of two sockets: each
// message is a record, in order, without loss. The end of the socket connection, however the process ends, stands for
// the REJ or DREQ that a kernel sends for a process that has ended.
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "verbs-shim/rdmacm/internal.h"

// Linux, drivers/infiniband/core/cma.c and cm.c: a request is sent 16 times (CMA_MAX_CM_RETRIES and the first), each
// time after twice the packet life time of the path (2^18 us * 4, qp.c) and the response time (CMA_CM_RESPONSE_TIMEOUT,
// 2^20 * 4 us), as rounded by cm_convert_to_ms.
enum { ATTEMPTS = 16 };
#define ATTEMPT_NS ((2 * 1024 + 4096) * UINT64_C(1000000))

void cm_message_begin(struct cm_id *id, struct cm_message *message, enum cm_kind kind)
{
    memset(message, 0, sizeof *message); // also clears the padding, which is sent too
    message->kind = (uint8_t)kind;
    message->node = cm_own_node();
    message->port = id->port;
    message->psn = id->psn;
    message->ece = id->ece;
    if (id->device != NULL) {
        message->lid = id->device->port.lid;
        message->gid = id->device->gid;
        message->mtu = (uint8_t)id->device->port.active_mtu;
        (void)snprintf(message->device, sizeof message->device, "%s", ibv_get_device_name(id->base.verbs->device));
    }
    if (id->base.qp != NULL) {
        message->qp_num = id->base.qp->qp_num;
        message->srq = id->base.qp->srq != NULL;
    }
}

int cm_message_send(struct cm_id *id, const struct cm_message *message)
{
    if (id->socket < 0) {
        return -ENOTCONN;
    }
    ssize_t sent = send(id->socket, message, sizeof *message, MSG_DONTWAIT | MSG_NOSIGNAL);
    return sent == (ssize_t)sizeof *message ? 0 : sent < 0 ? -errno : -EIO;
}

static void nobody_listens(struct cm_id *id)
{
    bool datagram = cm_is_datagram(id);
    id->state = CM_ENDED;
    (void)cm_event_put(id, datagram ? RDMA_CM_EVENT_UNREACHABLE : RDMA_CM_EVENT_REJECTED,
                       datagram ? CM_SIDR_NO_SERVICE : CM_REJ_NO_SERVICE);
}

void cm_request_try(struct cm_id *id)
{
    uint32_t node;
    (void)cm_address_where(&id->base.route.addr.dst_addr, &node);
    int status = cm_socket_connect(id, node, cm_address_port(&id->base.route.addr.dst_addr));
    if (status == 0) {
        status = cm_channel_watch(id);
        status = status == 0 ? cm_message_send(id, &id->own) : status;
    }
    if (status == 0) {
        cm_deadline_set(id, ATTEMPTS * ATTEMPT_NS);
    } else if (status == -EAGAIN && ++id->attempts < ATTEMPTS) {
        cm_deadline_set(id, ATTEMPT_NS); // the listener's queue is full: treated as a lost request
    } else if (status == -EAGAIN) {
        id->state = CM_ENDED;
        (void)cm_event_put(id, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
    } else {
        cm_socket_close(id);
        nobody_listens(id);
    }
}

void cm_answer_await(struct cm_id *id)
{
    cm_deadline_set(id, ATTEMPTS * ATTEMPT_NS);
}
