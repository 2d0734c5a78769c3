// Order at the responder: packets that write memory and atomics take turns, one after the other.
//
// IBA 9.5 as akimoto2012 (chapter 2) interprets it: an atomic is executed after the accesses before it, except reads,
// and before those after it; between its read and its write the HCA makes no other memory access on behalf of a
// requester. So the unit reads host memory by DMA, waits for the answer, writes the sum, and only then the next access
// has its turn. The write is posted, and in PCI Express no later read passes it.
#include <stdlib.h>
#include <string.h>

#include "models/hca/internal.h"

static void order_run(void *ctx);

void hca_order_init(hca_t *hca)
{
    sim_event_init(&hca->order_event, order_run, hca);
}

void hca_order_fini(hca_t *hca)
{
    sim_event_cancel(hca->sim, &hca->order_event);
    while (hca->order_first != NULL) {
        struct hca_order *order = hca->order_first;
        hca->order_first = order->next;
        if (order->packet != NULL) {
            ib_packet_give(hca->packets, order->packet);
        }
        free(order);
    }
    while (hca->order_free != NULL) {
        struct hca_order *order = hca->order_free;
        hca->order_free = order->next;
        free(order);
    }
}

struct hca_order *hca_order_take(hca_t *hca)
{
    struct hca_order *order = hca->order_free;
    if (order != NULL) {
        hca->order_free = order->next;
    } else {
        order = malloc(sizeof *order);
    }
    if (order == NULL) {
        sim_panic(hca->name, "no memory for an access");
    }
    order->next = NULL;
    order->packet = NULL;
    order->piece_count = 0;
    order->completes = false;
    order->solicited = false;
    order->acknowledge = false;
    order->fails = false;
    return order;
}

bool hca_order_has_room(const hca_t *hca)
{
    return hca->order_count < hca->config.order_entries;
}

// --- the end of an access --------------------------------------------------------------------------------------------

static bool is_current(const struct hca_order *order)
{
    return order->qp->used && order->qp->generation == order->generation;
}

static void finish(hca_t *hca, struct hca_order *order)
{
    struct hca_qp *qp = order->qp;
    if (is_current(order)) {
        qp->rsp.order_done++;
        if (order->completes) {
            hca_cq_push(hca, order->cqn, &order->cqe, order->solicited);
        }
        if (order->fails) {
            hca_qp_fail(qp);
        }
        if (qp->state == HCA_ERROR) {
            hca_flush_receives_resume(qp, false);
        } else {
            if (order->acknowledge) {
                hca_responder_acknowledge(qp, order->psn);
            }
            hca_responder_ack_list(qp);
            hca_reader_kick(qp);
        }
    }
    if (order->packet != NULL) {
        hca_receiver_discard(hca, order->packet);
    }
    order->next = hca->order_free;
    hca->order_free = order;
    hca->orders_done++;
    hca_fences_check(hca);
}

static struct hca_order *pop(hca_t *hca)
{
    struct hca_order *order = hca->order_first;
    hca->order_first = order->next;
    hca->order_count--;
    return order;
}

// --- atomics -------------------------------------------------------------------------------------------------------

static void atomic_end(hca_t *hca, struct hca_order *order)
{
    struct hca_qp *qp = order->qp;
    hca->order_busy = false;
    hca->order_free_ps = sim_now_ps(hca->sim);
    (void)pop(hca);
    if (is_current(order) && qp->state != HCA_ERROR) {
        struct hca_slot *slot = &qp->rsp.slots[order->slot % qp->rsp.slot_count];
        slot->original = order->original;
        slot->state = HCA_SLOT_READY;
        slot->due_ps = sim_now_ps(hca->sim) + hca->config.atomic_answer_ps;
        if (order->failed) {
            hca_responder_break(qp, IB_NAK_REMOTE_OPERATION, HCA_FAULT_MEMORY, HCA_EVENT_QP_FATAL, slot->psn);
        }
    }
    finish(hca, order);
    hca_receiver_resume(hca);
    hca_order_pump(hca);
}

static void atomic_compute(hca_t *hca, struct hca_order *order)
{
    if (!order->failed && is_current(order)) {
        bool swaps = order->opcode == IB_COMPARE_SWAP;
        uint64_t result = swaps ? order->swap_add : order->original + order->swap_add;
        if (!swaps || order->original == order->compare) {
            hca_dma_write(hca, order->pieces[0].bus, &result, sizeof result);
        }
    }
    atomic_end(hca, order);
}

static void atomic_read_done(hca_t *hca, struct hca_dma_read *read)
{
    struct hca_order *order = read->owner;
    order->failed = read->failed;
    memcpy(&order->original, read->data, sizeof order->original);
    sim_event_schedule(hca->sim, &hca->order_event, hca->config.atomic_ps);
}

static void atomic_begin(hca_t *hca, struct hca_order *order)
{
    uint64_t waited_ps = sim_now_ps(hca->sim) - order->since_ps;
    hca->order_busy = true;
    sim_event_cancel(hca->sim, &hca->order_event); // it may be pending for a write whose turn came at this instant
    hca->counters[HCA_ATOMICS]++;
    hca_wait_add(hca, HCA_WAIT_ATOMIC, order->since_ps);
    sim_trace(hca->sim, hca->name, &hca_trace_atomic, (const uint64_t[]){order->qp->number, waited_ps});
    (void)hca_dma_read(hca, HCA_DMA_ATOMIC, order->pieces[0].bus, sizeof(uint64_t), NULL, atomic_read_done, order);
}

// --- writes --------------------------------------------------------------------------------------------------------

static void dispatch(hca_t *hca, struct hca_order *order)
{
    uint32_t at = 0;
    (void)pop(hca);
    hca->order_free_ps = sim_now_ps(hca->sim);
    hca_wait_add(hca, HCA_WAIT_WRITE, order->since_ps + hca->config.write_dispatch_ps);
    for (unsigned i = 0; i < order->piece_count && is_current(order); i++) {
        hca_dma_write(hca, order->pieces[i].bus, ib_packet_received(order->packet) + at, order->pieces[i].bytes);
        at += order->pieces[i].bytes;
    }
    finish(hca, order);
    hca_receiver_resume(hca);
}

void hca_order_pump(hca_t *hca)
{
    while (hca->order_first != NULL && !hca->order_busy && hca_endpoint_has_room(hca)) {
        struct hca_order *order = hca->order_first;
        if (order->kind == HCA_ORDER_ATOMIC && is_current(order)) {
            atomic_begin(hca, order);
            return;
        }
        uint64_t begin_ps = order->since_ps > hca->order_free_ps ? order->since_ps : hca->order_free_ps;
        if (begin_ps + hca->config.write_dispatch_ps > sim_now_ps(hca->sim)) {
            sim_event_schedule_at(hca->sim, &hca->order_event, begin_ps + hca->config.write_dispatch_ps);
            return;
        }
        dispatch(hca, order);
    }
}

static void order_run(void *ctx)
{
    static const struct sim_work ordering = {"HCA", "order of accesses", false};
    hca_t *hca = ctx;
    sim_cause_label(hca->sim, hca->name, &ordering);
    if (hca->order_busy) {
        atomic_compute(hca, hca->order_first);
    } else {
        hca_order_pump(hca);
    }
}

void hca_order_push(hca_t *hca, struct hca_order *order)
{
    order->generation = order->qp->generation;
    order->since_ps = sim_now_ps(hca->sim);
    order->qp->rsp.order_issued++;
    hca->orders_issued++;
    if (hca->order_first == NULL) {
        hca->order_first = order;
    } else {
        hca->order_last->next = order;
    }
    hca->order_last = order;
    hca->order_count++;
    hca_order_pump(hca);
}
