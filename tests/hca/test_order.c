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
