// Datagrams through libibverbs, and what the device says of itself.
#include <errno.h>

#include "scene.h"

static void datagram_send(struct scene_side *side)
{
    struct ibv_sge sge = scene_sge(side, 0, 100);
    struct ibv_send_wr wr = scene_wr(side, IBV_WR_SEND, &sge, 0);
    wr.wr.ud.remote_qkey = SCENE_QKEY + 1; // dropped without a word
    EXPECT_EQ(scene_post(side, &wr), 0);
    (void)scene_completion(side, 1, IBV_WC_SUCCESS);
    wr.wr_id = 2;
    wr.sg_list[0].addr += 100;
    wr.wr.ud.remote_qkey = SCENE_QKEY;
    EXPECT_EQ(scene_post(side, &wr), 0);
    (void)scene_completion(side, 2, IBV_WC_SUCCESS);
}

static void datagram_receive(struct scene_side *side)
{
    EXPECT_EQ(scene_receive(side, 3, 0, 200), 0);
    const struct ibv_wc wc = scene_completion(side, 3, IBV_WC_SUCCESS);
    EXPECT_EQ(wc.opcode, IBV_WC_RECV);
    EXPECT_EQ(wc.byte_len, 140);
    EXPECT_EQ(wc.src_qp, side->peer->qp->qp_num);
    EXPECT_EQ(wc.slid, side->peer->lid);
    EXPECT_EQ(wc.wc_flags, 0);
}

TEST(IbsimDatagram, ArrivesBehindTheRoomForItsRouteHeader)
{
    static const uint8_t zeros[100];
    struct scene *scene = scene_new(IBV_QPT_UD);
    scene_run(scene, datagram_send, datagram_receive);
    EXPECT_MEMEQ(scene->sides[1].memory + 40, scene->sides[0].memory + 100, 100);
    EXPECT_MEMEQ(scene->sides[1].memory, zeros, 40);
    EXPECT_MEMEQ(scene->sides[1].memory + 140, zeros, 60);
    EXPECT_EQ(rig_counter(&scene->rig, 1, "packets_discarded"), 1);
    scene_end(scene);
}

static void global_address(struct scene_side *side)
{
    struct ibv_ah_attr attr = {.is_global = 1, .dlid = side->peer->lid, .port_num = 1};
    EXPECT_TRUE(ibv_create_ah(side->pd, &attr) == NULL);
    EXPECT_EQ(errno, EOPNOTSUPP);
}

TEST(IbsimDatagram, AnAddressWithARouteHeaderIsRefused)
{
    struct scene *scene = scene_new(IBV_QPT_UD);
    scene_run(scene, global_address, NULL);
    scene_end(scene);
}

static void device_query(struct scene_side *side)
{
    struct ibv_device_attr attr;
    struct ibv_port_attr port;
    union ibv_gid gid, other;
    EXPECT_EQ(ibv_query_device(side->context, &attr), 0);
    EXPECT_EQ(attr.max_qp_rd_atom, side->scene->rig.config.responder_reads);
    EXPECT_EQ(attr.max_qp, side->scene->rig.config.max_qp);
    EXPECT_EQ(attr.atomic_cap, IBV_ATOMIC_HCA);
    EXPECT_EQ(ibv_query_port(side->context, 1, &port), 0);
    EXPECT_EQ(port.state, IBV_PORT_ACTIVE);
    EXPECT_EQ(port.lid, 1);
    EXPECT_EQ(port.active_mtu, IBV_MTU_2048);
    EXPECT_EQ(port.active_width, 2);
    EXPECT_EQ(port.active_speed, 4);
    EXPECT_EQ(ibv_query_gid(side->context, 1, 0, &gid), 0);
    EXPECT_EQ(ibv_query_gid(side->peer->context, 1, 0, &other), 0);
    EXPECT_TRUE(gid.global.interface_id != other.global.interface_id);
}

TEST(IbsimDevice, SaysWhatTheHcaIs)
{
    struct scene *scene = scene_new(IBV_QPT_RC);
    scene_run(scene, device_query, NULL);
    scene_end(scene);
}
