// The error states: all posted requests complete as flushed (IBA 10.3.1.5, 10.3.1.6).
#include <stddef.h>

#include "models/hca/internal.h"

void hca_flush_sends(struct hca_qp *qp)
{
    struct hca_sq *sq = &qp->sq;
    while (sq->una != sq->producer) {
        const struct hca_cqe cqe = {
            .qpn = qp->number, .index = (uint16_t)sq->una, .kind = HCA_CQE_SEND, .status = HCA_FLUSHED};
        sq->una++;
        hca_cq_push(qp->hca, qp->init.send_cqn, &cqe, false);
    }
    sq->fetched = sq->producer;
    sq->next = sq->producer;
    sq->begun = sq->producer;
    sq->packet = 0;
    sq->reads = 0;
    sq->streamed = 0;
    sq->fetching = false;
    sq->stopped = false;
    sq->una_psn = sq->psn;
}

static void receives_continue(struct hca_qp *qp, bool fresh)
{
    // Completions of messages received before the error come first.
    if (qp->rsp.order_done != qp->rsp.order_issued) {
        return;
    }
    struct hca_receive receive;
    enum hca_take take;
    bool xrc = qp->init.type == HCA_XRC_TARGET, own = qp->rq == &qp->own_rq && qp->own_rq.entries != 0;
    if (qp->rsp.has_receive) {
        receive = qp->rsp.receive;
        qp->rsp.has_receive = false;
        take = HCA_TAKEN;
    } else {
        take = own ? hca_rq_take(qp->rq, qp, fresh, &receive) : HCA_TAKE_NONE;
    }
    while (take == HCA_TAKEN) {
        const struct hca_cqe cqe = {.qpn = qp->number,
                                    .index = receive.cookie,
                                    .srqn = xrc ? qp->rq->number : HCA_NO_SRQ,
                                    .kind = HCA_CQE_RECEIVE,
                                    .status = HCA_FLUSHED};
        hca_cq_push(qp->hca, xrc ? qp->rq->cqn : qp->init.receive_cqn, &cqe, false);
        take = own ? hca_rq_take(qp->rq, qp, fresh, &receive) : HCA_TAKE_NONE;
    }
    if (take != HCA_TAKE_WAIT) {
        qp->flushing_receives = false;
    }
}

void hca_flush_receives(struct hca_qp *qp)
{
    if (!qp->flushing_receives) {
        qp->flushing_receives = true;
        receives_continue(qp, false);
    }
}

void hca_flush_receives_resume(struct hca_qp *qp, bool fresh)
{
    if (qp->flushing_receives) {
        receives_continue(qp, fresh);
    }
}

void hca_qp_fail(struct hca_qp *qp)
{
    hca_t *hca = qp->hca;
    if (qp->state == HCA_ERROR || qp->state == HCA_RESET) {
        return;
    }
    qp->state = HCA_ERROR;
    qp->draining = false;
    hca_retry_stop(qp);
    hca_streams_drop(qp);
    hca_qp_unlist(qp);
    while (qp->rsp.parked.count > 0) {
        hca_receiver_discard(hca, ib_queue_pop(&qp->rsp.parked));
    }
    hca_rq_forget(qp->rq, qp);
    hca_responder_ack_last(qp);
    qp->rsp.slot_send = qp->rsp.slot_next;
    qp->rsp.ack_pending = false;
    hca_flush_sends(qp);
    hca_flush_receives(qp);
    if (qp->init.srqn != HCA_NO_SRQ) {
        hca_event_raise(hca, qp->init.eqn, HCA_EVENT_LAST_WQE_REACHED, qp->number);
    }
}

void hca_reset(hca_t *hca)
{
    hca_streams_interrupt(hca);
    for (uint32_t qpn = 0; qpn < hca->qp_capacity; qpn++) {
        struct hca_qp *qp = hca_qp_find(hca, qpn);
        if (qp != NULL) {
            qp->rsp.dead = true; // no last acknowledge
            hca_qp_fail(qp);
        }
    }
    hca_event_raise_all(hca, HCA_EVENT_DEVICE_FATAL);
}

void hca_qp_send_error(struct hca_qp *qp)
{
    qp->state = HCA_SQE;
    hca_stream_drop(&qp->sq.stream);
    hca_flush_sends(qp);
}

void hca_flush_drained(struct hca_qp *qp)
{
    if (qp->state == HCA_SQD && qp->draining && qp->sq.una == qp->sq.next && qp->sq.packet == 0) {
        qp->draining = false;
        if (qp->attr.drained_event) {
            hca_event_raise(qp->hca, qp->init.eqn, HCA_EVENT_SEND_QUEUE_DRAINED, qp->number);
        }
    }
}
