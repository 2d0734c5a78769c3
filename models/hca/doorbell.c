// The UAR pages: doorbells, and complete requests (BlueFlame).
//
// A doorbell from a page that is not the queue pair's is refused and counted: a process may ring only its own queues.
#include <stdlib.h>
#include <string.h>

#include "models/hca/internal.h"

static void doorbell_run(void *ctx);

void hca_doorbell_init(hca_t *hca)
{
    sim_event_init(&hca->doorbell_event, doorbell_run, hca);
}

void hca_doorbell_fini(hca_t *hca)
{
    sim_event_cancel(hca->sim, &hca->doorbell_event);
    struct hca_doorbell *lists[] = {hca->doorbell_first, hca->doorbell_free};
    for (unsigned i = 0; i < 2; i++) {
        while (lists[i] != NULL) {
            struct hca_doorbell *next = lists[i]->next;
            free(lists[i]);
            lists[i] = next;
        }
    }
}

// --- the effect of a doorbell ----------------------------------------------------------------------------------------

static void ring(hca_t *hca, const struct hca_doorbell *doorbell)
{
    struct hca_qp *qp = hca_qp_find(hca, doorbell->qpn);
    uint16_t ahead = qp == NULL ? 0 : (uint16_t)(doorbell->producer - qp->sq.producer);
    if (qp == NULL || qp->init.uar != doorbell->uar || qp->sq.entries == 0 ||
        qp->sq.producer + ahead - qp->sq.una > qp->sq.entries || qp->state == HCA_RESET || qp->state == HCA_INIT) {
        hca->counters[HCA_DOORBELLS_REFUSED]++;
        return;
    }
    sim_trace(hca->sim, hca->name, &hca_trace_doorbell, (const uint64_t[]){doorbell->qpn, doorbell->producer});
    uint32_t before = qp->sq.producer;
    qp->sq.producer += ahead;
    if (qp->state == HCA_ERROR || qp->state == HCA_SQE) { // what they contain does not matter, nor their path
        hca_flush_sends(qp);
        return;
    }
    // Only the next request in order can be used directly; others are fetched like any request.
    if (doorbell->whole && ahead == 1 && qp->sq.fetched == before && !qp->sq.fetching) {
        hca_wqe_store(qp, before, doorbell->data, doorbell->bytes);
    }
    hca_wqe_fetch(qp);
    hca_sender_kick(qp);
}

static void doorbell_run(void *ctx)
{
    static const struct sim_work ringing = {"HCA", "doorbell", false};
    hca_t *hca = ctx;
    sim_cause_label(hca->sim, hca->name, &ringing);
    uint64_t now_ps = sim_now_ps(hca->sim);
    while (hca->doorbell_first != NULL && hca->doorbell_first->due_ps <= now_ps) {
        struct hca_doorbell *doorbell = hca->doorbell_first;
        hca->doorbell_first = doorbell->next;
        ring(hca, doorbell);
        doorbell->next = hca->doorbell_free;
        hca->doorbell_free = doorbell;
    }
    if (hca->doorbell_first != NULL) {
        sim_event_schedule_at(hca->sim, &hca->doorbell_event, hca->doorbell_first->due_ps);
    }
}

static void doorbell_push(hca_t *hca, uint32_t uar, uint32_t qpn, uint16_t producer, const uint8_t *data,
                          uint32_t bytes)
{
    struct hca_doorbell *doorbell = hca->doorbell_free;
    if (doorbell != NULL) {
        hca->doorbell_free = doorbell->next;
    } else {
        doorbell = malloc(sizeof *doorbell);
    }
    if (doorbell == NULL) {
        sim_panic(hca->name, "no memory for a doorbell");
    }
    doorbell->next = NULL;
    doorbell->uar = uar;
    doorbell->qpn = qpn;
    doorbell->producer = producer;
    doorbell->whole = data != NULL;
    doorbell->bytes = bytes;
    doorbell->due_ps = sim_now_ps(hca->sim) + hca->config.doorbell_ps;
    if (data != NULL) {
        memcpy(doorbell->data, data, bytes);
    }
    if (hca->doorbell_first == NULL) {
        hca->doorbell_first = doorbell;
        sim_event_schedule_at(hca->sim, &hca->doorbell_event, doorbell->due_ps);
    } else {
        hca->doorbell_last->next = doorbell;
    }
    hca->doorbell_last = doorbell;
}

void hca_doorbells_drop(hca_t *hca, uint32_t uar)
{
    for (struct hca_doorbell *doorbell = hca->doorbell_first; doorbell != NULL; doorbell = doorbell->next) {
        doorbell->uar = doorbell->uar == uar ? HCA_UAR_PAGES : doorbell->uar;
    }
}

// --- arrival ---------------------------------------------------------------------------------------------------------

// Lines of a request arrive in order (posted writes), between those of other threads into other buffers; a line that
// does not continue the buffer's request ends it.
static void blueflame_write(hca_t *hca, uint32_t uar, uint32_t offset, const uint8_t *data, uint32_t bytes)
{
    struct hca_blueflame *flame = &hca->blueflame[uar][offset / HCA_BLUEFLAME_BYTES];
    uint32_t at = offset % HCA_BLUEFLAME_BYTES;
    if (at == 0) {
        hca->counters[HCA_BLUEFLAMES_DROPPED] += flame->received > 0;
        flame->received = 0;
    }
    if (at != flame->received || bytes > HCA_BLUEFLAME_BYTES - at) {
        hca->counters[HCA_BLUEFLAMES_DROPPED]++;
        flame->received = 0;
        return;
    }
    memcpy(flame->data + at, data, bytes);
    flame->received += bytes;
    struct hca_wqe_control control;
    if (flame->received < sizeof control) {
        return;
    }
    memcpy(&control, flame->data, sizeof control);
    if (flame->received < (uint32_t)control.units * HCA_WQE_UNIT_BYTES) {
        return;
    }
    hca->counters[HCA_BLUEFLAMES]++;
    doorbell_push(hca, uar, control.qpn, (uint16_t)(control.index + 1), flame->data,
                  (uint32_t)control.units * HCA_WQE_UNIT_BYTES);
    flame->received = 0;
}

static void register_write(hca_t *hca, uint32_t uar, uint32_t offset, uint64_t value)
{
    uint32_t low = (uint32_t)value, high = (uint32_t)(value >> 32);
    hca->counters[HCA_DOORBELLS]++;
    if (offset == HCA_UAR_SEND_DOORBELL) {
        doorbell_push(hca, uar, low, (uint16_t)high, NULL, 0);
    } else if (offset == HCA_UAR_CQ_ARM) {
        hca_cq_armed(hca, uar, low & 0x7fffffffu, low >> 31, high);
    } else if (offset == HCA_UAR_RECEIVE_DOORBELL) {
        struct hca_qp *qp = hca_qp_find(hca, low);
        if (qp != NULL && qp->init.uar == uar && qp->state == HCA_ERROR) {
            hca_flush_receives(qp);
        }
    } else {
        hca->counters[HCA_DOORBELLS_REFUSED]++;
    }
}

void hca_doorbell_write(hca_t *hca, uint64_t offset, const uint8_t *data, uint32_t bytes)
{
    uint32_t uar = (uint32_t)(offset / HCA_UAR_BYTES), at = (uint32_t)(offset % HCA_UAR_BYTES);
    if (at >= HCA_UAR_BLUEFLAME) {
        blueflame_write(hca, uar, at - HCA_UAR_BLUEFLAME, data, bytes);
        return;
    }
    uint64_t value;
    if (bytes != sizeof value) {
        hca->counters[HCA_DOORBELLS_REFUSED]++;
        return;
    }
    memcpy(&value, data, sizeof value);
    register_write(hca, uar, at, value);
}
