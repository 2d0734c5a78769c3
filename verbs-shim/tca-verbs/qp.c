// Queue pairs: creation, transitions, errors, destruction.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "verbs-shim/tca-verbs/internal.h"

size_t tca_verbs_qp_bytes(const struct ibv_qp_cap *cap)
{
    return sizeof(struct tcav_qp) + cap->max_send_wr * sizeof(struct tcav_request) +
           cap->max_recv_wr * sizeof(struct tcav_receive);
}

void tcav_qp_activate(struct tcav_qp *qp)
{
    struct tcav_qp **end = &qp->pd->context->active;
    if (qp->active) {
        return;
    }
    while (*end != NULL) {
        end = &(*end)->next_active;
    }
    *end = qp;
    qp->next_active = NULL;
    qp->active = true;
}

static void deactivate(struct tcav_qp *qp)
{
    struct tcav_qp **link = &qp->pd->context->active;
    while (qp->active && *link != qp) {
        link = &(*link)->next_active;
    }
    if (qp->active) {
        *link = qp->next_active;
        qp->active = false;
    }
}

// --- create and destroy ---------------------------------------------------------------------------------------------

static int number_take(struct tcav_context *context, struct tcav_qp *qp)
{
    for (unsigned i = 0; i < TCAV_QPS_MAX; i++) {
        uint32_t serial = context->qp_serial++;
        if (context->table[serial % TCAV_QPS_MAX] == NULL) {
            // A number is unique among live queue pairs, and comes again only after 2^24 others. 0 and 1 are reserved.
            qp->number = (serial + TCAV_QPS_MAX) & TCAV_NUMBER_MASK;
            context->table[serial % TCAV_QPS_MAX] = qp;
            return 0;
        }
    }
    return -ENOMEM;
}

static void caps_settle(struct ibv_qp_cap *cap, bool shared)
{
    cap->max_send_wr = cap->max_send_wr != 0 ? cap->max_send_wr : 1;
    cap->max_send_sge = TCAV_SGES_MAX;
    cap->max_recv_sge = shared ? 0 : TCAV_SGES_MAX;
    cap->max_recv_wr = shared ? 0 : cap->max_recv_wr;
    cap->max_inline_data = TCAV_INLINE_BYTES;
}

int tcav_qp_create(void *object, struct ibverbs_qp_create *create, void **qp_out, uint32_t *number_out)
{
    struct tcav_pd *pd = object;
    struct tcav_context *context = pd->context;
    tcav_pay(context, BACKEND_COST_CALL, 1);
    if (create->type != IBV_QPT_RC && create->type != IBV_QPT_UD) {
        return -EOPNOTSUPP;
    }
    int error = tcav_channels_open(context);
    if (error == 0 && create->type == IBV_QPT_UD) {
        error = tcav_datagrams_begin(context);
    }
    if (error != 0) {
        return error;
    }
    caps_settle(&create->cap, create->srq != NULL);
    struct tcav_qp *qp = calloc(1, sizeof *qp);
    struct tcav_request *requests = calloc(create->cap.max_send_wr, sizeof *requests);
    if (qp == NULL || requests == NULL || tcav_rq_init(&qp->rq, create->cap.max_recv_wr) != 0 ||
        number_take(context, qp) != 0) {
        free(qp != NULL ? qp->rq.wrs : NULL);
        free(requests);
        free(qp);
        return -ENOMEM;
    }
    qp->next = context->qps;
    qp->pd = pd;
    qp->type = create->type;
    qp->user = create->user;
    qp->send_cq = create->send_cq;
    qp->recv_cq = create->recv_cq;
    qp->srq = create->srq;
    qp->cap = create->cap;
    qp->all_signaled = create->all_signaled;
    qp->requests = requests;
    qp->size = create->cap.max_send_wr;
    context->qps = qp;
    pd->users++;
    qp->send_cq->users++;
    qp->recv_cq->users++;
    if (qp->srq != NULL) {
        qp->srq->users++;
    }
    *qp_out = qp;
    *number_out = qp->number;
    return 0;
}

static bool has_to_send(const struct tcav_qp *qp)
{
    bool requests = qp->state == IBV_QPS_RTS && qp->resume_ps == 0 && qp->count > qp->sent;
    return requests || qp->answer_due || qp->job_count != 0;
}

// What was posted before a queue pair is stopped leaves, as from an adapter, whose firmware takes longer for that; and the
// peer waits for replies.
static void last_ones_leave(struct tcav_qp *qp)
{
    struct tcav_context *context = qp->pd->context;
    const uint64_t timeout_ps = 100000 * TCAV_NS;
    if (context->abandoned || qp->peer == NULL || !has_to_send(qp)) {
        return;
    }
    uint64_t start_ps = tcav_now_ps(context);
    while (has_to_send(qp) && qp->peer->state != TCAV_PEER_GONE && tcav_now_ps(context) - start_ps < timeout_ps) {
        (void)tcav_progress(context);
    }
}

static void quiesce(struct tcav_qp *qp)
{
    struct tcav_context *context = qp->pd->context;
    last_ones_leave(qp);
    tcav_grant_abandon(qp);
    tcav_move_cancel(context, &qp->request_move);
    tcav_move_cancel(context, &qp->job_move);
    tcav_grant_step(qp);
    tcav_answer_drop(qp);
    deactivate(qp);
}

int tcav_qp_destroy(void *object)
{
    struct tcav_qp *qp = object;
    struct tcav_context *context = qp->pd->context;
    tcav_pay(context, BACKEND_COST_CALL, 1);
    quiesce(qp);
    struct tcav_qp **link = &context->qps;
    while (*link != qp) {
        link = &(*link)->next;
    }
    *link = qp->next;
    context->table[qp->number % TCAV_QPS_MAX] = NULL;
    tcav_cq_purge(qp->send_cq, qp->number);
    tcav_cq_purge(qp->recv_cq, qp->number);
    tcav_events_purge(context, qp->user);
    qp->pd->users--;
    qp->send_cq->users--;
    qp->recv_cq->users--;
    if (qp->srq != NULL) {
        qp->srq->users--;
    }
    free(qp->requests);
    free(qp->rq.wrs);
    free(qp);
    return 0;
}

void tcav_qp_outstanding(void *object, unsigned *sends_out, unsigned *receives_out)
{
    const struct tcav_qp *qp = object;
    *sends_out = qp->count;
    *receives_out = qp->rq.count + qp->inbound.has_receive;
}

bool tcav_qp_failure(void *object, struct ibverbs_failure *failure_out)
{
    const struct tcav_qp *qp = object;
    *failure_out = qp->failure;
    return qp->has_failure;
}

// --- errors ---------------------------------------------------------------------------------------------------------

static void flushed(struct tcav_qp *qp, struct tcav_cq *cq, enum ibv_wc_opcode opcode, uint64_t id)
{
    const struct ibv_wc wc = {.wr_id = id, .status = IBV_WC_WR_FLUSH_ERR, .opcode = opcode, .qp_num = qp->number};
    tcav_cq_push(cq, &wc, true);
}

void tcav_qp_fail(struct tcav_qp *qp)
{
    bool first = qp->state != IBV_QPS_ERR;
    tcav_grant_abandon(qp);
    qp->state = IBV_QPS_ERR;
    qp->resume_ps = 0;
    if (qp->inbound.has_receive) {
        qp->inbound.has_receive = false;
        flushed(qp, qp->recv_cq, IBV_WC_RECV, qp->inbound.receive.id);
    }
    qp->inbound.active = false;
    for (; qp->count != 0; qp->count--) {
        flushed(qp, qp->send_cq, IBV_WC_SEND, tcav_request_at(qp, 0)->id);
        qp->head = (qp->head + 1) % qp->size;
    }
    qp->sent = qp->reads_out = 0;
    for (; qp->rq.count != 0; qp->rq.count--) {
        flushed(qp, qp->recv_cq, IBV_WC_RECV, qp->rq.wrs[qp->rq.head].id);
        qp->rq.head = (qp->rq.head + 1) % qp->rq.size;
    }
    if (first && qp->srq != NULL) {
        tcav_event_async(qp->pd->context, IBV_EVENT_QP_LAST_WQE_REACHED, qp->user); // IBA 11.6.3.1
    }
}

static enum hca_fault fault_of(const struct tcav_qp *qp, const struct tcav_request *request, enum ibv_wc_status status)
{
    if (status == IBV_WC_LOC_PROT_ERR) {
        bool writes = tcav_send_is_read(request);
        return tcav_list_fault(qp->pd, request->sge, request->sges, writes ? (unsigned)IBV_ACCESS_LOCAL_WRITE : 0);
    }
    if (status == IBV_WC_RETRY_EXC_ERR) {
        return HCA_FAULT_NO_ANSWER;
    }
    return status == IBV_WC_RNR_RETRY_EXC_ERR ? HCA_FAULT_NO_RECEIVE : HCA_FAULT_REQUEST;
}

static void failure_note(struct tcav_qp *qp, const struct tcav_request *request)
{
    bool has_list = request->sges > 0 && (request->flags & IBV_SEND_INLINE) == 0;
    qp->has_failure = true;
    qp->failure = (struct ibverbs_failure){.opcode = tcav_send_opcode(request),
                                           .bytes = request->length,
                                           .remote_address = request->remote,
                                           .rkey = request->key,
                                           .lkey = has_list ? request->sge[0].lkey : 0,
                                           .address = has_list ? request->sge[0].addr : 0,
                                           .first_bytes = has_list ? request->sge[0].length : 0,
                                           .segments = has_list ? request->sges : 0};
}

void tcav_qp_fail_request(struct tcav_qp *qp, struct tcav_request *request, enum ibv_wc_status status,
                          enum hca_fault fault)
{
    const struct ibv_wc wc = {.wr_id = request->id,
                              .status = status,
                              .opcode = tcav_send_opcode(request),
                              .qp_num = qp->number,
                              .vendor_err = fault != HCA_FAULT_NONE ? fault : fault_of(qp, request, status)};
    failure_note(qp, request);
    tcav_grant_abandon(qp);
    // Requests before it were never answered.
    while (tcav_request_at(qp, 0) != request) {
        flushed(qp, qp->send_cq, IBV_WC_SEND, tcav_request_at(qp, 0)->id);
        qp->head = (qp->head + 1) % qp->size;
        qp->count--;
    }
    qp->head = (qp->head + 1) % qp->size;
    qp->count--;
    tcav_cq_push(qp->send_cq, &wc, true);
    tcav_qp_fail(qp);
}

// --- transitions ----------------------------------------------------------------------------------------------------

static int to_rtr(struct tcav_qp *qp, const struct ibv_qp_attr *attr)
{
    struct tcav_context *context = qp->pd->context;
    unsigned node = tcav_path_node(&attr->ah_attr);
    if (node >= peach2_node_count(context->board)) {
        return -EINVAL;
    }
    int error = tcav_peer_connect(context, node, &qp->peer);
    if (error != 0) {
        return error;
    }
    qp->peer->polled = true;
    // Its acknowledgements from before a RESET may have the same numbers.
    qp->peer->area->acks[qp->number % TCAV_QPS_MAX] = 0;
    qp->remote_number = attr->dest_qp_num;
    qp->expected = qp->ack_sent = attr->rq_psn & TCAV_NUMBER_MASK;
    return 0;
}

// Restores the state after creation.
static void to_reset(struct tcav_qp *qp)
{
    quiesce(qp);
    tcav_cq_purge(qp->send_cq, qp->number);
    tcav_cq_purge(qp->recv_cq, qp->number);
    qp->head = qp->count = qp->sent = qp->reads_out = 0;
    qp->rq.head = qp->rq.count = 0;
    qp->job_head = qp->job_count = 0;
    qp->answer_due = qp->draining = qp->established = false;
    qp->resume_ps = qp->progress_ps = 0;
    qp->inbound = (struct tcav_inbound){0};
    qp->peer = NULL;
    qp->access = 0;
}

// Values are within the limits, as libibverbs has checked them.
static void attributes_set(struct tcav_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
    qp->qkey = (mask & IBV_QP_QKEY) != 0 ? attr->qkey : qp->qkey;
    qp->access = (mask & IBV_QP_ACCESS_FLAGS) != 0 ? (unsigned)attr->qp_access_flags : qp->access;
    qp->rnr_timer = (mask & IBV_QP_MIN_RNR_TIMER) != 0 ? attr->min_rnr_timer : qp->rnr_timer;
    qp->timeout = (mask & IBV_QP_TIMEOUT) != 0 ? attr->timeout : qp->timeout;
    if ((mask & IBV_QP_RETRY_CNT) != 0) {
        qp->retries = qp->retries_left = attr->retry_cnt;
    }
    if ((mask & IBV_QP_RNR_RETRY) != 0) {
        qp->rnr_retries = qp->rnr_retries_left = attr->rnr_retry;
    }
    qp->reads_max = (mask & IBV_QP_MAX_QP_RD_ATOMIC) != 0 ? attr->max_rd_atomic : qp->reads_max;
    qp->answers_max = (mask & IBV_QP_MAX_DEST_RD_ATOMIC) != 0 ? attr->max_dest_rd_atomic : qp->answers_max;
    if ((mask & IBV_QP_EN_SQD_ASYNC_NOTIFY) != 0) {
        qp->drain_event = attr->en_sqd_async_notify != 0;
    }
}

static int transition(struct tcav_qp *qp, const struct ibv_qp_attr *attr)
{
    switch (attr->qp_state) {
    case IBV_QPS_RESET:
        to_reset(qp);
        break;
    case IBV_QPS_RTR: {
        int error = qp->type == IBV_QPT_RC ? to_rtr(qp, attr) : 0;
        if (error != 0) {
            return error;
        }
        break;
    }
    case IBV_QPS_RTS:
        if (qp->state == IBV_QPS_RTR) {
            qp->next_message = qp->acked = attr->sq_psn & TCAV_NUMBER_MASK;
        }
        qp->draining = false;
        break;
    case IBV_QPS_SQD:
        qp->draining = qp->draining || qp->state == IBV_QPS_RTS;
        tcav_qp_activate(qp);
        break;
    case IBV_QPS_ERR:
        last_ones_leave(qp);
        tcav_qp_fail(qp);
        return 0;
    case IBV_QPS_INIT:
    case IBV_QPS_SQE:
    case IBV_QPS_UNKNOWN:
        break;
    }
    qp->state = attr->qp_state;
    return 0;
}

int tcav_qp_modify(void *object, const struct ibv_qp_attr *attr, int mask)
{
    struct tcav_qp *qp = object;
    tcav_pay(qp->pd->context, BACKEND_COST_CALL, 1);
    if (qp->draining &&
        ((mask & IBV_QP_STATE) == 0 || (attr->qp_state != IBV_QPS_RESET && attr->qp_state != IBV_QPS_ERR))) {
        (void)tcav_progress(qp->pd->context);
        if (qp->draining) {
            return -EBUSY; // IBA 10.3.1.7: only after it is drained
        }
    }
    // There is only one path to a node.
    if (qp->state == IBV_QPS_SQD && (mask & IBV_QP_AV) != 0 && tcav_path_node(&attr->ah_attr) != qp->peer->node) {
        return -EINVAL;
    }
    if ((mask & IBV_QP_STATE) != 0) {
        int error = transition(qp, attr);
        if (error != 0) {
            return error;
        }
    }
    attributes_set(qp, attr, mask);
    if (qp->count != 0) {
        tcav_qp_activate(qp);
    }
    return 0;
}

int tcav_qp_query(void *object, struct ibv_qp_attr *attr)
{
    const struct tcav_qp *qp = object;
    tcav_pay(qp->pd->context, BACKEND_COST_CALL, 1);
    attr->qp_state = qp->state;
    attr->sq_psn = qp->next_message;
    attr->rq_psn = qp->expected;
    attr->sq_draining = qp->draining;
    return 0;
}
