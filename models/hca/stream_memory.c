// The memory at both ends of a stream: segments of requests, regions, and receive entries. Each piece is looked up when
// it is copied, as packets do it; the memories behind the two slots are those of the path.
#include "models/hca/internal.h"

enum { PAGE_BYTES = 4096 };

// --- where the data are ---------------------------------------------------------------------------------------------

// at: in the message.
static bool source_pieces(const struct hca_stream *stream, uint32_t at, uint32_t bytes, struct hca_piece *pieces,
                          unsigned *count_out)
{
    struct hca_qp *qp = stream->qp;
    if (!stream->response) {
        return hca_segments_pieces(qp->hca, qp->init.pdn, 0, hca_wqe_segments(qp, qp->sq.next),
                                   hca_wqe_request(qp, qp->sq.next)->segments, at, bytes, pieces, count_out,
                                   HCA_PIECES_MAX);
    }
    const struct hca_slot *slot = &qp->rsp.slots[qp->rsp.slot_send % qp->rsp.slot_count];
    const struct hca_mr *mr = hca_mr_check(qp->hca, slot->rkey, slot->pdn, HCA_REMOTE_READ, slot->address + at, bytes);
    *count_out = mr == NULL ? 0 : hca_mr_pieces(mr, slot->address + at, bytes, pieces, 0, HCA_PIECES_MAX);
    return mr != NULL;
}

static bool region_pieces(const struct hca_qp *qp, uint32_t rkey, uint64_t address, uint32_t bytes,
                          struct hca_piece *pieces, unsigned *count_out)
{
    const struct hca_mr *mr = hca_mr_check(qp->hca, rkey, hca_remote_pdn(qp), HCA_REMOTE_WRITE, address, bytes);
    *count_out = mr == NULL ? 0 : hca_mr_pieces(mr, address, bytes, pieces, 0, HCA_PIECES_MAX);
    return mr != NULL;
}

static bool receive_pieces(const struct hca_qp *qp, const struct hca_receive *receive, uint32_t at, uint32_t bytes,
                           struct hca_piece *pieces, unsigned *count_out)
{
    uint32_t pdn = qp->rq->shared ? qp->rq->pdn : qp->init.pdn;
    return hca_segments_pieces(qp->hca, pdn, HCA_LOCAL_WRITE, receive->data, receive->segments, at, bytes, pieces,
                               count_out, HCA_PIECES_MAX);
}

static bool response_pieces(const struct hca_qp *qp, uint32_t count, uint32_t at, uint32_t bytes,
                            struct hca_piece *pieces, unsigned *count_out)
{
    return hca_segments_pieces(qp->hca, qp->init.pdn, HCA_LOCAL_WRITE, hca_wqe_segments(qp, count),
                               hca_wqe_request(qp, count)->segments, at, bytes, pieces, count_out, HCA_PIECES_MAX);
}

// at: in the stream. The state of the other queue pair is that before the stream.
static bool target_pieces(const struct hca_stream *stream, uint32_t at, uint32_t bytes, struct hca_piece *pieces,
                          unsigned *count_out)
{
    struct hca_qp *peer = stream->peer;
    const struct hca_rsp *rsp = &peer->rsp;
    if (stream->response) {
        const struct hca_request *request = hca_wqe_request(peer, peer->sq.una);
        uint32_t packets = (uint32_t)ib_psn_distance(request->first_psn, stream->psn);
        return response_pieces(peer, peer->sq.una, packets * stream->mtu_bytes + at, bytes, pieces, count_out);
    }
    return rsp->write_message ? region_pieces(peer, rsp->rkey, rsp->address + at, bytes, pieces, count_out)
                              : receive_pieces(peer, &rsp->receive, rsp->received + at, bytes, pieces, count_out);
}

// --- when it begins ----------------------------------------------------------------------------------------------------

typedef bool (*pieces_fn)(const void *ctx, uint32_t at, uint32_t bytes, struct hca_piece *pieces, unsigned *count_out);

// What is contiguous from the beginning on: all of it, or less. false: the beginning has no memory.
static bool run_find(pieces_fn find, const void *ctx, uint64_t bytes, struct hca_piece *run_out)
{
    struct hca_piece pieces[HCA_PIECES_MAX], run = {0};
    unsigned count = 1;
    for (uint32_t at = 0; at < bytes && count == 1; at += PAGE_BYTES) {
        uint32_t part = bytes - at < PAGE_BYTES ? (uint32_t)(bytes - at) : PAGE_BYTES;
        if (!find(ctx, at, part, pieces, &count) || count == 0 || (at > 0 && pieces[0].bus != run.bus + run.bytes)) {
            break;
        }
        run.bus = at == 0 ? pieces[0].bus : run.bus;
        run.bytes += pieces[0].bytes;
    }
    *run_out = run;
    return run.bytes > 0;
}

static bool source_at_beginning(const void *ctx, uint32_t at, uint32_t bytes, struct hca_piece *pieces,
                                unsigned *count_out)
{
    const struct hca_stream *stream = ctx;
    return source_pieces(stream, stream->at + at, bytes, pieces, count_out);
}

bool hca_stream_begins(const struct hca_stream *stream, struct hca_piece *run_out)
{
    return run_find(source_at_beginning, stream, stream->bytes, run_out);
}

// Where a stream will land, before its receiver has come to it.
struct landing {
    struct hca_qp *qp;
    const ib_packet_t *like;
    uint32_t request, packet; // which a response answers
};

// The receive entry of a send is not known before the first packet has taken it. The next one is as good: it tells the
// memory.
static bool receive_guess(const struct hca_qp *qp, uint32_t at, uint32_t bytes, struct hca_piece *pieces,
                          unsigned *count_out)
{
    const struct hca_rq *rq = qp->rq;
    if (rq->fetched != rq->consumed) {
        return receive_pieces(qp, &rq->cache[rq->consumed % HCA_RECEIVE_CACHE], at, bytes, pieces, count_out);
    }
    pieces[0] = (struct hca_piece){rq->base, rq->stride_bytes};
    *count_out = at == 0 && rq->entries != 0 ? 1 : 0;
    return true;
}

static bool landing_pieces(const void *ctx, uint32_t at, uint32_t bytes, struct hca_piece *pieces, unsigned *count_out)
{
    const struct landing *landing = ctx;
    const ib_packet_t *like = landing->like;
    if (like->opcode == IB_READ_MIDDLE) {
        return response_pieces(landing->qp, landing->request, landing->packet * like->bytes + at, bytes, pieces,
                               count_out);
    }
    return like->opcode == IB_WRITE_MIDDLE
               ? region_pieces(landing->qp, like->rkey, like->address + at, bytes, pieces, count_out)
               : receive_guess(landing->qp, at, bytes, pieces, count_out);
}

// The request of which this packet answers a part.
static bool answered_find(struct landing *landing)
{
    const struct hca_qp *qp = landing->qp;
    for (uint32_t count = qp->sq.una; count != qp->sq.begun; count++) {
        const struct hca_request *request = hca_wqe_request(qp, count);
        int32_t packet = ib_psn_distance(request->first_psn, landing->like->psn);
        if (packet >= 0 && packet < (int32_t)request->packets) {
            landing->request = count;
            landing->packet = (uint32_t)packet;
            return hca_opcode_has(request->opcode, HCA_HAS_RESPONSE);
        }
    }
    return false;
}

bool hca_stream_lands(struct hca_qp *qp, const ib_packet_t *like, uint64_t bytes, struct hca_piece *run_out)
{
    struct landing landing = {.qp = qp, .like = like};
    bool response = like->opcode == IB_READ_MIDDLE;
    bool possible =
        response ? hca_sends(qp->init.type) && answered_find(&landing) : hca_receives(qp->init.type) && !qp->rsp.dead;
    if (like->opcode == IB_WRITE_MIDDLE) {
        possible = possible && hca_mr_check(qp->hca, like->rkey, hca_remote_pdn(qp), HCA_REMOTE_WRITE, like->address,
                                            bytes) != NULL;
    }
    return possible && run_find(landing_pieces, &landing, bytes, run_out);
}

// --- when it is copied ----------------------------------------------------------------------------------------------

static const void *source_at(void *ctx, uint64_t at, uint32_t bytes)
{
    const struct hca_stream *stream = ctx;
    struct hca_piece pieces[HCA_PIECES_MAX];
    unsigned count;
    if (stream->from.at == NULL || !source_pieces(stream, (uint32_t)at, bytes, pieces, &count) || count != 1) {
        return NULL;
    }
    return stream->from.at(stream->from.ctx, pieces[0].bus, bytes);
}

static bool source_read(void *ctx, uint64_t at, void *data, uint32_t bytes)
{
    const struct hca_stream *stream = ctx;
    struct hca_piece pieces[HCA_PIECES_MAX];
    unsigned count;
    uint8_t *to = data;
    bool intact = source_pieces(stream, (uint32_t)at, bytes, pieces, &count);
    for (unsigned i = 0; intact && i < count; i++) {
        intact = stream->from.read(stream->from.ctx, pieces[i].bus, to, pieces[i].bytes);
        to += pieces[i].bytes;
    }
    return intact;
}

static bool piece_write(const struct hca_stream *stream, const struct hca_piece *piece, const uint8_t *data)
{
    bool intact = true;
    for (uint32_t done = 0; intact && done < piece->bytes;) {
        uint32_t left = piece->bytes - done, room = PAGE_BYTES - (uint32_t)((piece->bus + done) % PAGE_BYTES);
        uint32_t part = left < room ? left : room;
        intact = stream->to.write(stream->to.ctx, piece->bus + done, data + done, part);
        done += part;
    }
    return intact;
}

static bool target_write(void *ctx, uint64_t address, const void *data, uint32_t bytes)
{
    const struct hca_stream *stream = ctx;
    struct hca_piece pieces[HCA_PIECES_MAX];
    unsigned count;
    const uint8_t *from = data;
    bool intact = hca_stream_is_expected(stream) &&
                  target_pieces(stream, (uint32_t)(address - stream->to_address), bytes, pieces, &count);
    for (unsigned i = 0; intact && i < count; i++) {
        intact = piece_write(stream, &pieces[i], from);
        from += pieces[i].bytes;
    }
    return intact;
}

void hca_stream_memory(struct hca_stream *stream, struct flow_path *path, const ib_packet_t *like)
{
    stream->from = path->from;
    stream->to = path->to;
    stream->to_address = like->address;
    path->from = (struct flow_source){source_read, source_at, stream, stream->at};
    path->to = (struct flow_target){target_write, stream, like->address};
}
