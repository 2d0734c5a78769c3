// Unreliable services: datagrams, and connections that lose messages.

#include "fixture.h"

// --- datagrams -----------------------------------------------------------------------------------------------------

static void routed_send(uint32_t qkey, const struct hca_route *route)
{
    hca_ah_t *ah;
    struct hca_sge sge;
    EXPECT_EQ(hca_ah_create(fixture.near->pd, 2, 0, route, &ah), 0);
    struct hca_send_wr wr = hca_fixture_wr(&fixture.a, HCA_OP_SEND_IMM, 0, 100, &sge);
    wr.ah = ah;
    wr.immediate = qkey == 0x1234 ? 77 : 66;
    wr.remote_qpn = hca_qp_number(fixture.b.qp);
    wr.remote_qkey = qkey;
    EXPECT_EQ(hca_post_send(fixture.a.qp, &wr, NULL), 0);
    EXPECT_EQ(hca_fixture_completion(&fixture.a).status, HCA_OK);
    EXPECT_EQ(hca_ah_destroy(ah), 0);
}

static void datagram_send(uint32_t qkey)
{
    routed_send(qkey, NULL);
}

static void datagrams_send(void *arg)
{
    (void)arg;
    sim_thread_sleep(fixture.base.sim, 10 * US);
    datagram_send(0x9999); // a wrong Q_Key is dropped silently
    datagram_send(0x1234);
}

static void datagram_receive(void *arg)
{
    (void)arg;
    EXPECT_EQ(hca_fixture_receive(&fixture.b, 3, 0, 200), 0);
    const struct hca_wc wc = hca_fixture_completion(&fixture.b);
    EXPECT_EQ(wc.status, HCA_OK);
    EXPECT_EQ(wc.bytes, 140);
    EXPECT_EQ(wc.immediate, 77);
    EXPECT_EQ(wc.source_lid, 1);
    EXPECT_EQ(wc.source_qpn, hca_qp_number(fixture.a.qp));
}

static struct hca_loss lost;
static unsigned losses;

static void loss_take(void *ctx, const char *name, const struct hca_loss *loss)
{
    (void)ctx;
    EXPECT_STREQ(name, "hca1");
    lost = *loss;
    losses++;
}

TEST(Datagrams, WhoListensHearsWhyOneIsDropped)
{
    fixture_init(HCA_UD);
    losses = 0;
    hca_set_lost(fixture.base.nodes[1].hca, loss_take, NULL);
    fixture_run(datagrams_send, datagram_receive);
    EXPECT_EQ(losses, 1);
    EXPECT_EQ(lost.kind, HCA_LOSS_QKEY);
    EXPECT_EQ(lost.qkey, 0x9999);
    EXPECT_EQ(lost.own_qkey, 0x1234);
    EXPECT_EQ(lost.source_lid, 1);
    EXPECT_EQ(lost.qpn, hca_qp_number(fixture.b.qp));
    hca_fixture_fini(&fixture.base);
}

TEST(Datagrams, ADatagramArrivesBehindTheRoomForItsRouteHeader)
{
    fixture_init(HCA_UD);
    fixture_run(datagrams_send, datagram_receive);
    EXPECT_MEMEQ(fixture.far->memory + 40, fixture.near->memory, 100);
    EXPECT_EQ(hca_fixture_counter(&fixture.base, 1, "packets_discarded"), 1);
    hca_fixture_fini(&fixture.base);
}

static void unreceived_send(void *arg)
{
    (void)arg;
    datagram_send(0x1234);
}

static const struct hca_route route_to_far = {
    .dgid = {0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0x00, 0x02, 0xc9, 0x03, 0x00, 0x00, 0x02, 0x01},
    .flow_label = 0x54321,
    .traffic_class = 0x21,
    .hop_limit = 64};

static void routed_datagrams_send(void *arg)
{
    struct hca_route elsewhere = route_to_far;
    (void)arg;
    elsewhere.dgid[15] ^= 0x80; // not a GID of the receiving port: dropped silently (IBA 9.6.1.2)
    sim_thread_sleep(fixture.base.sim, 10 * US);
    routed_send(0x1234, &elsewhere);
    routed_send(0x1234, &route_to_far);
}

static void routed_datagram_receive(void *arg)
{
    (void)arg;
    EXPECT_EQ(hca_fixture_receive(&fixture.b, 3, 0, 140), 0);
    const struct hca_wc wc = hca_fixture_completion(&fixture.b);
    EXPECT_EQ(wc.bytes, 140);
    EXPECT_TRUE(wc.has_route);
}

// IBA 8.3: version, traffic class and flow label, bytes from BTH to ICRC, IBA's next header, hops, source, destination.
TEST(Datagrams, ARouteHeaderArrivesBeforeItsDatagram)
{
    static const uint8_t header[24] = {
        0x62, 0x15, 0x43, 0x21, 0, 12 + 8 + 4 + 100 + 4, 0x1b, 64, 0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0x00, 0x02, 0xc9,
        0x03, 0,    0,    1,    1};
    fixture_init(HCA_UD);
    fixture_run(routed_datagrams_send, routed_datagram_receive);
    EXPECT_MEMEQ(fixture.far->memory, header, 24);
    EXPECT_MEMEQ(fixture.far->memory + 24, route_to_far.dgid, 16);
    EXPECT_MEMEQ(fixture.far->memory + 40, fixture.near->memory, 100);
    EXPECT_EQ(hca_fixture_counter(&fixture.base, 1, "packets_discarded"), 1);
    EXPECT_EQ(hca_fixture_counter(&fixture.base, 0, "port_xmit_data"), 2 * (8 + 40 + 12 + 8 + 4 + 100 + 4));
    hca_fixture_fini(&fixture.base);
}

TEST(Datagrams, ADatagramWithoutAReceiveIsDropped)
{
    fixture_init(HCA_UD);
    fixture_run(unreceived_send, NULL);
    EXPECT_EQ(hca_fixture_counter(&fixture.base, 1, "packets_discarded"), 1);
    EXPECT_EQ(hca_fixture_counter(&fixture.base, 1, "out_of_buffer"), 1);
    hca_fixture_fini(&fixture.base);
}

static void leveled_send(void *arg)
{
    hca_ah_t *ah;
    struct hca_sge sge;
    (void)arg;
    ASSERT_EQ(hca_ah_create(fixture.near->pd, 2, 5, NULL, &ah), 0);
    struct hca_send_wr wr = hca_fixture_wr(&fixture.a, HCA_OP_SEND, 0, 100, &sge);
    wr.ah = ah;
    wr.remote_qpn = hca_qp_number(fixture.b.qp);
    wr.remote_qkey = 0x1234;
    sim_thread_sleep(fixture.base.sim, 10 * US);
    EXPECT_EQ(hca_post_send(fixture.a.qp, &wr, NULL), 0);
    EXPECT_EQ(hca_fixture_completion(&fixture.a).status, HCA_OK);
    EXPECT_EQ(hca_ah_destroy(ah), 0);
}

static void leveled_receive(void *arg)
{
    (void)arg;
    EXPECT_EQ(hca_fixture_receive(&fixture.b, 3, 0, 140), 0);
    EXPECT_EQ(hca_fixture_completion(&fixture.b).sl, 5);
}

// IBA 11.4.2.1: the completion tells the service level with which the datagram came.
TEST(Datagrams, ADatagramComesWithTheServiceLevelOfItsAddress)
{
    fixture_init(HCA_UD);
    fixture_run(leveled_send, leveled_receive);
    hca_fixture_fini(&fixture.base);
}

static void unreceived_uc_send(void *arg)
{
    (void)arg;
    EXPECT_EQ(hca_fixture_send(&fixture.a, HCA_OP_SEND, 0, 100, fixture.far, 0), 0);
    EXPECT_EQ(hca_fixture_completion(&fixture.a).status, HCA_OK);
}

TEST(Datagrams, WhoListensHearsOfALostMessageOfAnUnreliableConnection)
{
    fixture_init(HCA_UC);
    losses = 0;
    hca_set_lost(fixture.base.nodes[1].hca, loss_take, NULL);
    fixture_run(unreceived_uc_send, NULL);
    EXPECT_EQ(losses, 1);
    EXPECT_EQ(lost.kind, HCA_LOSS_NO_RECEIVE);
    EXPECT_EQ(lost.bytes, 100);
    EXPECT_EQ(lost.qpn, hca_qp_number(fixture.b.qp));
    hca_fixture_fini(&fixture.base);
}

static void uc_send(void *arg)
{
    (void)arg;
    ib_link_drop_next(fixture.base.cable, 0, 1);
    for (unsigned i = 0; i < 2; i++) {
        EXPECT_EQ(hca_fixture_send(&fixture.a, HCA_OP_WRITE, 0, 5000, fixture.far, 100 + i * 10000), 0);
        EXPECT_EQ(hca_fixture_completion(&fixture.a).status, HCA_OK);
    }
}

TEST(Datagrams, AnUnreliableMessageWithALossIsDroppedAndTheNextArrives)
{
    fixture_init(HCA_UC);
    fixture_run(uc_send, NULL);
    EXPECT_EQ(fixture.far->memory[100], 0);
    EXPECT_MEMEQ(fixture.far->memory + 10100, fixture.near->memory, 5000);
    hca_fixture_fini(&fixture.base);
}
