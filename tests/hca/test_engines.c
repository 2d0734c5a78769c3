// Whose turn it is at the engines and at the port, with times so long that each turn shows.
#include <string.h>

#include "fixture.h"

enum { PACKETS = 16, PACKET_BYTES = 2048, MEBI = 1 << 20 };

static void long_timeout(struct hca_qp_attr *attr)
{
    attr->timeout = 12; // 17 ms: nothing is sent again
}

static void slow_fixture_init(void)
{
    struct hca_config config = preset_hca("connectx-qdr");
    config.port_ps_per_byte = 1000; // 4x SDR: host memory is faster than the port
    fixture_init_with(&config, HCA_RC);
    fixture_reconnect(long_timeout);
}

// --- the send engine -------------------------------------------------------------------------------------------------

enum { SENDERS = 4 };

static struct hca_fixture_qp senders[SENDERS];

static void one_ends_in_the_queue(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < SENDERS; i++) {
        if (i == SENDERS - 1) {
            sim_thread_sleep(fixture.base.sim, 5 * US);
            hca_fixture_qp_close(&senders[SENDERS - 2]); // the last one that waits
        }
        EXPECT_EQ(hca_fixture_send(&senders[i], HCA_OP_WRITE, 0, 8, fixture.far, 0), 0);
    }
    for (unsigned i = 0; i < SENDERS; i++) {
        TEST_TRACE("sender %u", i);
        if (i != SENDERS - 2) {
            EXPECT_EQ(hca_fixture_completion(&senders[i]).status, HCA_OK);
        }
    }
}

TEST(Engines, AQueuePairThatEndsWhileItWaitsToSendTakesNoOtherWithIt)
{
    struct hca_config config = preset_hca("connectx-qdr");
    config.send_packet_ps = 20 * US;
    fixture_init_with(&config, HCA_RC);
    for (unsigned i = 0; i < SENDERS; i++) {
        struct hca_fixture_qp peer = hca_fixture_qp(fixture.far, HCA_RC);
        senders[i] = hca_fixture_qp(fixture.near, HCA_RC);
        hca_fixture_connect(&senders[i], &peer);
    }
    fixture_run(one_ends_in_the_queue, NULL);
    hca_fixture_fini(&fixture.base);
}

// --- the receive engine ----------------------------------------------------------------------------------------------

static uint64_t took_ps;

static void long_write(void *arg)
{
    uint64_t begun_ps = sim_now_ps(fixture.base.sim);
    (void)arg;
    EXPECT_EQ(hca_fixture_send(&fixture.a, HCA_OP_WRITE, 0, PACKETS * PACKET_BYTES, fixture.far, 0), 0);
    EXPECT_EQ(hca_fixture_completion(&fixture.a).status, HCA_OK);
    took_ps = sim_now_ps(fixture.base.sim) - begun_ps;
}

TEST(Engines, ArrivedPacketsTakeTheirTurnsAtTheReceiveEngine)
{
    struct hca_config config = preset_hca("connectx-qdr");
    config.receive_packet_ps = 1 * US; // twice the time that a packet takes on the wire
    fixture_init_with(&config, HCA_RC);
    fixture_run(long_write, NULL);
    EXPECT_GE(took_ps, PACKETS * US);
    hca_fixture_fini(&fixture.base);
}

// --- the port --------------------------------------------------------------------------------------------------------

static uint64_t written_ps, read_ps;

static void write_beside_a_read(void *arg)
{
    (void)arg;
    sim_thread_sleep(fixture.base.sim, 20 * US); // answers to the read leave
    EXPECT_EQ(hca_fixture_send(&fixture.a, HCA_OP_WRITE, 0, 32 * PACKET_BYTES, fixture.far, 0), 0);
    EXPECT_EQ(hca_fixture_completion(&fixture.a).status, HCA_OK);
    written_ps = sim_now_ps(fixture.base.sim);
}

static void long_read(void *arg)
{
    (void)arg;
    EXPECT_EQ(hca_fixture_send(&fixture.b, HCA_OP_READ, 0, MEBI, fixture.near, 0), 0);
    EXPECT_EQ(hca_fixture_completion(&fixture.b).status, HCA_OK);
    read_ps = sim_now_ps(fixture.base.sim);
}

// In turn, the 32 packets of the write leave with the first 32 of 512 answers or so.
TEST(Engines, RequestsAndAnswersLeaveInTurn)
{
    slow_fixture_init();
    fixture_run(write_beside_a_read, long_read);
    EXPECT_LT(written_ps, read_ps / 2);
    hca_fixture_fini(&fixture.base);
}

static void fail_while_answering(void *arg)
{
    const struct hca_qp_attr error = {.state = HCA_ERROR};
    (void)arg;
    while (hca_fixture_counter(&fixture.base, 0, "port_xmit_packets") < 4) {
        sim_thread_sleep(fixture.base.sim, 100 * NS);
    }
    EXPECT_EQ(hca_qp_modify(fixture.a.qp, HCA_QP_STATE, &error), 0);
    uint64_t sent = hca_fixture_counter(&fixture.base, 0, "port_xmit_packets");
    sim_thread_sleep(fixture.base.sim, 100 * US);
    EXPECT_EQ(hca_fixture_counter(&fixture.base, 0, "port_xmit_packets"), sent);
}

static void read_begin(void *arg)
{
    (void)arg;
    EXPECT_EQ(hca_fixture_send(&fixture.b, HCA_OP_READ, 0, MEBI, fixture.near, 0), 0);
}

// IBA 10.3.1.5. Several answers have their data already and wait for the port.
TEST(Engines, AQueuePairInErrorSendsNothingMore)
{
    slow_fixture_init();
    fixture_run(fail_while_answering, read_begin);
    hca_fixture_fini(&fixture.base);
}

// --- host memory -----------------------------------------------------------------------------------------------------

enum { WRITTEN = 16384, ELSEWHERE = MEBI / 2 };

static struct hca_fixture_qp loop;

static void write_to_itself(void *arg)
{
    (void)arg;
    EXPECT_EQ(hca_fixture_send(&loop, HCA_OP_WRITE, ELSEWHERE, MEBI / 4, fixture.far, ELSEWHERE), 0);
    EXPECT_EQ(hca_fixture_completion(&loop).status, HCA_OK);
}

static void write_and_read_the_end(void *arg)
{
    (void)arg;
    sim_thread_sleep(fixture.base.sim, 50 * US);
    EXPECT_EQ(hca_fixture_send(&fixture.a, HCA_OP_WRITE, 0, WRITTEN, fixture.far, 0), 0);
    EXPECT_EQ(hca_fixture_send(&fixture.a, HCA_OP_READ, 65536, 64, fixture.far, WRITTEN - 64), 0);
    for (unsigned i = 0; i < 2; i++) {
        EXPECT_EQ(hca_fixture_completion(&fixture.a).status, HCA_OK);
    }
    EXPECT_MEMEQ(fixture.near->memory + 65536, fixture.near->memory, 64);
}

// IBA 9.5. Two streams of writes, one of them by loopback, are more than the slow slot takes: they wait for it.
TEST(Engines, AnAnswerIsReadBehindTheWritesThatWaitForHostMemory)
{
    struct hca_config config = preset_hca("connectx-qdr");
    config.pcie_lanes = 1;
    fixture_init_with(&config, HCA_RC);
    fixture_reconnect(long_timeout);
    loop = hca_fixture_qp(fixture.far, HCA_RC);
    struct hca_fixture_qp peer = hca_fixture_qp(fixture.far, HCA_RC);
    struct hca_qp_attr there = hca_fixture_attr(&peer), back = hca_fixture_attr(&loop);
    long_timeout(&there);
    long_timeout(&back);
    hca_fixture_connect_with(&loop, &there);
    hca_fixture_connect_with(&peer, &back);
    fixture_run(write_and_read_the_end, write_to_itself);
    hca_fixture_fini(&fixture.base);
}
