// Long messages and read responses by stream (models/flow): everything between the first and the last packet of a
// message, which go as packets. When the stream begins, the first packet is on its way; it meets the responder's checks
// and takes the receive entry. When the stream ends, its data are copied, and both queue pairs advance by its packets,
// as if each had been sent and accepted. So the last packet brings the acknowledge, the completion and the error, and a
// retry sends all of it as packets.
//
// A stream is given up (its data are not copied) when its queue pair goes back, fails or is reset; then the message
// goes on as packets. The same happens at its end if the other queue pair did not accept what was before it.
//
// Short messages of other queue pairs wait behind each packet of a long one, in queues that streams do not have. While
// there are such messages at one of the two adapters, long ones go as packets.
#include <string.h>

#include "models/hca/internal.h"

enum { LEAST_BYTES = 16384 }; // below it packets are as fast to simulate
// A queue pair with so many short messages, each within this time after the one before, has more of them.
enum { BESIDE_SHORTS = 4 };
#define BESIDE_PS (20 * SIM_PS_PER_US)

bool hca_stream_fits(const struct hca_qp *qp, uint32_t packets)
{
    const struct hca_config *config = &qp->hca->config;
    return config->flows != NULL && config->adversary == NULL && qp->init.type != HCA_UD && packets > 2 &&
           (uint64_t)(packets - 2) * qp->attr.path_mtu_bytes >= LEAST_BYTES;
}

// --- short messages -------------------------------------------------------------------------------------------------

void hca_stream_beside(struct hca_qp *qp, const ib_packet_t *packet)
{
    hca_t *hca = qp->hca;
    uint64_t now_ps = sim_now_ps(hca->sim);
    if (hca->config.flows == NULL || packet->in_long || (ib_packet_flags(packet) & IB_IS_FIRST) == 0) {
        return;
    }
    qp->shorts = now_ps - qp->short_ps < BESIDE_PS ? qp->shorts + 1 : 1;
    qp->short_ps = now_ps;
    if (qp->shorts < BESIDE_SHORTS) {
        return;
    }
    if (hca->beside[0].qpn != qp->number) {
        hca->beside[1] = hca->beside[0];
        hca->beside[0].qpn = qp->number;
    }
    hca->beside[0].at_ps = now_ps;
    hca_streams_interrupt(hca);
}

bool hca_stream_has_beside(const struct hca_qp *qp)
{
    const hca_t *hca = qp->hca;
    unsigned other = hca->beside[0].qpn == qp->number ? 1 : 0;
    return hca->beside[other].qpn != 0 && sim_now_ps(hca->sim) - hca->beside[other].at_ps < BESIDE_PS;
}

// --- the two ends of a stream ---------------------------------------------------------------------------------------

static bool is_peer_there(const struct hca_stream *stream)
{
    return stream->peer->used && stream->peer->generation == stream->peer_generation;
}

bool hca_stream_is_expected(const struct hca_stream *stream)
{
    const struct hca_qp *peer = stream->peer;
    if (!is_peer_there(stream)) {
        return false;
    }
    if (stream->response) {
        return (peer->state == HCA_RTS || peer->state == HCA_SQD) && peer->sq.una != peer->sq.begun &&
               peer->sq.una_psn == stream->psn;
    }
    return peer->state != HCA_RESET && peer->state != HCA_INIT && peer->state != HCA_ERROR && !peer->rsp.dead &&
           peer->rsp.in_message && peer->rsp.psn == stream->psn;
}

// A response that streams advances the requester all the time: its timer waits, and its window has room.
static void response_begins(const struct hca_stream *stream)
{
    stream->peer->sq.expected += stream->bytes / stream->mtu_bytes;
    hca_sender_kick(stream->peer);
}

static void response_ends(const struct hca_stream *stream)
{
    if (stream->response && is_peer_there(stream)) {
        stream->peer->sq.expected -= stream->bytes / stream->mtu_bytes;
    }
}

static void peer_advance(const struct hca_stream *stream, uint32_t bytes, uint32_t packets)
{
    struct hca_qp *peer = stream->peer;
    struct hca_rsp *rsp = &peer->rsp;
    if (stream->response) {
        hca_requester_progress(peer, stream->psn + packets);
        return;
    }
    rsp->psn = (rsp->psn + packets) & IB_PSN_MASK;
    if (rsp->write_message) {
        rsp->address += bytes;
        rsp->left -= bytes;
        rsp->message_bytes += bytes;
    } else {
        rsp->received += bytes;
    }
}

static void own_advance(const struct hca_stream *stream, uint32_t packets)
{
    struct hca_qp *qp = stream->qp;
    if (stream->response) {
        qp->rsp.slots[qp->rsp.slot_send % qp->rsp.slot_count].sent_packets += packets;
    } else {
        hca_sender_advance(qp, packets);
        hca_wqe_request(qp, qp->sq.next)->streamed += packets;
        qp->sq.streamed += packets;
    }
}

static void done(void *ctx, uint64_t bytes)
{
    static const struct sim_work streaming = {"HCA", "stream", false};
    struct hca_stream *stream = ctx;
    struct hca_qp *qp = stream->qp;
    uint32_t packets = (uint32_t)(bytes / stream->mtu_bytes);
    sim_cause_label(qp->hca->sim, qp->hca->name, &streaming);
    stream->flow = NULL;
    qp->hca->leaving--;
    response_ends(stream);
    if (packets > 0) {
        peer_advance(stream, (uint32_t)bytes, packets);
        own_advance(stream, packets);
    }
    if (stream->response) {
        hca_reader_kick(qp);
    } else {
        if (hca_is_reliable(qp->init.type)) {
            hca_retry_postpone(qp);
        }
        hca_sender_kick(qp);
    }
}

// --- beginning ------------------------------------------------------------------------------------------------------

// The first message of a queue pair after a pause finds the gather buffers full of packets of others, which go first, at
// the rate of what is slowest. Later ones follow the queue pair's own packets there.
static uint64_t wait_ps(const struct hca_stream *stream, const struct flow_path *path)
{
    const struct hca_qp *qp = stream->qp;
    bool first = stream->response ? qp->rsp.slot_next - qp->rsp.slot_send == 1 : qp->sq.una == qp->sq.next;
    uint64_t gathered_bytes = (uint64_t)qp->hca->config.gather_packets * stream->mtu_bytes;
    return first && qp->hca->leaving > 0 ? (uint64_t)flow_path_ps(path, gathered_bytes) : 0;
}

static void begin(struct hca_stream *stream, const ib_packet_t *like)
{
    static const struct flow_ops ops = {.done = done};
    hca_t *hca = stream->qp->hca;
    struct flow_path path = {.grain_bytes = like->bytes, .before_bytes = like->bytes, .behind_bytes = like->bytes};
    if (hca_stream_has_beside(stream->qp)) {
        return;
    }
    stream->mtu_bytes = like->bytes;
    stream->psn = like->psn;
    stream->peer = NULL;
    hca_stream_path(stream, &path, like);
    // The first packet must be there when the stream ends.
    if (path.refused || flow_path_ps(&path, stream->bytes) < (double)path.latency_ps * 3 / 2) {
        return;
    }
    path.delay_ps = wait_ps(stream, &path);
    stream->flow = flow_start(hca->config.flows, &path, stream->bytes, &ops, stream);
    hca->leaving += stream->flow != NULL;
    if (stream->response && stream->flow != NULL) {
        response_begins(stream);
    }
}

void hca_stream_request(struct hca_qp *qp, uint64_t address, uint32_t rkey)
{
    struct hca_stream *stream = &qp->sq.stream;
    struct hca_sq *sq = &qp->sq;
    const struct hca_request *request = hca_wqe_request(qp, sq->next);
    if (sq->packet != 1 || !hca_stream_fits(qp, request->packets) || sq->psn != sq->max_psn ||
        (request->flags & HCA_WQE_INLINE) != 0) {
        return;
    }
    bool write = hca_opcode_has(request->opcode, HCA_HAS_REMOTE);
    uint32_t mtu = qp->attr.path_mtu_bytes;
    ib_packet_t *like = ib_packet_take(qp->hca->packets);
    hca_packet_address(qp, like, write ? IB_WRITE_MIDDLE : IB_SEND_MIDDLE);
    like->psn = sq->psn;
    like->bytes = mtu;
    like->address = address + mtu;
    like->rkey = rkey;
    *stream = (struct hca_stream){.qp = qp, .at = mtu, .bytes = (request->packets - 2) * mtu};
    begin(stream, like);
    ib_packet_give(qp->hca->packets, like);
}

void hca_stream_response(struct hca_qp *qp, const struct hca_slot *slot)
{
    struct hca_stream *stream = &qp->rsp.stream;
    if (slot->atomic || slot->again || slot->sent_packets != 1 || !hca_stream_fits(qp, slot->packets)) {
        return;
    }
    uint32_t mtu = qp->attr.path_mtu_bytes;
    ib_packet_t *like = ib_packet_take(qp->hca->packets);
    hca_packet_address(qp, like, IB_READ_MIDDLE);
    like->psn = (slot->psn + 1) & IB_PSN_MASK;
    like->bytes = mtu;
    *stream = (struct hca_stream){.qp = qp, .response = true, .at = mtu, .bytes = (slot->packets - 2) * mtu};
    begin(stream, like);
    ib_packet_give(qp->hca->packets, like);
}

// --- early ends -----------------------------------------------------------------------------------------------------

void hca_stream_drop(struct hca_stream *stream)
{
    if (stream->flow != NULL) {
        flow_drop(stream->flow);
        stream->flow = NULL;
        stream->qp->hca->leaving--;
        if (!stream->qp->hca->ends) { // else the other one may be gone
            response_ends(stream);
        }
    }
}

void hca_streams_interrupt(hca_t *hca)
{
    if (hca->port != NULL) {
        ib_end_streams_interrupt(hca->port);
    }
    ib_end_streams_interrupt(hca->loop_out);
}

void hca_streams_drop(struct hca_qp *qp)
{
    hca_stream_drop(&qp->sq.stream);
    hca_stream_drop(&qp->rsp.stream);
}
