// Completion queues: taking entries, waiting, arming.
#include <stdlib.h>
#include <string.h>

#include "verbs-shim/hca/hca_internal.h"

enum { RECORD_BYTES = 64, CQE_WORDS = sizeof(struct hca_cqe) / 8 };

int hca_cq_create(hca_context_t *context, unsigned entries, void *user, hca_cq_t **cq_out)
{
    if (entries == 0 || entries > context->info.max_cq_entries) {
        return -EINVAL;
    }
    hca_cq_t *cq = calloc(1, sizeof *cq);
    if (cq == NULL) {
        return -ENOMEM;
    }
    const struct backend *backend = &context->backend;
    cq->context = context;
    cq->user = user;
    cq->entries = hca_round_up(entries, 2);
    int status =
        backend->ops->alloc_pinned(backend->ctx, RECORD_BYTES + cq->entries * sizeof(struct hca_cqe), &cq->buffer);
    if (status != 0) {
        free(cq);
        return status;
    }
    cq->record = cq->buffer.address;
    cq->ring = (struct hca_cqe *)(void *)((uint8_t *)cq->buffer.address + RECORD_BYTES);
    const struct hca_cq_init init = {.eqn = context->eqn,
                                     .base = cq->buffer.bus_address + RECORD_BYTES,
                                     .record = cq->buffer.bus_address,
                                     .entries = cq->entries};
    status = hca_ops(context)->cq_create(backend->ctx, &init, &cq->number);
    if (status != 0) {
        backend->ops->free_pinned(backend->ctx, &cq->buffer);
        free(cq);
        return status;
    }
    context->cqs[cq->number] = cq;
    context->users++;
    *cq_out = cq;
    return 0;
}

int hca_cq_destroy(hca_cq_t *cq)
{
    hca_context_t *context = cq->context;
    if (cq->users > 0) {
        return -EBUSY;
    }
    int status = hca_ops(context)->cq_destroy(context->backend.ctx, cq->number);
    if (status != 0) {
        return status;
    }
    context->cqs[cq->number] = NULL;
    context->users--;
    context->backend.ops->free_pinned(context->backend.ctx, &cq->buffer);
    free(cq);
    return 0;
}

unsigned hca_cq_entries(const hca_cq_t *cq)
{
    return cq->entries;
}

// --- taking entries --------------------------------------------------------------------------------------------------

static uint8_t owner_at(const hca_cq_t *cq, uint32_t count)
{
    return (count & cq->entries) == 0;
}

static struct hca_cqe *entry_at(const hca_cq_t *cq, uint32_t count)
{
    return &cq->ring[count & (cq->entries - 1)];
}

static bool entry_is_there(const hca_cq_t *cq, uint32_t count)
{
    return ((volatile struct hca_cqe *)entry_at(cq, count))->owner == owner_at(cq, count);
}

// Requests before it that asked for no completion are done as well.
static uint64_t send_take(hca_qp_t *qp, uint32_t index)
{
    qp->send_done += (uint16_t)(index - qp->send_done);
    return qp->wr_ids[qp->send_done++ & (qp->send_entries - 1)];
}

static void entry_take(hca_cq_t *cq, const struct hca_cqe *cqe, struct hca_wc *wc)
{
    hca_qp_t *qp = cq->context->qps[cqe->qpn];
    *wc = (struct hca_wc){.status = (enum hca_status)cqe->status,
                          .kind = (enum hca_cqe_kind)cqe->kind,
                          .opcode = (enum hca_opcode)cqe->opcode,
                          .bytes = cqe->bytes,
                          .immediate = cqe->immediate,
                          .has_immediate = (cqe->flags & HCA_CQE_IMMEDIATE) != 0,
                          .qpn = cqe->qpn,
                          .source_qpn = cqe->source_qpn,
                          .source_lid = cqe->source_lid,
                          .sl = cqe->sl};
    if (cqe->kind == HCA_CQE_SEND) {
        wc->wr_id = send_take(qp, cqe->index);
    } else {
        wc->wr_id = hca_receive_take(qp->srq != NULL ? &qp->srq->receive : &qp->receive, cqe->index);
    }
    if (cqe->status != HCA_OK && !qp->failed) {
        qp->failed = true;
        hca_receive_doorbell(qp);
    }
}

int hca_cq_poll(hca_cq_t *cq, int max, struct hca_wc *wc_out)
{
    hca_cost(cq->context, BACKEND_COST_CALL, 1);
    hca_cost(cq->context, BACKEND_COST_LOAD_STORE, 1);
    int count = 0;
    while (count < max && entry_is_there(cq, cq->consumer)) {
        const struct hca_cqe cqe = *entry_at(cq, cq->consumer);
        cq->consumer++;
        entry_take(cq, &cqe, &wc_out[count++]);
    }
    if (count > 0) {
        *cq->record = cq->consumer;
        hca_cost(cq->context, BACKEND_COST_LOAD_STORE, (uint64_t)count * CQE_WORDS + 1);
    }
    return count;
}

const volatile uint64_t *hca_cq_place(const hca_cq_t *cq)
{
    return (const volatile uint64_t *)(const void *)&entry_at(cq, cq->consumer)->reserved;
}

int hca_cq_wait(hca_cq_t *cq, uint64_t timeout_ns)
{
    return cq->context->backend.ops->wait_word(cq->context->backend.ctx, hca_cq_place(cq), UINT64_C(0xff) << 56,
                                               (uint64_t)owner_at(cq, cq->consumer) << 56, timeout_ns);
}

int hca_cq_arm(hca_cq_t *cq, bool solicited_only)
{
    hca_cost(cq->context, BACKEND_COST_CALL, 1);
    hca_doorbell(cq->context, HCA_UAR_CQ_ARM, hca_doorbell_arm(cq->number, solicited_only, cq->consumer));
    return 0;
}

// Entries of the queue pair that nobody polled go; the others move up behind the ones that stay.
void hca_cq_clean(hca_cq_t *cq, const hca_qp_t *qp)
{
    uint32_t end = cq->consumer, gone = 0;
    while (end - cq->consumer < cq->entries && entry_is_there(cq, end)) {
        end++;
    }
    for (uint32_t at = end; at != cq->consumer; at--) {
        const struct hca_cqe *entry = entry_at(cq, at - 1);
        if (entry->qpn == qp->number) {
            if (entry->kind != HCA_CQE_SEND && qp->srq != NULL) {
                (void)hca_receive_take(&qp->srq->receive, entry->index);
            }
            gone++;
        } else if (gone > 0) {
            struct hca_cqe moved = *entry;
            moved.owner = owner_at(cq, at - 1 + gone);
            *entry_at(cq, at - 1 + gone) = moved;
        }
    }
    cq->consumer += gone;
    *cq->record = cq->consumer;
}
