// How the queues of a process stand, as lines of text.
#include <inttypes.h>

#include <infiniband/verbs.h>

#include "sim/observe/internal.h"

static void request_print(const struct journal_request *request, FILE *out)
{
    bool flushed = request->status != IBV_WC_SUCCESS;
    fprintf(out, "%s wr_id 0x%" PRIx64 " of qp %u",
            flushed ? observe_status_name(request->status) : observe_wc_opcode_name(request->opcode), request->wr_id,
            request->qp);
}

static void cq_print(const struct journal_state *state, const char *title, FILE *out)
{
    const struct journal_cq_state *cq = &state->cq;
    char time[48];
    fprintf(out, "  %s cq %u: ", title, state->number);
    if (cq->waiting > 0) {
        fprintf(out, "%u completion%s not polled: ", cq->waiting, cq->waiting == 1 ? "" : "s");
        request_print(&cq->first, out);
    } else {
        fprintf(out, "empty");
    }
    if (cq->taken > 0) {
        observe_time_print(cq->taken_ps, time, sizeof time);
        fprintf(out, "; %" PRIu64 " taken, the last at %s: ", cq->taken, time);
        request_print(&cq->last, out);
    }
    fprintf(out, "\n");
}

static void qp_print(const observe_process_t *process, const struct journal_state *state, const char *title, FILE *out)
{
    const struct observe_object *object = observe_object_find(process, OBSERVE_QP, state->context, state->number);
    const struct observe_object *peer = object != NULL ? observe_peer(object) : NULL;
    const struct journal_qp_state *qp = &state->qp;
    fprintf(out, "  %s qp %u", title, state->number);
    if (peer != NULL) {
        fprintf(out, " -> %s qp %u", peer->process->node, peer->number);
    }
    fprintf(out, " (%s): %u of %" PRIu64 " sends outstanding, %u of %" PRIu64 " receives\n",
            observe_state_name(qp->state), qp->sends_outstanding, qp->sends_posted, qp->receives_outstanding,
            qp->receives_posted);
}

// The queue that it polls, where completions wait in another one.
static void polled_print(const struct journal_state *states, unsigned count, const char *title, FILE *out)
{
    const struct journal_state *polled = NULL;
    bool elsewhere = false;
    for (unsigned i = 0; i < count; i++) {
        polled = states[i].is_cq && states[i].cq.is_polled ? &states[i] : polled;
        elsewhere = elsewhere || (states[i].is_cq && !states[i].cq.is_polled && states[i].cq.waiting > 0);
    }
    if (polled != NULL && elsewhere && polled->cq.waiting == 0) {
        fprintf(out, "  %s polls cq %u, where nothing came\n", title, polled->number);
    }
}

void observe_states_print(const observe_process_t *process, const struct journal_state *states, unsigned count,
                          FILE *out)
{
    char title[128];
    if (process == NULL || count == 0) {
        return;
    }
    observe_title(process, title, sizeof title);
    for (unsigned i = 0; i < count; i++) {
        if (states[i].is_cq) {
            cq_print(&states[i], title, out);
        } else {
            qp_print(process, &states[i], title, out);
        }
    }
    polled_print(states, count, title, out);
}
