// Requests that are sent again: how long an answer may take, and what their acknowledgement says.
#include "fixture.h"

static void short_timeout(struct hca_qp_attr *attr)
{
    attr->timeout = 1; // 8.192 us (IBA 11.2.5.2)
}

// --- the time for an answer ------------------------------------------------------------------------------------------

static void lose_and_follow(void *arg)
{
    (void)arg;
    ib_link_drop_next(fixture.base.cable, 0, 1);
    EXPECT_EQ(hca_fixture_send(&fixture.a, HCA_OP_FETCH_ADD, 0, 8, fixture.far, 0), 0);
    sim_thread_sleep(fixture.base.sim, 4 * US);
    EXPECT_EQ(hca_fixture_send(&fixture.a, HCA_OP_WRITE, 64, 8, fixture.far, 64), 0); // its packet reveals the loss
    for (unsigned i = 0; i < 2; i++) {
        EXPECT_EQ(hca_fixture_completion(&fixture.a).status, HCA_OK);
    }
}

// The lost atomic is sent again some 6 us after its first sending, and answered some 6 us later: later than a timeout
// after the first sending, but within one after the second.
TEST(Retries, ARepetitionHasTheWholeTimeoutForItsAnswer)
{
    struct hca_config config = preset_hca("connectx-qdr");
    config.atomic_ps = 4 * US;
    fixture_init_with(&config, HCA_RC);
    fixture_reconnect(short_timeout);
    fixture_run(lose_and_follow, NULL);
    EXPECT_EQ(hca_fixture_counter(&fixture.base, 1, "naks_sent"), 1);
    EXPECT_EQ(hca_fixture_counter(&fixture.base, 0, "retries"), 1);
    EXPECT_EQ(hca_fixture_counter(&fixture.base, 0, "timeouts"), 0);
    hca_fixture_fini(&fixture.base);
}

// --- acknowledgements of duplicates ----------------------------------------------------------------------------------

static struct hca_fixture_qp adder;

static void write_behind_an_atomic(void *arg)
{
    (void)arg;
    EXPECT_EQ(hca_fixture_send(&adder, HCA_OP_FETCH_ADD, 0, 8, fixture.far, 0), 0);
    sim_thread_sleep(fixture.base.sim, 5 * US); // it is executed
    EXPECT_EQ(hca_fixture_send(&fixture.a, HCA_OP_WRITE, 64, 64, fixture.far, 4096), 0);
    EXPECT_EQ(hca_fixture_completion(&fixture.a).status, HCA_OK);
    EXPECT_MEMEQ(fixture.far->memory + 4096, fixture.near->memory + 64, 64);
    EXPECT_EQ(hca_fixture_completion(&adder).status, HCA_OK);
}

// The atomic of another queue pair keeps the responder busy while the write comes again and again.
TEST(Retries, ADuplicateIsNotAcknowledgedBeforeItsFirstCopyIsWritten)
{
    struct hca_config config = preset_hca("connectx-qdr");
    config.atomic_ps = 30 * US;
    fixture_init_with(&config, HCA_RC);
    fixture_reconnect(short_timeout);
    struct hca_fixture_qp peer = hca_fixture_qp(fixture.far, HCA_RC);
    adder = hca_fixture_qp(fixture.near, HCA_RC);
    hca_fixture_connect(&adder, &peer);
    fixture_run(write_behind_an_atomic, NULL);
    EXPECT_GT(hca_fixture_counter(&fixture.base, 1, "duplicate_requests"), 0);
    hca_fixture_fini(&fixture.base);
}
