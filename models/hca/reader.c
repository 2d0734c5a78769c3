// Read responses and atomic acknowledges: queue pairs in turn, one packet each, in the order of their requests.
#include <stddef.h>

#include "models/hca/internal.h"

static void read_run(void *ctx);

void hca_reader_init(hca_t *hca)
{
    sim_event_init(&hca->read_event, read_run, hca);
}

static void answer_run(void *ctx)
{
    static const struct sim_work waiting = {"HCA", "answer that is due later", false};
    struct hca_qp *qp = ctx;
    sim_cause_label(qp->hca->sim, qp->hca->name, &waiting);
    hca_reader_kick(qp);
}

void hca_reader_qp_init(struct hca_qp *qp)
{
    sim_event_init(&qp->answer, answer_run, qp);
}

void hca_reader_qp_stop(struct hca_qp *qp)
{
    sim_event_cancel(qp->hca->sim, &qp->answer);
}

// The oldest slot not answered yet, if it can be answered now: an executed atomic, or a read whose turn has come after
// earlier writes and atomics (9.5: a read sees what earlier requests wrote).
static struct hca_slot *slot_ready(struct hca_qp *qp)
{
    struct hca_rsp *rsp = &qp->rsp;
    if (rsp->stream.flow != NULL) {
        return NULL;
    }
    while (rsp->slot_send != rsp->slot_next) {
        struct hca_slot *slot = &rsp->slots[rsp->slot_send % rsp->slot_count];
        if (slot->state != HCA_SLOT_SENT) {
            bool in_order = slot->atomic || (int32_t)(rsp->order_done - slot->order_mark) >= 0;
            if (slot->due_ps > sim_now_ps(qp->hca->sim)) {
                if (!sim_event_pending(&qp->answer)) {
                    sim_event_schedule_at(qp->hca->sim, &qp->answer, slot->due_ps);
                }
                return NULL;
            }
            return slot->state == HCA_SLOT_READY && in_order ? slot : NULL;
        }
        rsp->slot_send++;
    }
    return NULL;
}

static ib_packet_t *packet_make(struct hca_qp *qp, const struct hca_slot *slot, unsigned opcode)
{
    ib_packet_t *packet = ib_packet_take(qp->hca->packets);
    hca_packet_address(qp, packet, opcode);
    packet->qp = qp;
    packet->generation = qp->generation;
    packet->psn = (slot->psn + slot->sent_packets) & IB_PSN_MASK;
    packet->syndrome = IB_SYNDROME_ACK;
    packet->msn = slot->msn;
    packet->damaged = qp->rsp.damage_next;
    qp->rsp.damage_next = false;
    return packet;
}

static unsigned read_opcode(const struct hca_slot *slot)
{
    if (slot->packets == 1) {
        return IB_READ_ONLY;
    }
    if (slot->sent_packets == 0) {
        return IB_READ_FIRST;
    }
    return slot->sent_packets + 1 == slot->packets ? IB_READ_LAST : IB_READ_MIDDLE;
}

// false: the region no longer exists.
static bool read_answer(struct hca_qp *qp, const struct hca_slot *slot)
{
    hca_t *hca = qp->hca;
    uint32_t mtu = qp->attr.path_mtu_bytes, at = slot->sent_packets * mtu;
    uint32_t bytes = slot->bytes - at < mtu ? slot->bytes - at : mtu;
    struct hca_piece pieces[HCA_PIECES_MAX];
    unsigned count = 0;
    if (bytes > 0) {
        const struct hca_mr *mr = hca_mr_check(hca, slot->rkey, slot->pdn, HCA_REMOTE_READ, slot->address + at, bytes);
        if (mr == NULL) {
            return false;
        }
        count = hca_mr_pieces(mr, slot->address + at, bytes, pieces, 0, HCA_PIECES_MAX);
    }
    ib_packet_t *packet = packet_make(qp, slot, read_opcode(slot));
    packet->bytes = bytes;
    packet->in_long = hca_stream_fits(qp, slot->packets);
    hca_stream_beside(qp, packet);
    qp->rsp.responses_queued++;
    ib_queue_push(&hca->responses, packet);
    hca_packet_gather(hca, packet, HCA_DMA_RESPONSE, pieces, count);
    return true;
}

static void atomic_answer(struct hca_qp *qp, const struct hca_slot *slot)
{
    ib_packet_t *packet = packet_make(qp, slot, IB_ATOMIC_ACKNOWLEDGE);
    packet->original = slot->original;
    qp->rsp.responses_queued++;
    ib_queue_push(&qp->hca->responses, packet);
    hca_packet_gather(qp->hca, packet, HCA_DMA_RESPONSE, NULL, 0);
}

static void produce(struct hca_qp *qp)
{
    struct hca_slot *slot = slot_ready(qp);
    if (slot == NULL || qp->state == HCA_ERROR) {
        return;
    }
    // The position is advanced first: the answer may pass the packet to the port at once.
    const struct hca_slot answered = *slot;
    if (++slot->sent_packets == slot->packets) {
        slot->state = HCA_SLOT_SENT;
        qp->rsp.slot_send++;
    }
    if (slot->atomic) {
        atomic_answer(qp, &answered);
    } else if (!read_answer(qp, &answered)) {
        hca_responder_break(qp, IB_NAK_REMOTE_ACCESS, HCA_FAULT_KEY, HCA_EVENT_QP_ACCESS_ERROR,
                            answered.psn + answered.sent_packets); // it was valid when the request arrived
    } else if (slot->state == HCA_SLOT_READY && qp->state != HCA_ERROR) {
        hca_stream_response(qp, slot);
    }
}

// --- the engine ----------------------------------------------------------------------------------------------------

static void engine_start(hca_t *hca)
{
    while (hca->readers.first != NULL && hca->responses.count < hca->config.gather_packets && hca->reading == NULL) {
        struct hca_qp *qp = hca_qp_list_pop(&hca->readers, offsetof(struct hca_qp, next_reader));
        qp->rsp.reader_listed = false;
        if (slot_ready(qp) != NULL && qp->state != HCA_ERROR) {
            hca_wait_add(hca, HCA_WAIT_READER, qp->read_since_ps);
            hca->reading = qp;
            sim_event_schedule(hca->sim, &hca->read_event, hca->config.read_packet_ps);
        }
    }
}

static void read_run(void *ctx)
{
    static const struct sim_work answering = {"HCA", "read engine", false};
    hca_t *hca = ctx;
    sim_cause_label(hca->sim, hca->name, &answering);
    struct hca_qp *qp = hca->reading;
    hca->reading = NULL;
    if (qp != NULL) { // else it failed or was destroyed meanwhile
        produce(qp);
        hca_reader_kick(qp);
    }
    engine_start(hca);
}

void hca_reader_kick(struct hca_qp *qp)
{
    if (!qp->rsp.reader_listed && qp->rsp.slot_send != qp->rsp.slot_next && qp->state != HCA_ERROR) {
        qp->rsp.reader_listed = true;
        qp->read_since_ps = sim_now_ps(qp->hca->sim);
        hca_qp_list_push(&qp->hca->readers, qp, offsetof(struct hca_qp, next_reader));
    }
    engine_start(qp->hca);
}

void hca_reader_resume(hca_t *hca)
{
    engine_start(hca);
}
