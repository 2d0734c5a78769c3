// Address handles and datagrams (IBA 9.8.3, 11.2.2).
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "pair.h"

enum { GRH = 40 };

static int ah_errno(struct pair *pair, struct ibv_ah_attr attr)
{
    errno = 0;
    struct ibv_ah *ah = ibv_create_ah(pair->side[0].pd, &attr);
    if (ah != NULL) {
        EXPECT_EQ(ibv_destroy_ah(ah), 0);
    }
    return ah != NULL ? 0 : errno;
}

TEST(AddressHandle, IsOfAPortThatExists)
{
    struct pair pair;
    pair_init(&pair);
    EXPECT_EQ(ah_errno(&pair, (struct ibv_ah_attr){.dlid = 2, .port_num = 1}), 0);
    EXPECT_EQ(ah_errno(&pair, (struct ibv_ah_attr){.dlid = 2, .port_num = 0}), EINVAL);
    EXPECT_EQ(ah_errno(&pair, (struct ibv_ah_attr){.dlid = 2, .port_num = 2}), EINVAL);
    EXPECT_EQ(ah_errno(&pair, (struct ibv_ah_attr){.dlid = 2, .port_num = 1, .sl = 16}), EINVAL);
    EXPECT_EQ(ah_errno(&pair, (struct ibv_ah_attr){.dlid = 2, .port_num = 1, .static_rate = IBV_RATE_20_GBPS}), 0);
    EXPECT_EQ(ah_errno(&pair, (struct ibv_ah_attr){.dlid = 2, .port_num = 1, .static_rate = 1}), EINVAL);
    memory_world_exhaust(pair.world);
    EXPECT_EQ(ah_errno(&pair, (struct ibv_ah_attr){.dlid = 2, .port_num = 1}), ENOMEM);
    pair_fini(&pair);
}

TEST(AddressHandle, WithARouteNamesASourceOfThePort)
{
    struct pair pair;
    pair_init(&pair);
    struct ibv_ah_attr attr = {.dlid = 2, .port_num = 1, .is_global = 1};
    EXPECT_EQ(ah_errno(&pair, attr), 0);
    attr.grh.sgid_index = 1;
    EXPECT_EQ(ah_errno(&pair, attr), EINVAL);
    attr.is_global = 0;
    EXPECT_EQ(ah_errno(&pair, attr), 0);
    pair_fini(&pair);
}

// --- datagrams ------------------------------------------------------------------------------------------------------

static struct ibv_send_wr datagram(struct pair *pair, struct ibv_sge *sge, unsigned bytes)
{
    *sge = pair_sge(&pair->side[0], 0, bytes);
    return pair_wr(pair, IBV_WR_SEND, sge);
}

TEST(Datagram, ArrivesBehindRoomForARoute)
{
    struct pair pair;
    struct ibv_sge sge;
    pair_init(&pair);
    pair_connect(&pair, IBV_QPT_UD);
    cuda_fixture_fill(pair.side[0].buffer, 50, 4);
    memset(pair.side[1].buffer, 0x11, 200);
    struct ibv_send_wr wr = datagram(&pair, &sge, 50);
    EXPECT_EQ(pair_receive(&pair.side[1], 2, 0, 100), 0);
    EXPECT_EQ(pair_send(&pair, &wr), 0);
    (void)pair_expect_wc(&pair.side[0], 1, IBV_WC_SUCCESS);
    struct ibv_wc wc = pair_expect_wc(&pair.side[1], 2, IBV_WC_SUCCESS);
    EXPECT_EQ(wc.byte_len, GRH + 50);
    EXPECT_EQ(wc.src_qp, pair.side[0].qp->qp_num);
    EXPECT_EQ(wc.slid, 1);
    EXPECT_EQ(pair.side[1].buffer[GRH - 1], 0x11);
    EXPECT_MEMEQ(pair.side[1].buffer + GRH, pair.side[0].buffer, 50);
    pair_fini(&pair);
}

TEST(Datagram, IsDroppedWithTheWrongKeyOrWithoutABuffer)
{
    struct pair pair;
    struct ibv_sge sge;
    pair_init(&pair);
    pair_connect(&pair, IBV_QPT_UD);
    struct ibv_send_wr wr = datagram(&pair, &sge, 8);
    EXPECT_EQ(pair_send(&pair, &wr), 0);
    (void)pair_expect_wc(&pair.side[0], 1, IBV_WC_SUCCESS);
    EXPECT_EQ(pair_receive(&pair.side[1], 2, 0, 100), 0);
    wr.wr.ud.remote_qkey = PAIR_QKEY + 1;
    EXPECT_EQ(pair_send(&pair, &wr), 0);
    (void)pair_expect_wc(&pair.side[0], 1, IBV_WC_SUCCESS);
    pair_expect_none(&pair.side[1]);
    wr.wr.ud.remote_qkey = 0x80000000; // the sender's own key is used instead
    EXPECT_EQ(pair_send(&pair, &wr), 0);
    (void)pair_expect_wc(&pair.side[1], 2, IBV_WC_SUCCESS);
    pair_fini(&pair);
}

TEST(Datagram, IsNoLongerThanAPacket)
{
    struct pair pair;
    struct ibv_sge sge;
    pair_init(&pair);
    pair_connect(&pair, IBV_QPT_UD);
    struct ibv_send_wr wr = datagram(&pair, &sge, MEMORY_MTU_BYTES);
    EXPECT_EQ(pair_receive(&pair.side[1], 2, 0, PAIR_BYTES), 0);
    EXPECT_EQ(pair_send(&pair, &wr), 0);
    (void)pair_expect_wc(&pair.side[0], 1, IBV_WC_SUCCESS);
    wr = datagram(&pair, &sge, MEMORY_MTU_BYTES + 1);
    EXPECT_EQ(pair_send(&pair, &wr), 0);
    (void)pair_expect_wc(&pair.side[0], 1, IBV_WC_LOC_LEN_ERR);
    pair_fini(&pair);
}

TEST(Datagram, IsAnsweredThroughItsCompletion)
{
    struct pair pair;
    struct ibv_sge sge;
    pair_init(&pair);
    pair_connect(&pair, IBV_QPT_UD);
    struct ibv_send_wr wr = datagram(&pair, &sge, 8), *bad;
    EXPECT_EQ(pair_receive(&pair.side[1], 2, 0, 100), 0);
    EXPECT_EQ(pair_receive(&pair.side[0], 3, 256, 100), 0);
    EXPECT_EQ(pair_send(&pair, &wr), 0);
    (void)pair_expect_wc(&pair.side[0], 1, IBV_WC_SUCCESS);
    struct ibv_wc wc = pair_expect_wc(&pair.side[1], 2, IBV_WC_SUCCESS);
    struct ibv_ah *back = ibv_create_ah_from_wc(pair.side[1].pd, &wc, NULL, 1);
    sge = pair_sge(&pair.side[1], 0, 8);
    wr.wr.ud.ah = back;
    wr.wr.ud.remote_qpn = wc.src_qp;
    EXPECT_EQ(ibv_post_send(pair.side[1].qp, &wr, &bad), 0);
    EXPECT_EQ(pair_expect_wc(&pair.side[0], 3, IBV_WC_SUCCESS).slid, 2);
    EXPECT_EQ(ibv_destroy_ah(back), 0);
    pair_fini(&pair);
}

// 8.3: destination and source are exchanged; the destination must be one of the port's.
TEST(Datagram, RouteLeadsBack)
{
    struct pair pair;
    struct ibv_ah_attr attr;
    struct ibv_wc wc = {.slid = 9, .sl = 3, .dlid_path_bits = 1, .wc_flags = IBV_WC_GRH};
    struct ibv_grh grh = {
        .version_tclass_flow = htobe32(6u << 28 | 0x21u << 20 | 0x54321), .next_hdr = 0x1b, .hop_limit = 64};
    pair_init(&pair);
    struct ibv_context *context = pair.side[0].context;
    EXPECT_EQ(ibv_query_gid(pair.side[1].context, 1, 0, &grh.sgid), 0);
    EXPECT_EQ(ibv_init_ah_from_wc(context, 1, &wc, &grh, &attr), -1); // an unknown destination
    EXPECT_EQ(ibv_query_gid(context, 1, 0, &grh.dgid), 0);
    EXPECT_EQ(ibv_init_ah_from_wc(context, 1, &wc, &grh, &attr), 0);
    EXPECT_EQ(attr.dlid, 9);
    EXPECT_EQ(attr.sl, 3);
    EXPECT_EQ(attr.src_path_bits, 1);
    EXPECT_EQ(attr.is_global, 1);
    EXPECT_EQ(attr.grh.flow_label, 0x54321);
    EXPECT_EQ(attr.grh.traffic_class, 0x21);
    EXPECT_EQ(attr.grh.hop_limit, 64);
    EXPECT_MEMEQ(&attr.grh.dgid, &grh.sgid, 16);
    grh.next_hdr = 17;
    EXPECT_EQ(ibv_init_ah_from_wc(context, 1, &wc, &grh, &attr), -1);
    EXPECT_EQ(errno, EPROTONOSUPPORT);
    pair_fini(&pair);
}
