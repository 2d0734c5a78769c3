// The 250 MHz counter: from the descriptor in the controller to the completion signal of the same id.
#include "rig.h"
#include "tests/shim/test.h"

TEST(FpgaCounter, OfAWriteIsStartPacketAndFinish)
{
    struct rig *rig = rig_create_default();
    rig_descriptor(rig, FPGA_WRITE, 0, RIG_PEER_BASE, 4, 1);
    rig_run(rig);
    EXPECT_EQ(rig_cycles(rig, FPGA_WRITE, 1), 30 + 1 + 7);
    rig_destroy(rig);
}

TEST(FpgaCounter, OfALongerWriteHasABeatForEach32Bytes)
{
    struct rig *rig = rig_create_default();
    rig_descriptor(rig, FPGA_WRITE, 0, RIG_PEER_BASE, 16, 1);
    rig_descriptor(rig, FPGA_WRITE, 0, RIG_PEER_BASE, 20, 2);
    rig_descriptor(rig, FPGA_WRITE, 0, RIG_PEER_BASE, 512, 3);
    rig_run(rig);
    EXPECT_EQ(rig_cycles(rig, FPGA_WRITE, 1), 30 + 1 + 7);
    EXPECT_EQ(rig_cycles(rig, FPGA_WRITE, 2), 30 + 2 + 7);
    EXPECT_EQ(rig_cycles(rig, FPGA_WRITE, 3), 30 + 18 + 7);
    rig_destroy(rig);
}

static uint32_t read_cycles(const struct rig_config *config, uint64_t latency_ps)
{
    struct rig *rig = rig_create(config);
    rig->peer.latency_ps = latency_ps;
    rig_descriptor(rig, FPGA_READ, RIG_PEER_BASE, 0, 4, 1);
    rig_run(rig);
    uint32_t cycles = rig_cycles(rig, FPGA_READ, 1);
    rig_destroy(rig);
    return cycles;
}

TEST(FpgaCounter, OfAReadIsTheWayThereAndBackInWholeCycles)
{
    // Symbols on the wire: request 24 B and completion 24 B on x8 and on x16, 3047 + 1524 ps each way, four flights of
    // 2 ns, two passages of the root complex: 217.1 ns. With 500 ns of the partner 717.1 ns from the request's first
    // symbol. The request begins at cycle 20 and its first symbol leaves when its beat is through, or could have begun;
    // 1 beat in, 5 to the signal.
    struct rig_config config = rig_config();
    EXPECT_BETWEEN(read_cycles(&config, 500000), 20 + 180 + 1 + 5, 20 + 181 + 1 + 5);
}

TEST(FpgaCounter, StepsWithTheClock)
{
    struct rig_config config = rig_config();
    uint32_t cycles = read_cycles(&config, 500000);
    EXPECT_EQ(read_cycles(&config, 500000 + 4000), cycles + 1);
    EXPECT_EQ(read_cycles(&config, 500000 + 400000), cycles + 100);
    config.fpga.read_start_cycles += 11;
    config.fpga.read_finish_cycles += 13;
    EXPECT_EQ(read_cycles(&config, 500000), cycles + 24);
}

TEST(FpgaCounter, DoesNotIncludeTheWritingOfTheDescriptor)
{
    struct rig_config config = rig_config();
    uint32_t cycles = read_cycles(&config, 500000);
    config.fpga.access_cycles += 100;
    config.fpga_link.ends[0].tx_ps = 0;
    EXPECT_EQ(read_cycles(&config, 500000), cycles);
}

TEST(FpgaCounter, OfAQueuedDescriptorIncludesItsWait)
{
    struct rig *rig = rig_create_default();
    rig_descriptor(rig, FPGA_WRITE, 0, RIG_PEER_BASE, 1 << 16, 1);
    rig_descriptor(rig, FPGA_WRITE, 0, RIG_PEER_BASE, 4, 2);
    rig_run(rig);
    EXPECT_TRUE(rig_cycles(rig, FPGA_WRITE, 2) > 2000);
    rig_destroy(rig);
}
