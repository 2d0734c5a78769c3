// The port: which packet leaves next, requests and responses in turn; and loopback, an internal link without PHYs and
// cable between the same engines.
//
// An acknowledge is made when the port is free for it, so that it covers everything that arrived until then: this
// coalesces acknowledges.
#include <stddef.h>
#include <stdio.h>

#include "models/hca/internal.h"

static void port_receive(void *ctx, ib_end_t *end, ib_packet_t *packet);
static void loop_receive(void *ctx, ib_end_t *end, ib_packet_t *packet);
static void port_ready(void *ctx, ib_end_t *end);
static void port_state(void *ctx, ib_end_t *end, bool up);
static void loop_state(void *ctx, ib_end_t *end, bool up);

static const struct ib_end_ops PORT_OPS = {port_receive, port_ready, port_state, hca_stream_arrives};
static const struct ib_end_ops LOOP_OPS = {loop_receive, port_ready, loop_state, hca_stream_arrives};

static void port_run(void *ctx)
{
    static const struct sim_work leaving = {"HCA", "port", false};
    hca_t *hca = ctx;
    sim_cause_label(hca->sim, hca->name, &leaving);
    hca_port_pump(hca);
}

void hca_port_init(hca_t *hca)
{
    const struct ib_link_config config = {
        .ps_per_byte = hca->config.port_ps_per_byte,
        .buffer_blocks = {hca->config.port_buffer_blocks, hca->config.port_buffer_blocks},
        .mtu_bytes = hca->config.active_mtu_bytes,
        .gap_bytes = hca->config.port_gap_bytes};
    char name[96];
    snprintf(name, sizeof name, "%s.loopback", hca->name);
    if (ib_link_create(hca->sim, hca->packets, name, &config, &hca->loop) != SIM_OK) {
        sim_panic(hca->name, "the port's buffer of %u blocks cannot hold a packet", config.buffer_blocks[0]);
    }
    hca->loop_out = ib_link_end(hca->loop, 0);
    ib_end_attach(hca->loop_out, &LOOP_OPS, hca);
    ib_end_attach(ib_link_end(hca->loop, 1), &LOOP_OPS, hca);
    sim_event_init(&hca->port_event, port_run, hca);
}

void hca_port_fini(hca_t *hca)
{
    sim_event_cancel(hca->sim, &hca->port_event);
    ib_link_destroy(hca->loop);
}

void hca_connect_port(hca_t *hca, ib_end_t *end, uint16_t lid)
{
    hca->port = end;
    hca->lid = lid;
    ib_end_attach(end, &PORT_OPS, hca);
}

// --- candidates ----------------------------------------------------------------------------------------------------

// Packets of a queue pair that was destroyed or has failed meanwhile do not leave, except its last acknowledge.
static bool is_stale(const ib_packet_t *packet, bool response)
{
    const struct hca_qp *qp = packet->qp;
    if (packet->opcode == IB_ACKNOWLEDGE) {
        return false;
    }
    if (!qp->used || qp->generation != packet->generation || qp->state == HCA_ERROR) {
        return true;
    }
    return !response && qp->state != HCA_RTS && qp->state != HCA_SQD;
}

static void packet_left(hca_t *hca, const ib_packet_t *packet, bool response)
{
    struct hca_qp *qp = packet->qp;
    if (!response) {
        hca_sender_resume(hca);
        return;
    }
    if (qp->used && qp->generation == packet->generation && --qp->rsp.responses_queued == 0) {
        hca_responder_ack_list(qp);
    }
    hca_reader_resume(hca);
}

// Another packet of its queue pair goes first.
static bool has_elder(const struct ib_queue *queue, const ib_packet_t *packet)
{
    const ib_packet_t *elder = queue->first;
    while (elder->qp != packet->qp) {
        elder = elder->next;
    }
    return elder != packet;
}

// The oldest complete packet: packets of one queue pair keep their order (IBA 9.5), but do not wait for packets of
// others. *due_ps: time of the next one.
static ib_packet_t *oldest_complete(const struct ib_queue *queue, uint64_t now_ps, uint64_t *due_ps)
{
    for (ib_packet_t *packet = queue->first; packet != NULL; packet = packet->next) {
        if (packet->pending > 0 || has_elder(queue, packet)) {
            continue;
        }
        if (packet->due_ps <= now_ps) {
            return packet;
        }
        *due_ps = packet->due_ps < *due_ps ? packet->due_ps : *due_ps;
    }
    return NULL;
}

// The packet of a queue that may leave now. Stale and failed packets end here.
static ib_packet_t *candidate(hca_t *hca, struct ib_queue *queue, bool response, uint64_t *due_ps)
{
    for (;;) {
        ib_packet_t *packet = oldest_complete(queue, sim_now_ps(hca->sim), due_ps);
        if (packet == NULL) {
            return NULL;
        }
        bool stale = is_stale(packet, response);
        if (!stale && !packet->failed) {
            return packet;
        }
        ib_queue_remove(queue, packet);
        packet_left(hca, packet, response);
        if (!stale && response) {
            hca_responder_break(packet->qp, IB_NAK_REMOTE_OPERATION, HCA_FAULT_MEMORY, HCA_EVENT_QP_FATAL, packet->psn);
        } else if (!stale) {
            hca_request_fail(packet->qp, packet->index, HCA_LOCAL_OPERATION, HCA_FAULT_MEMORY);
        }
        ib_packet_give(hca->packets, packet);
    }
}

static bool ack_is_due(hca_t *hca, uint64_t *due_ps)
{
    struct hca_qp *qp = hca->ackers.first;
    while (qp != NULL && !hca_responder_ack_may_leave(qp)) {
        hca_qp_list_remove(&hca->ackers, qp, offsetof(struct hca_qp, next_ack)); // until its responses have left
        qp->rsp.ack_listed = false;
        qp = hca->ackers.first;
    }
    if (qp == NULL) {
        return false;
    }
    if (qp->rsp.ack_due_ps <= sim_now_ps(hca->sim)) {
        return true;
    }
    *due_ps = qp->rsp.ack_due_ps < *due_ps ? qp->rsp.ack_due_ps : *due_ps;
    return false;
}

// --- leaving -------------------------------------------------------------------------------------------------------

ib_end_t *hca_port_way_out(const hca_t *hca, const ib_packet_t *packet)
{
    return packet->dlid == hca->lid ? hca->loop_out : hca->port;
}

// The adapter's own copy of a packet that it sends to a group; NULL: none.
static ib_packet_t *group_copy(hca_t *hca, const ib_packet_t *packet)
{
    bool own = ib_is_multicast(packet->dlid) && hca_group_has_members(hca, packet);
    return own ? ib_packet_copy(hca->packets, packet) : NULL;
}

// A datagram for which the loopback has no room is lost there.
static void group_loop(hca_t *hca, ib_packet_t *copy)
{
    if (ib_end_offer(hca->loop_out, copy)) {
        hca->counters[HCA_LOOPBACK_PACKETS]++;
    } else {
        hca->counters[HCA_PACKETS_DISCARDED]++;
        ib_packet_give(hca->packets, copy);
    }
}

// false: no room; the link calls back.
static bool leave(hca_t *hca, ib_packet_t *packet)
{
    ib_end_t *end = hca_port_way_out(hca, packet);
    uint8_t opcode = packet->opcode;
    uint32_t psn = packet->psn, data_bytes = ib_packet_data_bytes(packet);
    bool too_long = packet->bytes > hca->config.active_mtu_bytes; // IBA 16.1.3.5, PortXmitDiscards
    if (end == NULL || too_long) { // no cable was ever connected, or longer than the link's MTU
        hca->counters[HCA_PACKETS_DISCARDED]++;
        ib_packet_give(hca->packets, packet);
        return true;
    }
    ib_packet_t *own = group_copy(hca, packet);
    if (!ib_end_offer(end, packet)) {
        if (own != NULL) {
            ib_packet_give(hca->packets, own);
        }
        return false;
    }
    if (own != NULL) {
        group_loop(hca, own);
    }
    hca->counters[HCA_PACKETS_SENT]++;
    hca->counters[HCA_LOOPBACK_PACKETS] += end == hca->loop_out;
    hca->counters[HCA_PORT_XMIT_PACKETS] += end == hca->port;
    hca->counters[HCA_PORT_XMIT_DATA] += end == hca->port ? data_bytes : 0;
    sim_trace(hca->sim, hca->name, &hca_trace_sent, (const uint64_t[]){opcode, psn});
    return true;
}

static bool queue_leave(hca_t *hca, struct ib_queue *queue, ib_packet_t *packet, bool response)
{
    const uint64_t due_ps = packet->due_ps;
    const ib_packet_t *seen = &(ib_packet_t){.qp = packet->qp,
                                             .generation = packet->generation,
                                             .index = packet->index,
                                             .ends_request = packet->ends_request,
                                             .service = packet->service};
    static const struct sim_work leaving = {"HCA", "port", false};
    sim_cause_follow(hca->sim, packet->cause, hca->name, &leaving);
    ib_packet_t *before = ib_queue_remove(queue, packet);
    if (!leave(hca, packet)) {
        ib_queue_insert(queue, before, packet);
        return false;
    }
    hca_wait_add(hca, response ? HCA_WAIT_RESPONSE : HCA_WAIT_PORT, due_ps);
    packet_left(hca, seen, response);
    bool acknowledged = seen->service == IB_RC || seen->service == IB_XRC;
    if (!response && seen->ends_request && !acknowledged) {
        hca_requester_sent(hca, seen);
    }
    return true;
}

static bool ack_leave(hca_t *hca)
{
    struct hca_qp *qp = hca->ackers.first;
    ib_packet_t *packet = hca_responder_ack_make(qp);
    if (!leave(hca, packet)) {
        ib_packet_give(hca->packets, packet); // made again when there is room
        return false;
    }
    hca_responder_ack_left(qp);
    return true;
}

void hca_port_pump(hca_t *hca)
{
    bool going = true;
    while (going) {
        uint64_t due_ps = SIM_NEVER_PS;
        ib_packet_t *response = candidate(hca, &hca->responses, true, &due_ps);
        ib_packet_t *request = candidate(hca, &hca->requests, false, &due_ps);
        bool ack = ack_is_due(hca, &due_ps);
        bool responds = ack || response != NULL;
        if (!responds && request == NULL) {
            if (due_ps != SIM_NEVER_PS) {
                sim_event_schedule_at(hca->sim, &hca->port_event, due_ps);
            }
            return;
        }
        bool turn = request == NULL || (responds && !hca->last_was_response);
        if (turn) {
            going = ack ? ack_leave(hca) : queue_leave(hca, &hca->responses, response, true);
        } else {
            going = queue_leave(hca, &hca->requests, request, false);
        }
        hca->last_was_response = going ? turn : hca->last_was_response;
    }
}

// --- the two links' callbacks ----------------------------------------------------------------------------------------

static void port_receive(void *ctx, ib_end_t *end, ib_packet_t *packet)
{
    hca_t *hca = ctx;
    (void)end;
    hca->counters[HCA_PORT_RCV_PACKETS]++;
    hca->counters[HCA_PORT_RCV_DATA] += ib_packet_data_bytes(packet);
    hca_receiver_arrive(hca, packet);
}

static void loop_receive(void *ctx, ib_end_t *end, ib_packet_t *packet)
{
    (void)end;
    hca_receiver_arrive(ctx, packet);
}

static void port_ready(void *ctx, ib_end_t *end)
{
    (void)end;
    hca_port_pump(ctx);
}

static void port_state(void *ctx, ib_end_t *end, bool up)
{
    (void)end;
    hca_event_raise_all(ctx, up ? HCA_EVENT_PORT_ACTIVE : HCA_EVENT_PORT_ERROR);
    hca_port_pump(ctx);
}

static void loop_state(void *ctx, ib_end_t *end, bool up)
{
    (void)ctx;
    (void)end;
    (void)up;
}
