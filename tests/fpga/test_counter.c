// The 250 MHz counter: from the descriptor in the controller to the completion signal of the same id.
#include "fixture.h"
#include "tests/shim/test.h"

TEST(FpgaCounter, OfAWriteIsStartPacketAndFinish)
{
    struct fixture *fixture = fixture_create_default();
    fixture_descriptor(fixture, FPGA_WRITE, 0, FIXTURE_PEER_BASE, 4, 1);
    fixture_run(fixture);
    EXPECT_EQ(fixture_cycles(fixture, FPGA_WRITE, 1), 30 + 1 + 7);
    fixture_destroy(fixture);
}

TEST(FpgaCounter, OfALongerWriteHasABeatForEach32Bytes)
{
    struct fixture *fixture = fixture_create_default();
    fixture_descriptor(fixture, FPGA_WRITE, 0, FIXTURE_PEER_BASE, 16, 1);
    fixture_descriptor(fixture, FPGA_WRITE, 0, FIXTURE_PEER_BASE, 20, 2);
    fixture_descriptor(fixture, FPGA_WRITE, 0, FIXTURE_PEER_BASE, 512, 3);
    fixture_run(fixture);
    EXPECT_EQ(fixture_cycles(fixture, FPGA_WRITE, 1), 30 + 1 + 7);
    EXPECT_EQ(fixture_cycles(fixture, FPGA_WRITE, 2), 30 + 2 + 7);
    EXPECT_EQ(fixture_cycles(fixture, FPGA_WRITE, 3), 30 + 18 + 7);
    fixture_destroy(fixture);
}

static uint32_t read_cycles(const struct fixture_config *config, uint64_t latency_ps)
{
    struct fixture *fixture = fixture_create(config);
    fixture->peer.latency_ps = latency_ps;
    fixture_descriptor(fixture, FPGA_READ, FIXTURE_PEER_BASE, 0, 4, 1);
    fixture_run(fixture);
    uint32_t cycles = fixture_cycles(fixture, FPGA_READ, 1);
    fixture_destroy(fixture);
    return cycles;
}

TEST(FpgaCounter, OfAReadIsTheWayThereAndBackInWholeCycles)
{
    // Symbols on the wire: request 24 B and completion 24 B on x8 and on x16, 3047 + 1524 ps each way, four flights of
    // 2 ns, two passages of the root complex: 217.1 ns. With 500 ns of the partner, 717.1 ns from the request's first
    // symbol. The request begins at cycle 20; its first symbol leaves when its beat has passed, or could have begun. 1
    // beat for the completion, 5 cycles to the signal.
    struct fixture_config config = fixture_config();
    EXPECT_BETWEEN(read_cycles(&config, 500000), 20 + 180 + 1 + 5, 20 + 181 + 1 + 5);
}

TEST(FpgaCounter, StepsWithTheClock)
{
    struct fixture_config config = fixture_config();
    uint32_t cycles = read_cycles(&config, 500000);
    EXPECT_EQ(read_cycles(&config, 500000 + 4000), cycles + 1);
    EXPECT_EQ(read_cycles(&config, 500000 + 400000), cycles + 100);
    config.fpga.read_start_cycles += 11;
    config.fpga.read_finish_cycles += 13;
    EXPECT_EQ(read_cycles(&config, 500000), cycles + 24);
}

TEST(FpgaCounter, DoesNotIncludeTheWritingOfTheDescriptor)
{
    struct fixture_config config = fixture_config();
    uint32_t cycles = read_cycles(&config, 500000);
    config.fpga.access_cycles += 100;
    config.fpga_link.ends[0].tx_ps = 0;
    EXPECT_EQ(read_cycles(&config, 500000), cycles);
}

TEST(FpgaCounter, OfAQueuedDescriptorIncludesItsWait)
{
    struct fixture *fixture = fixture_create_default();
    fixture_descriptor(fixture, FPGA_WRITE, 0, FIXTURE_PEER_BASE, 1 << 16, 1);
    fixture_descriptor(fixture, FPGA_WRITE, 0, FIXTURE_PEER_BASE, 4, 2);
    fixture_run(fixture);
    EXPECT_GT(fixture_cycles(fixture, FPGA_WRITE, 2), 2000);
    fixture_destroy(fixture);
}
