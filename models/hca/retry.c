// The transport timer, and go-back to the oldest unacknowledged packet (IBA 9.9.2.4, 9.7.6.1).
#include "models/hca/internal.h"

static void timer_run(void *ctx);

void hca_retry_init(struct hca_qp *qp)
{
    sim_event_init(&qp->sq.timer, timer_run, qp);
}

void hca_retry_stop(struct hca_qp *qp)
{
    sim_event_cancel(qp->hca->sim, &qp->sq.timer);
    qp->sq.rnr_waiting = false;
}

// 4.096 us x 2^timeout (11.2.5.2); 0: none. With an adversary the timer is as late as allowed, four times that
// (9.7.6.1.3), and at least a millisecond, as adapters round it up: its own delays must not cause a retry.
static uint64_t timeout_ps(const struct hca_qp *qp)
{
    uint64_t least_ps = qp->attr.timeout == 0 ? 0 : UINT64_C(4096) * SIM_PS_PER_NS << qp->attr.timeout;
    if (qp->hca->config.adversary == NULL || least_ps == 0) {
        return least_ps;
    }
    return 4 * least_ps > SIM_PS_PER_MS ? 4 * least_ps : SIM_PS_PER_MS;
}

void hca_retry_watch(struct hca_qp *qp)
{
    struct hca_sq *sq = &qp->sq;
    if (timeout_ps(qp) != 0 && !sim_event_pending(&sq->timer)) {
        sq->deadline_ps = sim_now_ps(qp->hca->sim) + timeout_ps(qp);
        sim_event_schedule_at(qp->hca->sim, &sq->timer, sq->deadline_ps);
    }
}

void hca_retry_postpone(struct hca_qp *qp)
{
    qp->sq.deadline_ps = sim_now_ps(qp->hca->sim) + timeout_ps(qp);
}

// The event is not moved; it checks the deadline when it runs, because progress is frequent.
void hca_retry_progress(struct hca_qp *qp)
{
    struct hca_sq *sq = &qp->sq;
    sq->retries_left = qp->attr.retry_count;
    sq->rnr_left = qp->attr.rnr_retry;
    sq->recovering = false;
    hca_retry_postpone(qp);
    if (sq->una_psn == sq->max_psn && !sq->rnr_waiting) {
        sim_event_cancel(qp->hca->sim, &sq->timer);
    }
}

// A request that is read again may have become shorter, so that all are complete although PSNs are not acknowledged.
static bool nothing_outstanding(const struct hca_sq *sq)
{
    return sq->una == sq->begun;
}

// Precondition: something is outstanding.
static void go_back(struct hca_qp *qp)
{
    struct hca_sq *sq = &qp->sq;
    hca_stream_drop(&sq->stream);
    qp->hca->counters[HCA_RETRIES]++;
    sim_trace(qp->hca->sim, qp->hca->name, &hca_trace_retry, (const uint64_t[]){qp->number, sq->una_psn});
    sq->next = sq->una;
    sq->psn = sq->una_psn;
    sq->packet = (uint32_t)ib_psn_distance(hca_wqe_request(qp, sq->una)->first_psn, sq->una_psn);
    sq->reads = 0;
    sq->streamed = 0;
    for (uint32_t count = sq->una; count != sq->begun; count++) {
        hca_wqe_request(qp, count)->streamed = 0;
    }
    sq->fetched = sq->una; // requests are read again
    hca_wqe_fetch(qp);
}

void hca_retry_from(struct hca_qp *qp, bool spend)
{
    struct hca_sq *sq = &qp->sq;
    if (nothing_outstanding(sq)) {
        return;
    }
    if (spend && sq->retries_left == 0) {
        sq->fault = HCA_FAULT_NO_ANSWER;
        hca_requester_end(qp, HCA_RETRY_EXCEEDED);
        return;
    }
    sq->retries_left -= spend;
    go_back(qp);
    hca_retry_postpone(qp);
    hca_retry_watch(qp);
    hca_sender_kick(qp);
}

void hca_retry_rnr(struct hca_qp *qp, unsigned timer_code)
{
    struct hca_sq *sq = &qp->sq;
    if (nothing_outstanding(sq)) {
        return;
    }
    if (qp->attr.rnr_retry != 7 && sq->rnr_left == 0) { // 9.7.5.2.8: 7 means no limit
        sq->fault = HCA_FAULT_NO_RECEIVE;
        hca_requester_end(qp, HCA_RNR_RETRY_EXCEEDED);
        return;
    }
    sq->rnr_left -= qp->attr.rnr_retry != 7;
    go_back(qp);
    sq->rnr_waiting = true;
    // 9.7.5.2.8: the requester waits for at least that long.
    uint64_t rnr_ps = hca_rnr_timer_ps(timer_code);
    rnr_ps += adversary_late_within_ps(qp->hca->config.adversary, ADVERSARY_RNR, rnr_ps);
    sim_event_schedule(qp->hca->sim, &sq->timer, rnr_ps);
}

static void timer_run(void *ctx)
{
    struct hca_qp *qp = ctx;
    struct hca_sq *sq = &qp->sq;
    if (sq->rnr_waiting) {
        sq->rnr_waiting = false;
        hca_sender_kick(qp);
    } else if (sq->una_psn == sq->max_psn || nothing_outstanding(sq)) {
        return;
    } else if (sq->stream.flow != NULL || sq->expected > 0) { // packets would be acknowledged meanwhile
        hca_retry_postpone(qp);
        sim_event_schedule_at(qp->hca->sim, &sq->timer, sq->deadline_ps);
    } else if (sq->deadline_ps > sim_now_ps(qp->hca->sim)) {
        sim_event_schedule_at(qp->hca->sim, &sq->timer, sq->deadline_ps);
    } else {
        qp->hca->counters[HCA_TIMEOUTS]++;
        hca_retry_from(qp, true);
    }
}
