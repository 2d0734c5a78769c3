// Posting work requests (IBA 11.4.1).
//
// The valid requests at the start of the list go to the device; *bad names the first invalid one. Error codes are those
// of the driver of the modelled ConnectX generations (libmlx4): too many segments of a send and too much inline data
// are ENOMEM. Too many segments of a receive are EINVAL, as rdma-core's own tests require of every device.
#include "verbs-shim/ibverbs/check.h"

// --- send -----------------------------------------------------------------------------------------------------------

static uint64_t inline_bytes(const struct ibv_send_wr *wr)
{
    uint64_t bytes = 0;
    for (int i = 0; i < wr->num_sge; i++) {
        bytes += wr->sg_list[i].length;
    }
    return bytes;
}

int ibverbs_send_check(struct ibverbs_qp *qp, const struct ibv_send_wr *wr)
{
    struct ibverbs_library *library = qp->object.context->device->library;
    const struct ibv_qp_cap *cap = &qp->attr.cap;
    const struct ibverbs_opcode *opcode = ibverbs_opcode(wr->opcode);
    bool is_inline = (wr->send_flags & IBV_SEND_INLINE) != 0;
    if (opcode == NULL || (opcode->operation & qp->send_ops) == 0) {
        return ibverbs_refuse(library, EINVAL, JOURNAL_WHY_OPCODE, wr->opcode, qp->base.qp_type);
    }
    if (wr->num_sge < 0) {
        return ibverbs_refuse(library, EINVAL, JOURNAL_WHY_SEGMENTS, (uint32_t)wr->num_sge, cap->max_send_sge);
    }
    if (is_inline && (opcode->traits & HCA_HAS_DATA) == 0) {
        return ibverbs_refuse(library, EINVAL, JOURNAL_WHY_INLINE_OPCODE, wr->opcode, 0);
    }
    if ((wr->send_flags & IBV_SEND_IP_CSUM) != 0) {
        return ibverbs_refuse(library, EINVAL, JOURNAL_WHY_SEND_FLAGS, 0, 0);
    }
    if (qp->base.qp_type == IBV_QPT_UD && (wr->wr.ud.ah == NULL || wr->wr.ud.ah->pd != qp->base.pd)) {
        return ibverbs_refuse(library, EINVAL, JOURNAL_WHY_ADDRESS_HANDLE, 0, 0); // 10.2.3
    }
    if ((uint32_t)wr->num_sge > cap->max_send_sge) {
        return ibverbs_refuse(library, ENOMEM, JOURNAL_WHY_SEGMENTS, (uint32_t)wr->num_sge, cap->max_send_sge);
    }
    return is_inline && inline_bytes(wr) > cap->max_inline_data
               ? ibverbs_refuse(library, ENOMEM, JOURNAL_WHY_INLINE_BYTES, inline_bytes(wr), cap->max_inline_data)
               : 0;
}

// 10.3.1: RESET, INIT and RTR accept no send requests. The state that the program set is checked first; only the device
// knows whether a queue pair went to ERR by itself.
static int state_check(struct ibverbs_qp *qp)
{
    enum ibv_qp_state state = qp->base.state;
    if ((state != IBV_QPS_RTR && state != IBV_QPS_INIT && state != IBV_QPS_RESET) ||
        ibverbs_qp_state(qp) == IBV_QPS_ERR) {
        return 0;
    }
    return ibverbs_refuse(qp->object.context->device->library, EINVAL, JOURNAL_WHY_STATE_SEND, state, 0);
}

// The device accepted the requests before `refused`.
static unsigned sends_taken(struct ibverbs_qp *qp, const struct ibv_send_wr *wr, const struct ibv_send_wr *refused)
{
    unsigned count = 0;
    for (; wr != NULL && wr != refused; wr = wr->next) {
        bool signaled = qp->all_signaled || (wr->send_flags & IBV_SEND_SIGNALED) != 0;
        qp->unsignaled = signaled ? 0 : qp->unsignaled + 1;
        count++;
        if (ibverbs_opcode_has(wr->opcode, HCA_HAS_RECEIVE)) {
            qp->last_message = qp->sends_posted + count;
        }
    }
    qp->sends_posted += count;
    return count;
}

int ibverbs_post_send(struct ibv_qp *ibv_qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
    IBVERBS_ENTER_CONTEXT(ibv_qp->context);
    struct ibverbs_qp *qp = ibverbs_qp_of(ibv_qp);
    uint64_t began_ps = ibverbs_notes_all(entered) ? entered->journal->now_ps(entered->process->backend.ctx) : 0;
    entered->refused.reason = JOURNAL_WHY_NONE;
    unsigned count = 0;
    struct ibv_send_wr *at = wr;
    int error = state_check(qp);
    while (error == 0 && at != NULL) {
        error = ibverbs_send_check(qp, at);
        count += error == 0;
        at = error == 0 ? at->next : at;
    }
    if (count > 0) {
        const struct ibv_send_wr *refused = NULL;
        int status = ibverbs_ops(&qp->object)->post_send(qp->object.device, wr, count, &refused);
        if (status != 0) {
            at = (struct ibv_send_wr *)(uintptr_t)refused;
            error = status == -ENOMEM
                        ? ibverbs_refuse(entered, ENOMEM, JOURNAL_WHY_SEND_QUEUE_FULL, qp->attr.cap.max_send_wr, 0)
                        : -status;
        }
    }
    if (error != 0) {
        *bad = at;
    }
    unsigned taken = sends_taken(qp, wr, error != 0 ? at : NULL);
    for (const struct ibv_send_wr *each = wr; entered->checks && each != NULL && each != at; each = each->next) {
        ibverbs_check_send(qp, each);
    }
    if (ibverbs_notes(entered) && (error != 0 || ibverbs_notes_all(entered))) {
        ibverbs_note_sends(qp, began_ps, wr, taken, error);
    }
    return error;
}

// --- receive --------------------------------------------------------------------------------------------------------

// How many requests at the start of the list have an allowed number of segments; *bad_out: the first that has not,
// NULL: all have.
static unsigned receives_count(struct ibv_recv_wr *wr, uint32_t max_sge, struct ibv_recv_wr **bad_out)
{
    unsigned count = 0;
    while (wr != NULL && wr->num_sge >= 0 && (uint32_t)wr->num_sge <= max_sge) {
        wr = wr->next;
        count++;
    }
    *bad_out = wr;
    return count;
}

// A receive queue, of a queue pair or shared.
struct receives {
    struct ibverbs_object *object;
    int (*post)(void *object, const struct ibv_recv_wr *wr, unsigned count, const struct ibv_recv_wr **bad_out);
    enum journal_call call;
    uint32_t number, max_sge, max_wr;
    const void *caller;
};

static unsigned receives_taken(const struct ibv_recv_wr *wr, const struct ibv_recv_wr *refused)
{
    unsigned count = 0;
    for (; wr != NULL && wr != refused; wr = wr->next) {
        count++;
    }
    return count;
}

static int receives_post(const struct receives *receives, int error, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    struct ibverbs_library *library = receives->object->context->device->library;
    uint64_t began_ps = ibverbs_notes_all(library) ? library->journal->now_ps(library->process->backend.ctx) : 0;
    struct ibv_recv_wr *at = wr, *too_long = NULL;
    unsigned count = error == 0 ? receives_count(wr, receives->max_sge, &too_long) : 0;
    if (too_long != NULL) {
        error = EINVAL;
        at = too_long;
    }
    const struct ibv_recv_wr *refused = NULL;
    int status = count > 0 ? receives->post(receives->object->device, wr, count, &refused) : 0;
    if (status != 0) {
        error = -status;
        at = (struct ibv_recv_wr *)(uintptr_t)refused;
        (void)ibverbs_refuse(library, 0, JOURNAL_WHY_RECEIVE_QUEUE_FULL, receives->max_wr, 0);
    } else if (too_long != NULL) {
        (void)ibverbs_refuse(library, 0, JOURNAL_WHY_SEGMENTS, (uint32_t)at->num_sge, receives->max_sge);
    }
    if (error != 0) {
        *bad = at;
    }
    if (ibverbs_notes(library) && (error != 0 || ibverbs_notes_all(library))) {
        ibverbs_note_receives(receives->object->context, began_ps, receives->call, receives->number, receives->caller,
                              wr, receives_taken(wr, error != 0 ? at : NULL), error);
    }
    return error;
}

// 10.3.1: RESET accepts none. 10.2.9: a queue pair with a shared queue accepts none either.
int ibverbs_post_recv(struct ibv_qp *ibv_qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    IBVERBS_ENTER_CONTEXT(ibv_qp->context);
    struct ibverbs_qp *qp = ibverbs_qp_of(ibv_qp);
    const struct receives receives = {.object = &qp->object,
                                      .post = ibverbs_ops(&qp->object)->post_recv,
                                      .call = JOURNAL_POST_RECV,
                                      .number = ibv_qp->qp_num,
                                      .max_sge = qp->attr.cap.max_recv_sge,
                                      .max_wr = qp->attr.cap.max_recv_wr,
                                      .caller = __builtin_return_address(0)};
    int error = 0;
    entered->refused.reason = JOURNAL_WHY_NONE;
    if (ibv_qp->recv_cq == NULL || ibv_qp->srq != NULL) {
        error = ibverbs_refuse(entered, EINVAL, JOURNAL_WHY_NO_RECEIVES, 0, 0);
    } else if (ibv_qp->state == IBV_QPS_RESET && wr != NULL) {
        error = ibverbs_refuse(entered, EINVAL, JOURNAL_WHY_STATE_RECEIVE, ibv_qp->state, 0);
    }
    error = receives_post(&receives, error, wr, bad);
    const struct ibv_recv_wr *refused = error != 0 ? *bad : NULL;
    for (const struct ibv_recv_wr *each = wr; entered->checks && each != refused; each = each->next) {
        ibverbs_check_receive(qp, each);
    }
    unsigned taken = receives_taken(wr, refused);
    if (taken > 0 && ibverbs_notes(entered)) {
        qp->receives_posted += taken;
        qp->last_receive_ps = atomic_load_explicit(entered->slot_ps, memory_order_relaxed);
    }
    return error;
}

int ibverbs_post_srq_recv(struct ibv_srq *ibv_srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    IBVERBS_ENTER_CONTEXT(ibv_srq->context);
    struct ibverbs_srq *srq = ibverbs_srq_of(ibv_srq);
    const struct receives receives = {.object = &srq->object,
                                      .post = ibverbs_ops(&srq->object)->post_srq_recv,
                                      .call = JOURNAL_POST_SRQ_RECV,
                                      .number = ibv_srq->handle,
                                      .max_sge = srq->max_sge,
                                      .max_wr = srq->max_wr,
                                      .caller = __builtin_return_address(0)};
    entered->refused.reason = JOURNAL_WHY_NONE;
    return receives_post(&receives, 0, wr, bad);
}
