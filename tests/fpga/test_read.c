// The read data mover.
#include <string.h>

#include "rig.h"
#include "tests/shim/test.h"

TEST(FpgaRead, SplitsAtMaxReadRequestSize)
{
    struct rig *rig = rig_create_default();
    rig_descriptor(rig, FPGA_READ, RIG_PEER_BASE, 0, 1300, 1);
    rig_run(rig);
    EXPECT_EQ(rig->peer.read_count, 3);
    for (unsigned i = 0; i < 3; i++) {
        EXPECT_EQ(rig->peer.read_log[i].address, RIG_PEER_BASE + 512 * i);
        EXPECT_EQ(rig->peer.read_log[i].bytes, i < 2 ? 512 : 276);
    }
    rig_destroy(rig);
}

TEST(FpgaRead, NeverCrosses4KiB)
{
    struct rig *rig = rig_create_default();
    rig_descriptor(rig, FPGA_READ, RIG_PEER_BASE + 4096 - 100, 0, 1000, 1);
    rig_run(rig);
    EXPECT_EQ(rig->peer.read_count, 3);
    EXPECT_EQ(rig->peer.read_log[0].bytes, 100);
    EXPECT_EQ(rig->peer.read_log[1].address, RIG_PEER_BASE + 4096);
    EXPECT_EQ(rig->peer.read_log[1].bytes, 512);
    EXPECT_EQ(rig->peer.read_log[2].bytes, 388);
    rig_destroy(rig);
}

TEST(FpgaRead, HasNeverMoreThan16TagsOutstanding)
{
    struct rig *rig = rig_create_default();
    rig->peer.latency_ps = 5 * SIM_PS_PER_US;
    rig_descriptor(rig, FPGA_READ, RIG_PEER_BASE, 0, 65536, 1);
    rig_run(rig);
    EXPECT_EQ(rig->peer.read_count, 128);
    EXPECT_EQ(rig->peer.at_work_peak, 16);
    EXPECT_EQ(rig_counter(rig, "read_tags_peak"), 16);
    rig_destroy(rig);
}

TEST(FpgaRead, KeepsToFewerTagsWhenConfigured)
{
    struct rig_config config = rig_config();
    config.fpga.read_tags = 3;
    struct rig *rig = rig_create(&config);
    rig->peer.latency_ps = 5 * SIM_PS_PER_US;
    rig_descriptor(rig, FPGA_READ, RIG_PEER_BASE, 0, 65536, 1);
    rig_run(rig);
    EXPECT_EQ(rig->peer.at_work_peak, 3);
    rig_destroy(rig);
}

TEST(FpgaRead, PutsCompletionsThatComeOutOfOrderWhereTheyBelong)
{
    struct rig *rig = rig_create_default();
    rig->peer.jitter_ps = 4 * SIM_PS_PER_US;
    rig_fill(rig->peer.memory, 65536, 1);
    rig_descriptor(rig, FPGA_READ, RIG_PEER_BASE, 0x800, 65536, 1);
    rig_run(rig);
    EXPECT_TRUE(rig->peer.overtaken > 10);
    EXPECT_EQ(rig_status(rig, FPGA_READ, 1), RIG_DONE(1));
    EXPECT_MEMEQ(rig->fpga_memory + 0x800, rig->peer.memory, 65536);
    rig_destroy(rig);
}

TEST(FpgaRead, TakesCompletionsOfAnySize)
{
    struct rig *rig = rig_create_default();
    rig->peer.completion_bytes = 128;
    rig_fill(rig->peer.memory, 8192, 1);
    rig_descriptor(rig, FPGA_READ, RIG_PEER_BASE + 0x34, 0, 4000, 1);
    rig_run(rig);
    EXPECT_MEMEQ(rig->fpga_memory, rig->peer.memory + 0x34, 4000);
    EXPECT_EQ(rig_counter(rig, "read_bytes"), 4000);
    rig_destroy(rig);
}

TEST(FpgaRead, OneThatIsFastIsSignalledBeforeASlowOneThatCameFirst)
{
    struct rig *rig = rig_create_default();
    rig->peer.latency_ps = 20 * SIM_PS_PER_US;
    rig_descriptor(rig, FPGA_READ, RIG_PEER_BASE, 0, 4, 1);
    rig_descriptor(rig, FPGA_READ, RIG_HOST_BASE, 64, 4, 2);
    rig_run_for(rig, 10 * SIM_PS_PER_US);
    EXPECT_EQ(rig_status(rig, FPGA_READ, 1), FPGA_STATUS_BUSY | 1);
    EXPECT_EQ(rig_status(rig, FPGA_READ, 2), RIG_DONE(2));
    rig_run(rig);
    EXPECT_EQ(rig_status(rig, FPGA_READ, 1), RIG_DONE(1));
    rig_destroy(rig);
}

TEST(FpgaRead, RateIsTagsTimesRequestOverLatency)
{
    // 16 x 512 B are outstanding for 4 us and what the way adds, below 5 us: at most 2.05 GB/s, at least 1.64 GB/s.
    struct rig *rig = rig_create_default();
    rig->peer.latency_ps = 4 * SIM_PS_PER_US;
    rig_descriptor(rig, FPGA_READ, RIG_PEER_BASE, 0, 1 << 19, 1);
    rig_run(rig);
    uint64_t ns = rig_cycles(rig, FPGA_READ, 1) * 4ull;
    EXPECT_BETWEEN((1ull << 19) * 1000 / ns, 1640, 2050);
    rig_destroy(rig);
}
