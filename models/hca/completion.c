// Completion queues and event queues: rings in host memory that the HCA writes.
//
// A CQ that looks full is not yet overrun: the driver may have taken entries since its record was last read. It is read
// then, completions wait meanwhile, and only a CQ that is still full is overrun (11.6.3.1: CQ error, and its queue
// pairs fail).
#include <stdlib.h>

#include "models/hca/internal.h"

// --- events --------------------------------------------------------------------------------------------------------

enum sim_status hca_fw_eq_create(hca_t *hca, const struct hca_eq_init *init, uint32_t *eqn_out)
{
    if (init->entries == 0 || (init->entries & (init->entries - 1)) != 0 || init->base % sizeof(struct hca_eqe) != 0) {
        return SIM_ERR_INVALID;
    }
    for (uint32_t eqn = 1; eqn <= hca->config.max_eq; eqn++) {
        if (!hca->eqs[eqn].used) {
            hca->eqs[eqn] = (struct hca_eq){.base = init->base, .entries = init->entries, .used = true};
            hca->fence_address = init->base;
            hca->fence_possible = true;
            *eqn_out = eqn;
            return SIM_OK;
        }
    }
    return SIM_ERR_NO_MEMORY;
}

static bool eq_valid(const hca_t *hca, uint32_t eqn)
{
    return eqn >= 1 && eqn <= hca->config.max_eq && hca->eqs[eqn].used;
}

enum sim_status hca_fw_eq_destroy(hca_t *hca, uint32_t eqn)
{
    if (!eq_valid(hca, eqn)) {
        return SIM_ERR_INVALID;
    }
    if (hca->eqs[eqn].users > 0) {
        return SIM_ERR_BUSY;
    }
    hca->eqs[eqn].used = false;
    return SIM_OK;
}

void hca_event_raise(hca_t *hca, uint32_t eqn, enum hca_event_type type, uint32_t object)
{
    if (!eq_valid(hca, eqn)) {
        return;
    }
    struct hca_eq *eq = &hca->eqs[eqn];
    uint32_t place = eq->producer & (eq->entries - 1);
    struct hca_eqe eqe = {.object = object, .type = (uint8_t)type, .owner = (eq->producer & eq->entries) == 0};
    eq->producer++;
    hca->counters[HCA_EVENTS_RAISED]++;
    hca_dma_write(hca, eq->base + (uint64_t)place * sizeof eqe, &eqe, sizeof eqe);
}

void hca_event_raise_all(hca_t *hca, enum hca_event_type type)
{
    for (uint32_t eqn = 1; eqn <= hca->config.max_eq; eqn++) {
        hca_event_raise(hca, eqn, type, 0);
    }
}

// --- completion queues -----------------------------------------------------------------------------------------------

enum sim_status hca_fw_cq_create(hca_t *hca, const struct hca_cq_init *init, uint32_t *cqn_out)
{
    if (!eq_valid(hca, init->eqn) || init->entries == 0 || (init->entries & (init->entries - 1)) != 0 ||
        init->entries > hca->config.max_entries || init->base % sizeof(struct hca_cqe) != 0 || init->record % 8 != 0) {
        return SIM_ERR_INVALID;
    }
    for (uint32_t cqn = 1; cqn <= hca->config.max_cq; cqn++) {
        struct hca_cq *cq = hca->cqs[cqn];
        if (cq != NULL && cq->used) {
            continue;
        }
        uint32_t generation = cq == NULL ? 0 : cq->generation;
        cq = cq == NULL ? malloc(sizeof *cq) : cq;
        if (cq == NULL) {
            return SIM_ERR_NO_MEMORY;
        }
        *cq = (struct hca_cq){.hca = hca, .number = cqn, .init = *init, .used = true, .generation = generation + 1};
        hca->cqs[cqn] = cq;
        hca->eqs[init->eqn].users++;
        *cqn_out = cqn;
        return SIM_OK;
    }
    return SIM_ERR_NO_MEMORY;
}

static struct hca_cq *cq_find(const hca_t *hca, uint32_t cqn)
{
    struct hca_cq *cq = cqn >= 1 && cqn <= hca->config.max_cq ? hca->cqs[cqn] : NULL;
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

// Completions of a queue pair that is gone or was reset are not told of any more.
void hca_cq_forget(hca_t *hca, uint32_t cqn, uint32_t qpn)
{
    struct hca_cq *cq = cq_find(hca, cqn);
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

enum sim_status hca_fw_cq_destroy(hca_t *hca, uint32_t cqn)
{
    struct hca_cq *cq = cq_find(hca, cqn);
    if (cq == NULL) {
        return SIM_ERR_INVALID;
    }
    if (cq->users > 0) {
        return SIM_ERR_BUSY;
    }
    held_drop(cq);
    cq->used = false;
    cq->generation++;
    hca->eqs[cq->init.eqn].users--;
    return SIM_OK;
}

static void cqe_write(struct hca_cq *cq, const struct hca_cqe *cqe, bool solicited)
{
    hca_t *hca = cq->hca;
    struct hca_cqe entry = *cqe;
    entry.owner = (cq->producer & cq->init.entries) == 0;
    uint32_t place = cq->producer & (cq->init.entries - 1);
    cq->producer++;
    hca->counters[HCA_COMPLETIONS]++;
    hca->counters[HCA_COMPLETION_ERRORS] += entry.status != HCA_OK;
    sim_trace(hca->sim, hca->name, &hca_trace_completion, (const uint64_t[]){entry.qpn, entry.status});
    hca_dma_write(hca, cq->init.base + (uint64_t)place * sizeof entry, &entry, sizeof entry);
    // 11.4.2.2: a solicited arming is also met by a completion in error.
    if (cq->arm == HCA_ARM_ANY || (cq->arm == HCA_ARM_SOLICITED && (solicited || entry.status != HCA_OK))) {
        cq->arm = HCA_ARM_NONE;
        hca_event_raise(hca, cq->init.eqn, HCA_EVENT_COMPLETION, cq->number);
    }
}

static void cq_overrun(struct hca_cq *cq)
{
    hca_t *hca = cq->hca;
    cq->overrun = true;
    held_drop(cq);
    hca->counters[HCA_CQ_OVERRUNS]++;
    hca_event_raise(hca, cq->init.eqn, HCA_EVENT_CQ_ERROR, cq->number);
    for (uint32_t qpn = 1; qpn <= hca->config.max_qp; qpn++) {
        struct hca_qp *qp = hca_qp_find(hca, qpn);
        if (qp != NULL && (qp->init.send_cqn == cq->number || qp->init.receive_cqn == cq->number) &&
            qp->state != HCA_ERROR && qp->state != HCA_RESET) {
            hca_event_raise(hca, qp->init.eqn, HCA_EVENT_QP_FATAL, qpn);
            hca_qp_fail(qp);
        }
    }
}

static bool cq_full(const struct hca_cq *cq)
{
    return cq->producer - cq->consumer >= cq->init.entries;
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
        cq->consumer = read->data[0] | (uint32_t)read->data[1] << 8 | (uint32_t)read->data[2] << 16 |
                       (uint32_t)read->data[3] << 24;
    }
    if (cq_full(cq)) {
        cq_overrun(cq);
        return;
    }
    while (cq->held != NULL && !cq_full(cq)) {
        struct hca_held_cqe *held = cq->held;
        cq->held = held->next;
        cqe_write(cq, &held->cqe, held->solicited);
        free(held);
    }
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

void hca_cq_push(hca_t *hca, uint32_t cqn, const struct hca_cqe *cqe, bool solicited)
{
    struct hca_cq *cq = cq_find(hca, cqn);
    if (cq == NULL || cq->overrun) {
        return;
    }
    if (cq->held == NULL && !cq_full(cq)) {
        cqe_write(cq, cqe, solicited);
        return;
    }
    struct hca_held_cqe *held = malloc(sizeof *held);
    if (held == NULL) {
        sim_panic(hca->name, "no memory for a completion");
    }
    *held = (struct hca_held_cqe){.cqe = *cqe, .solicited = solicited};
    if (cq->held == NULL) {
        cq->held = held;
    } else {
        cq->held_last->next = held;
    }
    cq->held_last = held;
    if (!cq->reading) {
        cq_record_read(cq);
    }
}

void hca_cq_armed(hca_t *hca, uint32_t cqn, bool solicited_only, uint32_t consumer)
{
    struct hca_cq *cq = cq_find(hca, cqn);
    if (cq == NULL) {
        hca->counters[HCA_DOORBELLS_REFUSED]++;
        return;
    }
    if ((int32_t)(consumer - cq->consumer) > 0 && (int32_t)(cq->producer - consumer) >= 0) {
        cq->consumer = consumer;
    }
    if (cq->producer != consumer) {
        cq->arm = HCA_ARM_NONE;
        hca_event_raise(hca, cq->init.eqn, HCA_EVENT_COMPLETION, cqn);
        return;
    }
    // Arming for any completion is not taken back by arming for solicited ones (11.4.2.2).
    if (!solicited_only || cq->arm == HCA_ARM_NONE) {
        cq->arm = solicited_only ? HCA_ARM_SOLICITED : HCA_ARM_ANY;
    }
}
