// Port to port: posted writes are passed on; reads are passed on in pieces, each under a tag of the root complex, by
// which their completions find the way back. A TLP stays in the receive buffer it came through until the other link
// takes it, or takes its last piece.
//
// The completions of one read leave by address (clause 2.3.1.1): those of a piece that arrive before its turn leave the
// receive buffer and wait; their number is bounded by the pieces that may be outstanding.
#include <stdlib.h>

#include "models/pcie/rc_internal.h"

static void waiting_pump(struct pcie_rc_port *from);

void pcie_rc_peer_init(struct pcie_rc_port *port)
{
    pcie_ring_init(&port->peer_waiting, sizeof(struct pcie_rc_peer_request *));
    pcie_tags_init(&port->peer_tags, PCIE_RC_PEER_ID, 0, PCIE_RC_TAGS, 8);
}

// tlp leaves through `to`; `held`, whose reference is taken, came through `from`. NULL: nothing is held.
static void forward(struct pcie_rc_port *from, struct pcie_rc_port *to, pcie_tlp_t *tlp, pcie_tlp_t *held)
{
    const struct pcie_rc_config *config = &to->rc->config;
    uint64_t ready_ps = sim_now_ps(to->rc->sim) + config->peer_ps;
    if (from->socket != to->socket) {
        ready_ps += config->qpi_ps + (tlp->kind == PCIE_TLP_MRD ? config->qpi_peer_read_ps : 0);
    }
    pcie_rc_egress_push(to, &(struct pcie_rc_leaving){.base = {.tlp = tlp, .ready_ps = ready_ps},
                                                      .held = held,
                                                      .held_at = held == NULL ? NULL : from});
}

void pcie_rc_peer_write(struct pcie_rc_port *from, struct pcie_rc_port *to, pcie_tlp_t *tlp)
{
    to->rc->counters[PCIE_RC_PEER_WRITES]++;
    pcie_tlp_ref(tlp);
    forward(from, to, tlp, tlp);
}

// --- pieces --------------------------------------------------------------------------------------------------------

static bool crosses(const struct pcie_rc_peer_request *request)
{
    return request->from->socket != request->to->socket;
}

static bool piece_allowed(const struct pcie_rc_peer_request *request)
{
    const pcie_rc_t *rc = request->from->rc;
    const struct pcie_rc_port *to = request->to;
    return to->peer_outstanding[request->from->index] < rc->config.peer_reads_max &&
           (!crosses(request) || rc->read_lines[request->from->socket] < rc->config.qpi_peer_lines_max) &&
           pcie_tags_free(&to->peer_tags);
}

static uint32_t piece_bytes(const struct pcie_rc_peer_request *request)
{
    uint32_t most = request->from->rc->config.peer_read_bytes;
    uint32_t left = request->bytes - request->forwarded_bytes;
    if (crosses(request)) {
        most = PCIE_RC_LINE_BYTES;
    } else if (most == 0) {
        return left;
    }
    uint64_t begin = pcie_tlp_first_byte(request->tlp) + request->forwarded_bytes;
    uint32_t bytes = most - (uint32_t)(begin & (most - 1));
    return bytes < left ? bytes : left;
}

static pcie_tlp_t *piece_request(const struct pcie_rc_peer_request *request, const struct pcie_rc_peer_piece *piece,
                                 uint8_t tag)
{
    if (piece->bytes == request->bytes) {
        pcie_tlp_t *whole = pcie_tlp_copy(request->tlp); // with its byte enables
        whole->requester = PCIE_RC_PEER_ID;
        whole->tag = tag;
        return whole;
    }
    return pcie_tlp_read(request->from->rc->pool, PCIE_RC_PEER_ID, tag,
                         pcie_tlp_first_byte(request->tlp) + piece->offset, piece->bytes);
}

static void piece_forward(struct pcie_rc_peer_request *request)
{
    pcie_rc_t *rc = request->from->rc;
    uint32_t bytes = piece_bytes(request);
    uint8_t tag = pcie_tags_take(&request->to->peer_tags, request, bytes);
    struct pcie_rc_peer_piece *piece = &request->to->peer_pieces[tag];
    *piece =
        (struct pcie_rc_peer_piece){.request = request, .offset = request->forwarded_bytes, .bytes = bytes, .tag = tag};
    piece->early_end = &piece->early;
    if (request->first == NULL) {
        request->first = piece;
    } else {
        request->last->next = piece;
    }
    request->last = piece;
    request->forwarded_bytes += piece->bytes;
    request->to->peer_outstanding[request->from->index]++;
    if (crosses(request)) {
        rc->read_lines[request->from->socket]++;
        rc->counters[PCIE_RC_QPI_READ_LINES]++;
    }
    pcie_tlp_t *held = NULL;
    if (request->forwarded_bytes == request->bytes) {
        held = request->tlp;
        pcie_tlp_ref(held);
    }
    forward(request->from, request->to, piece_request(request, piece, tag), held);
}

static void early_drop(struct pcie_rc_peer_piece *piece)
{
    while (piece->early != NULL) {
        pcie_tlp_t *completion = piece->early;
        piece->early = completion->next;
        pcie_tlp_unref(completion);
    }
}

// The first piece of a read is finished.
static void piece_end(struct pcie_rc_peer_request *request)
{
    struct pcie_rc_peer_piece *piece = request->first;
    early_drop(piece);
    request->first = piece->next;
    piece->request = NULL;
    pcie_tags_give(&request->to->peer_tags, piece->tag);
    request->to->peer_outstanding[request->from->index]--;
    if (crosses(request)) {
        request->from->rc->read_lines[request->from->socket]--;
    }
}

static void request_free(struct pcie_rc_peer_request *request)
{
    pcie_tlp_unref(request->tlp);
    free(request);
}

// --- reads ---------------------------------------------------------------------------------------------------------

void pcie_rc_peer_read(struct pcie_rc_port *from, struct pcie_rc_port *to, pcie_tlp_t *tlp)
{
    struct pcie_rc_peer_request *request = calloc(1, sizeof *request);
    if (request == NULL) {
        sim_panic(from->rc->name, "no memory for a read from port to port");
    }
    to->rc->counters[PCIE_RC_PEER_READS]++;
    *request = (struct pcie_rc_peer_request){
        .tlp = tlp, .from = from, .to = to, .bytes = pcie_tlp_byte_count(tlp), .waiting = true};
    *(struct pcie_rc_peer_request **)pcie_ring_push(&from->peer_waiting) = request;
    waiting_pump(from);
}

// Ends the unanswered part of the read with an error.
static void unsupported_answer(struct pcie_rc_peer_request *request)
{
    struct pcie_rc_port *from = request->from;
    uint32_t done = request->first == NULL ? 0 : request->first->offset;
    pcie_tlp_t *error = pcie_tlp_error(request->tlp, PCIE_RC_CPU_ID, PCIE_CPL_UR);
    error->byte_count = (uint16_t)(request->bytes - done);
    from->rc->counters[PCIE_RC_UNSUPPORTED_READS]++;
    request->failed = true;
    pcie_rc_egress_push(from, &(struct pcie_rc_leaving){.base = {.tlp = error, .ready_ps = sim_now_ps(from->rc->sim)}});
}

// Forwards as much as possible of the oldest waiting read. true: it no longer waits.
static bool oldest_forward(struct pcie_rc_peer_request *request)
{
    if (!request->failed && !pcie_end_is_up(request->to->end)) {
        unsupported_answer(request);
    }
    while (!request->failed && request->forwarded_bytes < request->bytes) {
        if (!piece_allowed(request)) {
            return false;
        }
        piece_forward(request);
    }
    return true;
}

static void waiting_pump(struct pcie_rc_port *from)
{
    while (from->peer_waiting.count > 0) {
        struct pcie_rc_peer_request *request = *(struct pcie_rc_peer_request **)pcie_ring_front(&from->peer_waiting);
        if (!oldest_forward(request)) {
            return;
        }
        pcie_ring_pop(&from->peer_waiting);
        request->waiting = false;
        if (request->forwarded_bytes < request->bytes) {
            pcie_end_release(from->end, request->tlp); // no last piece releases it
        }
        if (request->first == NULL) {
            request_free(request);
        }
    }
}

static void all_waiting_pump(pcie_rc_t *rc, unsigned first)
{
    for (unsigned i = 0; i < rc->port_count; i++) {
        waiting_pump(rc->ports[(first + i) % rc->port_count]);
    }
}

// --- completions ---------------------------------------------------------------------------------------------------

// Passes a completion of the oldest piece on to the requester. held: it is still in the receive buffer.
static void completion_pass(struct pcie_rc_peer_piece *piece, pcie_tlp_t *completion, bool held)
{
    struct pcie_rc_peer_request *request = piece->request;
    if (request->failed) {
        if (held) {
            pcie_end_release(request->to->end, completion);
        }
        pcie_tlp_unref(completion);
        return;
    }
    pcie_tlp_t *renamed = pcie_tlp_copy(completion);
    uint32_t done = piece->offset + piece->bytes - completion->byte_count;
    renamed->requester = request->tlp->requester;
    renamed->tag = request->tlp->tag;
    renamed->byte_count = (uint16_t)(request->bytes - done);
    request->failed = completion->cpl_status != PCIE_CPL_SC;
    if (!held) {
        pcie_tlp_unref(completion);
    }
    forward(request->to, request->from, renamed, held ? completion : NULL);
}

// Moves the turn from piece to piece, as far as they have ended.
static void turn_pass(struct pcie_rc_peer_request *request)
{
    while (request->first != NULL && request->first->ended) {
        piece_end(request);
        struct pcie_rc_peer_piece *next = request->first;
        while (next != NULL && next->early != NULL) {
            pcie_tlp_t *completion = next->early;
            next->early = completion->next;
            completion->next = NULL;
            completion_pass(next, completion, false);
        }
        if (next != NULL) {
            next->early_end = &next->early;
        }
    }
}

void pcie_rc_peer_complete(struct pcie_rc_port *port, pcie_tlp_t *completion)
{
    pcie_rc_t *rc = port->rc;
    uint32_t tag, at, bytes;
    enum pcie_answer answer = pcie_tags_answer(&port->peer_tags, completion, &tag, &at, &bytes);
    struct pcie_rc_peer_piece *piece = &port->peer_pieces[tag];
    struct pcie_rc_peer_request *request = piece->request;
    if (answer == PCIE_ANSWER_UNEXPECTED) {
        rc->counters[PCIE_RC_UNEXPECTED_COMPLETIONS]++;
        pcie_end_release(port->end, completion);
        pcie_tlp_unref(completion);
        return;
    }
    unsigned from = request->from->index;
    piece->ended = answer != PCIE_ANSWER_PART;
    if (piece != request->first) {
        pcie_end_release(port->end, completion);
        completion->next = NULL;
        *piece->early_end = completion;
        piece->early_end = &completion->next;
        return;
    }
    completion_pass(piece, completion, true);
    if (!piece->ended) {
        return;
    }
    turn_pass(request);
    if (request->first == NULL && !request->waiting) {
        request_free(request);
    }
    all_waiting_pump(rc, from + 1);
}

// The port will not answer the reads forwarded to it: they end now, and so do the reads that wait for it.
void pcie_rc_peer_port_down(struct pcie_rc_port *port)
{
    for (unsigned tag = 0; tag < PCIE_RC_TAGS; tag++) {
        struct pcie_rc_peer_request *request = port->peer_pieces[tag].request;
        if (request == NULL) {
            continue;
        }
        if (!request->failed) {
            unsupported_answer(request);
        }
        while (request->first != NULL) {
            piece_end(request);
        }
        if (!request->waiting) {
            request_free(request);
        }
    }
    all_waiting_pump(port->rc, 0);
}

void pcie_rc_peer_fini(struct pcie_rc_port *port)
{
    for (unsigned tag = 0; tag < PCIE_RC_TAGS; tag++) {
        struct pcie_rc_peer_request *request = port->peer_pieces[tag].request;
        while (request != NULL && request->first != NULL) {
            piece_end(request);
        }
        if (request != NULL && !request->waiting) {
            request_free(request);
        }
    }
    while (port->peer_waiting.count > 0) {
        struct pcie_rc_peer_request *request = *(struct pcie_rc_peer_request **)pcie_ring_front(&port->peer_waiting);
        while (request->first != NULL) {
            piece_end(request);
        }
        request_free(request);
        pcie_ring_pop(&port->peer_waiting);
    }
    pcie_ring_fini(&port->peer_waiting);
}
