// The receive engine: takes packets in order of arrival, one at a time, and gives them to the requester's or the
// responder's half of their queue pair. It stalls while the next stage has no room for the packet's operation; then the
// link's credits run out.
#include "models/hca/internal.h"

static void receive_run(void *ctx);

void hca_receiver_init(hca_t *hca)
{
    sim_event_init(&hca->receive_event, receive_run, hca);
}

void hca_receiver_discard(hca_t *hca, ib_packet_t *packet)
{
    ib_packet_done(hca->packets, packet);
}

static void schedule(hca_t *hca)
{
    if (hca->arrived.count == 0 || hca->receive_stalled || sim_event_pending(&hca->receive_event)) {
        return;
    }
    uint64_t begin_ps = hca->arrived.first->due_ps, now_ps = sim_now_ps(hca->sim);
    begin_ps = begin_ps > hca->receive_free_ps ? begin_ps : hca->receive_free_ps;
    uint64_t end_ps = begin_ps + hca->config.receive_packet_ps;
    sim_event_schedule_at(hca->sim, &hca->receive_event, end_ps > now_ps ? end_ps : now_ps);
}

void hca_receiver_arrive(hca_t *hca, ib_packet_t *packet)
{
    packet->due_ps = sim_now_ps(hca->sim) + hca->config.port_rx_ps;
    packet->cause = sim_cause_now(hca->sim);
    ib_queue_push(&hca->arrived, packet);
    schedule(hca);
}

void hca_receiver_resume(hca_t *hca)
{
    hca->receive_stalled = false;
    schedule(hca);
}

static bool has_room(const hca_t *hca, const ib_packet_t *packet)
{
    uint16_t flags = ib_packet_flags(packet);
    if ((flags & IB_IS_RESPONSE) != 0) {
        return (flags & (IB_HAS_PAYLOAD | IB_HAS_ATOMIC_ACK)) == 0 || hca_endpoint_has_room(hca);
    }
    return packet->opcode == IB_READ_REQUEST || hca_order_has_room(hca);
}

// 10.3.1: in SQE only the send queue has stopped.
static bool processes_packets(const struct hca_qp *qp)
{
    return qp->state != HCA_RESET && qp->state != HCA_INIT && qp->state != HCA_ERROR;
}

static void dispatch(hca_t *hca, ib_packet_t *packet)
{
    struct hca_qp *qp = hca_qp_find(hca, packet->dest_qpn);
    sim_trace(hca->sim, hca->name, &hca_trace_received, (const uint64_t[]){packet->opcode, packet->psn});
    // 9.6.1: a packet that matches no queue pair, or not its state, is dropped silently.
    bool response = (ib_packet_flags(packet) & IB_IS_RESPONSE) != 0;
    bool fits = packet->dlid == hca->lid && qp != NULL && hca_service(qp->init.type) == packet->service &&
                processes_packets(qp) && (response ? hca_sends(qp->init.type) : hca_receives(qp->init.type)) &&
                (qp->init.type == HCA_UD ||
                 (packet->slid == qp->attr.dlid && packet->opcode <= IB_OPCODE_MASK && ib_packet_flags(packet) != 0));
    if (!fits) {
        hca_lost_message(hca, packet, NULL, packet->dlid != hca->lid ? HCA_LOSS_ADDRESS : HCA_LOSS_NO_QP);
        hca_receiver_discard(hca, packet);
    } else if (!response) {
        hca_responder_request(qp, packet);
    } else {
        if (hca_is_reliable(qp->init.type)) {
            hca_requester_response(qp, packet);
        }
        hca_receiver_discard(hca, packet);
    }
}

// Gives each member of the group its own copy. The queue pair number in the packet means all members.
static void group_dispatch(hca_t *hca, ib_packet_t *packet)
{
    packet->pending = 1; // one for this function
    for (uint32_t i = 0; i < hca->member_count; i++) {
        const struct hca_member *member = &hca->members[i];
        struct hca_qp *qp = hca_group_receives(member, packet) ? hca_qp_find(hca, member->qpn) : NULL;
        if (qp != NULL && processes_packets(qp)) {
            hca_responder_request(qp, ib_packet_share(hca->packets, packet));
        }
    }
    hca_receiver_discard(hca, packet);
}

static void receive_run(void *ctx)
{
    hca_t *hca = ctx;
    if (!has_room(hca, hca->arrived.first)) {
        hca->receive_stalled = true;
        hca->counters[HCA_ORDER_STALLS]++;
        return;
    }
    static const struct sim_work receiving = {"HCA", "port and receive engine", false};
    ib_packet_t *packet = ib_queue_pop(&hca->arrived);
    sim_cause_follow(hca->sim, packet->cause, hca->name, &receiving);
    hca->counters[HCA_PACKETS_RECEIVED]++;
    hca->receive_free_ps = sim_now_ps(hca->sim);
    hca_wait_add(hca, HCA_WAIT_RECEIVER, packet->due_ps + hca->config.receive_packet_ps);
    if (ib_is_multicast(packet->dlid)) {
        group_dispatch(hca, packet);
    } else {
        dispatch(hca, packet);
    }
    schedule(hca);
}
