// The read data mover.
#include <string.h>

#include "fixture.h"
#include "tests/shim/test.h"

TEST(FpgaRead, SplitsAtMaxReadRequestSize)
{
    struct fixture *fixture = fixture_create_default();
    fixture_descriptor(fixture, FPGA_READ, FIXTURE_PEER_BASE, 0, 1300, 1);
    fixture_run(fixture);
    EXPECT_EQ(fixture->peer.read_count, 3);
    for (unsigned i = 0; i < 3; i++) {
        EXPECT_EQ(fixture->peer.read_log[i].address, FIXTURE_PEER_BASE + 512 * i);
        EXPECT_EQ(fixture->peer.read_log[i].bytes, i < 2 ? 512 : 276);
    }
    fixture_destroy(fixture);
}

TEST(FpgaRead, NeverCrosses4KiB)
{
    struct fixture *fixture = fixture_create_default();
    fixture_descriptor(fixture, FPGA_READ, FIXTURE_PEER_BASE + 4096 - 100, 0, 1000, 1);
    fixture_run(fixture);
    EXPECT_EQ(fixture->peer.read_count, 3);
    EXPECT_EQ(fixture->peer.read_log[0].bytes, 100);
    EXPECT_EQ(fixture->peer.read_log[1].address, FIXTURE_PEER_BASE + 4096);
    EXPECT_EQ(fixture->peer.read_log[1].bytes, 512);
    EXPECT_EQ(fixture->peer.read_log[2].bytes, 388);
    fixture_destroy(fixture);
}

TEST(FpgaRead, HasNeverMoreThan16TagsOutstanding)
{
    struct fixture *fixture = fixture_create_default();
    fixture->peer.latency_ps = 5 * SIM_PS_PER_US;
    fixture_descriptor(fixture, FPGA_READ, FIXTURE_PEER_BASE, 0, 65536, 1);
    fixture_run(fixture);
    EXPECT_EQ(fixture->peer.read_count, 128);
    EXPECT_EQ(fixture->peer.at_work_peak, 16);
    EXPECT_EQ(fixture_counter(fixture, "read_tags_peak"), 16);
    fixture_destroy(fixture);
}

TEST(FpgaRead, KeepsToFewerTagsWhenConfigured)
{
    struct fixture_config config = fixture_config();
    config.fpga.read_tags = 3;
    struct fixture *fixture = fixture_create(&config);
    fixture->peer.latency_ps = 5 * SIM_PS_PER_US;
    fixture_descriptor(fixture, FPGA_READ, FIXTURE_PEER_BASE, 0, 65536, 1);
    fixture_run(fixture);
    EXPECT_EQ(fixture->peer.at_work_peak, 3);
    fixture_destroy(fixture);
}

TEST(FpgaRead, PutsCompletionsThatComeOutOfOrderWhereTheyBelong)
{
    struct fixture *fixture = fixture_create_default();
    fixture->peer.jitter_ps = 4 * SIM_PS_PER_US;
    fixture_fill(fixture->peer.memory, 65536, 1);
    fixture_descriptor(fixture, FPGA_READ, FIXTURE_PEER_BASE, 0x800, 65536, 1);
    fixture_run(fixture);
    EXPECT_GT(fixture->peer.overtaken, 10);
    EXPECT_EQ(fixture_status(fixture, FPGA_READ, 1), FIXTURE_DONE(1));
    EXPECT_MEMEQ(fixture->fpga_memory + 0x800, fixture->peer.memory, 65536);
    fixture_destroy(fixture);
}

TEST(FpgaRead, TakesCompletionsOfAnySize)
{
    struct fixture *fixture = fixture_create_default();
    fixture->peer.completion_bytes = 128;
    fixture_fill(fixture->peer.memory, 8192, 1);
    fixture_descriptor(fixture, FPGA_READ, FIXTURE_PEER_BASE + 0x34, 0, 4000, 1);
    fixture_run(fixture);
    EXPECT_MEMEQ(fixture->fpga_memory, fixture->peer.memory + 0x34, 4000);
    EXPECT_EQ(fixture_counter(fixture, "read_bytes"), 4000);
    fixture_destroy(fixture);
}

TEST(FpgaRead, OneThatIsFastIsSignalledBeforeASlowOneThatCameFirst)
{
    struct fixture *fixture = fixture_create_default();
    fixture->peer.latency_ps = 20 * SIM_PS_PER_US;
    fixture_descriptor(fixture, FPGA_READ, FIXTURE_PEER_BASE, 0, 4, 1);
    fixture_descriptor(fixture, FPGA_READ, FIXTURE_HOST_BASE, 64, 4, 2);
    fixture_run_for(fixture, 10 * SIM_PS_PER_US);
    EXPECT_EQ(fixture_status(fixture, FPGA_READ, 1), FPGA_STATUS_BUSY | 1);
    EXPECT_EQ(fixture_status(fixture, FPGA_READ, 2), FIXTURE_DONE(2));
    fixture_run(fixture);
    EXPECT_EQ(fixture_status(fixture, FPGA_READ, 1), FIXTURE_DONE(1));
    fixture_destroy(fixture);
}

TEST(FpgaRead, RateIsTagsTimesRequestOverLatency)
{
    // 16 x 512 B are outstanding for 4 us plus the time on the path, below 5 us: at most 2.05 GB/s, at least 1.64 GB/s.
    struct fixture *fixture = fixture_create_default();
    fixture->peer.latency_ps = 4 * SIM_PS_PER_US;
    fixture_descriptor(fixture, FPGA_READ, FIXTURE_PEER_BASE, 0, 1 << 19, 1);
    fixture_run(fixture);
    uint64_t ns = fixture_cycles(fixture, FPGA_READ, 1) * 4ull;
    EXPECT_BETWEEN((1ull << 19) * 1000 / ns, 1640, 2050);
    fixture_destroy(fixture);
}
