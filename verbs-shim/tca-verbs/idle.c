// What an empty poll does: a pass that finds nothing. A program that waits makes millions of them; those who know that it
// would (verbs-shim/attach/ahead.h) need not carry them out.
#include "verbs-shim/tca-verbs/internal.h"

// Of words that boards write: have any come? Else *polls counts those that a pass polls.
static bool peers_have_written(const struct tcav_context *context, unsigned *polls)
{
    uint32_t message;
    bool came = false;
    for (unsigned node = 0; node < PEACH2_NODES_MAX; node++) {
        const struct tcav_peer *peer = context->peers[node];
        if (peer != NULL && peer->state == TCAV_PEER_CONNECTED) {
            came = came || peer->area->pair != 0;
            ++*polls;
        }
    }
    for (const struct tcav_qp *qp = context->active; qp != NULL; qp = qp->next_active) {
        if (qp->peer != NULL && qp->peer->area != NULL && qp->sent != 0) {
            came = came || tcav_acked(qp, &message);
            ++*polls;
        }
    }
    return came;
}

// Does a pass do what is not told of here?
static bool is_special(const struct tcav_context *context)
{
    bool special = context->units_due || context->abandoned || tcav_channel_looks(context);
    for (unsigned node = 0; node < PEACH2_NODES_MAX; node++) {
        special = special || (context->peers[node] != NULL && context->peers[node]->state == TCAV_PEER_CONNECTING);
    }
    for (const struct tcav_qp *qp = context->active; qp != NULL; qp = qp->next_active) {
        special = special || (qp->type == IBV_QPT_UD && qp->count != 0); // it waits for a connection, or for room
    }
    return special;
}

// The other thread makes a pass only if a board has written, or the program has called.
static bool thread_may_run(const struct tcav_context *context)
{
    const struct backend_thread_ops *thread = tcav_thread_ops(context);
    return thread != NULL &&
           (!tcav_is_idle(context) || thread->is_locked(context->backend.ctx, BACKEND_THREAD_TCA_VERBS));
}

static uint64_t timers_due_ps(const struct tcav_context *context)
{
    uint64_t due_ps = UINT64_MAX;
    for (const struct tcav_qp *qp = context->active; qp != NULL; qp = qp->next_active) {
        uint64_t timer_ps = qp->peer != NULL ? tcav_timer_ps(qp) : UINT64_MAX;
        due_ps = timer_ps < due_ps ? timer_ps : due_ps;
    }
    return due_ps;
}

// Another node's introduction is in the board's memory, where nothing tells of it: a pass looks, ever more rarely.
static uint64_t introductions_due_ps(const struct tcav_context *context)
{
    enum { SHARE = 8 };
    uint64_t due_ps = UINT64_MAX;
    for (unsigned node = 0; node < PEACH2_NODES_MAX; node++) {
        const struct tcav_peer *peer = context->peers[node];
        if (peer != NULL && peer->state == TCAV_PEER_CONNECTING) {
            uint64_t share_ps = (context->passed_ps - peer->began_ps) / SHARE;
            uint64_t own_ps = context->passed_ps + (share_ps > 1000 * TCAV_NS ? share_ps : 1000 * TCAV_NS);
            due_ps = own_ps < due_ps ? own_ps : due_ps;
        }
    }
    return due_ps;
}

uint64_t tcav_due_ps(void *object, bool events)
{
    const struct tcav_context *context = object;
    bool event = events && context->events != NULL;
    if (context->qps == NULL && !event) {
        return UINT64_MAX; // it was only opened, as by an MPI that looks at each device
    }
    if (event || context->units_due || context->settled != context->stirred) {
        return 0;
    }
    if (tcav_channel_looks(context)) { // its word in the board's memory wakes nobody
        return context->passed_ps + TCAV_PAUSE_NS * TCAV_NS;
    }
    uint64_t timer_ps = timers_due_ps(context), peer_ps = introductions_due_ps(context);
    timer_ps += timer_ps != UINT64_MAX; // it has run out after its time
    return timer_ps < peer_ps ? timer_ps : peer_ps;
}

// What boards have written, and what is left to do, a pass finds.
bool tcav_event_waits(const void *object)
{
    return ((const struct tcav_context *)object)->events != NULL;
}

// What was sent waits in its queue for an answer, but for a datagram, which has left it.
bool tcav_sends_wait(void *object)
{
    const struct tcav_context *context = object;
    bool lazy = context->device->form.completion == TCA_VERBS_LAZY; // what was started leaves by itself
    bool wait = context->move != NULL || (context->sending != NULL && !lazy) || context->ready != NULL;
    for (const struct tcav_qp *qp = context->active; qp != NULL; qp = qp->next_active) {
        wait = wait || (qp->state == IBV_QPS_RTS && qp->resume_ps == 0 && qp->count > qp->sent);
    }
    return wait;
}

enum ibverbs_idle tcav_cq_idle(void *object, struct ibverbs_idle_poll *poll_out)
{
    const struct tcav_cq *cq = object;
    const struct tcav_context *context = cq->context;
    unsigned polls = 0;
    if (is_special(context) || thread_may_run(context)) {
        return IBVERBS_IDLE_UNKNOWN;
    }
    bool came = peers_have_written(context, &polls) || tcav_channels_have_ended(context, &polls);
    if (context->datagrams) {
        came = came || *peach2_interrupt_word(context->board) != 0;
        polls++;
    }
    if (cq->count != 0 || came || context->settled != context->stirred) {
        return IBVERBS_FINDS;
    }
    unsigned locking = tcav_thread_ops(context) != NULL ? BACKEND_LOCK_LOADS + BACKEND_UNLOCK_LOADS : 0;
    *poll_out = (struct ibverbs_idle_poll){.state = &context->stirred,
                                           .calls = 1,
                                           .locks = 1,
                                           .loads = polls + locking,
                                           .until_ps = timers_due_ps(context)};
    return IBVERBS_IDLE;
}
