// Sending. Each queue pair processes one of its requests at a time, concurrently with other queue pairs; then the send
// engine, which all share, serves the queue pairs with something to send in turn, one packet each, and starts the
// gathering of payloads. Packets of a queue pair leave in the order in which they were made.
#include <stddef.h>
#include <string.h>

#include "models/hca/internal.h"

static void send_run(void *ctx);

void hca_sender_init(hca_t *hca)
{
    sim_event_init(&hca->send_event, send_run, hca);
}

// --- payloads ------------------------------------------------------------------------------------------------------

static void packet_ready(hca_t *hca, ib_packet_t *packet)
{
    packet->due_ps = sim_now_ps(hca->sim) + hca->config.port_tx_ps;
    packet->cause = sim_cause_now(hca->sim);
    hca_port_pump(hca);
}

static void gather_done(hca_t *hca, struct hca_dma_read *read)
{
    ib_packet_t *packet = read->owner;
    packet->failed |= read->failed;
    if (--packet->pending == 0) {
        packet_ready(hca, packet);
    }
}

void hca_packet_gather(hca_t *hca, ib_packet_t *packet, enum hca_dma_source source, const struct hca_piece *pieces,
                       unsigned count)
{
    uint32_t at = 0;
    packet->pending = count + 1; // one more for this function
    for (unsigned i = 0; i < count; i++) {
        (void)hca_dma_read(hca, source, pieces[i].bus, pieces[i].bytes, packet->data + at, gather_done, packet);
        at += pieces[i].bytes;
    }
    if (--packet->pending == 0) {
        packet_ready(hca, packet);
    }
}

enum ib_service hca_service(enum hca_qp_type type)
{
    static const enum ib_service services[HCA_QP_TYPES] = {
        [HCA_RC] = IB_RC, [HCA_UC] = IB_UC, [HCA_UD] = IB_UD, [HCA_XRC_INITIATOR] = IB_XRC, [HCA_XRC_TARGET] = IB_XRC};
    return services[type];
}

void hca_packet_address(const struct hca_qp *qp, ib_packet_t *packet, unsigned opcode)
{
    packet->service = (uint8_t)hca_service(qp->init.type);
    packet->opcode = (uint8_t)opcode;
    packet->slid = qp->hca->lid;
    packet->dlid = qp->attr.dlid;
    packet->sl = qp->attr.sl;
    packet->global = qp->attr.global;
    packet->dest_qpn = qp->attr.dest_qpn;
    packet->source_qpn = qp->number;
}

// --- one packet of a request -----------------------------------------------------------------------------------------

// Of a request of one packet.
static const uint8_t only_opcodes[HCA_OPCODES] = {
#define OPCODE(id, verb, completion, packet, transports, operands) [HCA_OP_##id] = IB_##packet,
#include "models/hca/abi/opcodes.def"
#undef OPCODE
};

static unsigned packet_opcode(const struct hca_request *request, uint32_t packet)
{
    // [write][immediate]
    static const uint8_t LAST[2][2] = {{IB_SEND_LAST, IB_SEND_LAST_IMM}, {IB_WRITE_LAST, IB_WRITE_LAST_IMM}};
    bool write = hca_opcode_has(request->opcode, HCA_HAS_REMOTE);
    bool immediate = hca_opcode_has(request->opcode, HCA_HAS_IMMEDIATE);
    if (request->packets == 1) {
        return only_opcodes[request->opcode];
    }
    if (packet + 1 == request->packets) {
        return LAST[write][immediate];
    }
    if (packet == 0) {
        return write ? IB_WRITE_FIRST : IB_SEND_FIRST;
    }
    return write ? IB_WRITE_MIDDLE : IB_SEND_MIDDLE;
}

static void datagram_fill(struct hca_qp *qp, ib_packet_t *packet, const uint8_t *raw, const struct hca_request *request)
{
    struct hca_wqe_datagram to;
    memcpy(&to, raw, sizeof to);
    packet->dlid = to.dlid;
    packet->sl = to.sl;
    packet->dest_qpn = to.qpn;
    packet->qkey = (to.qkey & 0x80000000u) != 0 ? qp->attr.qkey : to.qkey; // 10.2.5
    packet->bytes = request->bytes;
    packet->global = to.global != 0;
    if (packet->global) {
        hca_route_write(qp->hca, packet, &to);
    }
}

// Requests without payload carry their whole range from the packet on: a read that was answered in part requests only
// the rest.
static void headers_fill(struct hca_qp *qp, ib_packet_t *packet, const struct hca_request *request, uint32_t mtu)
{
    const uint8_t *raw = hca_wqe_raw(qp, qp->sq.next);
    struct hca_wqe_control control;
    struct hca_wqe_xrc xrc;
    struct hca_wqe_remote remote = {0};
    struct hca_wqe_atomic atomic = {0};
    memcpy(&control, raw, sizeof control);
    packet->immediate = control.immediate;
    packet->solicited = (control.flags & HCA_WQE_SOLICITED) != 0;
    if (qp->init.type == HCA_UD) {
        datagram_fill(qp, packet, raw + sizeof control, request);
    }
    raw += sizeof control;
    if (qp->init.type == HCA_XRC_INITIATOR) {
        memcpy(&xrc, raw, sizeof xrc);
        packet->srqn = xrc.srqn;
        raw += sizeof xrc;
    }
    if (hca_opcode_has(request->opcode, HCA_HAS_REMOTE)) {
        memcpy(&remote, raw, sizeof remote);
    }
    if (hca_opcode_has(request->opcode, HCA_HAS_ATOMIC)) {
        memcpy(&atomic, raw + sizeof remote, sizeof atomic);
    }
    uint32_t done = request->opcode == HCA_OP_READ ? qp->sq.packet * mtu : 0;
    packet->address = remote.address + done;
    packet->rkey = remote.rkey;
    packet->dma_bytes = request->bytes - done;
    packet->swap_add = atomic.swap_add;
    packet->compare = atomic.compare;
}

static bool payload_fill(struct hca_qp *qp, ib_packet_t *packet, const struct hca_request *request, uint32_t mtu)
{
    hca_t *hca = qp->hca;
    uint32_t at = qp->sq.packet * mtu;
    struct hca_piece pieces[HCA_PIECES_MAX];
    unsigned count = 0;
    packet->bytes = request->bytes - at < mtu ? request->bytes - at : mtu;
    if ((request->flags & HCA_WQE_INLINE) != 0) {
        memcpy(packet->data, hca_wqe_raw(qp, qp->sq.next) + request->data_offset + at, packet->bytes);
    } else if (!hca_segments_pieces(hca, qp->init.pdn, 0, hca_wqe_segments(qp, qp->sq.next), request->segments, at,
                                    packet->bytes, pieces, &count, HCA_PIECES_MAX)) {
        qp->sq.fault = hca_segments_fault(hca, qp->init.pdn, 0, hca_wqe_segments(qp, qp->sq.next), request->segments,
                                          at, packet->bytes);
        return false;
    }
    ib_queue_push(&hca->requests, packet);
    hca_packet_gather(hca, packet, HCA_DMA_GATHER, pieces, count);
    return true;
}

static ib_packet_t *packet_make(struct hca_qp *qp, unsigned opcode)
{
    ib_packet_t *packet = ib_packet_take(qp->hca->packets);
    hca_packet_address(qp, packet, opcode);
    packet->psn = qp->sq.psn & IB_PSN_MASK;
    qp->hca->counters[HCA_PACKETS_RESENT] += ib_psn_distance(packet->psn, qp->sq.max_psn) > 0;
    packet->qp = qp;
    packet->generation = qp->generation;
    packet->index = qp->sq.next;
    if (qp->hca->config.adversary != NULL) {
        hca_adversity_damage(qp, packet);
    }
    return packet;
}

void hca_sender_advance(struct hca_qp *qp, uint32_t packets)
{
    struct hca_sq *sq = &qp->sq;
    sq->psn = (sq->psn + packets) & IB_PSN_MASK;
    if (ib_psn_distance(sq->max_psn, sq->psn) > 0) {
        sq->max_psn = sq->psn;
    }
    sq->packet += packets;
    if (sq->packet == hca_wqe_request(qp, sq->next)->packets) {
        sq->packet = 0;
        sq->next++;
    }
}

static void note_length(struct hca_qp *qp, ib_packet_t *packet, const struct hca_request *request)
{
    packet->in_long = hca_stream_fits(qp, request->packets);
    hca_stream_beside(qp, packet);
}

static void read_send(struct hca_qp *qp, const struct hca_request *request)
{
    ib_packet_t *packet = packet_make(qp, only_opcodes[request->opcode]);
    headers_fill(qp, packet, request, qp->attr.path_mtu_bytes);
    packet->ack_request = true;
    note_length(qp, packet, request);
    qp->sq.reads++;
    hca_sender_advance(qp, request->packets - qp->sq.packet);
    ib_queue_push(&qp->hca->requests, packet);
    hca_packet_gather(qp->hca, packet, HCA_DMA_GATHER, NULL, 0);
}

static bool message_send(struct hca_qp *qp, const struct hca_request *request)
{
    struct hca_sq *sq = &qp->sq;
    uint32_t mtu = qp->init.type == HCA_UD ? qp->hca->config.active_mtu_bytes : qp->attr.path_mtu_bytes;
    ib_packet_t *packet = packet_make(qp, packet_opcode(request, sq->packet));
    headers_fill(qp, packet, request, mtu);
    bool last = sq->packet + 1 == request->packets;
    packet->solicited &= last;
    packet->ends_request = last;
    note_length(qp, packet, request);
    packet->ack_request = last || ++sq->since_ack_request >= qp->hca->config.ack_every_packets;
    if (packet->ack_request) {
        sq->since_ack_request = 0;
    }
    const uint64_t address = packet->address;
    const uint32_t rkey = packet->rkey;
    if (!payload_fill(qp, packet, request, mtu)) {
        ib_packet_give(qp->hca->packets, packet);
        hca_request_fail(qp, sq->next, HCA_LOCAL_PROTECTION, sq->fault);
        return false;
    }
    hca_sender_advance(qp, 1);
    hca_stream_request(qp, address, rkey);
    return true;
}

// --- conditions for sending ------------------------------------------------------------------------------------------

static bool is_worked(const struct hca_sq *sq)
{
    return (int32_t)(sq->worked - sq->next) > 0;
}

static bool may_begin(struct hca_qp *qp, struct hca_request *request)
{
    struct hca_sq *sq = &qp->sq;
    bool reads = hca_opcode_has(request->opcode, HCA_HAS_RESPONSE);
    if (request->status == HCA_OK && reads && qp->attr.max_rd_atomic == 0) {
        request->status = HCA_LOCAL_OPERATION;
    }
    if (request->status != HCA_OK) {
        hca_request_fail(qp, sq->next, (enum hca_status)request->status, HCA_FAULT_REQUEST);
        return false;
    }
    if ((reads && sq->reads >= qp->attr.max_rd_atomic) || ((request->flags & HCA_WQE_FENCE) != 0 && sq->reads > 0)) {
        return false;
    }
    if (sq->next == sq->begun) {
        request->first_psn = sq->psn;
        request->streamed = 0;
        sq->begun++;
    }
    return true;
}

// May it send a packet now? The part that prevents it kicks it later.
static bool is_ready(struct hca_qp *qp)
{
    const struct hca_sq *sq = &qp->sq;
    bool sending = qp->state == HCA_RTS || (qp->state == HCA_SQD && sq->packet > 0);
    bool behind_failed = sq->stopped && (int32_t)(sq->next - sq->failed) >= 0; // earlier ones may have to be sent again
    if (!sending || behind_failed || sq->rnr_waiting || sq->next == sq->producer || sq->next == sq->fetched ||
        !is_worked(sq) || sq->stream.flow != NULL) {
        return false;
    }
    int32_t window = (int32_t)(qp->hca->config.window_packets + sq->streamed + sq->expected);
    if (hca_is_reliable(qp->init.type) && ib_psn_distance(sq->una_psn, sq->psn) >= window) {
        return false;
    }
    return sq->packet > 0 || may_begin(qp, hca_wqe_request(qp, sq->next));
}

static void produce(struct hca_qp *qp)
{
    struct hca_request *request = hca_wqe_request(qp, qp->sq.next);
    if (hca_opcode_has(request->opcode, HCA_HAS_RESPONSE)) {
        read_send(qp, request);
    } else if (!message_send(qp, request)) {
        return;
    }
    if (hca_is_reliable(qp->init.type)) {
        hca_retry_watch(qp);
    }
    hca_wqe_fetch(qp);
    hca_flush_drained(qp);
}

// --- the engine ----------------------------------------------------------------------------------------------------

static void engine_start(hca_t *hca)
{
    while (hca->senders.first != NULL && hca->requests.count < hca->config.gather_packets && hca->sending == NULL) {
        struct hca_qp *qp = hca_qp_list_pop(&hca->senders, offsetof(struct hca_qp, next_send));
        qp->send_listed = false;
        if (is_ready(qp) && hca->sending == NULL) {
            hca_wait_add(hca, HCA_WAIT_SENDER, qp->send_since_ps);
            hca->sending = qp;
            sim_event_schedule(hca->sim, &hca->send_event, hca->config.send_packet_ps);
        }
    }
}

// No clause bounds the time between packets of a message; its own order is kept, others do not wait (9.5).
static void pause(struct hca_qp *qp)
{
    uint64_t gap_ps = hca_late_ps(qp->hca, ADVERSARY_GAP);
    if (gap_ps != 0 && qp->sq.packet > 0 && qp->state == HCA_RTS && !sim_event_pending(&qp->sq.work)) {
        sim_event_schedule(qp->hca->sim, &qp->sq.work, gap_ps);
    }
}

static void send_run(void *ctx)
{
    static const struct sim_work sending = {"HCA", "send engine", false};
    hca_t *hca = ctx;
    sim_cause_label(hca->sim, hca->name, &sending);
    struct hca_qp *qp = hca->sending;
    hca->sending = NULL;
    if (qp != NULL) { // else it failed or was destroyed meanwhile
        if (is_ready(qp)) {
            produce(qp);
            pause(qp);
        }
        hca_sender_kick(qp);
    }
    engine_start(hca);
}

static void enlist(struct hca_qp *qp)
{
    if (!qp->send_listed) {
        qp->send_listed = true;
        qp->send_since_ps = sim_now_ps(qp->hca->sim);
        hca_qp_list_push(&qp->hca->senders, qp, offsetof(struct hca_qp, next_send));
    }
    engine_start(qp->hca);
}

void hca_sender_worked(void *ctx)
{
    static const struct sim_work working = {"HCA", "work on the request", false};
    struct hca_qp *qp = ctx;
    sim_cause_label(qp->hca->sim, qp->hca->name, &working);
    qp->sq.worked = qp->sq.next + 1;
    enlist(qp);
}

// The time of a queue pair for a request before the send engine. 9.5: there is no order between queue pairs.
static uint64_t work_on_ps(const hca_t *hca)
{
    const struct hca_config *config = &hca->config;
    uint64_t own_ps =
        config->send_request_ps > config->send_packet_ps ? config->send_request_ps - config->send_packet_ps : 0;
    return own_ps + hca_late_ps(hca, ADVERSARY_REQUEST);
}

void hca_sender_kick(struct hca_qp *qp)
{
    struct hca_sq *sq = &qp->sq;
    if (sq->next == sq->producer || (qp->state != HCA_RTS && qp->state != HCA_SQD) || sim_event_pending(&sq->work)) {
        return;
    }
    if (sq->next == sq->fetched) {
        hca_wqe_fetch(qp);
        return;
    }
    uint64_t work_ps = is_worked(sq) ? 0 : work_on_ps(qp->hca);
    if (work_ps == 0) {
        sq->worked = is_worked(sq) ? sq->worked : sq->next + 1;
        enlist(qp);
    } else {
        sim_event_schedule(qp->hca->sim, &sq->work, work_ps);
    }
}

void hca_sender_resume(hca_t *hca)
{
    engine_start(hca);
}
