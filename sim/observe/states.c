// The state of a process's queues, as lines of text.
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
    if (cq->armed == JOURNAL_ARMED_NOT && cq->waiting > 0) {
        fprintf(out, "; raises no event (ibv_req_notify_cq since the last one is missing)");
    } else if (cq->armed == JOURNAL_ARMED_SOLICITED) {
        fprintf(out, "; raises an event for solicited messages and errors only");
    }
    if (cq->unacknowledged > 0) {
        fprintf(out, "; %u event%s not acknowledged (ibv_ack_cq_events)", cq->unacknowledged,
                cq->unacknowledged == 1 ? "" : "s");
    }
    fprintf(out, "\n");
}

enum { RNR_FOR_EVER = 7 }; // of rnr_retry

// A sender that retries without limit gets no error; this line reports it.
static void receives_print(const struct observe_object *peer, FILE *out)
{
    struct observe_receives receives;
    if (observe_receives_ask(peer, &receives) && receives.outstanding == 0) {
        fprintf(out, "; no receive request is there (%" PRIu64 " were posted): the sender retries for ever (RNR)",
                receives.posted);
    }
}

static void qp_print(const observe_process_t *process, const struct journal_state *state, const char *title, FILE *out)
{
    struct observe_object *object = observe_object_find(process, OBSERVE_QP, state->context, state->number);
    const struct observe_object *peer = object != NULL ? observe_peer(object) : NULL;
    const struct journal_qp_state *qp = &state->qp;
    fprintf(out, "  %s qp %u", title, state->number);
    if (peer != NULL) {
        fprintf(out, " -> %s qp %u", peer->process->node, peer->number);
    }
    fprintf(out, " (%s): %u of %" PRIu64 " sends outstanding, %u of %" PRIu64 " receives",
            observe_state_name(qp->state), qp->sends_outstanding, qp->sends_posted, qp->receives_outstanding,
            qp->receives_posted);
    if (qp->unsignaled > 0) {
        fprintf(out, "; the last %u asked for no completion", qp->unsignaled);
    }
    if (qp->needs_receive && peer != NULL && object->qp.path.rnr_retry == RNR_FOR_EVER) {
        receives_print(peer, out);
    }
    fprintf(out, "\n");
}

// The completion queue that the program polls, if it is empty.
static void polled_print(const struct journal_state *states, unsigned count, const char *title, FILE *out)
{
    const struct journal_state *polled = NULL;
    bool elsewhere = false;
    for (unsigned i = 0; i < count; i++) {
        polled = states[i].is_cq && states[i].cq.is_polled ? &states[i] : polled;
        elsewhere = elsewhere || (states[i].is_cq && !states[i].cq.is_polled && states[i].cq.waiting > 0);
    }
    if (polled != NULL && polled->cq.waiting == 0) {
        fprintf(out, "  %s polls cq %u, where nothing came%s\n", title, polled->number,
                elsewhere ? ", but completions wait elsewhere" : "");
    }
}

// States that may explain why the program does not go on.
static bool is_notable(const struct journal_state *state)
{
    return state->is_cq ? state->cq.waiting > 0 || state->cq.unacknowledged > 0 : state->qp.sends_outstanding > 0;
}

enum { LISTED_MAX = 24 };

static unsigned states_list(const observe_process_t *process, const struct journal_state *states, unsigned count,
                            bool notable, unsigned listed, const char *title, FILE *out)
{
    for (unsigned i = 0; i < count; i++) {
        if (is_notable(&states[i]) != notable || listed++ >= LISTED_MAX) {
            continue;
        }
        if (states[i].is_cq) {
            cq_print(&states[i], title, out);
        } else {
            qp_print(process, &states[i], title, out);
        }
    }
    return listed;
}

void observe_states_print(const observe_process_t *process, const struct journal_state *states, unsigned count,
                          FILE *out)
{
    char title[128];
    if (process == NULL || count == 0) {
        return;
    }
    observe_title(process, title, sizeof title);
    unsigned listed = states_list(process, states, count, true, 0, title, out);
    listed = states_list(process, states, count, false, listed, title, out);
    if (listed > LISTED_MAX) {
        fprintf(out, "  %s: %u more queues\n", title, listed - LISTED_MAX);
    }
    polled_print(states, count, title, out);
}
