// Completion queues. If a completion finds no room it is lost, and its CQ and all queue pairs of that CQ go to error
// (IBA 10.8.2, 11.6.3.1).
#include <errno.h>
#include <stdlib.h>

#include "verbs-shim/tca-verbs/internal.h"

int tcav_cq_create(void *object, unsigned *entries, unsigned vector, void *user, void **cq_out)
{
    struct tcav_context *context = object;
    (void)vector;
    tcav_pay(context, BACKEND_COST_CALL, 1);
    struct tcav_cq *cq = calloc(1, sizeof *cq);
    struct ibv_wc *wcs = calloc(*entries, sizeof *wcs);
    bool *solicited = calloc(*entries, sizeof *solicited);
    if (cq == NULL || wcs == NULL || solicited == NULL) {
        free(cq);
        free(wcs);
        free(solicited);
        return -ENOMEM;
    }
    *cq = (struct tcav_cq){.next = context->cqs,
                           .context = context,
                           .user = user,
                           .entries = wcs,
                           .solicited = solicited,
                           .size = *entries};
    context->cqs = cq;
    *cq_out = cq;
    return 0;
}

int tcav_cq_destroy(void *object)
{
    struct tcav_cq *cq = object;
    struct tcav_context *context = cq->context;
    if (cq->users != 0) {
        return -EBUSY;
    }
    tcav_pay(context, BACKEND_COST_CALL, 1);
    struct tcav_cq **link = &context->cqs;
    while (*link != cq) {
        link = &(*link)->next;
    }
    *link = cq->next;
    tcav_events_purge(context, cq->user);
    free(cq->entries);
    free(cq->solicited);
    free(cq);
    return 0;
}

int tcav_cq_resize(void *object, unsigned *entries)
{
    struct tcav_cq *cq = object;
    tcav_pay(cq->context, BACKEND_COST_CALL, 1);
    if (*entries < cq->count) {
        return -EINVAL;
    }
    struct ibv_wc *wcs = calloc(*entries, sizeof *wcs);
    bool *solicited = calloc(*entries, sizeof *solicited);
    if (wcs == NULL || solicited == NULL) {
        free(wcs);
        free(solicited);
        return -ENOMEM;
    }
    for (unsigned i = 0; i < cq->count; i++) {
        wcs[i] = cq->entries[(cq->head + i) % cq->size];
        solicited[i] = cq->solicited[(cq->head + i) % cq->size];
    }
    free(cq->entries);
    free(cq->solicited);
    cq->entries = wcs;
    cq->solicited = solicited;
    cq->head = 0;
    cq->size = *entries;
    return 0;
}

static int take(struct tcav_cq *cq, int max, struct ibv_wc *wc_out)
{
    int taken = 0;
    for (; taken < max && cq->count != 0; taken++) {
        wc_out[taken] = cq->entries[cq->head];
        backend_polled(&cq->context->backend, &cq->entries[cq->head], true);
        cq->head = (cq->head + 1) % cq->size;
        cq->count--;
        cq->notified -= cq->notified > 0;
    }
    tcav_pay(cq->context, BACKEND_COST_LOAD_STORE, (uint64_t)taken * (sizeof *wc_out / 8));
    return taken;
}

unsigned tcav_cq_waiting(void *object, struct ibv_wc *first_out)
{
    const struct tcav_cq *cq = object;
    *first_out = cq->count > 0 ? cq->entries[cq->head] : (struct ibv_wc){0};
    return cq->count;
}

bool tcav_repeats(void *object)
{
    return ((const struct tcav_context *)object)->repeats;
}

int tcav_cq_poll(void *object, int max, struct ibv_wc *wc_out)
{
    struct tcav_cq *cq = object;
    tcav_pay(cq->context, BACKEND_COST_CALL, 1);
    tcav_pay(cq->context, BACKEND_COST_LOCK, 1);
    if (cq->count == 0 || max == 0) { // a poll that takes no completion still makes progress
        (void)tcav_progress(cq->context);
    }
    return take(cq, max, wc_out);
}

static bool is_asked_for(const struct tcav_cq *cq, bool solicited_only)
{
    bool found = !solicited_only && cq->count > cq->notified;
    for (unsigned i = cq->notified; !found && i < cq->count; i++) {
        found = cq->solicited[(cq->head + i) % cq->size];
    }
    return found;
}

static void notify(struct tcav_cq *cq)
{
    cq->armed = false;
    cq->notified = cq->count;
    tcav_event_push(cq->context, &(struct ibverbs_event){.completion = true, .user = cq->user});
}

// As on ibsim0, completions since the last event that were not polled yet raise an event at once: programs poll all
// completions and arm then.
int tcav_cq_arm(void *object, bool solicited_only)
{
    struct tcav_cq *cq = object;
    tcav_pay(cq->context, BACKEND_COST_CALL, 1);
    if (is_asked_for(cq, solicited_only)) {
        notify(cq);
        return 0;
    }
    // Of two requests the wider one applies (IBA 11.4.2.2).
    cq->armed_solicited = solicited_only && (!cq->armed || cq->armed_solicited);
    cq->armed = true;
    return 0;
}

int tcav_cq_wait(void *object, uint64_t timeout_ns)
{
    struct tcav_cq *cq = object;
    struct tcav_context *context = cq->context;
    uint64_t until_ps = timeout_ns != 0 ? tcav_now_ps(context) + timeout_ns * TCAV_NS : 0;
    while (cq->count == 0) {
        tcav_pay(context, BACKEND_COST_CALL, 1);
        if (tcav_progress(context) != 0 || cq->count != 0) {
            continue;
        }
        if (until_ps != 0 && tcav_now_ps(context) >= until_ps) {
            return -ETIMEDOUT;
        }
        tcav_progress_wait(context, until_ps);
    }
    return 0;
}

void tcav_cq_push(struct tcav_cq *cq, const struct ibv_wc *wc, bool solicited)
{
    struct tcav_context *context = cq->context;
    if (cq->overrun) {
        return;
    }
    if (cq->count == cq->size) {
        cq->overrun = true;
        context->overruns++;
        tcav_event_async(context, IBV_EVENT_CQ_ERR, cq->user);
        return;
    }
    unsigned slot = (cq->head + cq->count++) % cq->size;
    cq->entries[slot] = *wc;
    backend_left(&context->backend, &cq->entries[slot]); // perhaps another thread polls it
    cq->solicited[slot] = solicited || wc->status != IBV_WC_SUCCESS;
    if (cq->armed && (!cq->armed_solicited || cq->solicited[slot])) {
        notify(cq);
    }
}

// Deferred from the overflow itself, which may occur in the middle of a queue pair's work.
void tcav_cqs_fail(struct tcav_context *context)
{
    context->overruns = 0;
    for (struct tcav_qp *qp = context->qps; qp != NULL; qp = qp->next) {
        if ((qp->send_cq->overrun || qp->recv_cq->overrun) && qp->state != IBV_QPS_ERR && qp->state != IBV_QPS_RESET) {
            tcav_event_async(context, IBV_EVENT_QP_FATAL, qp->user);
            tcav_qp_fail(qp);
        }
    }
}

void tcav_cq_purge(struct tcav_cq *cq, uint32_t qp_number)
{
    unsigned kept = 0, notified = 0;
    for (unsigned i = 0; i < cq->count; i++) {
        unsigned from = (cq->head + i) % cq->size, to = (cq->head + kept) % cq->size;
        if (cq->entries[from].qp_num != qp_number) {
            cq->entries[to] = cq->entries[from];
            cq->solicited[to] = cq->solicited[from];
            notified += i < cq->notified;
            kept++;
        }
    }
    cq->count = kept;
    cq->notified = notified;
}
