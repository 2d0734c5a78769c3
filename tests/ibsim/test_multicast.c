// Datagrams to a group (IBA 10.5): attached queue pairs receive them, also on the sender's own adapter.
#include <errno.h>
#include <string.h>

#include "fixture.h"

enum { BYTES = 500, GRH_BYTES = 40, MLID = 0xc123, EVERYBODY = 0xffffff };

static const union ibv_gid group = {.raw = {0xff, 0x12, 0x40, 0x1b, 0xff, 0xff, [15] = 7}};
static const union ibv_gid other = {.raw = {0xff, 0x12, 0x40, 0x1b, 0xff, 0xff, [15] = 8}};

static void send_to(struct fixture_side *side, const union ibv_gid *gid)
{
    struct ibv_ah_attr attr = {.dlid = MLID, .is_global = 1, .port_num = 1, .grh = {.dgid = *gid, .hop_limit = 1}};
    struct ibv_ah *ah = ibv_create_ah(side->pd, &attr);
    struct ibv_sge sge = fixture_sge(side, 0, BYTES);
    struct ibv_send_wr wr = fixture_wr(side, IBV_WR_SEND, &sge, 0);
    wr.wr.ud.ah = ah;
    wr.wr.ud.remote_qpn = EVERYBODY;
    EXPECT_EQ(fixture_post(side, &wr), 0);
    (void)fixture_completion(side, 1, IBV_WC_SUCCESS);
    EXPECT_EQ(ibv_destroy_ah(ah), 0);
}

static void expect_received(struct fixture_side *side, uint64_t wr_id)
{
    struct ibv_wc wc = fixture_completion(side, wr_id, IBV_WC_SUCCESS);
    EXPECT_EQ(wc.byte_len, GRH_BYTES + BYTES);
    EXPECT_EQ(wc.src_qp, side->fixture->sides[0].qp->qp_num);
    EXPECT_NE(wc.wc_flags & IBV_WC_GRH, 0);
}

static void expect_nothing(struct fixture_side *side)
{
    EXPECT_EQ(ibverbs_cq_wait(side->cq, 20000), ETIMEDOUT);
}

static void sender(struct fixture_side *side)
{
    EXPECT_EQ(ibv_attach_mcast(side->qp, &group, MLID), 0);
    EXPECT_EQ(ibv_attach_mcast(side->qp, &group, MLID), 0); // it is attached already
    EXPECT_EQ(fixture_receive(side, 2, 4096, GRH_BYTES + BYTES), 0);
    fixture_barrier(side);
    send_to(side, &group);
    expect_received(side, 2);
    fixture_barrier(side);
    EXPECT_EQ(ibv_detach_mcast(side->qp, &group, MLID), 0);
    EXPECT_EQ(ibv_detach_mcast(side->qp, &group, MLID), EINVAL);
    send_to(side, &group);
    send_to(side, &other);
    expect_nothing(side);
    fixture_barrier(side);
}

static void member(struct fixture_side *side)
{
    EXPECT_EQ(ibv_attach_mcast(side->qp, &group, MLID), 0);
    EXPECT_EQ(fixture_receive(side, 3, 0, GRH_BYTES + BYTES), 0);
    EXPECT_EQ(fixture_receive(side, 4, 8192, GRH_BYTES + BYTES), 0);
    EXPECT_EQ(fixture_receive(side, 5, 16384, GRH_BYTES + BYTES), 0);
    fixture_barrier(side);
    expect_received(side, 3);
    fixture_barrier(side);
    expect_received(side, 4);
    expect_nothing(side); // for another group with the same LID
    fixture_barrier(side);
}

TEST(IbsimMulticast, EachMemberReceivesACopy)
{
    struct fixture *fixture = fixture_new(IBV_QPT_UD);
    fixture_run(fixture, sender, member);
    const uint8_t *sent = fixture->sides[0].memory;
    EXPECT_MEMEQ(fixture->sides[0].memory + 4096 + GRH_BYTES, sent, BYTES);
    EXPECT_MEMEQ(fixture->sides[1].memory + GRH_BYTES, sent, BYTES);
    EXPECT_MEMEQ(fixture->sides[1].memory + 8192 + GRH_BYTES, sent, BYTES);
    fixture_end(fixture);
}

static void refused(struct fixture_side *side)
{
    const union ibv_gid plain = {.raw = {0xfe, 0x80}};
    bool datagram = side->fixture->type == IBV_QPT_UD;
    EXPECT_EQ(ibv_attach_mcast(side->qp, &group, MLID), datagram ? 0 : EINVAL);
    EXPECT_EQ(ibv_attach_mcast(side->qp, &plain, MLID), EINVAL);
    EXPECT_EQ(ibv_attach_mcast(side->qp, &group, 0xbfff), EINVAL);
    EXPECT_EQ(ibv_attach_mcast(side->qp, &group, 0xffff), EINVAL);
}

TEST(IbsimMulticast, GroupsAreOfDatagramsAndHaveTheirOwnGidsAndLids)
{
    for (enum ibv_qp_type type = IBV_QPT_RC; type <= IBV_QPT_UD; type++) {
        struct fixture *fixture = fixture_new(type);
        fixture_run(fixture, refused, NULL);
        fixture_end(fixture);
    }
}
