// Completion queues: rings in host memory that the HCA writes.
//
// A CQ that seems full is not yet overrun: the driver may have taken entries since its record was last read. The HCA
// reads the record, completions wait for it, and only a CQ that is still full is overrun (11.6.3.1: CQ error, and its
// queue pairs fail).
#include <stdlib.h>

#include "models/hca/internal.h"

// --- completion queues -----------------------------------------------------------------------------------------------

static void late_run(void *ctx);
static void notify_run(void *ctx);

static bool ring_valid(const hca_t *hca, uint64_t base, uint32_t entries)
{
    return entries != 0 && (entries & (entries - 1)) == 0 && entries <= hca->config.max_cq_entries &&
           base % sizeof(struct hca_cqe) == 0;
}

enum sim_status hca_cmd_cq_create(hca_t *hca, struct hca_command *command)
{
    const struct hca_cq_init *init = &command->cq_create;
    if (!hca_eq_valid(hca, init->eqn) || !hca_uar_valid(hca, init->uar) ||
        !ring_valid(hca, init->base, init->entries) || init->record % 8 != 0) {
        return SIM_ERR_INVALID;
    }
    uint32_t cqn = 1;
    while (hca_cq_find(hca, cqn) != NULL) {
        cqn++;
    }
    struct hca_cq **cqs =
        cqn > hca->config.max_cq ? NULL : hca_table_grown(hca->cqs, &hca->cq_capacity, cqn, sizeof(struct hca_cq *));
    if (cqs == NULL) {
        return SIM_ERR_NO_MEMORY;
    }
    hca->cqs = cqs;
    struct hca_cq *cq = cqs[cqn] != NULL ? cqs[cqn] : calloc(1, sizeof *cq);
    if (cq == NULL) {
        return SIM_ERR_NO_MEMORY;
    }
    const uint32_t generation = cq->generation + 1;
    *cq = (struct hca_cq){.hca = hca, .number = cqn, .init = *init, .used = true, .generation = generation};
    sim_event_init(&cq->late, late_run, cq);
    sim_event_init(&cq->notifying, notify_run, cq);
    cqs[cqn] = cq;
    hca->eqs[init->eqn].users++;
    hca->uar_users[init->uar]++;
    command->number = cqn;
    return SIM_OK;
}

struct hca_cq *hca_cq_find(const hca_t *hca, uint32_t cqn)
{
    struct hca_cq *cq = cqn < hca->cq_capacity ? hca->cqs[cqn] : NULL;
    return cq != NULL && cq->used ? cq : NULL;
}

static void held_drop(struct hca_cq *cq)
{
    while (cq->held != NULL) {
        struct hca_held_cqe *held = cq->held;
        cq->held = held->next;
        free(held);
    }
    cq->held_last = NULL;
}

// Completions of a queue pair that was destroyed or reset are not reported any more.
void hca_cq_forget(hca_t *hca, uint32_t cqn, uint32_t qpn)
{
    struct hca_cq *cq = hca_cq_find(hca, cqn);
    struct hca_held_cqe **link = &cq->held, *last = NULL;
    while (*link != NULL) {
        struct hca_held_cqe *held = *link;
        if (held->cqe.qpn == qpn) {
            *link = held->next;
            free(held);
        } else {
            last = held;
            link = &held->next;
        }
    }
    cq->held_last = last;
}

enum sim_status hca_cmd_cq_destroy(hca_t *hca, struct hca_command *command)
{
    struct hca_cq *cq = hca_cq_find(hca, command->number);
    if (cq == NULL) {
        return SIM_ERR_INVALID;
    }
    if (cq->users > 0) {
        return SIM_ERR_BUSY;
    }
    held_drop(cq);
    sim_event_cancel(hca->sim, &cq->late);
    sim_event_cancel(hca->sim, &cq->notifying);
    cq->used = false;
    cq->generation++;
    hca->eqs[cq->init.eqn].users--;
    hca->uar_users[cq->init.uar]--;
    return SIM_OK;
}

void hca_cq_free(struct hca_cq *cq)
{
    if (cq != NULL) {
        sim_event_cancel(cq->hca->sim, &cq->late);
        sim_event_cancel(cq->hca->sim, &cq->notifying);
        free(cq);
    }
}

static void entry_write(struct hca_cq *cq, const struct hca_cqe *cqe)
{
    struct hca_cqe entry = *cqe;
    entry.owner = (cq->producer & cq->init.entries) == 0;
    uint32_t entry_index = cq->producer & (cq->init.entries - 1);
    cq->producer++;
    hca_dma_write(cq->hca, cq->init.base + (uint64_t)entry_index * sizeof entry, &entry, sizeof entry);
}

static void notify_run(void *ctx)
{
    struct hca_cq *cq = ctx;
    for (; cq->pending_events > 0; cq->pending_events--) {
        hca_event_raise(cq->hca, cq->init.eqn, HCA_EVENT_COMPLETION, cq->number);
    }
}

// 11.4.2.2: a completion that arrives in an armed queue raises one event. No clause gives a time limit, so a poll may
// have taken the completion by then. Completions from before the arming raise no event.
static void cq_notify(struct hca_cq *cq)
{
    cq->arm = HCA_ARM_NONE;
    cq->notified = cq->producer;
    cq->pending_events++;
    uint64_t late_ps = hca_late_ps(cq->hca, ADVERSARY_EVENT);
    if (late_ps == 0) {
        sim_event_cancel(cq->hca->sim, &cq->notifying);
        notify_run(cq);
    } else if (!sim_event_pending(&cq->notifying)) {
        sim_event_schedule(cq->hca->sim, &cq->notifying, late_ps);
    }
}

static void cqe_write(struct hca_cq *cq, const struct hca_cqe *cqe, bool solicited)
{
    hca_t *hca = cq->hca;
    hca->counters[HCA_COMPLETIONS]++;
    hca->counters[HCA_COMPLETION_ERRORS] += cqe->status != HCA_OK;
    sim_trace(hca->sim, hca->name, &hca_trace_completion, (const uint64_t[]){cqe->qpn, cqe->status});
    entry_write(cq, cqe);
    // 11.4.2.2: a completion in error also satisfies a solicited arming.
    bool meets = solicited || cqe->status != HCA_OK;
    cq->solicited = meets ? cq->producer : cq->solicited;
    if (cq->arm == HCA_ARM_ANY || (cq->arm == HCA_ARM_SOLICITED && meets)) {
        cq_notify(cq);
    }
}

static void cq_overrun(struct hca_cq *cq)
{
    hca_t *hca = cq->hca;
    cq->overrun = true;
    hca_lost_completion(cq, cq->held != NULL ? cq->held->cqe.qpn : 0);
    held_drop(cq);
    hca->counters[HCA_CQ_OVERRUNS]++;
    hca_event_raise(hca, cq->init.eqn, HCA_EVENT_CQ_ERROR, cq->number);
    for (uint32_t qpn = 1; qpn < hca->qp_capacity; qpn++) {
        struct hca_qp *qp = hca_qp_find(hca, qpn);
        if (qp != NULL && (qp->init.send_cqn == cq->number || qp->init.receive_cqn == cq->number) &&
            qp->state != HCA_ERROR && qp->state != HCA_RESET) {
            hca_event_raise(hca, qp->init.eqn, HCA_EVENT_QP_FATAL, qpn);
            hca_qp_fail(qp);
        }
    }
    for (uint32_t srqn = 1; srqn < hca->srq_capacity; srqn++) {
        struct hca_rq *srq = hca_srq_find(hca, srqn);
        if (srq != NULL && srq->xrcdn != HCA_NO_XRCD && srq->cqn == cq->number && !srq->failed) {
            hca_rq_fail(srq); // its targets refuse requests for it
        }
    }
}

static bool cq_full(const struct hca_cq *cq)
{
    return cq->producer - cq->consumer >= cq->init.entries;
}

static void held_write(struct hca_cq *cq)
{
    while (cq->held != NULL && !cq_full(cq)) {
        struct hca_held_cqe *held = cq->held;
        cq->held = held->next;
        cqe_write(cq, &held->cqe, held->solicited);
        free(held);
    }
}

// The driver's count of completions taken, read from the record or told by a doorbell or command: whichever is newest.
static void cq_consumer_set(struct hca_cq *cq, uint32_t consumer)
{
    if ((int32_t)(consumer - cq->consumer) > 0 && (int32_t)(cq->producer - consumer) >= 0) {
        cq->consumer = consumer;
    }
}

static void cq_record_read(struct hca_cq *cq);

static void cq_record_done(hca_t *hca, struct hca_dma_read *read)
{
    struct hca_cq *cq = read->owner;
    (void)hca;
    if (!cq->used || cq->generation != read->generation) {
        return;
    }
    cq->reading = false;
    if (!read->failed) {
        cq_consumer_set(cq, read->data[0] | (uint32_t)read->data[1] << 8 | (uint32_t)read->data[2] << 16 |
                                (uint32_t)read->data[3] << 24);
    }
    if (cq_full(cq)) {
        cq_overrun(cq);
        return;
    }
    held_write(cq);
    if (cq->held != NULL) {
        cq_record_read(cq);
    }
}

static void cq_record_read(struct hca_cq *cq)
{
    cq->reading = true;
    struct hca_dma_read *read =
        hca_dma_read(cq->hca, HCA_DMA_QUEUES, cq->init.record, sizeof(uint64_t), NULL, cq_record_done, cq);
    read->generation = cq->generation;
}

// Late completions are written together with later ones, in their order (10.8.5: each work queue's completions come in
// order; here those of the whole queue do). No clause gives a time limit.
static void late_run(void *ctx)
{
    static const struct sim_work late = {"HCA", "late completion", false};
    struct hca_cq *cq = ctx;
    sim_cause_label(cq->hca->sim, cq->hca->name, &late);
    held_write(cq);
    if (cq->held != NULL && !cq->reading) {
        cq_record_read(cq);
    }
}

static void held_push(struct hca_cq *cq, const struct hca_cqe *cqe, bool solicited)
{
    struct hca_held_cqe *held = malloc(sizeof *held);
    if (held == NULL) {
        sim_panic(cq->hca->name, "no memory for a completion");
    }
    *held = (struct hca_held_cqe){.cqe = *cqe, .solicited = solicited};
    if (cq->held == NULL) {
        cq->held = held;
    } else {
        cq->held_last->next = held;
    }
    cq->held_last = held;
}

void hca_cq_push(hca_t *hca, uint32_t cqn, const struct hca_cqe *cqe, bool solicited)
{
    struct hca_cq *cq = hca_cq_find(hca, cqn);
    if (cq == NULL || cq->overrun) {
        return;
    }
    if (cq->held == NULL && !cq_full(cq)) {
        uint64_t late_ps = hca_late_ps(hca, ADVERSARY_COMPLETION);
        if (late_ps == 0) {
            cqe_write(cq, cqe, solicited);
            return;
        }
        sim_event_schedule(hca->sim, &cq->late, late_ps);
    }
    held_push(cq, cqe, solicited);
    if (!cq->reading && !sim_event_pending(&cq->late)) {
        cq_record_read(cq);
    }
}

void hca_cq_armed(hca_t *hca, uint32_t uar, uint32_t cqn, bool solicited_only, uint32_t consumer)
{
    struct hca_cq *cq = hca_cq_find(hca, cqn);
    if (cq == NULL || cq->init.uar != uar) {
        hca->counters[HCA_DOORBELLS_REFUSED]++;
        return;
    }
    cq_consumer_set(cq, consumer);
    // Completions since the last event that were not taken yet raise an event at once, if they are of the requested
    // kind.
    uint32_t known = (int32_t)(cq->notified - consumer) > 0 ? cq->notified : consumer;
    if ((int32_t)((solicited_only ? cq->solicited : cq->producer) - known) > 0) {
        cq_notify(cq);
        return;
    }
    // Arming for any completion is not undone by arming for solicited ones (11.4.2.2).
    if (!solicited_only || cq->arm == HCA_ARM_NONE) {
        cq->arm = solicited_only ? HCA_ARM_SOLICITED : HCA_ARM_ANY;
    }
}

enum sim_status hca_cmd_cq_resize(hca_t *hca, struct hca_command *command)
{
    const struct hca_cq_resize *resize = &command->cq_resize;
    struct hca_cq *cq = hca_cq_find(hca, command->number);
    if (cq == NULL || cq->overrun || !ring_valid(hca, resize->base, resize->entries)) {
        return SIM_ERR_INVALID;
    }
    cq_consumer_set(cq, resize->consumer);
    if (!cq->reading) { // late completions count as well
        held_write(cq);
    }
    if (cq->producer - cq->consumer > resize->entries) {
        return SIM_ERR_INVALID;
    }
    if (cq_full(cq)) {
        return SIM_ERR_BUSY;
    }
    const struct hca_cqe last = {.kind = HCA_CQE_RESIZED};
    entry_write(cq, &last);
    cq->consumer++; // the driver does not count this entry
    cq->init.base = resize->base;
    cq->init.entries = resize->entries;
    held_write(cq);
    return SIM_OK;
}
