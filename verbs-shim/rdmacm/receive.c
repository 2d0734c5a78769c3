// Received messages of the connection manager: for each state of an identifier, the effect of a message and the event
// for the program. Also timeouts, and the loss of the peer.
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "verbs-shim/rdmacm/internal.h"

// The private data in an event always has the full size of the message's field (IBA 12.6 and 12.11), whatever was sent.
static uint8_t private_bytes_of(const struct cm_id *id, enum cm_kind kind)
{
    return (uint8_t)cm_private_room(id->base.ps, kind);
}

static struct cm_event *event_put(struct cm_id *id, enum rdma_cm_event_type type, int status,
                                  const struct cm_message *message)
{
    struct cm_event *event = cm_event_put(id, type, status);
    if (event == NULL || message == NULL) {
        return event;
    }
    memcpy(event->private_data, message->private_data, sizeof event->private_data);
    uint8_t bytes = private_bytes_of(id, message->kind);
    if (cm_is_datagram(id)) {
        event->base.param.ud.private_data = event->private_data;
        event->base.param.ud.private_data_len = bytes;
        return event;
    }
    event->base.param.conn = (struct rdma_conn_param){
        .private_data = event->private_data,
        .private_data_len = bytes,
        .responder_resources = message->initiator_depth, // from the receiver's point of view
        .initiator_depth = message->responder_resources,
        .flow_control = message->flow_control,
        .retry_count = message->retry_count,
        .rnr_retry_count = message->rnr_retry_count,
        .srq = message->srq,
        .qp_num = message->qp_num,
    };
    return event;
}

static void peer_learned(struct cm_id *id, const struct cm_message *message)
{
    id->peer = *message;
    id->peer_known = true;
    id->base.route.addr.addr.ibaddr.dgid = message->gid;
    id->path_rec.dgid = message->gid;
    id->path_rec.dlid = htobe16(message->lid);
}

static void ended(struct cm_id *id)
{
    cm_deadline_set(id, 0);
    cm_socket_close(id);
    id->state = CM_ENDED;
}

// --- requests -------------------------------------------------------------------------------------------------------

static void peer_came(struct cm_id *listener)
{
    int socket = accept4(listener->socket, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (socket < 0) {
        return;
    }
    struct cm_id *id =
        cm_id_new(cm_channel_of(listener), listener->base.context, listener->base.ps, listener->base.qp_type);
    if (id == NULL) {
        (void)close(socket);
        return;
    }
    id->state = CM_INCOMING;
    id->listener = listener;
    id->socket = socket;
    if (cm_channel_watch(id) != 0) {
        cm_id_free(id);
    }
}

static bool bound_as_asked(struct cm_id *id, const struct cm_message *message)
{
    struct cm_device *device = cm_device_open(message->device);
    if (device == NULL) {
        return false;
    }
    cm_bind_device(id, device);
    id->port = id->listener->port;
    cm_address_set(&id->base.route.addr.src_storage, AF_INET, false, cm_own_node(), id->port);
    cm_address_set(&id->base.route.addr.dst_storage, AF_INET, false, message->node, message->port);
    cm_route_set(id, message->node);
    return true;
}

// The new identifier of a synchronous listener is synchronous.
static bool channel_given(struct cm_id *id)
{
    if (!id->listener->sync) {
        return true;
    }
    struct cm_channel *channel = cm_channel_new();
    if (channel == NULL) {
        return false;
    }
    cm_channel_unwatch(id);
    id->base.channel = &channel->base;
    id->sync = true;
    return cm_channel_watch(id) == 0;
}

static void requested(struct cm_id *id, const struct cm_message *message)
{
    bool fits = (message->kind == CM_SIDR_REQ) == cm_is_datagram(id);
    if (!fits || !bound_as_asked(id, message) || !channel_given(id)) {
        cm_id_free(id);
        return;
    }
    struct cm_id *listener = id->listener;
    peer_learned(id, message);
    id->responder_resources = message->initiator_depth;
    id->initiator_depth = message->responder_resources;
    id->state = CM_REQUESTED;
    id->listener = NULL;
    struct cm_event *event = event_put(listener, RDMA_CM_EVENT_CONNECT_REQUEST, 0, message);
    if (event == NULL) {
        cm_id_free(id);
        return;
    }
    event->base.id = &id->base;
    event->base.listen_id = &listener->base;
}

// --- answers --------------------------------------------------------------------------------------------------------

static void reply(struct cm_id *id, enum cm_kind kind, uint8_t reason)
{
    struct cm_message message;
    cm_message_begin(id, &message, kind);
    message.reason = reason;
    (void)cm_message_send(id, &message);
}

static void answered(struct cm_id *id, const struct cm_message *message)
{
    peer_learned(id, message);
    id->responder_resources = message->initiator_depth;
    id->initiator_depth = message->responder_resources;
    cm_deadline_set(id, 0);
    if (id->base.qp == NULL) {
        id->state = CM_ANSWERED;
        (void)event_put(id, RDMA_CM_EVENT_CONNECT_RESPONSE, 0, message);
        return;
    }
    int status = cm_qp_connect(id, id->responder_resources, id->initiator_depth);
    if (status == 0) {
        id->state = CM_ESTABLISHED;
        reply(id, CM_RTU, 0);
        (void)event_put(id, RDMA_CM_EVENT_ESTABLISHED, 0, message);
    } else {
        (void)cm_qp_error(id);
        reply(id, CM_REJ, CM_REJ_CONSUMER);
        ended(id);
        (void)event_put(id, RDMA_CM_EVENT_CONNECT_ERROR, status, NULL);
    }
}

static void refused(struct cm_id *id, const struct cm_message *message)
{
    ended(id);
    (void)event_put(id, RDMA_CM_EVENT_REJECTED, message->reason, message);
}

static void found(struct cm_id *id, const struct cm_message *message)
{
    ended(id);
    peer_learned(id, message);
    bool valid = message->reason == CM_SIDR_VALID;
    struct cm_event *event =
        event_put(id, valid ? RDMA_CM_EVENT_ESTABLISHED : RDMA_CM_EVENT_UNREACHABLE, message->reason, message);
    if (event != NULL && valid) {
        event->base.param.ud.ah_attr = (struct ibv_ah_attr){.dlid = message->lid, .port_num = CM_PORT};
        event->base.param.ud.qp_num = message->qp_num;
        event->base.param.ud.qkey = message->qkey;
    }
}

static void established(struct cm_id *id, const struct cm_message *message)
{
    (void)message;
    cm_deadline_set(id, 0);
    id->state = CM_ESTABLISHED;
    (void)event_put(id, RDMA_CM_EVENT_ESTABLISHED, 0, NULL);
}

static void parted(struct cm_id *id, const struct cm_message *message)
{
    (void)message;
    id->state = CM_PARTED; // the DREP is sent when the program disconnects as well
    (void)event_put(id, RDMA_CM_EVENT_DISCONNECTED, 0, NULL);
}

static void parted_both(struct cm_id *id, const struct cm_message *message)
{
    (void)message;
    ended(id);
    (void)event_put(id, RDMA_CM_EVENT_DISCONNECTED, 0, NULL);
}

// All other combinations of state and message have no effect.
static const struct {
    enum cm_state state;
    enum cm_kind kind;
    void (*does)(struct cm_id *id, const struct cm_message *message);
} transitions[] = {
    {CM_INCOMING, CM_REQ, requested},   {CM_INCOMING, CM_SIDR_REQ, requested}, {CM_CONNECTING, CM_REP, answered},
    {CM_CONNECTING, CM_REJ, refused},   {CM_CONNECTING, CM_SIDR_REP, found},   {CM_ACCEPTED, CM_RTU, established},
    {CM_ACCEPTED, CM_REJ, refused},     {CM_ACCEPTED, CM_DREQ, parted},        {CM_ESTABLISHED, CM_DREQ, parted},
    {CM_PARTING, CM_DREQ, parted_both}, {CM_PARTING, CM_DREP, parted_both},
};

// --- loss of the peer -----------------------------------------------------------------------------------------------

static void gone(struct cm_id *id)
{
    enum cm_state state = id->state;
    if (state == CM_INCOMING) {
        cm_id_free(id);
        return;
    }
    ended(id);
    if (state == CM_ESTABLISHED || state == CM_PARTING) {
        id->state = CM_PARTED;
        (void)event_put(id, RDMA_CM_EVENT_DISCONNECTED, 0, NULL);
    } else if (cm_is_datagram(id)) {
        if (state == CM_CONNECTING) {
            (void)event_put(id, RDMA_CM_EVENT_UNREACHABLE, CM_SIDR_REJECTED, NULL);
        }
    } else if (state != CM_PARTED) {
        (void)event_put(id, RDMA_CM_EVENT_REJECTED, CM_REJ_CONSUMER, NULL);
    }
}

void cm_socket_ready(struct cm_id *id)
{
    struct cm_message message;
    if (id->state == CM_LISTENING) {
        peer_came(id);
        return;
    }
    ssize_t got = recv(id->socket, &message, sizeof message, MSG_DONTWAIT);
    if (got < 0 && errno == ECONNRESET) { // the peer left data unread; what it sent must be read first
        got = recv(id->socket, &message, sizeof message, MSG_DONTWAIT);
    }
    if (got != (ssize_t)sizeof message) {
        if (got >= 0 || (errno != EAGAIN && errno != EINTR)) {
            gone(id);
        }
        return;
    }
    message.device[sizeof message.device - 1] = '\0';
    for (size_t i = 0; i < sizeof transitions / sizeof transitions[0]; i++) {
        if (transitions[i].state == id->state && transitions[i].kind == message.kind) {
            transitions[i].does(id, &message);
            return;
        }
    }
}

void cm_deadline_passed(struct cm_id *id)
{
    enum cm_state state = id->state;
    if (state == CM_CONNECTING && id->socket < 0) {
        cm_request_try(id);
    } else if (state == CM_CONNECTING || state == CM_ACCEPTED) {
        ended(id);
        (void)event_put(id, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT, NULL);
    } else if (state == CM_PARTING) {
        ended(id);
        (void)event_put(id, RDMA_CM_EVENT_DISCONNECTED, -ETIMEDOUT, NULL);
    } else if (state == CM_ADDRESS_SOUGHT || state == CM_ROUTE_SOUGHT) {
        cm_resolved(id);
    }
}
