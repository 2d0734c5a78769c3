// The on-chip memory and the control module behind their BARs.
#include <string.h>

#include "rig.h"
#include "tests/shim/test.h"

TEST(FpgaBar, ProcessorReadsWhatItWroteInTheOnChipMemory)
{
    struct rig *rig = rig_create_default();
    const uint8_t data[7] = {1, 2, 3, 4, 5, 6, 7};
    uint8_t back[9] = {0};
    memset(rig->fpga_memory, 0xee, 8192);
    EXPECT_TRUE(pcie_rc_cpu_write(rig->rc, RIG_MEMORY_BASE + 0x1003, data, sizeof data, NULL, NULL));
    EXPECT_EQ(rig_load(rig, RIG_MEMORY_BASE + 0x1002, sizeof back, back), PCIE_CPL_SC);
    EXPECT_EQ(back[0], 0xee);
    EXPECT_MEMEQ(back + 1, data, sizeof data);
    EXPECT_EQ(back[8], 0xee);
    rig_destroy(rig);
}

TEST(FpgaBar, PartnersReadIsSplitAtMaxPayloadSizeAndBoundariesOf128)
{
    struct rig *rig = rig_create_default();
    rig_fill(rig->fpga_memory, 8192, 1);
    peer_ask(&rig->peer, rig->pool, RIG_MEMORY_BASE + 0x123, 1001);
    rig_run(rig);
    EXPECT_EQ(rig->peer.answer_bytes, 1001);
    EXPECT_MEMEQ(rig->peer.answer, rig->fpga_memory + 0x123, 1001);
    EXPECT_EQ(rig->peer.answer_count, 5); // 0x123-0x1ff, three of 256, the rest
    for (unsigned i = 0; i < 4; i++) {
        EXPECT_EQ(rig->peer.answer_ends[i], 0);
    }
    rig_destroy(rig);
}

TEST(FpgaBar, LoadTakesTheDeclaredCyclesMoreThanItsWay)
{
    uint64_t took_ps[2];
    for (unsigned i = 0; i < 2; i++) {
        struct rig_config config = rig_config();
        config.fpga.access_cycles += 5 * i;
        config.fpga.answer_cycles += 7 * i;
        struct rig *rig = rig_create(&config);
        uint32_t word = 0;
        rig_load(rig, RIG_MEMORY_BASE, 4, &word);
        took_ps[i] = sim_now_ps(rig->sim);
        rig_destroy(rig);
    }
    EXPECT_EQ(took_ps[1] - took_ps[0], 12 * 4000);
}

TEST(FpgaBar, AddressOfNoBarIsAnUnsupportedRequest)
{
    struct rig *rig = rig_create_default();
    uint32_t word = 0;
    EXPECT_EQ(rig_load(rig, RIG_CONTROL_BASE + FPGA_CONTROL_BYTES, 4, &word), PCIE_CPL_UR);
    rig_store_control(rig, FPGA_CONTROL_BYTES, 1);
    rig_run(rig);
    EXPECT_EQ(rig_counter(rig, "unclaimed_reads"), 1);
    EXPECT_EQ(rig_counter(rig, "unclaimed_writes"), 1);
    rig_destroy(rig);
}

TEST(FpgaBar, ControlTakesAccessesOf32BitsOnly)
{
    struct rig *rig = rig_create_default();
    uint64_t wide = 0;
    EXPECT_TRUE(pcie_rc_cpu_write(rig->rc, RIG_CONTROL_BASE + FPGA_DESCRIPTOR, &wide, 8, NULL, NULL));
    EXPECT_EQ(rig_load(rig, RIG_CONTROL_BASE + FPGA_STATUS, 8, &wide), PCIE_CPL_CA);
    EXPECT_EQ(rig_control(rig, FPGA_READ, FPGA_WORDS), 0);
    EXPECT_EQ(rig_counter(rig, "control_ignored"), 2);
    rig_destroy(rig);
}

TEST(FpgaBar, StatusWordsCannotBeWritten)
{
    struct rig *rig = rig_create_default();
    rig_store_control(rig, FPGA_STATUS, 0xffffffff);
    EXPECT_EQ(rig_status(rig, FPGA_READ, 0), 0);
    EXPECT_EQ(rig_counter(rig, "control_ignored"), 1);
    rig_destroy(rig);
}

TEST(FpgaBar, RefusesAConfigurationThatCannotBe)
{
    struct rig *rig = rig_create_default();
    struct fpga_config config = rig_config().fpga;
    fpga_t *fpga = NULL;
    config.read_tags = 17;
    EXPECT_EQ(fpga_create(rig->sim, rig->pool, "other", &config, &fpga), SIM_ERR_INVALID);
    config.read_tags = 16;
    config.mrrs_bytes = 384;
    EXPECT_EQ(fpga_create(rig->sim, rig->pool, "other", &config, &fpga), SIM_ERR_INVALID);
    config.mrrs_bytes = 512;
    EXPECT_EQ(fpga_create(rig->sim, rig->pool, "fpga", &config, &fpga), SIM_ERR_EXISTS);
    rig_destroy(rig);
}
