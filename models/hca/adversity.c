// The effects of an adversary (sim/adversary) on queue pairs, and their limits. Delays of completions, acknowledges,
// requests and timers are in the files of these; this file has the effects that need a state of their own.
//
// The order between queue pairs is not specified (IBA 9.5), so packets that arrived for one may wait while others
// continue. Within a queue pair everything keeps its order, except that later writes may pass reads (table 76). Within
// a message bytes become visible in ascending order: no clause requires this, but every adapter does it, and the
// adversary does not test programs that poll the last byte of a message (perftest, Open MPI's eager RDMA).
//
// Damage (7.8: a packet with a wrong CRC is dropped) costs a queue pair at most one of its retries between two steps of
// progress, so that a retry_cnt of 1 is enough. One packet at a time is damaged: a request, or a response to a read or
// an atomic. The requester decides on both and passes the decision to the responder with the request, not on the wire;
// the next packet is damaged only when the previous one is acknowledged, and while no retry is spent. Never damaged are
// acknowledges (the last one of a program that ends cannot be requested again; they are delayed instead), packets of
// unreliable services, of queue pairs that do not retry or would wait for ever (timeout 0), and of loopback, which has
// no wire.
#include "models/hca/internal.h"

static void arrival_run(void *ctx)
{
    static const struct sim_work waiting = {"HCA", "late request", false};
    struct hca_qp *qp = ctx;
    sim_cause_label(qp->hca->sim, qp->hca->name, &waiting);
    hca_responder_resume(qp, false);
}

void hca_adversity_init(struct hca_qp *qp)
{
    sim_event_init(&qp->arrival, arrival_run, qp);
}

void hca_adversity_stop(struct hca_qp *qp)
{
    sim_event_cancel(qp->hca->sim, &qp->arrival);
}

bool hca_adversity_holds(struct hca_qp *qp)
{
    uint64_t late_ps = hca_late_ps(qp->hca, ADVERSARY_ARRIVAL);
    if (late_ps != 0) {
        sim_event_schedule(qp->hca->sim, &qp->arrival, late_ps);
    }
    return late_ps != 0;
}

static bool may_be_damaged(const struct hca_qp *qp, const ib_packet_t *packet)
{
    const struct hca_sq *sq = &qp->sq;
    bool recovers = qp->attr.retry_count > 0 && qp->attr.timeout != 0 && sq->retries_left == qp->attr.retry_count;
    return hca_is_reliable(qp->init.type) && recovers && packet->dlid != qp->hca->lid;
}

void hca_adversity_damage(struct hca_qp *qp, ib_packet_t *packet)
{
    struct hca_sq *sq = &qp->sq;
    adversary_t *adversary = qp->hca->config.adversary;
    sq->damage_outstanding = sq->damage_outstanding && ib_psn_distance(sq->damage_psn, sq->una_psn) <= 0;
    if (sq->damage_outstanding || !may_be_damaged(qp, packet)) {
        return;
    }
    packet->damaged = adversary_strikes(adversary, ADVERSARY_DAMAGE_REQUEST);
    bool answered = (ib_packet_flags(packet) & IB_HAS_PAYLOAD) == 0;
    packet->damage_answer = answered && !packet->damaged && adversary_strikes(adversary, ADVERSARY_DAMAGE_ANSWER);
    sq->damage_outstanding = packet->damaged || packet->damage_answer;
    sq->damage_psn = packet->psn;
}
