// Queue pairs: creation, transitions, destruction.
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "models/hca/internal.h"

struct hca_qp *hca_qp_find(const hca_t *hca, uint32_t qpn)
{
    struct hca_qp *qp = qpn < hca->qp_capacity ? hca->qps[qpn] : NULL;
    return qp != NULL && qp->used ? qp : NULL;
}

// --- lists of queue pairs, through the link at that offset -----------------------------------------------------------

static struct hca_qp **link_of(struct hca_qp *qp, size_t offset)
{
    return (struct hca_qp **)((char *)qp + offset);
}

void hca_qp_list_push(struct hca_qp_list *list, struct hca_qp *qp, size_t link_offset)
{
    *link_of(qp, link_offset) = NULL;
    if (list->first == NULL) {
        list->first = qp;
    } else {
        *link_of(list->last, link_offset) = qp;
    }
    list->last = qp;
}

struct hca_qp *hca_qp_list_pop(struct hca_qp_list *list, size_t link_offset)
{
    struct hca_qp *qp = list->first;
    if (qp != NULL) {
        list->first = *link_of(qp, link_offset);
    }
    return qp;
}

void hca_qp_list_remove(struct hca_qp_list *list, struct hca_qp *qp, size_t link_offset)
{
    struct hca_qp *previous = NULL, *at = list->first;
    while (at != NULL && at != qp) {
        previous = at;
        at = *link_of(at, link_offset);
    }
    if (at == NULL) {
        return;
    }
    if (previous == NULL) {
        list->first = *link_of(qp, link_offset);
    } else {
        *link_of(previous, link_offset) = *link_of(qp, link_offset);
    }
    if (list->last == qp) {
        list->last = previous;
    }
}

void hca_qp_unlist(struct hca_qp *qp)
{
    hca_t *hca = qp->hca;
    sim_event_cancel(hca->sim, &qp->sq.work);
    hca_adversity_stop(qp);
    hca_reader_qp_stop(qp);
    hca->sending = hca->sending == qp ? NULL : hca->sending;
    hca->reading = hca->reading == qp ? NULL : hca->reading;
    if (qp->send_listed) {
        hca_qp_list_remove(&hca->senders, qp, offsetof(struct hca_qp, next_send));
        qp->send_listed = false;
    }
    if (qp->rsp.ack_listed) {
        hca_qp_list_remove(&hca->ackers, qp, offsetof(struct hca_qp, next_ack));
        qp->rsp.ack_listed = false;
    }
    if (qp->rsp.reader_listed) {
        hca_qp_list_remove(&hca->readers, qp, offsetof(struct hca_qp, next_reader));
        qp->rsp.reader_listed = false;
    }
}

// --- creation ------------------------------------------------------------------------------------------------------

static bool ring_valid(const hca_t *hca, uint32_t entries, uint32_t stride, uint64_t base)
{
    return entries != 0 && (entries & (entries - 1)) == 0 && entries <= hca->config.max_entries && stride >= 32 &&
           stride <= HCA_WQE_BYTES_MAX && (stride & (stride - 1)) == 0 && base % stride == 0;
}

static bool init_valid(const hca_t *hca, const struct hca_qp_init *init)
{
    bool target = init->type == HCA_XRC_TARGET;
    bool cqs = hca_cq_find(hca, init->send_cqn) != NULL && hca_cq_find(hca, init->receive_cqn) != NULL;
    bool own = ring_valid(hca, init->receive_entries, init->receive_stride_bytes, init->receive_base) &&
               init->receive_record % 8 == 0;
    bool shared = hca_srq_find(hca, init->srqn) != NULL;
    if (init->type >= HCA_QP_TYPES || !hca_pd_valid(hca, init->pdn) || !hca_uar_valid(hca, init->uar) ||
        !hca_eq_valid(hca, init->eqn)) {
        return false;
    }
    if (target) {
        return hca_xrcd_valid(hca, init->xrcdn);
    }
    bool receives = init->type == HCA_XRC_INITIATOR || (init->srqn == HCA_NO_SRQ ? own : shared);
    return cqs && receives && init->send_entries <= 32768 && // the count has 16 bits in doorbells
           ring_valid(hca, init->send_entries, init->send_stride_bytes, init->send_base);
}

static bool memory_create(hca_t *hca, struct hca_qp *qp)
{
    const struct hca_qp_init *init = &qp->init;
    qp->sq.raw = calloc((size_t)init->send_entries * init->send_stride_bytes + 1, 1); // a request may end early
    qp->sq.requests = calloc(init->send_entries + 1, sizeof *qp->sq.requests);
    qp->rsp.slots = calloc(hca->config.responder_reads + 1, sizeof *qp->rsp.slots);
    return qp->sq.raw != NULL && qp->sq.requests != NULL && qp->rsp.slots != NULL;
}

static void memory_free(struct hca_qp *qp)
{
    free(qp->sq.raw);
    free(qp->sq.requests);
    free(qp->rsp.slots);
    qp->sq.raw = NULL;
    qp->sq.requests = NULL;
    qp->rsp.slots = NULL;
}

static void queues_init(hca_t *hca, struct hca_qp *qp)
{
    const struct hca_qp_init *init = &qp->init;
    qp->sq.base = init->send_base;
    qp->sq.entries = init->send_entries;
    qp->sq.stride_bytes = init->send_stride_bytes;
    hca_retry_init(qp);
    sim_event_init(&qp->sq.work, hca_sender_worked, qp);
    hca_adversity_init(qp);
    hca_reader_qp_init(qp);
    qp->own_rq.base = init->receive_base;
    qp->own_rq.record = init->receive_record;
    qp->own_rq.entries = init->receive_entries;
    qp->own_rq.stride_bytes = init->receive_stride_bytes;
    qp->own_rq.eqn = init->eqn;
    hca_rq_init(&qp->own_rq, hca);
    qp->rq = init->srqn == HCA_NO_SRQ ? &qp->own_rq : hca->srqs[init->srqn];
    hca_responder_reset(qp);
}

static void users_add(hca_t *hca, const struct hca_qp_init *init, uint32_t count)
{
    hca->pds[init->pdn].users += count;
    hca->eqs[init->eqn].users += count;
    hca->uar_users[init->uar] += count;
    if (init->type == HCA_XRC_TARGET) {
        hca->xrcds[init->xrcdn].users += count;
        return;
    }
    hca->cqs[init->send_cqn]->users += count;
    hca->cqs[init->receive_cqn]->users += count;
    if (init->srqn != HCA_NO_SRQ) {
        hca->srqs[init->srqn]->users += count;
    }
}

// The number that was free for longest, so that packets for a destroyed queue pair find no other one.
static uint32_t number_take(hca_t *hca)
{
    for (uint32_t tried = 0; tried < hca->config.max_qp; tried++) {
        hca->qp_next = hca->qp_next % hca->config.max_qp + 1;
        if (hca_qp_find(hca, hca->qp_next) == NULL) {
            return hca->qp_next;
        }
    }
    return 0;
}

// Operations in progress refer to a destroyed queue pair by address and generation, so its memory is reused for other
// queue pairs, but never freed.
static struct hca_qp *struct_take(hca_t *hca)
{
    struct hca_qp *qp = hca->qp_free;
    if (qp == NULL) {
        return calloc(1, sizeof *qp);
    }
    hca->qp_free = qp->next_free;
    return qp;
}

static void struct_give(hca_t *hca, struct hca_qp *qp)
{
    qp->next_free = hca->qp_free;
    hca->qp_free = qp;
}

enum sim_status hca_cmd_qp_create(hca_t *hca, struct hca_command *command)
{
    const struct hca_qp_init *init = &command->qp_create;
    if (!init_valid(hca, init)) {
        return SIM_ERR_INVALID;
    }
    uint32_t number = number_take(hca);
    struct hca_qp **qps =
        number == 0 ? NULL : hca_table_grown(hca->qps, &hca->qp_capacity, number, sizeof(struct hca_qp *));
    if (qps == NULL) {
        return SIM_ERR_NO_MEMORY;
    }
    hca->qps = qps;
    struct hca_qp *qp = struct_take(hca);
    if (qp == NULL) {
        return SIM_ERR_NO_MEMORY;
    }
    struct hca_qp_init known = *init;
    if (init->type == HCA_XRC_TARGET || init->type == HCA_XRC_INITIATOR) { // it has no receive queue
        known.srqn = HCA_NO_SRQ;
        known.receive_entries = 0;
    }
    if (init->type == HCA_XRC_TARGET) {
        known.send_entries = known.send_cqn = known.receive_cqn = 0;
    }
    const uint32_t generation = qp->generation + 1, rq_generation = qp->own_rq.generation;
    *qp = (struct hca_qp){.hca = hca, .number = number, .generation = generation, .init = known, .state = HCA_RESET};
    qp->own_rq.generation = rq_generation;
    if (!memory_create(hca, qp)) {
        memory_free(qp);
        struct_give(hca, qp);
        return SIM_ERR_NO_MEMORY;
    }
    queues_init(hca, qp);
    qp->used = true;
    hca->qps[number] = qp;
    users_add(hca, &qp->init, 1);
    command->number = number;
    return SIM_OK;
}

// Operations still in progress for it see another generation.
static void qp_stop(struct hca_qp *qp)
{
    hca_retry_stop(qp);
    hca_streams_drop(qp);
    hca_qp_unlist(qp);
    hca_responder_ack_last(qp);
    hca_rq_forget(qp->rq, qp);
    while (qp->rsp.parked.count > 0) {
        hca_receiver_discard(qp->hca, ib_queue_pop(&qp->rsp.parked));
    }
    if (qp->init.type != HCA_XRC_TARGET) { // its completions are those of shared receive queues
        hca_cq_forget(qp->hca, qp->init.send_cqn, qp->number);
        hca_cq_forget(qp->hca, qp->init.receive_cqn, qp->number);
    }
    qp->generation++;
    qp->draining = false;
    qp->flushing_receives = false;
}

enum sim_status hca_cmd_qp_destroy(hca_t *hca, struct hca_command *command)
{
    struct hca_qp *qp = hca_qp_find(hca, command->number);
    if (qp == NULL) {
        return SIM_ERR_INVALID;
    }
    qp_stop(qp);
    hca_groups_forget(hca, command->number);
    hca_rq_reset(&qp->own_rq);
    users_add(hca, &qp->init, UINT32_MAX); // one less
    memory_free(qp);
    qp->used = false;
    hca->qps[command->number] = NULL;
    struct_give(hca, qp);
    return SIM_OK;
}

// --- transitions ---------------------------------------------------------------------------------------------------

static void reset(struct hca_qp *qp)
{
    struct hca_sq *sq = &qp->sq;
    qp_stop(qp);
    sq->producer = sq->fetched = sq->next = sq->begun = sq->una = sq->worked = 0;
    sq->psn = sq->una_psn = sq->max_psn = sq->packet = sq->reads = sq->since_ack_request = 0;
    sq->streamed = sq->expected = 0;
    sq->fetching = sq->stopped = sq->rnr_waiting = sq->recovering = sq->damage_outstanding = false;
    hca_rq_reset(&qp->own_rq);
    hca_responder_reset(qp);
    qp->attr = (struct hca_qp_attr){.state = HCA_RESET};
    qp->state = HCA_RESET;
}

static void attr_take(struct hca_qp_attr *to, uint32_t mask, const struct hca_qp_attr *from)
{
#define TAKE(bit, field)                                                                                               \
    if ((mask & (bit)) != 0) {                                                                                         \
        to->field = from->field;                                                                                       \
    }
    TAKE(HCA_QP_ACCESS, access)
    TAKE(HCA_QP_PORT, port)
    TAKE(HCA_QP_QKEY, qkey)
    TAKE(HCA_QP_PATH, dlid)
    TAKE(HCA_QP_PATH, sl)
    TAKE(HCA_QP_PATH, global)
    TAKE(HCA_QP_PATH_MTU, path_mtu_bytes)
    TAKE(HCA_QP_TIMEOUT, timeout)
    TAKE(HCA_QP_RETRY_COUNT, retry_count)
    TAKE(HCA_QP_RNR_RETRY, rnr_retry)
    TAKE(HCA_QP_RECEIVE_PSN, receive_psn)
    TAKE(HCA_QP_SEND_PSN, send_psn)
    TAKE(HCA_QP_MAX_RD_ATOMIC, max_rd_atomic)
    TAKE(HCA_QP_MAX_DEST_RD, max_dest_rd_atomic)
    TAKE(HCA_QP_MIN_RNR_TIMER, min_rnr_timer)
    TAKE(HCA_QP_DEST_QPN, dest_qpn)
    TAKE(HCA_QP_DRAINED_EVENT, drained_event)
#undef TAKE
}

static void state_enter(struct hca_qp *qp, enum hca_qp_state to)
{
    const enum hca_qp_state from = qp->state;
    if (to == HCA_ERROR) {
        hca_qp_fail(qp);
        return;
    }
    qp->state = to;
    if (to == HCA_RTR) {
        qp->rsp.psn = qp->attr.receive_psn;
    } else if (to == HCA_RTS && from == HCA_RTR) {
        qp->sq.psn = qp->sq.una_psn = qp->sq.max_psn = qp->attr.send_psn;
        hca_retry_progress(qp);
    } else if (to == HCA_SQD && from == HCA_RTS) {
        qp->draining = true;
        hca_flush_drained(qp);
    }
    if (to == HCA_RTS) {
        hca_wqe_fetch(qp);
        hca_sender_kick(qp);
    }
}

enum sim_status hca_cmd_qp_modify(hca_t *hca, struct hca_command *command)
{
    uint32_t mask = command->qp_modify.mask;
    const struct hca_qp_attr *attr = &command->qp_modify.attr;
    struct hca_qp *qp = hca_qp_find(hca, command->number);
    if (qp == NULL) {
        return SIM_ERR_INVALID;
    }
    enum hca_qp_state to = (mask & HCA_QP_STATE) != 0 ? attr->state : qp->state;
    uint32_t given = mask & ~HCA_QP_STATE, required, optional;
    if (to >= HCA_QP_STATES || !hca_qp_transition(qp->init.type, qp->state, to, &required, &optional) ||
        (given & required) != required || (given & ~(required | optional)) != 0 ||
        !hca_qp_attr_valid(hca, qp, given, attr)) {
        return SIM_ERR_INVALID;
    }
    if (to == HCA_RESET) {
        reset(qp);
        return SIM_OK;
    }
    if (qp->state == HCA_SQD && qp->draining && to != HCA_ERROR) {
        return SIM_ERR_BUSY; // 10.3.1.7: not before it is drained
    }
    attr_take(&qp->attr, given, attr);
    if (to != qp->state) {
        state_enter(qp, to);
    }
    return SIM_OK;
}

enum sim_status hca_cmd_qp_query(hca_t *hca, struct hca_command *command)
{
    const struct hca_qp *qp = hca_qp_find(hca, command->number);
    struct hca_qp_attr *attr = &command->qp_query;
    if (qp == NULL) {
        return SIM_ERR_INVALID;
    }
    *attr = qp->attr;
    attr->state = qp->state;
    attr->current_state = qp->state;
    attr->receive_psn = qp->rsp.psn;
    attr->send_psn = qp->sq.psn;
    return SIM_OK;
}

void hca_objects_fini(hca_t *hca)
{
    for (uint32_t qpn = 1; qpn < hca->qp_capacity; qpn++) {
        (void)hca_cmd_qp_destroy(hca, &(struct hca_command){.number = qpn});
    }
    while (hca->qp_free != NULL) {
        free(struct_take(hca));
    }
    for (uint32_t srqn = 1; srqn < hca->srq_capacity; srqn++) {
        free(hca->srqs[srqn]);
    }
    for (uint32_t cqn = 1; cqn < hca->cq_capacity; cqn++) {
        (void)hca_cmd_cq_destroy(hca, &(struct hca_command){.number = cqn});
        hca_cq_free(hca->cqs[cqn]);
    }
    for (uint32_t i = 0; i < hca->mr_capacity; i++) {
        free(hca->mrs[i].pages);
    }
}
