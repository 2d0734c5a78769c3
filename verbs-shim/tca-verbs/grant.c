// Grants: memory whose location was sent to another node so that its board may write there. Exactly one packet ends
// each grant: DATA_DONE or RELEASE if a request asked for it; the first READ_DATA, READ_DONE, NAK, NOT_READY or RELEASE
// if a read named it. Until then its region remains registered.
#include <stdlib.h>

#include "verbs-shim/tca-verbs/internal.h"

bool tcav_grant_add(struct tcav_qp *qp, uint32_t message, struct tcav_location location, uint64_t bytes, bool read)
{
    struct tcav_context *context = qp->pd->context;
    struct tcav_grant *grant = malloc(sizeof *grant);
    if (grant == NULL) {
        return false;
    }
    *grant = (struct tcav_grant){.next = context->grants,
                                 .peer = qp->peer,
                                 .qp = qp->number,
                                 .message = message,
                                 .bytes = bytes,
                                 .location = location,
                                 .read = read};
    context->grants = grant;
    return true;
}

static void unlink_free(struct tcav_grant **link)
{
    struct tcav_grant *grant = *link;
    *link = grant->next;
    free(grant);
}

// A read that was retransmitted has two grants; each packet ends one.
void tcav_grant_end(struct tcav_context *context, const struct tcav_peer *peer, uint32_t qp, uint32_t message,
                    bool read)
{
    for (struct tcav_grant **link = &context->grants; *link != NULL; link = &(*link)->next) {
        const struct tcav_grant *grant = *link;
        if (grant->peer == peer && grant->qp == qp && grant->message == message && grant->read == read) {
            unlink_free(link);
            return;
        }
    }
}

void tcav_grants_drop(struct tcav_context *context, const struct tcav_peer *peer)
{
    for (struct tcav_grant **link = &context->grants; *link != NULL;) {
        if (peer == NULL || (*link)->peer == peer) {
            unlink_free(link);
        } else {
            link = &(*link)->next;
        }
    }
}

bool tcav_grants_overlap(const struct tcav_context *context, struct tcav_location location, uint64_t bytes)
{
    for (const struct tcav_grant *grant = context->grants; grant != NULL; grant = grant->next) {
        uint64_t from = grant->location.offset;
        if (grant->location.block == location.block && from < location.offset + bytes &&
            location.offset < from + grant->bytes) {
            return true;
        }
    }
    return false;
}

void tcav_grant_release(struct tcav_peer *peer, uint32_t remote_qp, uint32_t own_qp, uint32_t message, bool read)
{
    if (peer != NULL) {
        tcav_peer_notify(
            peer,
            (struct tcav_header){
                .qp = remote_qp, .kind = TCAV_RELEASE, .message = message, .immediate = read, .source_qp = own_qp});
    }
}

void tcav_grant_packet(struct tcav_peer *peer, const struct tcav_header *header)
{
    struct tcav_context *context = peer->context;
    switch ((enum tcav_kind)header->kind) {
    case TCAV_DATA_DONE:
        tcav_grant_end(context, peer, header->qp, header->message, false);
        break;
    case TCAV_READ_DATA:
        if (header->offset == 0) {
            tcav_grant_end(context, peer, header->qp, header->message, true);
        }
        break;
    case TCAV_READ_DONE:
    case TCAV_NAK:
    case TCAV_NOT_READY:
        tcav_grant_end(context, peer, header->qp, header->message, true);
        break;
    case TCAV_RELEASE:
        tcav_grant_end(context, peer, header->qp, header->message, header->immediate != 0);
        break;
    case TCAV_BYE:
        tcav_grants_drop(context, peer);
        break;
    case TCAV_SEND:
    case TCAV_WRITE:
    case TCAV_ASK_SEND:
    case TCAV_ASK_WRITE:
    case TCAV_GRANT:
    case TCAV_READ:
    case TCAV_SWAP:
    case TCAV_ADD:
    case TCAV_ATOMIC_DATA:
    case TCAV_DATAGRAM:
    case TCAV_RNR:
        break;
    }
}

// --- the requester's side -------------------------------------------------------------------------------------------

void tcav_grant_step(struct tcav_qp *qp)
{
    if (qp->release_due && !qp->request_move.queued) {
        tcav_stir(qp->pd->context);
        qp->release_due = false;
        tcav_grant_release(qp->peer, qp->remote_number, qp->number, qp->release_message, false);
    }
}

void tcav_grant_abandon(struct tcav_qp *qp)
{
    struct tcav_request *request = qp->sent < qp->count ? tcav_request_at(qp, qp->sent) : NULL;
    if (request != NULL && (request->state == TCAV_REQUEST_GRANTED || request->state == TCAV_REQUEST_MOVING ||
                            request->state == TCAV_REQUEST_MOVED)) {
        request->state = TCAV_REQUEST_QUEUED;
        qp->release_due = true;
        qp->release_message = request->message;
        tcav_grant_step(qp);
        tcav_qp_activate(qp);
    }
}
