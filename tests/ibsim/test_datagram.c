// Datagrams through libibverbs, and the attributes of the device.
#include "fixture.h"

static void datagram_send(struct fixture_side *side)
{
    struct ibv_sge sge = fixture_sge(side, 0, 100);
    struct ibv_send_wr wr = fixture_wr(side, IBV_WR_SEND, &sge, 0);
    wr.wr.ud.remote_qkey = FIXTURE_QKEY + 1; // dropped silently
    EXPECT_EQ(fixture_post(side, &wr), 0);
    (void)fixture_completion(side, 1, IBV_WC_SUCCESS);
    wr.wr_id = 2;
    wr.sg_list[0].addr += 100;
    wr.wr.ud.remote_qkey = FIXTURE_QKEY;
    EXPECT_EQ(fixture_post(side, &wr), 0);
    (void)fixture_completion(side, 2, IBV_WC_SUCCESS);
}

static void datagram_receive(struct fixture_side *side)
{
    EXPECT_EQ(fixture_receive(side, 3, 0, 200), 0);
    const struct ibv_wc wc = fixture_completion(side, 3, IBV_WC_SUCCESS);
    EXPECT_EQ(wc.opcode, IBV_WC_RECV);
    EXPECT_EQ(wc.byte_len, 140);
    EXPECT_EQ(wc.src_qp, side->peer->qp->qp_num);
    EXPECT_EQ(wc.slid, side->peer->lid);
    EXPECT_EQ(wc.wc_flags, 0);
}

TEST(IbsimDatagram, ArrivesBehindTheRoomForItsRouteHeader)
{
    static const uint8_t zeros[100];
    struct fixture *fixture = fixture_new(IBV_QPT_UD);
    fixture_run(fixture, datagram_send, datagram_receive);
    EXPECT_MEMEQ(fixture->sides[1].memory + 40, fixture->sides[0].memory + 100, 100);
    EXPECT_MEMEQ(fixture->sides[1].memory, zeros, 40);
    EXPECT_MEMEQ(fixture->sides[1].memory + 140, zeros, 60);
    EXPECT_EQ(hca_fixture_counter(&fixture->base, 1, "packets_discarded"), 1);
    fixture_end(fixture);
}

static void datagram_to(struct fixture_side *side, struct ibv_ah *ah, uint64_t wr_id)
{
    struct ibv_sge sge = fixture_sge(side, 0, 100);
    struct ibv_send_wr wr = fixture_wr(side, IBV_WR_SEND, &sge, 0);
    EXPECT_NOT_NULL(ah);
    wr.wr_id = wr_id;
    wr.wr.ud.ah = ah;
    EXPECT_EQ(fixture_post(side, &wr), 0);
    (void)fixture_completion(side, wr_id, IBV_WC_SUCCESS);
}

static void routed_send(struct fixture_side *side)
{
    struct ibv_ah_attr attr = {.is_global = 1, .dlid = side->peer->lid, .port_num = 1};
    attr.grh = (struct ibv_global_route){.flow_label = 0x54321, .hop_limit = 64, .traffic_class = 0x21};
    EXPECT_EQ(ibv_query_gid(side->peer->context, 1, 0, &attr.grh.dgid), 0);
    EXPECT_EQ(fixture_receive(side, 2, 1000, 140), 0);
    struct ibv_ah *ah = ibv_create_ah(side->pd, &attr);
    datagram_to(side, ah, 1);
    EXPECT_EQ(fixture_completion(side, 2, IBV_WC_SUCCESS).wc_flags, IBV_WC_GRH);
    EXPECT_EQ(ibv_destroy_ah(ah), 0);
}

static void routed_answer(struct fixture_side *side)
{
    EXPECT_EQ(fixture_receive(side, 3, 0, 140), 0);
    struct ibv_wc wc = fixture_completion(side, 3, IBV_WC_SUCCESS);
    EXPECT_EQ(wc.wc_flags, IBV_WC_GRH);
    EXPECT_EQ(wc.byte_len, 140);
    struct ibv_ah *ah = ibv_create_ah_from_wc(side->pd, &wc, (struct ibv_grh *)side->memory, 1);
    datagram_to(side, ah, 4);
    EXPECT_EQ(ibv_destroy_ah(ah), 0);
}

TEST(IbsimDatagram, IsAnsweredByTheWayOfItsRouteHeader)
{
    struct fixture *fixture = fixture_new(IBV_QPT_UD);
    fixture_run(fixture, routed_send, routed_answer);
    const uint8_t *there = fixture->sides[1].memory, *back = fixture->sides[0].memory + 1000;
    EXPECT_MEMEQ(back + 8, there + 24, 16); // to the source of the first
    EXPECT_MEMEQ(back + 24, there + 8, 16);
    EXPECT_MEMEQ(back, there, 8); // with its traffic class, flow, hops
    fixture_end(fixture);
}

static void device_query(struct fixture_side *side)
{
    struct ibv_device_attr attr;
    struct ibv_port_attr port;
    union ibv_gid gid, other;
    EXPECT_EQ(ibv_query_device(side->context, &attr), 0);
    EXPECT_EQ(attr.max_qp_rd_atom, side->fixture->base.config.responder_reads);
    EXPECT_EQ(attr.max_qp_init_rd_atom, side->fixture->base.config.initiator_reads);
    EXPECT_EQ(attr.max_qp, side->fixture->base.config.max_qp);
    EXPECT_EQ(attr.atomic_cap, IBV_ATOMIC_HCA);
    EXPECT_EQ(ibv_query_port(side->context, 1, &port), 0);
    EXPECT_EQ(port.state, IBV_PORT_ACTIVE);
    EXPECT_EQ(port.lid, 1);
    EXPECT_EQ(port.active_mtu, IBV_MTU_2048);
    EXPECT_EQ(port.active_width, 2);
    EXPECT_EQ(port.active_speed, 4);
    EXPECT_EQ(ibv_query_gid(side->context, 1, 0, &gid), 0);
    EXPECT_EQ(ibv_query_gid(side->peer->context, 1, 0, &other), 0);
    EXPECT_NE(gid.global.interface_id, other.global.interface_id);
}

TEST(IbsimDevice, SaysWhatTheHcaIs)
{
    struct fixture *fixture = fixture_new(IBV_QPT_RC);
    fixture_run(fixture, device_query, NULL);
    fixture_end(fixture);
}

static void cable_pull(struct fixture_side *side)
{
    struct ibv_port_attr port;
    EXPECT_EQ(ibv_query_port(side->context, 1, &port), 0);
    EXPECT_EQ(port.state, IBV_PORT_ACTIVE);
    EXPECT_EQ(port.phys_state, 5);
    ib_link_set_up(side->fixture->base.cable, false);
    EXPECT_EQ(ibv_query_port(side->context, 1, &port), 0);
    EXPECT_EQ(port.state, IBV_PORT_DOWN);
    EXPECT_EQ(port.phys_state, 2);
}

// IBA 14.2.5.6, PortPhysicalState: 5 is LinkUp, 2 is Polling.
TEST(IbsimDevice, ItsPortPollsWhenTheCableIsPulled)
{
    struct fixture *fixture = fixture_new(IBV_QPT_RC);
    fixture_run(fixture, cable_pull, NULL);
    fixture_end(fixture);
}
