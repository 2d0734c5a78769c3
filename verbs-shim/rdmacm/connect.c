// Listen, connect, accept, reject, disconnect.
#include <string.h>

#include "verbs-shim/rdmacm/internal.h"

enum { BACKLOG_MAX = 1024 }; // Linux, net.rdma_ucm.max_backlog's default
enum { RETRIES_MAX = 7 };    // three bits of a REQ

// IBA 12.6.5, 12.6.7, 12.6.8, 12.11: size of the whole PrivateData. In requests of the IP port spaces rdma_cm itself
// uses 36 bytes (IBA annex A11).
unsigned cm_private_room(enum rdma_port_space ps, enum cm_kind kind)
{
    unsigned own = ps == RDMA_PS_IB ? 0 : 36;
    switch (kind) {
    case CM_REQ:
        return 92 - own;
    case CM_REP:
        return 196;
    case CM_REJ:
        return 148;
    case CM_SIDR_REQ:
        return 216 - own;
    case CM_SIDR_REP:
        return 136;
    case CM_RTU:
    case CM_DREQ:
    case CM_DREP:
        break;
    }
    return 0;
}

static int private_set(struct cm_id *id, struct cm_message *message, const void *data, uint8_t bytes)
{
    if (bytes > cm_private_room(id->base.ps, message->kind)) {
        return -EINVAL;
    }
    message->private_bytes = bytes;
    if (bytes > 0 && data != NULL) {
        memcpy(message->private_data, data, bytes);
    }
    return 0;
}

static uint8_t at_most(int value, int limit)
{
    return (uint8_t)(value < limit ? value : limit);
}

// RDMA_MAX_RESP_RES and RDMA_MAX_INIT_DEPTH mean the device's limits.
static int depth_choose(uint8_t asked, int limit, int otherwise, uint8_t *depth_out)
{
    int most = at_most(limit, 0xff - 1);
    if (asked != 0xff && asked > most) {
        return -EINVAL;
    }
    *depth_out = asked != 0xff ? asked : at_most(otherwise, most);
    return 0;
}

static int depths_choose(struct cm_id *id, const struct rdma_conn_param *param, int responder, int initiator)
{
    const struct ibv_device_attr *attr = &id->device->attr;
    int status = depth_choose(param->responder_resources, attr->max_qp_rd_atom, responder, &id->responder_resources);
    return status != 0
               ? status
               : depth_choose(param->initiator_depth, attr->max_qp_init_rd_atom, initiator, &id->initiator_depth);
}

static const struct rdma_conn_param defaults = {.responder_resources = RDMA_MAX_RESP_RES,
                                                .initiator_depth = RDMA_MAX_INIT_DEPTH,
                                                .retry_count = RETRIES_MAX,
                                                .rnr_retry_count = RETRIES_MAX};

// Fills in the program's part of a REQ or REP.
static int request_fill(struct cm_id *id, struct cm_message *message, const struct rdma_conn_param *param)
{
    if (id->base.qp == NULL) {
        message->qp_num = param->qp_num;
        message->srq = param->srq;
    }
    message->responder_resources = id->responder_resources;
    message->initiator_depth = id->initiator_depth;
    message->flow_control = param->flow_control;
    message->retry_count = at_most(param->retry_count, RETRIES_MAX);
    message->rnr_retry_count = at_most(param->rnr_retry_count, RETRIES_MAX);
    message->qkey = RDMA_UDP_QKEY;
    return private_set(id, message, param->private_data, param->private_data_len);
}

// --- the active side ------------------------------------------------------------------------------------------------

static int connect_begin(struct cm_id *id, const struct rdma_conn_param *param)
{
    if (id->state != CM_ROUTED) {
        return -EINVAL;
    }
    bool datagram = cm_is_datagram(id);
    int status = datagram ? 0 : depths_choose(id, param, 0xff, 0xff);
    cm_message_begin(id, &id->own, datagram ? CM_SIDR_REQ : CM_REQ);
    status = status != 0 ? status : request_fill(id, &id->own, param);
    if (status == 0) {
        id->state = CM_CONNECTING;
        cm_request_try(id);
    }
    return status;
}

int rdma_connect(struct rdma_cm_id *base, struct rdma_conn_param *param)
{
    int status;
    {
        CM_ENTER();
        status = connect_begin(cm_id_of(base), param != NULL ? param : &defaults);
    }
    return status != 0 ? cm_errno(status) : cm_complete(cm_id_of(base));
}

int rdma_establish(struct rdma_cm_id *base)
{
    CM_ENTER();
    struct cm_id *id = cm_id_of(base);
    if (base->qp != NULL || id->state != CM_ANSWERED) {
        return cm_errno(-EINVAL);
    }
    struct cm_message message;
    cm_message_begin(id, &message, CM_RTU);
    id->state = CM_ESTABLISHED;
    (void)cm_message_send(id, &message); // if it fails, the end of the connection is the next event
    return 0;
}

// --- the passive side -----------------------------------------------------------------------------------------------

int rdma_listen(struct rdma_cm_id *base, int backlog)
{
    CM_ENTER();
    struct cm_id *id = cm_id_of(base);
    int status = id->state == CM_IDLE ? cm_bind_any(id) : 0;
    if (status == 0 && id->state != CM_BOUND) {
        status = -EINVAL;
    }
    status = status != 0 ? status
                         : cm_socket_listen(id, backlog > 0 && backlog < BACKLOG_MAX ? backlog - 1 : BACKLOG_MAX - 1);
    if (status == 0) {
        id->state = CM_LISTENING;
        status = cm_channel_watch(id);
    }
    return cm_errno(status);
}

static int accept_datagram(struct cm_id *id, const struct rdma_conn_param *param)
{
    struct cm_message message;
    cm_message_begin(id, &message, CM_SIDR_REP);
    message.reason = CM_SIDR_VALID;
    int status = request_fill(id, &message, param);
    if (status == 0) {
        (void)cm_message_send(id, &message);
        cm_socket_close(id);
        id->state = CM_ENDED;
    }
    return status;
}

static int accept_begin(struct cm_id *id, const struct rdma_conn_param *param)
{
    if (id->state != CM_REQUESTED) {
        return -EINVAL;
    }
    if (cm_is_datagram(id)) {
        return accept_datagram(id, param);
    }
    int status = depths_choose(id, param, id->responder_resources, id->initiator_depth);
    cm_message_begin(id, &id->own, CM_REP);
    status = status != 0 ? status : request_fill(id, &id->own, param);
    if (status == 0 && id->base.qp != NULL) {
        status = cm_qp_connect(id, id->responder_resources, id->initiator_depth);
    }
    if (status == 0) {
        id->state = CM_ACCEPTED;
        (void)cm_message_send(id, &id->own);
        cm_answer_await(id);
    }
    return status;
}

int rdma_accept(struct rdma_cm_id *base, struct rdma_conn_param *param)
{
    int status;
    struct cm_id *id = cm_id_of(base);
    {
        CM_ENTER();
        status = accept_begin(id, param != NULL ? param : &defaults);
    }
    return status != 0 || cm_is_datagram(id) ? cm_errno(status) : cm_complete(id);
}

static int reject(struct cm_id *id, const void *private_data, uint8_t bytes)
{
    if (id->state != CM_REQUESTED && id->state != CM_ANSWERED) {
        return -EINVAL;
    }
    struct cm_message message;
    bool datagram = cm_is_datagram(id);
    cm_message_begin(id, &message, datagram ? CM_SIDR_REP : CM_REJ);
    message.reason = datagram ? CM_SIDR_REJECTED : CM_REJ_CONSUMER;
    int status = private_set(id, &message, private_data, bytes);
    if (status == 0) {
        (void)cm_message_send(id, &message);
        cm_socket_close(id);
        id->state = CM_ENDED;
    }
    return status;
}

int rdma_reject(struct rdma_cm_id *base, const void *private_data, uint8_t bytes)
{
    CM_ENTER();
    return cm_errno(reject(cm_id_of(base), private_data, bytes));
}

// Only the reason differs (IBA 12.6.7.2: 35, vendor option not supported), and the modelled peers have no options.
int rdma_reject_ece(struct rdma_cm_id *base, const void *private_data, uint8_t bytes)
{
    return rdma_reject(base, private_data, bytes);
}

// Data has arrived before the RTU, so the connection is established.
int rdma_notify(struct rdma_cm_id *base, enum ibv_event_type event)
{
    CM_ENTER();
    struct cm_id *id = cm_id_of(base);
    if (event != IBV_EVENT_COMM_EST || (id->state != CM_ACCEPTED && id->state != CM_ESTABLISHED)) {
        return cm_errno(-EINVAL);
    }
    if (id->state == CM_ESTABLISHED) {
        return cm_errno(-EISCONN);
    }
    cm_deadline_set(id, 0);
    id->state = CM_ESTABLISHED;
    (void)cm_event_put(id, RDMA_CM_EVENT_ESTABLISHED, 0);
    return 0;
}

// --- disconnecting --------------------------------------------------------------------------------------------------

// Returns a negative errno, or 1: an event will follow.
static int disconnect(struct cm_id *id)
{
    struct cm_message message;
    bool connected = id->state == CM_ACCEPTED || id->state == CM_ANSWERED || id->state == CM_ESTABLISHED;
    if (cm_is_datagram(id) || (!connected && id->state < CM_PARTING)) {
        return -EINVAL;
    }
    int status = cm_qp_error(id);
    if (status == 0 && connected) {
        cm_message_begin(id, &message, CM_DREQ);
        (void)cm_message_send(id, &message);
        id->state = CM_PARTING;
        cm_answer_await(id);
        return 1;
    }
    if (status == 0 && id->state == CM_PARTED) {
        cm_message_begin(id, &message, CM_DREP);
        (void)cm_message_send(id, &message);
        cm_socket_close(id);
        id->state = CM_ENDED;
    }
    return status;
}

int rdma_disconnect(struct rdma_cm_id *base)
{
    int status;
    {
        CM_ENTER();
        status = disconnect(cm_id_of(base));
    }
    return status == 1 ? cm_complete(cm_id_of(base)) : cm_errno(status);
}
