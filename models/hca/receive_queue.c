// Receive queues, own and shared: entries are read ahead of their use; a record in host memory holds their number and
// is read when no known entry is left.
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "models/hca/internal.h"

static void fetch(struct hca_rq *rq);
static void record_read(struct hca_rq *rq);

void hca_rq_init(struct hca_rq *rq, hca_t *hca)
{
    rq->hca = hca;
    rq->used = true;
    hca_rq_reset(rq);
}

void hca_rq_reset(struct hca_rq *rq)
{
    rq->producer = 0;
    rq->fetched = 0;
    rq->consumed = 0;
    rq->fetching = false;
    rq->reading = false;
    rq->failed = false;
    rq->record_wanted = false;
    rq->generation++;
}

// --- waiting -------------------------------------------------------------------------------------------------------

static enum hca_take wait_add(struct hca_rq *rq, struct hca_qp *qp)
{
    if (!qp->rsp.waiting) {
        qp->rsp.waiting = true;
        struct hca_qp **link = &rq->waiters;
        while (*link != NULL) {
            link = &(*link)->next_waiter;
        }
        qp->next_waiter = NULL;
        *link = qp;
    }
    return HCA_TAKE_WAIT;
}

void hca_rq_forget(struct hca_rq *rq, struct hca_qp *qp)
{
    for (struct hca_qp **link = &rq->waiters; *link != NULL; link = &(*link)->next_waiter) {
        if (*link == qp) {
            *link = qp->next_waiter;
            break;
        }
    }
    qp->rsp.waiting = false;
}

static void waiters_resume(struct hca_rq *rq, bool fresh)
{
    struct hca_qp *waiters = rq->waiters;
    rq->waiters = NULL;
    for (struct hca_qp *qp = waiters; qp != NULL; qp = qp->next_waiter) {
        qp->rsp.waiting = false;
    }
    while (waiters != NULL) {
        struct hca_qp *qp = waiters;
        waiters = qp->next_waiter;
        hca_responder_resume(qp, fresh);
    }
}

void hca_rq_fail(struct hca_rq *rq)
{
    rq->failed = true;
    if (rq->shared) {
        hca_event_raise(rq->hca, rq->eqn, HCA_EVENT_SRQ_ERROR, rq->number);
    }
    waiters_resume(rq, true);
}

// --- limit ---------------------------------------------------------------------------------------------------------

// The known count may be old: only a count that was just read decides.
static void limit_check(struct hca_rq *rq, bool fresh)
{
    if (rq->limit == 0 || rq->producer - rq->consumed >= rq->limit) {
        return;
    }
    if (fresh) {
        rq->limit = 0;
        hca_event_raise(rq->hca, rq->eqn, HCA_EVENT_SRQ_LIMIT, rq->number);
    } else if (!rq->reading) {
        record_read(rq);
    }
}

void hca_rq_arm(struct hca_rq *rq, uint32_t limit)
{
    rq->limit = limit;
    limit_check(rq, false);
}

// --- reading -------------------------------------------------------------------------------------------------------

static bool entry_parse(const struct hca_rq *rq, const uint8_t *from, struct hca_receive *receive)
{
    struct hca_wqe_receive head;
    memcpy(&head, from, sizeof head);
    receive->cookie = head.cookie;
    receive->segments = head.segments;
    if (head.segments > HCA_SEGMENTS_MAX ||
        sizeof head + head.segments * sizeof(struct hca_wqe_data) > rq->stride_bytes) {
        return false;
    }
    memcpy(receive->data, from + sizeof head, head.segments * sizeof(struct hca_wqe_data));
    return true;
}

static void fetch_done(hca_t *hca, struct hca_dma_read *read)
{
    struct hca_rq *rq = read->owner;
    (void)hca;
    if (rq->generation != read->generation) {
        return;
    }
    rq->fetching = false;
    for (uint32_t i = 0; i < read->detail && !read->failed; i++) {
        struct hca_receive *entry = &rq->cache[(rq->fetched + i) % HCA_RECEIVE_CACHE];
        read->failed = !entry_parse(rq, read->data + (size_t)i * rq->stride_bytes, entry);
    }
    if (read->failed) {
        hca_rq_fail(rq);
        return;
    }
    rq->fetched += read->detail;
    waiters_resume(rq, false);
    fetch(rq);
}

static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static void fetch(struct hca_rq *rq)
{
    uint32_t index = rq->fetched & (rq->entries - 1);
    uint32_t count = smaller(rq->producer - rq->fetched, rq->hca->config.prefetch_requests);
    count = smaller(count, smaller(rq->entries - index, HCA_DMA_BYTES_MAX / rq->stride_bytes));
    if (rq->fetching || rq->failed || count == 0 || HCA_RECEIVE_CACHE - (rq->fetched - rq->consumed) < count) {
        return;
    }
    rq->fetching = true;
    struct hca_dma_read *read = hca_dma_read(rq->hca, HCA_DMA_QUEUES, rq->base + (uint64_t)index * rq->stride_bytes,
                                             count * rq->stride_bytes, NULL, fetch_done, rq);
    read->generation = rq->generation;
    read->detail = count;
}

static void record_done(hca_t *hca, struct hca_dma_read *read)
{
    struct hca_rq *rq = read->owner;
    (void)hca;
    if (rq->generation != read->generation) {
        return;
    }
    rq->reading = false;
    uint32_t producer;
    memcpy(&producer, read->data, sizeof producer);
    if (read->failed || producer - rq->consumed > rq->entries) {
        hca_rq_fail(rq);
        return;
    }
    rq->producer = producer;
    limit_check(rq, true);
    if (rq->fetched != rq->producer) {
        fetch(rq);
    } else if (rq->record_wanted) {
        record_read(rq);
    } else {
        waiters_resume(rq, true);
    }
    rq->record_wanted = false;
}

static void record_read(struct hca_rq *rq)
{
    rq->reading = true;
    struct hca_dma_read *read =
        hca_dma_read(rq->hca, HCA_DMA_QUEUES, rq->record, sizeof(uint64_t), NULL, record_done, rq);
    read->generation = rq->generation;
}

// --- taking --------------------------------------------------------------------------------------------------------

enum hca_take hca_rq_take(struct hca_rq *rq, struct hca_qp *qp, bool fresh, struct hca_receive *receive_out)
{
    if (rq->consumed != rq->fetched) {
        *receive_out = rq->cache[rq->consumed % HCA_RECEIVE_CACHE];
        rq->consumed++;
        fetch(rq);
        if (rq->fetched == rq->producer && !rq->reading) {
            record_read(rq); // before the next entry is needed
        }
        limit_check(rq, false);
        return HCA_TAKEN;
    }
    if (rq->failed) {
        return HCA_TAKE_FAILED;
    }
    if (rq->fetched != rq->producer) {
        fetch(rq);
        return wait_add(rq, qp);
    }
    if (fresh) {
        return HCA_TAKE_NONE;
    }
    if (rq->reading) {
        rq->record_wanted = true; // the read in progress may have sampled the record before this
    } else {
        record_read(rq);
    }
    return wait_add(rq, qp);
}

// --- shared receive queues -------------------------------------------------------------------------------------------

struct hca_rq *hca_srq_find(const hca_t *hca, uint32_t srqn)
{
    struct hca_rq *rq = srqn < hca->srq_capacity ? hca->srqs[srqn] : NULL;
    return rq != NULL && rq->used ? rq : NULL;
}

static void users_add(struct hca_rq *rq, uint32_t count)
{
    hca_t *hca = rq->hca;
    hca->pds[rq->pdn].users += count;
    hca->eqs[rq->eqn].users += count;
    if (rq->xrcdn != HCA_NO_XRCD) {
        hca->xrcds[rq->xrcdn].users += count;
        hca->cqs[rq->cqn]->users += count;
    }
}

enum sim_status hca_cmd_srq_create(hca_t *hca, struct hca_command *command)
{
    const struct hca_srq_init *init = &command->srq_create;
    bool power = init->entries != 0 && (init->entries & (init->entries - 1)) == 0;
    bool stride = init->stride_bytes >= 32 && init->stride_bytes <= HCA_WQE_BYTES_MAX &&
                  (init->stride_bytes & (init->stride_bytes - 1)) == 0;
    if (!power || !stride || init->entries > hca->config.max_entries || init->record % 8 != 0 ||
        !hca_pd_valid(hca, init->pdn) || !hca_eq_valid(hca, init->eqn) ||
        (init->xrcdn != HCA_NO_XRCD && (!hca_xrcd_valid(hca, init->xrcdn) || hca_cq_find(hca, init->cqn) == NULL))) {
        return SIM_ERR_INVALID;
    }
    uint32_t srqn = 1;
    while (hca_srq_find(hca, srqn) != NULL) {
        srqn++;
    }
    struct hca_rq **srqs = srqn > hca->config.max_srq
                               ? NULL
                               : hca_table_grown(hca->srqs, &hca->srq_capacity, srqn, sizeof(struct hca_rq *));
    if (srqs == NULL) {
        return SIM_ERR_NO_MEMORY;
    }
    hca->srqs = srqs;
    struct hca_rq *rq = srqs[srqn] != NULL ? srqs[srqn] : calloc(1, sizeof *rq);
    if (rq == NULL) {
        return SIM_ERR_NO_MEMORY;
    }
    srqs[srqn] = rq;
    rq->base = init->base;
    rq->record = init->record;
    rq->entries = init->entries;
    rq->stride_bytes = init->stride_bytes;
    rq->pdn = init->pdn;
    rq->xrcdn = init->xrcdn;
    rq->cqn = init->cqn;
    rq->eqn = init->eqn;
    rq->number = srqn;
    rq->limit = 0;
    rq->users = 0;
    rq->shared = true;
    hca_rq_init(rq, hca);
    users_add(rq, 1);
    command->number = srqn;
    return SIM_OK;
}

enum sim_status hca_cmd_srq_arm(hca_t *hca, struct hca_command *command)
{
    uint32_t limit = command->srq_arm.limit;
    struct hca_rq *rq = hca_srq_find(hca, command->number);
    if (rq == NULL || limit > rq->entries) {
        return SIM_ERR_INVALID;
    }
    hca_rq_arm(rq, limit);
    return SIM_OK;
}

enum sim_status hca_cmd_srq_query(hca_t *hca, struct hca_command *command)
{
    const struct hca_rq *rq = hca_srq_find(hca, command->number);
    if (rq == NULL) {
        return SIM_ERR_INVALID;
    }
    command->srq_query.limit = rq->limit;
    return SIM_OK;
}

// XRC targets with a message in progress for the queue refuse the rest of it; those that wait for an entry refuse the
// request, because it no longer names a queue.
static void targets_leave(struct hca_rq *rq)
{
    hca_t *hca = rq->hca;
    for (uint32_t qpn = 1; qpn < hca->qp_capacity; qpn++) {
        struct hca_qp *qp = hca_qp_find(hca, qpn);
        if (qp == NULL || qp->init.type != HCA_XRC_TARGET || qp->rq != rq) {
            continue;
        }
        bool under_way = qp->rsp.in_message || qp->rsp.has_receive;
        hca_rq_forget(rq, qp);
        qp->rq = &qp->own_rq;
        qp->rsp.has_receive = false;
        if (under_way && qp->state != HCA_ERROR) {
            hca_responder_fatal(qp, IB_NAK_REMOTE_OPERATION, HCA_FAULT_SHARED_QUEUE, HCA_EVENT_QP_REQUEST_ERROR, qp->rsp.psn);
        }
        hca_responder_resume(qp, true);
    }
    rq->waiters = NULL;
}

enum sim_status hca_cmd_srq_destroy(hca_t *hca, struct hca_command *command)
{
    struct hca_rq *rq = hca_srq_find(hca, command->number);
    if (rq == NULL) {
        return SIM_ERR_INVALID;
    }
    if (rq->users > 0) {
        return SIM_ERR_BUSY;
    }
    rq->used = false;
    rq->generation++;
    users_add(rq, UINT32_MAX); // adds -1
    targets_leave(rq);
    return SIM_OK;
}
