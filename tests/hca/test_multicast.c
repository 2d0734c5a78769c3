// Groups of datagrams (IBA 10.5) at the adapter: its members, and what the fabric hears of them.
#include "fixture.h"

enum { GROUPS = 2, MLID = IB_MULTICAST_LID + 1, BYTES = 100 };

static const uint8_t mgids[GROUPS][16] = {{0xff, 0x12, 0x40, 0x1b, [15] = 7}, {0xff, 0x12, 0x40, 0x1b, [15] = 8}};

// --- membership ------------------------------------------------------------------------------------------------------

static int members[GROUPS], changes;

static void member_count(void *ctx, hca_t *hca, uint16_t mlid, bool joins)
{
    (void)ctx;
    (void)hca;
    ASSERT_LT(mlid - MLID, GROUPS);
    members[mlid - MLID] += joins ? 1 : -1;
    changes++;
}

TEST(Multicast, ADestroyedQueuePairLeavesAllItsGroups)
{
    fixture_init(HCA_UD);
    members[0] = members[1] = changes = 0;
    hca_set_joined(fixture.base.nodes[0].hca, member_count, NULL);
    for (unsigned i = 0; i < GROUPS; i++) {
        EXPECT_EQ(hca_qp_group(fixture.a.qp, mgids[i], (uint16_t)(MLID + i), true), 0);
        EXPECT_EQ(members[i], 1);
    }
    hca_fixture_qp_close(&fixture.a);
    EXPECT_EQ(changes, 2 * GROUPS);
    for (unsigned i = 0; i < GROUPS; i++) {
        TEST_TRACE("group %u", i);
        EXPECT_EQ(members[i], 0);
    }
    hca_fixture_fini(&fixture.base);
}

// --- delivery --------------------------------------------------------------------------------------------------------

static struct hca_send_wr datagram(const struct hca_fixture_qp *qp, const hca_ah_t *ah, struct hca_sge *sge)
{
    struct hca_send_wr wr = hca_fixture_wr(qp, HCA_OP_SEND, 0, BYTES, sge);
    wr.ah = ah;
    wr.remote_qpn = IB_MULTICAST_QPN;
    wr.remote_qkey = hca_fixture_attr(qp).qkey;
    return wr;
}

static hca_ah_t *group_address(const struct hca_fixture_process *process)
{
    struct hca_route route = {.hop_limit = 1};
    hca_ah_t *ah = NULL;
    for (unsigned i = 0; i < sizeof route.dgid; i++) {
        route.dgid[i] = mgids[0][i];
    }
    EXPECT_EQ(hca_ah_create(process->pd, MLID, 0, &route, &ah), 0);
    return ah;
}

static void group_send(void *arg)
{
    struct hca_sge sge;
    hca_ah_t *ah = group_address(fixture.near);
    (void)arg;
    sim_thread_sleep(fixture.base.sim, 50 * US);
    struct hca_send_wr wr = datagram(&fixture.a, ah, &sge);
    EXPECT_EQ(hca_post_send(fixture.a.qp, &wr, NULL), 0);
    EXPECT_EQ(hca_fixture_completion(&fixture.a).status, HCA_OK);
    EXPECT_EQ(hca_ah_destroy(ah), 0);
}

static void stop_and_receive(void *arg)
{
    struct hca_sge sge;
    struct hca_qp_attr attr;
    hca_ah_t *ah = group_address(fixture.far);
    (void)arg;
    EXPECT_EQ(hca_qp_group(fixture.b.qp, mgids[0], MLID, true), 0);
    EXPECT_EQ(hca_fixture_receive(&fixture.b, 7, 4096, HCA_UD_PREFIX + BYTES), 0);
    struct hca_send_wr wr = datagram(&fixture.b, ah, &sge);
    sge.lkey ^= 0x7777;
    EXPECT_EQ(hca_post_send(fixture.b.qp, &wr, NULL), 0);
    EXPECT_EQ(hca_fixture_completion(&fixture.b).status, HCA_LOCAL_PROTECTION);
    EXPECT_EQ(hca_qp_query(fixture.b.qp, &attr), 0);
    EXPECT_EQ(attr.state, HCA_SQE);
    const struct hca_wc wc = hca_fixture_completion(&fixture.b);
    EXPECT_EQ(wc.status, HCA_OK);
    EXPECT_EQ(wc.wr_id, 7);
    EXPECT_EQ(hca_ah_destroy(ah), 0);
}

// IBA 10.3.1.6: in SQE only the send queue has stopped.
TEST(Multicast, AGroupReachesAQueuePairWhoseSendQueueStopped)
{
    fixture_init(HCA_UD);
    fixture_run(group_send, stop_and_receive);
    EXPECT_MEMEQ(fixture.far->memory + 4096 + HCA_UD_PREFIX, fixture.near->memory, BYTES);
    hca_fixture_fini(&fixture.base);
}
