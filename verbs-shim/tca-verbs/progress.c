// One pass over everything that may have changed: arrivals, sends, timeouts.
#include <string.h>

#include "verbs-shim/tca-verbs/internal.h"

// The thread that reads the clock may not have paid yet for time that another thread has paid for.
static uint64_t now_take(struct tcav_context *context, uint64_t now_ps)
{
    context->now_ps = now_ps > context->now_ps ? now_ps : context->now_ps;
    return context->now_ps;
}

uint64_t tcav_now_ps(struct tcav_context *context)
{
    const struct backend *backend = &context->backend;
    return now_take(context, context->abandoned ? 0 : backend->ops->time_ps(backend->ctx));
}

static uint64_t deadline_ps(struct tcav_context *context)
{
    const struct backend *backend = &context->backend;
    return now_take(context, context->abandoned ? 0 : backend->ops->deadline_ps(backend->ctx));
}

// --- arrival --------------------------------------------------------------------------------------------------------

// IBA 9.7.4.1.2: a request to a queue pair that does not exist, or does not receive yet, gets no answer on the wire.
// Here the requester is notified, so that it knows what to retransmit.
static void refuse(struct tcav_peer *peer, const struct tcav_header *header)
{
    if (header->offset == 0) {
        peer->context->repeats = true;
        tcav_peer_notify(peer, (struct tcav_header){.qp = header->source_qp,
                                                    .kind = TCAV_NOT_READY,
                                                    .message = header->message,
                                                    .source_qp = header->qp});
    }
}

static bool is_response(enum tcav_kind kind)
{
    return kind == TCAV_GRANT || kind == TCAV_READ_DATA || kind == TCAV_READ_DONE || kind == TCAV_ATOMIC_DATA ||
           kind == TCAV_NAK || kind == TCAV_RNR || kind == TCAV_NOT_READY;
}

static void packet(struct tcav_peer *peer, const struct tcav_header *header)
{
    struct tcav_context *context = peer->context;
    const unsigned char *payload = (const unsigned char *)header + sizeof *header + header->skew;
    struct tcav_qp *qp = context->table[header->qp % TCAV_QPS_MAX];
    context->repeats = false; // refuse() may set it again
    if (header->kind == TCAV_DATAGRAM) {
        tcav_datagram_packet(peer, header, payload);
        return;
    }
    tcav_grant_packet(peer, header);
    if (header->kind == TCAV_BYE) {
        peer->state = TCAV_PEER_GONE;
        return;
    }
    bool known = qp != NULL && qp->number == header->qp && qp->peer == peer;
    if (is_response(header->kind)) {
        bool taken = false;
        if (known && header->source_qp == qp->remote_number) {
            taken = tcav_response_packet(qp, header, payload);
            tcav_qp_activate(qp);
        }
        if (header->kind == TCAV_GRANT && !taken) {
            tcav_grant_release(peer, header->source_qp, header->qp, header->message, false);
        }
        return;
    }
    if (header->kind == TCAV_RELEASE) {
        return;
    }
    bool receives = known && (qp->state == IBV_QPS_RTR || qp->state == IBV_QPS_RTS || qp->state == IBV_QPS_SQD);
    if (receives && tcav_receive_packet(qp, header, payload)) {
        tcav_qp_activate(qp);
    } else if (!known || qp->state == IBV_QPS_RESET || qp->state == IBV_QPS_INIT) {
        refuse(peer, header);
    } else if (header->kind == TCAV_READ) {
        tcav_grant_release(peer, header->source_qp, header->qp, header->message, true); // the read is dropped
    }
}

static unsigned peer_receive(struct tcav_peer *peer)
{
    unsigned taken = 0;
    peer->context->polls++;
    tcav_ring_poll(peer);
    for (const struct tcav_header *header = tcav_ring_next(peer); header != NULL; header = tcav_ring_next(peer)) {
        packet(peer, header);
        tcav_ring_take(peer);
        taken++;
        if (peer->state == TCAV_PEER_GONE) {
            break;
        }
    }
    return taken;
}

static unsigned peers_step(struct tcav_context *context)
{
    unsigned taken = 0;
    for (unsigned node = 0; node < PEACH2_NODES_MAX; node++) {
        struct tcav_peer *peer = context->peers[node];
        if (peer == NULL) {
            continue;
        }
        switch (peer->state) {
        case TCAV_PEER_CONNECTING:
            if (peer->polled || !context->datagrams) {
                tcav_peer_step(peer);
            }
            break;
        case TCAV_PEER_CONNECTED:
            taken += peer_receive(peer);
            break;
        case TCAV_PEER_GONE:
            break;
        }
    }
    return taken;
}

// --- queue pairs ----------------------------------------------------------------------------------------------------

bool tcav_acked(const struct tcav_qp *qp, uint32_t *message_out)
{
    uint64_t ack = qp->peer->area->acks[qp->number % TCAV_QPS_MAX];
    *message_out = ack & TCAV_NUMBER_MASK;
    return ack == TCAV_ACK(qp->number, *message_out) && tcav_before(qp->acked, *message_out);
}

static unsigned ack_poll(struct tcav_qp *qp)
{
    uint32_t message;
    bool found = tcav_acked(qp, &message);
    qp->pd->context->polls++;
    backend_polled(&qp->pd->context->backend, &qp->peer->area->acks[qp->number % TCAV_QPS_MAX], found);
    if (!found) {
        return 0;
    }
    tcav_pay_lines(qp->pd->context, sizeof(uint64_t));
    qp->acked = message;
    qp->progress_ps = 0;
    qp->pd->context->repeats = false;
    tcav_send_retire(qp);
    return 1;
}

static void fail(struct tcav_qp *qp, enum ibv_wc_status status)
{
    tcav_stir(qp->pd->context);
    tcav_qp_fail_request(qp, tcav_request_at(qp, 0), status, HCA_FAULT_NONE);
}

uint64_t tcav_timer_ps(const struct tcav_qp *qp)
{
    uint64_t timeout_ps = ((4096 * TCAV_NS) << qp->timeout) * (qp->retries + 1);
    if (!tcav_timer_runs(qp)) {
        return UINT64_MAX;
    }
    if (qp->resume_ps != 0) {
        return qp->resume_ps;
    }
    if (qp->request_move.queued) {
        return tcav_moves_late_ps(qp->pd->context);
    }
    return qp->timeout != 0 ? qp->progress_ps + timeout_ps : UINT64_MAX;
}

// While a pause or a transfer by the board goes on, no timeout runs: it begins anew afterwards.
static void timers_step(struct tcav_qp *qp)
{
    struct tcav_context *context = qp->pd->context;
    if (!tcav_timer_runs(qp)) {
        return;
    }
    bool moving = qp->request_move.queued;
    uint64_t now_ps = deadline_ps(context);
    if (moving && context->moves_watched != context->moves_begun) {
        tcav_stir(context);
        tcav_moves_watch(context, now_ps);
    }
    if (qp->resume_ps != 0 && now_ps >= qp->resume_ps) {
        tcav_stir(context);
        qp->resume_ps = qp->progress_ps = 0;
    }
    bool waits = qp->resume_ps == 0 && !moving;
    if (waits == (qp->progress_ps == 0)) {
        tcav_stir(context);
        qp->progress_ps = waits ? now_ps : 0;
    }
    if (qp->peer->state == TCAV_PEER_GONE) {
        fail(qp, IBV_WC_RETRY_EXC_ERR);
    } else if (qp->resume_ps == 0 && now_ps > tcav_timer_ps(qp)) {
        fail(qp, moving ? IBV_WC_LOC_QP_OP_ERR : IBV_WC_RETRY_EXC_ERR);
    }
}

static void drain_step(struct tcav_qp *qp)
{
    if (qp->draining && qp->sent == 0) {
        tcav_stir(qp->pd->context);
        qp->draining = false;
        if (qp->drain_event) {
            tcav_event_async(qp->pd->context, IBV_EVENT_SQ_DRAINED, qp->user);
        }
    }
}

static unsigned qps_step(struct tcav_context *context)
{
    unsigned found = 0;
    struct tcav_qp **link = &context->active;
    while (*link != NULL) {
        struct tcav_qp *qp = *link;
        if (qp->peer != NULL) {
            if (qp->expected != qp->ack_sent) {
                tcav_stir(context);
                tcav_answer_ack(qp);
            }
            found += qp->sent != 0 && qp->peer->area != NULL ? ack_poll(qp) : 0;
            timers_step(qp);
        }
        drain_step(qp);
        tcav_grant_step(qp);
        if (qp->count == 0 && !qp->release_due && !qp->answer_due && qp->job_count == 0) {
            tcav_stir(context);
            qp->active = false;
            *link = qp->next_active;
        } else {
            link = &qp->next_active;
        }
    }
    return found;
}

// --- sending --------------------------------------------------------------------------------------------------------

// The queue pair that sent moves to the end of the list.
static bool qps_send(struct tcav_context *context)
{
    for (struct tcav_qp **link = &context->active; *link != NULL; link = &(*link)->next_active) {
        struct tcav_qp *qp = *link;
        if (tcav_answer_step(qp) || tcav_send_step(qp)) {
            *link = qp->next_active;
            qp->next_active = NULL;
            while (*link != NULL) {
                link = &(*link)->next_active;
            }
            *link = qp;
            return true;
        }
    }
    return false;
}

static bool peers_send(struct tcav_context *context)
{
    for (unsigned node = 0; node < PEACH2_NODES_MAX; node++) {
        struct tcav_peer *peer = context->peers[node];
        if (peer == NULL || peer->state != TCAV_PEER_CONNECTED) {
            continue;
        }
        if (tcav_peer_notify_step(peer)) {
            return true;
        }
        if (tcav_ring_owes_room(peer)) {
            tcav_ring_send_pair(peer);
            return true;
        }
    }
    return false;
}

void tcav_transmit(struct tcav_context *context)
{
    tcav_channels_step(context);
    bool sent = true;
    while (sent && tcav_ring_may_send(context)) {
        sent = peers_send(context) || qps_send(context);
        if (sent) {
            tcav_stir(context);
        }
    }
    // Paid once a pass: this makes the simulator faster.
    tcav_pay(context, BACKEND_COST_LOAD_STORE, context->polls);
    context->polls = 0;
}

unsigned tcav_progress(struct tcav_context *context)
{
    uint64_t stirred = context->stirred;
    context->passed_ps = deadline_ps(context);
    if (context->backend.ops->event_writes_seen != NULL) {
        context->backend.ops->event_writes_seen(context->backend.ctx);
    }
    if (context->datagrams) {
        tcav_datagrams_step(context);
    }
    unsigned found = peers_step(context);
    found += qps_step(context);
    if (context->overruns != 0) {
        tcav_cqs_fail(context);
    }
    tcav_transmit(context);
    if (found != 0) {
        tcav_stir(context);
        tcav_wake(context);
    }
    if (context->stirred == stirred) {
        context->settled = stirred;
    }
    return found;
}

// --- waiting --------------------------------------------------------------------------------------------------------

// The one connection that is the only source of work; NULL: other sources exist.
static struct tcav_peer *only_source(const struct tcav_context *context)
{
    struct tcav_peer *only = NULL;
    if (context->active != NULL || context->ready != NULL || context->move != NULL || context->datagrams) {
        return NULL;
    }
    for (unsigned node = 0; node < PEACH2_NODES_MAX; node++) {
        struct tcav_peer *peer = context->peers[node];
        if (peer != NULL && (only != NULL || peer->state != TCAV_PEER_CONNECTED || peer->refused_count != 0 ||
                             tcav_ring_owes_room(peer))) {
            return NULL;
        }
        only = peer != NULL ? peer : only;
    }
    return only;
}

bool tcav_is_idle(const struct tcav_context *context)
{
    bool idle = context->active == NULL && context->ready == NULL && context->move == NULL;
    for (unsigned node = 0; node < PEACH2_NODES_MAX; node++) {
        const struct tcav_peer *peer = context->peers[node];
        idle = idle && (peer == NULL || peer->state != TCAV_PEER_CONNECTING);
    }
    return idle;
}

static uint64_t left_ns(struct tcav_context *context, uint64_t until_ps)
{
    uint64_t now_ps = tcav_now_ps(context);
    return now_ps < until_ps ? (until_ps - now_ps) / TCAV_NS + 1 : 1;
}

// The other thread may take what arrives; its wake ends the pause.
static void threaded_wait(struct tcav_context *context, uint64_t until_ps)
{
    uint64_t timeout_ns = tcav_is_idle(context) ? 0 : TCAV_PAUSE_NS;
    if (until_ps != 0) {
        uint64_t left = left_ns(context, until_ps);
        timeout_ns = timeout_ns == 0 || left < timeout_ns ? left : timeout_ns;
    }
    const struct backend *backend = &context->backend;
    uint64_t seen = context->changes;
    tcav_unlock(context);
    (void)backend->ops->thread->pause(backend->ctx, BACKEND_THREAD_TCA_VERBS, seen, true, timeout_ns);
    tcav_lock(context);
}

void tcav_progress_wait(struct tcav_context *context, uint64_t until_ps)
{
    const struct backend *backend = &context->backend;
    if (tcav_thread_ops(context) != NULL) {
        threaded_wait(context, until_ps);
        return;
    }
    const struct tcav_peer *peer = only_source(context);
    if (peer == NULL) {
        return; // the next pass takes time
    }
    uint64_t timeout_ns = until_ps != 0 ? left_ns(context, until_ps) : 0;
    (void)backend->ops->wait_word(backend->ctx, &peer->area->pair, TCAV_PAIR_THERE, TCAV_PAIR_THERE, timeout_ns);
}

void tcav_progress_pause(struct tcav_context *context)
{
    if (tcav_thread_ops(context) != NULL) {
        threaded_wait(context, tcav_now_ps(context) + TCAV_PAUSE_NS * TCAV_NS);
    } else {
        tcav_pay(context, BACKEND_COST_TIME, TCAV_PAUSE_NS);
    }
}
