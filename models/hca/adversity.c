// What an adversary (sim/adversary) does to queue pairs, and what it leaves alone. Where completions, acknowledges,
// requests and timers are late stands with them; here is what needs a state of its own.
//
// Order between queue pairs is open (IBA 9.5), so what arrived for one may wait while others go on. Within a queue pair
// everything keeps its order, but for reads, which writes behind them may pass (table 76). Within a message bytes
// become visible in ascending order: no clause says so, but every adapter does it, and programs that poll the last byte
// of a message (perftest, Open MPI's eager RDMA) are not what is looked for.
//
// Damage (7.8: a packet with a wrong CRC is dropped) costs a queue pair at most one of its retries between two steps
// forward, so that a retry_cnt of 1 is enough. One packet at a time is spoiled: a request, or a response to a read or
// an atomic. The requester decides on both and tells the responder with the request, on no wire; the next one is
// spoiled when that one is acknowledged, and while no retry is spent. Spared are acknowledges (the last one of a
// program that ends cannot be asked for again; they are late instead), unreliable services, queue pairs that do not
// retry or would wait for ever (timeout 0), and loopback, which has no wire.
#include "models/hca/internal.h"

static void arrival_run(void *ctx)
{
    static const struct sim_work waiting = {"HCA", "late request", false};
    struct hca_qp *qp = ctx;
    sim_cause_label(qp->hca->sim, qp->hca->name, &waiting);
    hca_responder_resume(qp, false);
}

static void read_run(void *ctx)
{
    hca_reader_kick(ctx);
}

void hca_adversity_init(struct hca_qp *qp)
{
    sim_event_init(&qp->arrival, arrival_run, qp);
    sim_event_init(&qp->read, read_run, qp);
}

void hca_adversity_stop(struct hca_qp *qp)
{
    sim_event_cancel(qp->hca->sim, &qp->arrival);
    sim_event_cancel(qp->hca->sim, &qp->read);
}

bool hca_adversity_holds(struct hca_qp *qp)
{
    uint64_t late_ps = hca_late_ps(qp->hca, ADVERSARY_ARRIVAL);
    if (late_ps != 0) {
        sim_event_schedule(qp->hca->sim, &qp->arrival, late_ps);
    }
    return late_ps != 0;
}

void hca_adversity_read(struct hca_qp *qp, uint64_t due_ps)
{
    if (!sim_event_pending(&qp->read)) {
        sim_event_schedule_at(qp->hca->sim, &qp->read, due_ps);
    }
}

static bool may_be_spoiled(const struct hca_qp *qp, const ib_packet_t *packet)
{
    const struct hca_sq *sq = &qp->sq;
    bool recovers = qp->attr.retry_count > 0 && qp->attr.timeout != 0 && sq->retries_left == qp->attr.retry_count;
    return hca_is_reliable(qp->init.type) && recovers && packet->dlid != qp->hca->lid;
}

void hca_adversity_spoil(struct hca_qp *qp, ib_packet_t *packet)
{
    struct hca_sq *sq = &qp->sq;
    adversary_t *adversary = qp->hca->config.adversary;
    sq->spoiled = sq->spoiled && ib_psn_distance(sq->spoiled_psn, sq->una_psn) <= 0;
    if (sq->spoiled || !may_be_spoiled(qp, packet)) {
        return;
    }
    packet->damaged = adversary_strikes(adversary, ADVERSARY_DAMAGE_REQUEST);
    bool answered = (ib_packet_flags(packet) & IB_HAS_PAYLOAD) == 0;
    packet->spoils = answered && !packet->damaged && adversary_strikes(adversary, ADVERSARY_DAMAGE_ANSWER);
    sq->spoiled = packet->damaged || packet->spoils;
    sq->spoiled_psn = packet->psn;
}
