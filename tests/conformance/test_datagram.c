// Unreliable datagrams (IBA 9.8.3): whole, with the sender's address, or not at all.
#include <endian.h>
#include <string.h>

#include "fixture.h"

enum { GRH = 40, ROUNDS = 12, FROM = 8192, TO = 16384 };

static uint32_t mtu_of(struct side *side)
{
    struct ibv_port_attr port;
    EXPECT_EQ(ibv_query_port(side->context, 1, &port), 0);
    return 128u << port.active_mtu;
}

static uint32_t bytes_of(struct side *side, unsigned round)
{
    static const uint32_t sizes[ROUNDS] = {0, 1, 7, 40, 63, 64, 80, 81, 1023, 1024, 2047, 0};
    return round == ROUNDS - 1 ? mtu_of(side) : sizes[round];
}

static void play(enum device device, unsigned nodes, program_fn near, program_fn far)
{
    struct fixture *fixture = fixture_new(device);
    fixture->type = IBV_QPT_UD;
    fixture->nodes = nodes;
    fixture_run(fixture, near, far);
    fixture_end(fixture);
}

static struct ibv_send_wr datagram(struct side *side, uint64_t id, struct ibv_sge *sge, uint32_t bytes)
{
    *sge = fixture_sge(side, FROM, bytes);
    return fixture_wr(side, id, IBV_WR_SEND, sge, 0);
}

static void send_one(struct side *side, uint64_t id, uint32_t bytes)
{
    struct ibv_sge sge;
    struct ibv_send_wr wr = datagram(side, id, &sge, bytes);
    EXPECT_EQ(fixture_post(side, &wr), 0);
    EXPECT_EQ(fixture_expect(side, id, IBV_WC_SUCCESS).opcode, IBV_WC_SEND);
}

// --- datagrams that arrive -------------------------------------------------------------------------------------------

static void send_all(struct side *side)
{
    for (unsigned i = 0; i < ROUNDS; i++) {
        struct ibv_sge sge;
        struct ibv_send_wr wr = datagram(side, i, &sge, bytes_of(side, i));
        wr.opcode = i % 2 == 0 ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND;
        wr.imm_data = htobe32(i);
        fixture_barrier(side);
        EXPECT_EQ(fixture_post(side, &wr), 0);
        EXPECT_EQ(fixture_expect(side, i, IBV_WC_SUCCESS).opcode, IBV_WC_SEND);
        fixture_barrier(side);
    }
}

static void receive_all(struct side *side)
{
    for (unsigned i = 0; i < ROUNDS; i++) {
        uint32_t bytes = bytes_of(side, i);
        memset(side->memory, 0, FIXTURE_BYTES);
        EXPECT_EQ(fixture_receive(side, i, TO, bytes + GRH), 0);
        fixture_barrier(side);
        const struct ibv_wc wc = fixture_expect(side, i, IBV_WC_SUCCESS);
        EXPECT_EQ(wc.opcode, IBV_WC_RECV);
        EXPECT_EQ(wc.byte_len, bytes + GRH);
        EXPECT_EQ(wc.qp_num, side->qp->qp_num);
        EXPECT_EQ(wc.src_qp, side->peer->qp->qp_num);
        EXPECT_EQ(wc.slid, side->peer->lid);
        EXPECT_EQ(wc.wc_flags, i % 2 == 0 ? IBV_WC_WITH_IMM : 0);
        if (i % 2 == 0) {
            EXPECT_EQ(be32toh(wc.imm_data), i);
        }
        fixture_expect_only(side, TO + GRH, side->peer, FROM, bytes);
        fixture_barrier(side);
    }
}

RULE(Datagrams, BringEveryByteOfEverySize)
{
    play(device, 2, send_all, receive_all);
}

// With boards in a line the path from the last node to the first leads through those between.
static void pass_on(struct side *side)
{
    EXPECT_EQ(fixture_receive(side, 2, TO, 2048 + GRH), 0);
    memset(side->memory + FROM, (int)side->index + 1, 2048);
    fixture_barrier(side);
    struct ibv_sge sge;
    struct ibv_send_wr wr = datagram(side, 1, &sge, 2048);
    wr.wr.ud.remote_qpn = side->peer->qp->qp_num;
    const struct side *before = &side->fixture->sides[(side->index + side->fixture->nodes - 1) % side->fixture->nodes];
    EXPECT_EQ(fixture_post(side, &wr), 0);
    for (unsigned i = 0; i < 2; i++) { // in either order
        const struct ibv_wc wc = fixture_completion(side);
        EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
        if (wc.wr_id != 1) {
            EXPECT_EQ(wc.wr_id, 2);
            EXPECT_EQ(wc.slid, before->lid);
        }
    }
    for (uint32_t i = 0; i < 2048; i++) {
        ASSERT_EQ(side->memory[TO + GRH + i], before->index + 1);
    }
}

TIMED_RULE(Datagrams, GoThroughNodesOnTheWay)
{
    play(device, 4, pass_on, pass_on);
}

// --- datagrams that are dropped --------------------------------------------------------------------------------------

static void send_dropped(struct side *side)
{
    struct ibv_sge sge;
    fixture_barrier(side);
    send_one(side, 1, 100); // no receive is posted
    struct ibv_send_wr wr = datagram(side, 2, &sge, 100);
    wr.wr.ud.remote_qkey = FIXTURE_QKEY + 1;
    fixture_barrier(side);
    EXPECT_EQ(fixture_post(side, &wr), 0);
    (void)fixture_expect(side, 2, IBV_WC_SUCCESS);
    wr.wr_id = 3;
    wr.wr.ud.remote_qkey = FIXTURE_QKEY;
    wr.wr.ud.remote_qpn += 77; // does not exist
    EXPECT_EQ(fixture_post(side, &wr), 0);
    (void)fixture_expect(side, 3, IBV_WC_SUCCESS);
    send_one(side, 4, 200);
    fixture_barrier(side);
}

static void receive_the_last(struct side *side)
{
    fixture_barrier(side);
    fixture_expect_none(side, 50 * US);
    EXPECT_EQ(fixture_receive(side, 9, TO, 200 + GRH), 0);
    fixture_barrier(side);
    EXPECT_EQ(fixture_expect(side, 9, IBV_WC_SUCCESS).byte_len, 200 + GRH);
    EXPECT_EQ(fixture_state(side->qp), IBV_QPS_RTS);
    fixture_barrier(side);
}

TIMED_RULE(Datagrams, NobodyTakesAreDropped)
{
    play(device, 2, send_dropped, receive_the_last);
}

static void send_with_controlled_key(struct side *side)
{
    struct ibv_sge sge;
    struct ibv_send_wr wr = datagram(side, 1, &sge, 100);
    wr.wr.ud.remote_qkey = UINT32_C(0x80000000) | (FIXTURE_QKEY + 1);
    fixture_barrier(side);
    EXPECT_EQ(fixture_post(side, &wr), 0);
    (void)fixture_expect(side, 1, IBV_WC_SUCCESS);
    fixture_barrier(side);
}

static void receive_hundred(struct side *side)
{
    EXPECT_EQ(fixture_receive(side, 9, TO, 100 + GRH), 0);
    fixture_barrier(side);
    EXPECT_EQ(fixture_expect(side, 9, IBV_WC_SUCCESS).byte_len, 100 + GRH);
    fixture_barrier(side);
}

// IBA 10.2.5: a key with the high-order bit in a request stands for the key of the sending queue pair.
RULE(Datagrams, WithAControlledKeyCarryTheKeyOfTheirQueuePair)
{
    play(device, 2, send_with_controlled_key, receive_hundred);
}

static void send_too_long(struct side *side)
{
    fixture_barrier(side);
    send_one(side, 1, 101);
    fixture_barrier(side);
}

static void receive_too_long(struct side *side)
{
    EXPECT_EQ(fixture_receive(side, 1, TO, 100 + GRH), 0);
    EXPECT_EQ(fixture_receive(side, 2, TO + 4096, 100 + GRH), 0);
    fixture_barrier(side);
    (void)fixture_expect(side, 1, IBV_WC_LOC_LEN_ERR);
    (void)fixture_expect(side, 2, IBV_WC_WR_FLUSH_ERR);
    EXPECT_EQ(fixture_state(side->qp), IBV_QPS_ERR);
    fixture_barrier(side);
}

TIMED_RULE(Datagrams, LongerThanTheReceiveAreAnErrorOfIt)
{
    play(device, 2, send_too_long, receive_too_long);
}

// 10.3.1.6: only the send queue stops, and continues when the program restarts it.
static void send_beyond_the_mtu(struct side *side)
{
    struct ibv_sge sge, ok;
    struct ibv_send_wr next = datagram(side, 2, &ok, 10), wr = datagram(side, 1, &sge, mtu_of(side) + 1), *bad;
    wr.next = &next;
    fixture_barrier(side);
    EXPECT_EQ(ibv_post_send(side->qp, &wr, &bad), 0);
    (void)fixture_expect(side, 1, IBV_WC_LOC_LEN_ERR);
    (void)fixture_expect(side, 2, IBV_WC_WR_FLUSH_ERR);
    EXPECT_EQ(fixture_state(side->qp), IBV_QPS_SQE);
    EXPECT_EQ(fixture_post(side, &next), 0);
    (void)fixture_expect(side, 2, IBV_WC_WR_FLUSH_ERR);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS};
    EXPECT_EQ(ibv_modify_qp(side->qp, &attr, IBV_QP_STATE), 0);
    send_one(side, 3, 10);
    fixture_barrier(side);
}

static void receive_ten(struct side *side)
{
    EXPECT_EQ(fixture_receive(side, 1, TO, 100 + GRH), 0);
    fixture_barrier(side);
    EXPECT_EQ(fixture_expect(side, 1, IBV_WC_SUCCESS).byte_len, 10 + GRH);
    fixture_barrier(side);
}

TIMED_RULE(Datagrams, BeyondTheMtuStopTheSendQueue)
{
    play(device, 2, send_beyond_the_mtu, receive_ten);
}

static void receive_with_a_stopped_send_queue(struct side *side)
{
    struct ibv_sge sge;
    struct ibv_send_wr wr = datagram(side, 8, &sge, mtu_of(side) + 1);
    EXPECT_EQ(fixture_post(side, &wr), 0);
    (void)fixture_expect(side, 8, IBV_WC_LOC_LEN_ERR);
    EXPECT_EQ(fixture_state(side->qp), IBV_QPS_SQE);
    receive_ten(side);
}

static void send_ten(struct side *side)
{
    fixture_barrier(side);
    send_one(side, 3, 10);
    fixture_barrier(side);
}

// 10.3.1.6: the receive queue of a queue pair in SQE goes on.
TIMED_RULE(Datagrams, ArriveWhereTheSendQueueIsStopped)
{
    play(device, 2, send_ten, receive_with_a_stopped_send_queue);
}

// 10.3.1.7: queued requests are sent before the queue is drained.
static void send_and_drain(struct side *side)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1};
    fixture_barrier(side);
    send_one(side, 1, 10);
    EXPECT_EQ(ibv_modify_qp(side->qp, &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY), 0);
    fixture_expect_event(side, IBV_EVENT_SQ_DRAINED, side->qp);
    attr.qp_state = IBV_QPS_RTS;
    EXPECT_EQ(ibv_modify_qp(side->qp, &attr, IBV_QP_STATE), 0);
    fixture_barrier(side);
}

TIMED_RULE(Datagrams, LeaveBeforeTheQueueIsDrained)
{
    play(device, 2, send_and_drain, receive_ten);
}

// 11.4.2.2: an event for a CQ armed only for solicited completions.
static void send_solicited(struct side *side)
{
    struct ibv_sge sge;
    struct ibv_send_wr wr = datagram(side, 1, &sge, 10);
    fixture_barrier(side);
    send_one(side, 5, 10);
    wr.send_flags |= IBV_SEND_SOLICITED;
    EXPECT_EQ(fixture_post(side, &wr), 0);
    (void)fixture_expect(side, 1, IBV_WC_SUCCESS);
    fixture_barrier(side);
}

static void wait_for_solicited(struct side *side)
{
    struct ibv_cq *cq;
    void *context;
    EXPECT_EQ(fixture_receive(side, 1, TO, 100 + GRH), 0);
    EXPECT_EQ(fixture_receive(side, 2, TO + 4096, 100 + GRH), 0);
    EXPECT_EQ(ibv_req_notify_cq(side->cq, 1), 0);
    fixture_barrier(side);
    EXPECT_EQ(ibv_get_cq_event(side->channel, &cq, &context), 0);
    ibv_ack_cq_events(cq, 1);
    (void)fixture_expect(side, 1, IBV_WC_SUCCESS);
    (void)fixture_expect(side, 2, IBV_WC_SUCCESS); // both have arrived by then
    fixture_barrier(side);
}

TIMED_RULE(Datagrams, ThatAreSolicitedRaiseTheEvent)
{
    play(device, 2, send_solicited, wait_for_solicited);
}

// --- routes ----------------------------------------------------------------------------------------------------------

static void send_by_route(struct side *side)
{
    struct ibv_sge sge;
    struct ibv_ah_attr attr = {.is_global = 1, .dlid = side->peer->lid, .port_num = 1};
    attr.grh = (struct ibv_global_route){.flow_label = 0x54321, .hop_limit = 64, .traffic_class = 0x21};
    EXPECT_EQ(ibv_query_gid(side->peer->context, 1, 0, &attr.grh.dgid), 0);
    struct ibv_ah *ah = ibv_create_ah(side->pd, &attr);
    attr.grh.dgid.raw[15] ^= 0x40;
    struct ibv_ah *astray = ibv_create_ah(side->pd, &attr);
    struct ibv_send_wr wr = datagram(side, 1, &sge, 60);
    EXPECT_EQ(fixture_receive(side, 2, TO, 60 + GRH), 0);
    fixture_barrier(side);
    ASSERT_NOT_NULL(ah);
    ASSERT_NOT_NULL(astray);
    wr.wr.ud.ah = astray; // it belongs to another node
    EXPECT_EQ(fixture_post(side, &wr), 0);
    (void)fixture_expect(side, 1, IBV_WC_SUCCESS);
    wr.wr.ud.ah = ah;
    EXPECT_EQ(fixture_post(side, &wr), 0);
    (void)fixture_expect(side, 1, IBV_WC_SUCCESS);
    EXPECT_EQ(fixture_expect(side, 2, IBV_WC_SUCCESS).wc_flags, IBV_WC_GRH);
    const uint8_t *there = side->peer->memory + TO, *back = side->memory + TO;
    EXPECT_MEMEQ(back + 8, there + 24, 16); // to the source of the first
    EXPECT_MEMEQ(back + 24, there + 8, 16);
    EXPECT_MEMEQ(back, there, 8); // with its traffic class, flow, hops
    EXPECT_EQ(ibv_destroy_ah(ah) | ibv_destroy_ah(astray), 0);
    fixture_barrier(side);
}

static void answer_by_route(struct side *side)
{
    struct ibv_sge sge;
    EXPECT_EQ(fixture_receive(side, 3, TO, 60 + GRH), 0);
    EXPECT_EQ(fixture_receive(side, 4, TO + 4096, 60 + GRH), 0);
    fixture_barrier(side);
    struct ibv_wc wc = fixture_expect(side, 3, IBV_WC_SUCCESS);
    EXPECT_EQ(wc.wc_flags, IBV_WC_GRH);
    struct ibv_ah *ah = ibv_create_ah_from_wc(side->pd, &wc, (struct ibv_grh *)(side->memory + TO), 1);
    ASSERT_NOT_NULL(ah);
    struct ibv_send_wr wr = datagram(side, 5, &sge, 60);
    wr.wr.ud.ah = ah;
    EXPECT_EQ(fixture_post(side, &wr), 0);
    (void)fixture_expect(side, 5, IBV_WC_SUCCESS);
    fixture_expect_none(side, 50 * US);
    EXPECT_EQ(ibv_destroy_ah(ah), 0);
    fixture_barrier(side);
}

TIMED_RULE(Datagrams, AreAnsweredByTheWayOfTheirRouteHeader)
{
    play(device, 2, send_by_route, answer_by_route);
}
