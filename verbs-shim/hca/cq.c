// Completion queues: poll, wait, arm.
#include <stdlib.h>
#include <string.h>

#include "verbs-shim/hca/hca_internal.h"

#define RESIZE_TIMEOUT_NS UINT64_C(1000000000)

enum { RECORD_BYTES = 64, CQE_WORDS = sizeof(struct hca_cqe) / 8 };

// One entry is reserved for the entry that ends a ring.
static uint32_t ring_entries(unsigned entries)
{
    return hca_round_up(entries + 1, 2);
}

static int buffers_create(hca_cq_t *cq)
{
    const struct backend *backend = &cq->context->backend;
    int status = backend->ops->alloc_pinned(backend->ctx, RECORD_BYTES, &cq->record_buffer);
    if (status != 0) {
        return status;
    }
    status = backend->ops->alloc_pinned(backend->ctx, cq->entries * sizeof(struct hca_cqe), &cq->buffer);
    if (status != 0) {
        backend->ops->free_pinned(backend->ctx, &cq->record_buffer);
        return status;
    }
    cq->record = cq->record_buffer.address;
    cq->ring = cq->buffer.address;
    return 0;
}

static void cq_free(hca_cq_t *cq)
{
    const struct backend *backend = &cq->context->backend;
    backend->ops->free_pinned(backend->ctx, &cq->buffer);
    backend->ops->free_pinned(backend->ctx, &cq->record_buffer);
    free(cq);
}

int hca_cq_create(hca_context_t *context, unsigned entries, void *user, hca_cq_t **cq_out)
{
    if (entries == 0 || entries > context->info.max_cq_entries) {
        return -EINVAL;
    }
    hca_cq_t *cq = calloc(1, sizeof *cq);
    if (cq == NULL) {
        return -ENOMEM;
    }
    cq->context = context;
    cq->user = user;
    cq->entries = ring_entries(entries);
    int status = buffers_create(cq);
    if (status != 0) {
        free(cq);
        return status;
    }
    const struct hca_command create = {.id = HCA_CMD_CQ_CREATE,
                                       .cq_create = {.eqn = context->eqn,
                                                     .uar = context->uar,
                                                     .base = cq->buffer.bus_address,
                                                     .record = cq->record_buffer.bus_address,
                                                     .entries = cq->entries}};
    status = hca_create(context, create, &cq->number);
    if (status != 0) {
        cq_free(cq);
        return status;
    }
    if (!hca_numbered_set(&context->cqs, cq->number, cq)) {
        (void)hca_command_plain(context, HCA_CMD_CQ_DESTROY, cq->number);
        cq_free(cq);
        return -ENOMEM;
    }
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
    int status = hca_command_plain(context, HCA_CMD_CQ_DESTROY, cq->number);
    if (status != 0) {
        return status;
    }
    (void)hca_numbered_set(&context->cqs, cq->number, NULL);
    context->users--;
    cq_free(cq);
    return 0;
}

unsigned hca_cq_entries(const hca_cq_t *cq)
{
    return cq->entries - 1;
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

// Unsignalled requests before it are done as well.
static uint64_t send_take(hca_qp_t *qp, uint32_t index)
{
    qp->send_done += (uint16_t)(index - qp->send_done);
    return qp->wr_ids[qp->send_done++ & (qp->send_entries - 1)];
}

// The send queue does not overwrite this entry before its completion is taken.
static struct hca_failure send_failure(const hca_qp_t *qp, uint32_t index)
{
    const uint8_t *entry = qp->send_ring + (size_t)(index & (qp->send_entries - 1)) * qp->send_stride_bytes;
    struct hca_wqe_control control;
    memcpy(&control, entry, sizeof control);
    struct hca_failure failure = {.known = true, .opcode = (enum hca_opcode)control.opcode};
    size_t at = sizeof control;
    at += qp->type == HCA_UD ? sizeof(struct hca_wqe_datagram) : 0;
    at += qp->type == HCA_XRC_INITIATOR ? sizeof(struct hca_wqe_xrc) : 0;
    if (hca_opcode_has(control.opcode, HCA_HAS_REMOTE)) {
        struct hca_wqe_remote remote;
        memcpy(&remote, entry + at, sizeof remote);
        failure.remote_address = remote.address;
        failure.rkey = remote.rkey;
        at += sizeof remote;
    }
    at += hca_opcode_has(control.opcode, HCA_HAS_ATOMIC) ? sizeof(struct hca_wqe_atomic) : 0;
    failure.bytes = control.inline_bytes;
    struct hca_wqe_data data;
    for (; (control.flags & HCA_WQE_INLINE) == 0 && at + sizeof data <= (size_t)control.units * HCA_WQE_UNIT_BYTES;
         at += sizeof data) {
        memcpy(&data, entry + at, sizeof data);
        if (failure.segments++ == 0) {
            failure.address = data.address;
            failure.lkey = data.lkey;
            failure.first_bytes = data.bytes;
        }
        failure.bytes += data.bytes;
    }
    return failure;
}

static struct hca_failure receive_failure(const struct hca_receive_ring *receive, uint32_t cookie)
{
    const struct hca_receive_buffer *buffer = cookie < receive->entries ? &receive->buffers[cookie] : NULL;
    struct hca_failure failure = {.known = buffer != NULL, .is_receive = true};
    if (buffer != NULL) {
        failure.bytes = buffer->bytes;
        failure.address = buffer->address;
        failure.first_bytes = buffer->first_bytes;
        failure.lkey = buffer->lkey;
        failure.segments = buffer->segments;
    }
    return failure;
}

// Called before the completion is taken.
static void failure_note(const struct hca_cqe *cqe, hca_qp_t *qp, const hca_srq_t *srq)
{
    if (cqe->status != HCA_OK && cqe->status != HCA_FLUSHED && qp != NULL) {
        qp->failure = cqe->kind == HCA_CQE_SEND
                          ? send_failure(qp, cqe->index)
                          : receive_failure(srq != NULL ? &srq->receive : &qp->receive, cqe->index);
    }
}

// false: the queue pair was destroyed while the completion was in flight.
static bool entry_take(hca_cq_t *cq, const struct hca_cqe *cqe, struct hca_wc *wc)
{
    hca_qp_t *qp = hca_numbered_get(&cq->context->qps, cqe->qpn);
    hca_srq_t *srq = qp != NULL ? qp->srq : NULL;
    if (cqe->srqn != HCA_NO_SRQ) { // an XRC receive
        srq = hca_numbered_get(&cq->context->srqs, cqe->srqn);
    }
    if (srq == NULL && (qp == NULL || cqe->srqn != HCA_NO_SRQ)) {
        return false;
    }
    failure_note(cqe, qp, srq);
    *wc = (struct hca_wc){.status = (enum hca_status)cqe->status,
                          .kind = (enum hca_cqe_kind)cqe->kind,
                          .opcode = (enum hca_opcode)cqe->opcode,
                          .bytes = cqe->bytes,
                          .immediate = cqe->immediate,
                          .has_immediate = (cqe->flags & HCA_CQE_IMMEDIATE) != 0,
                          .has_route = (cqe->flags & HCA_CQE_GRH) != 0,
                          .qpn = cqe->qpn,
                          .source_qpn = cqe->source_qpn,
                          .source_lid = cqe->source_lid,
                          .sl = cqe->sl,
                          .fault = cqe->status != HCA_OK && cqe->status != HCA_FLUSHED && cqe->immediate < HCA_FAULTS
                                       ? (enum hca_fault)cqe->immediate
                                       : HCA_FAULT_NONE};
    if (cqe->kind == HCA_CQE_SEND) {
        wc->wr_id = send_take(qp, cqe->index);
    } else {
        wc->wr_id = hca_receive_take(srq != NULL ? &srq->receive : &qp->receive, cqe->index);
    }
    if (cqe->status != HCA_OK && qp != NULL && !qp->failed) {
        qp->failed = true;
        hca_receive_doorbell(qp);
    }
    return true;
}

bool hca_cq_is_empty(const hca_cq_t *cq)
{
    return !entry_is_there(cq, cq->consumer);
}

int hca_cq_poll(hca_cq_t *cq, int max, struct hca_wc *wc_out)
{
    hca_cost(cq->context, BACKEND_COST_CALL, HCA_POLL_CALLS);
    hca_cost(cq->context, BACKEND_COST_LOAD_STORE, HCA_POLL_LOADS);
    int count = 0;
    backend_polled(&cq->context->backend, &entry_at(cq, cq->consumer)->srqn, entry_is_there(cq, cq->consumer));
    uint32_t before = cq->consumer;
    while (count < max && entry_is_there(cq, cq->consumer)) {
        const struct hca_cqe cqe = *entry_at(cq, cq->consumer);
        cq->consumer++;
        count += entry_take(cq, &cqe, &wc_out[count]);
    }
    if (cq->consumer != before) {
        *cq->record = cq->consumer;
        hca_cost(cq->context, BACKEND_COST_LOAD_STORE, (uint64_t)(cq->consumer - before) * CQE_WORDS + 1);
    }
    return count;
}

static const volatile uint64_t *entry_word(const hca_cq_t *cq, uint32_t count)
{
    return (const volatile uint64_t *)(const void *)&entry_at(cq, count)->srqn;
}

static int entry_wait(const hca_cq_t *cq, uint32_t count, uint64_t timeout_ns)
{
    const struct backend *backend = &cq->context->backend;
    return backend->ops->wait_word(backend->ctx, entry_word(cq, count), UINT64_C(0xff) << 56,
                                   (uint64_t)owner_at(cq, count) << 56, timeout_ns);
}

const volatile uint64_t *hca_cq_next_word(const hca_cq_t *cq)
{
    return entry_word(cq, cq->consumer);
}

int hca_cq_wait(hca_cq_t *cq, uint64_t timeout_ns)
{
    return entry_wait(cq, cq->consumer, timeout_ns);
}

int hca_cq_arm(hca_cq_t *cq, bool solicited_only)
{
    hca_cost(cq->context, BACKEND_COST_CALL, 1);
    hca_doorbell(cq->context, HCA_UAR_CQ_ARM, hca_doorbell_arm(cq->number, solicited_only, cq->consumer));
    return 0;
}

// Removes the queue pair's entries that were not polled; the entries that stay close the gaps.
static void clean(hca_cq_t *cq, const hca_qp_t *qp, uint32_t srqn)
{
    uint32_t end = cq->consumer, gone = 0;
    while (end - cq->consumer < cq->entries && entry_is_there(cq, end)) {
        end++;
    }
    for (uint32_t at = end; at != cq->consumer; at--) {
        const struct hca_cqe *entry = entry_at(cq, at - 1);
        bool goes = qp != NULL ? entry->qpn == qp->number : entry->srqn == srqn;
        if (goes) {
            if (qp != NULL && entry->kind != HCA_CQE_SEND && qp->srq != NULL) {
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

void hca_cq_clean(hca_cq_t *cq, const hca_qp_t *qp)
{
    clean(cq, qp, HCA_NO_SRQ);
}

void hca_cq_clean_srq(hca_cq_t *cq, uint32_t srqn)
{
    clean(cq, NULL, srqn);
}

// --- resizing --------------------------------------------------------------------------------------------------------

// Marks every entry as empty for a consumer that starts at `count`.
static void ring_clear(const hca_cq_t *cq, uint32_t count)
{
    for (uint32_t i = 0; i < cq->entries; i++) {
        entry_at(cq, count + i)->owner = !owner_at(cq, count + i);
    }
    hca_cost(cq->context, BACKEND_COST_LOAD_STORE, cq->entries);
}

// Copies the entries that were not polled from the old ring, up to its last entry, which may still be in flight.
static int entries_move(const hca_cq_t *old, const hca_cq_t *cq)
{
    for (uint32_t count = old->consumer;; count++) {
        if (entry_wait(old, count, RESIZE_TIMEOUT_NS) != 0) {
            return -EIO;
        }
        struct hca_cqe entry = *entry_at(old, count);
        if (entry.kind == HCA_CQE_RESIZED) {
            return 0;
        }
        entry.owner = owner_at(cq, count + 1);
        *entry_at(cq, count + 1) = entry;
        hca_cost(cq->context, BACKEND_COST_LOAD_STORE, CQE_WORDS);
    }
}

static uint32_t entries_waiting(const hca_cq_t *cq)
{
    uint32_t count = 0;
    while (count < cq->entries && entry_is_there(cq, cq->consumer + count)) {
        count++;
    }
    return count;
}

int hca_cq_resize(hca_cq_t *cq, unsigned entries)
{
    const struct backend *backend = &cq->context->backend;
    hca_cost(cq->context, BACKEND_COST_CALL, 1);
    if (entries == 0 || entries > cq->context->info.max_cq_entries || entries < entries_waiting(cq)) {
        return -EINVAL;
    }
    hca_cq_t resized = *cq;
    resized.entries = ring_entries(entries);
    resized.consumer = cq->consumer + 1;
    int status = backend->ops->alloc_pinned(backend->ctx, resized.entries * sizeof(struct hca_cqe), &resized.buffer);
    if (status != 0) {
        return status;
    }
    resized.ring = resized.buffer.address;
    ring_clear(&resized, resized.consumer);
    struct hca_command resize = {.id = HCA_CMD_CQ_RESIZE,
                                 .number = cq->number,
                                 .cq_resize = {resized.buffer.bus_address, resized.entries, cq->consumer}};
    status = hca_command(cq->context, &resize);
    if (status != 0) {
        backend->ops->free_pinned(backend->ctx, &resized.buffer);
        return status;
    }
    status = entries_move(cq, &resized);
    struct backend_buffer old = cq->buffer;
    *cq = resized;
    *cq->record = cq->consumer;
    backend->ops->free_pinned(backend->ctx, &old);
    return status;
}

unsigned hca_cq_waiting(const hca_cq_t *cq, struct hca_wc *first_out)
{
    uint32_t count = entries_waiting(cq);
    const struct hca_cqe *cqe = entry_at(cq, cq->consumer);
    const hca_qp_t *qp = count > 0 ? hca_numbered_get(&cq->context->qps, cqe->qpn) : NULL;
    *first_out = (struct hca_wc){0};
    if (qp != NULL) {
        const struct hca_receive_ring *receive = qp->srq != NULL ? &qp->srq->receive : &qp->receive;
        bool is_send = cqe->kind == HCA_CQE_SEND;
        *first_out = (struct hca_wc){.status = (enum hca_status)cqe->status,
                                     .kind = (enum hca_cqe_kind)cqe->kind,
                                     .opcode = (enum hca_opcode)cqe->opcode,
                                     .qpn = cqe->qpn};
        if (is_send) {
            first_out->wr_id = qp->wr_ids[cqe->index & (qp->send_entries - 1)];
        } else if (cqe->index < receive->entries) {
            first_out->wr_id = receive->wr_ids[cqe->index];
        }
    }
    return count;
}
