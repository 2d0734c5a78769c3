// The order of accesses at the responder, with times so long that each turn shows.
#include <string.h>

#include "fixture.h"

// --- writes ----------------------------------------------------------------------------------------------------------

enum { PACKETS = 16, PACKET_BYTES = 2048 };
#define TURN_PS (1 * US) // twice the time that a packet takes on the wire

static uint64_t took_ps;

static void long_write(void *arg)
{
    uint64_t begun_ps = sim_now_ps(fixture.base.sim);
    (void)arg;
    EXPECT_EQ(hca_fixture_send(&fixture.a, HCA_OP_WRITE, 0, PACKETS * PACKET_BYTES, fixture.far, 0), 0);
    EXPECT_EQ(hca_fixture_completion(&fixture.a).status, HCA_OK);
    took_ps = sim_now_ps(fixture.base.sim) - begun_ps;
}

TEST(Order, PacketsThatWriteMemoryTakeTheirTurnsOneAfterTheOther)
{
    struct hca_config config = preset_hca("connectx-qdr");
    config.write_dispatch_ps = TURN_PS;
    fixture_init_with(&config, HCA_RC);
    fixture_run(long_write, NULL);
    EXPECT_GE(took_ps, PACKETS * TURN_PS);
    hca_fixture_fini(&fixture.base);
}

// --- completions -----------------------------------------------------------------------------------------------------

static struct hca_fixture_qp adder;

static void send_behind_an_atomic(void *arg)
{
    (void)arg;
    EXPECT_EQ(hca_fixture_send(&adder, HCA_OP_FETCH_ADD, 0, 8, fixture.far, 0), 0);
    sim_thread_sleep(fixture.base.sim, 5 * US); // it is executed
    EXPECT_EQ(hca_fixture_send(&fixture.a, HCA_OP_SEND, 64, 64, fixture.far, 0), 0);
    EXPECT_EQ(hca_fixture_completion(&adder).status, HCA_OK);
}

static void fail_behind_a_message(void *arg)
{
    const struct hca_qp_attr error = {.state = HCA_ERROR};
    (void)arg;
    for (uint64_t id = 1; id <= 2; id++) {
        EXPECT_EQ(hca_fixture_receive(&fixture.b, id, (uint32_t)(4096 * id), 64), 0);
    }
    sim_thread_sleep(fixture.base.sim, 15 * US); // the message has arrived
    EXPECT_EQ(hca_qp_modify(fixture.b.qp, HCA_QP_STATE, &error), 0);
    const struct hca_wc came = hca_fixture_completion(&fixture.b), flushed = hca_fixture_completion(&fixture.b);
    EXPECT_EQ(came.wr_id, 1);
    EXPECT_EQ(came.status, HCA_OK);
    EXPECT_EQ(flushed.wr_id, 2);
    EXPECT_EQ(flushed.status, HCA_FLUSHED);
}

// The atomic of another queue pair delays the message that has arrived; the error comes meanwhile.
TEST(Order, AMessageThatCameBeforeAnErrorCompletesBeforeTheFlushedReceives)
{
    struct hca_config config = preset_hca("connectx-qdr");
    config.atomic_ps = 30 * US;
    fixture_init_with(&config, HCA_RC);
    struct hca_fixture_qp peer = hca_fixture_qp(fixture.far, HCA_RC);
    adder = hca_fixture_qp(fixture.near, HCA_RC);
    hca_fixture_connect(&adder, &peer);
    fixture_run(send_behind_an_atomic, fail_behind_a_message);
    hca_fixture_fini(&fixture.base);
}

// --- answers of atomics ----------------------------------------------------------------------------------------------

enum { ATOMICS = 8 };

static void add_one_after_the_other(void *arg)
{
    uint64_t begun_ps = sim_now_ps(fixture.base.sim);
    (void)arg;
    for (unsigned i = 0; i < ATOMICS; i++) {
        EXPECT_EQ(hca_fixture_send(&fixture.a, HCA_OP_FETCH_ADD, 64 * i, 8, fixture.far, 0), 0);
    }
    for (unsigned i = 0; i < ATOMICS; i++) {
        EXPECT_EQ(hca_fixture_completion(&fixture.a).status, HCA_OK);
    }
    took_ps = sim_now_ps(fixture.base.sim) - begun_ps;
}

// Each answer is late by as much, and the atomics after it are executed meanwhile: all of them end that much later.
TEST(Order, AnAtomicIsAnsweredLateWhileTheNextOnesAreExecuted)
{
    struct hca_config config = preset_hca("connectx-qdr");
    uint64_t times_ps[2];
    for (unsigned late = 0; late < 2; late++) {
        config.atomic_answer_ps = late * 3 * US;
        fixture_init_with(&config, HCA_RC);
        fixture_run(add_one_after_the_other, NULL);
        hca_fixture_fini(&fixture.base);
        times_ps[late] = took_ps;
    }
    EXPECT_BETWEEN(times_ps[1] - times_ps[0], 3 * US - 50 * NS, 3 * US + 50 * NS);
}

// --- fences ----------------------------------------------------------------------------------------------------------

static uint64_t word_at_the_end;
static bool ended;

static void fence_end(void *ctx)
{
    (void)ctx;
    ended = true;
    memcpy(&word_at_the_end, fixture.far->memory, sizeof word_at_the_end);
}

static void add_and_fence(void *arg)
{
    static struct hca_fence fence = {.done = fence_end};
    (void)arg;
    EXPECT_EQ(hca_fixture_send(&fixture.a, HCA_OP_FETCH_ADD, 0, 8, fixture.far, 0), 0);
    sim_thread_sleep(fixture.base.sim, 10 * US); // it has arrived and is executed
    EXPECT_TRUE(hca_fw_fence(fixture.base.nodes[1].hca, &fence));
    EXPECT_EQ(hca_fixture_completion(&fixture.a).status, HCA_OK);
    sim_thread_sleep(fixture.base.sim, 10 * US);
}

TEST(Order, AFenceEndsWhenTheAccessesAcceptedBeforeItAreInMemory)
{
    struct hca_config config = preset_hca("connectx-qdr");
    config.atomic_ps = 30 * US;
    ended = false;
    fixture_init_with(&config, HCA_RC);
    fixture_run(add_and_fence, NULL);
    EXPECT_TRUE(ended);
    EXPECT_EQ(word_at_the_end, 1);
    hca_fixture_fini(&fixture.base);
}
