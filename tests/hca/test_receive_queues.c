// Receive queues: the count of posted entries, which the HCA reads when it needs it, and entries that come back.
#include <errno.h>

#include "fixture.h"

// --- the count of entries --------------------------------------------------------------------------------------------

static uint32_t second_bytes;

static void two_sends(void *arg)
{
    (void)arg;
    sim_thread_sleep(fixture.base.sim, 10 * US);
    EXPECT_EQ(hca_fixture_send(&fixture.a, HCA_OP_SEND, 0, 64, fixture.far, 0), 0);
    EXPECT_EQ(hca_fixture_send(&fixture.a, HCA_OP_SEND, 0, second_bytes, fixture.far, 0), 0);
    for (unsigned i = 0; i < 2; i++) {
        EXPECT_EQ(hca_fixture_completion(&fixture.a).status, HCA_OK);
    }
}

// A packet that has just arrived at the port is still on its way to the receive engine: port_rx is 70 ns.
static void receive_in_time(void *arg)
{
    (void)arg;
    EXPECT_EQ(hca_fixture_receive(&fixture.b, 1, 0, 64), 0);
    while (hca_fixture_counter(&fixture.base, 1, "port_rcv_packets") < 2) {
        sim_thread_sleep(fixture.base.sim, 5 * NS);
    }
    EXPECT_EQ(hca_fixture_receive(&fixture.b, 2, 4096, 2048), 0);
    for (uint64_t id = 1; id <= 2; id++) {
        EXPECT_EQ(hca_fixture_completion(&fixture.b).wr_id, id);
    }
}

// The HCA reads the count after the first message; the second one arrives before, during or after this read.
TEST(ReceiveQueues, AnEntryIsFoundThoughAnOlderCountIsOnItsWay)
{
    for (second_bytes = 64; second_bytes <= 2048; second_bytes += 32) {
        TEST_TRACE("second message of %u bytes", second_bytes);
        fixture_init(HCA_RC);
        fixture_run(two_sends, receive_in_time);
        EXPECT_EQ(hca_fixture_counter(&fixture.base, 1, "out_of_buffer"), 0);
        hca_fixture_fini(&fixture.base);
    }
}

// --- entries that come back ------------------------------------------------------------------------------------------

enum { SHARED = 4 };

static int shared_receive(uint64_t wr_id)
{
    const struct hca_sge sge = {(uint64_t)(uintptr_t)fixture.far->memory, 64, hca_mr_lkey(fixture.far->mr)};
    const struct hca_receive_wr wr = {.wr_id = wr_id, .sges = &sge, .sge_count = 1};
    return hca_post_srq_receive(fixture.srq, &wr, NULL);
}

static void end_without_polling(void *arg)
{
    struct hca_wc first;
    (void)arg;
    for (unsigned i = 0; i < SHARED; i++) {
        EXPECT_EQ(shared_receive(i), 0);
    }
    sim_thread_sleep(fixture.base.sim, 50 * US);
    ASSERT_EQ(hca_cq_waiting(fixture.b.cq, &first), SHARED);
    hca_fixture_qp_close(&fixture.b);
    for (unsigned i = 0; i < SHARED; i++) {
        EXPECT_EQ(shared_receive(i), 0);
    }
    EXPECT_EQ(shared_receive(SHARED), -ENOMEM);
}

static void fill_shared(void *arg)
{
    (void)arg;
    sim_thread_sleep(fixture.base.sim, 10 * US);
    for (unsigned i = 0; i < SHARED; i++) {
        EXPECT_EQ(hca_fixture_send(&fixture.a, HCA_OP_SEND, 0, 64, fixture.far, 0), 0);
        EXPECT_EQ(hca_fixture_completion(&fixture.a).status, HCA_OK);
    }
}

// The completions go with their queue pair; the places of their receives are free again.
TEST(ReceiveQueues, ADestroyedQueuePairGivesItsSharedReceivesBack)
{
    fixture_init(HCA_RC);
    EXPECT_EQ(hca_srq_create(fixture.far->pd, SHARED, 1, NULL, NULL, NULL, &fixture.srq), 0);
    hca_fixture_qp_close(&fixture.b);
    struct hca_qp_create create = hca_fixture_qp_create(HCA_RC);
    create.srq = fixture.srq;
    fixture.b = hca_fixture_qp_with(fixture.far, create);
    hca_fixture_qp_close(&fixture.a);
    fixture.a = hca_fixture_qp(fixture.near, HCA_RC);
    hca_fixture_connect(&fixture.a, &fixture.b);
    fixture_run(fill_shared, end_without_polling);
    EXPECT_EQ(hca_srq_destroy(fixture.srq), 0);
    hca_fixture_fini(&fixture.base);
}
