// The on-chip memory and the control module behind their BARs.
#include <string.h>

#include "fixture.h"
#include "tests/shim/test.h"

TEST(FpgaBar, ProcessorReadsWhatItWroteInTheOnChipMemory)
{
    struct fixture *fixture = fixture_create_default();
    const uint8_t data[7] = {1, 2, 3, 4, 5, 6, 7};
    uint8_t back[9] = {0};
    memset(fixture->fpga_memory, 0xee, 8192);
    EXPECT_TRUE(pcie_rc_cpu_write(fixture->rc, FIXTURE_MEMORY_BASE + 0x1003, data, sizeof data, NULL, NULL));
    EXPECT_EQ(fixture_load(fixture, FIXTURE_MEMORY_BASE + 0x1002, sizeof back, back), PCIE_CPL_SC);
    EXPECT_EQ(back[0], 0xee);
    EXPECT_MEMEQ(back + 1, data, sizeof data);
    EXPECT_EQ(back[8], 0xee);
    fixture_destroy(fixture);
}

TEST(FpgaBar, PartnersReadIsSplitAtMaxPayloadSizeAndBoundariesOf128)
{
    struct fixture *fixture = fixture_create_default();
    fixture_fill(fixture->fpga_memory, 8192, 1);
    peer_ask(&fixture->peer, fixture->pool, FIXTURE_MEMORY_BASE + 0x123, 1001);
    fixture_run(fixture);
    EXPECT_EQ(fixture->peer.answer_bytes, 1001);
    EXPECT_MEMEQ(fixture->peer.answer, fixture->fpga_memory + 0x123, 1001);
    EXPECT_EQ(fixture->peer.answer_count, 5); // 0x123-0x1ff, three of 256, the rest
    for (unsigned i = 0; i < 4; i++) {
        EXPECT_EQ(fixture->peer.answer_ends[i], 0);
    }
    fixture_destroy(fixture);
}

TEST(FpgaBar, CompletionEndsAtAMultipleOf128AlsoWhenOneOf64IsNearer)
{
    // 0x150 and 256 B reach to 0x250. Before that are 0x240, where a root complex may end, and 0x200 (clause 2.3.1.1).
    struct fixture *fixture = fixture_create_default();
    fixture_fill(fixture->fpga_memory, 4096, 1);
    peer_ask(&fixture->peer, fixture->pool, FIXTURE_MEMORY_BASE + 0x150, 512);
    fixture_run(fixture);
    EXPECT_MEMEQ(fixture->peer.answer, fixture->fpga_memory + 0x150, 512);
    EXPECT_EQ(fixture->peer.answer_count, 3); // to 0x200, 0x300 and 0x350
    EXPECT_EQ(fixture->peer.answer_ends[0], 0);
    EXPECT_EQ(fixture->peer.answer_ends[1], 0);
    fixture_destroy(fixture);
}

TEST(FpgaBar, LoadTakesTheDeclaredCyclesMoreThanItsWay)
{
    uint64_t took_ps[2];
    for (unsigned i = 0; i < 2; i++) {
        struct fixture_config config = fixture_config();
        config.fpga.access_cycles += 5 * i;
        config.fpga.answer_cycles += 7 * i;
        struct fixture *fixture = fixture_create(&config);
        uint32_t word = 0;
        fixture_load(fixture, FIXTURE_MEMORY_BASE, 4, &word);
        took_ps[i] = sim_now_ps(fixture->sim);
        fixture_destroy(fixture);
    }
    EXPECT_EQ(took_ps[1] - took_ps[0], 12 * 4000);
}

TEST(FpgaBar, AddressOfNoBarIsAnUnsupportedRequest)
{
    struct fixture *fixture = fixture_create_default();
    uint32_t word = 0;
    EXPECT_EQ(fixture_load(fixture, FIXTURE_CONTROL_BASE + FPGA_CONTROL_BYTES, 4, &word), PCIE_CPL_UR);
    fixture_store_control(fixture, FPGA_CONTROL_BYTES, 1);
    fixture_run(fixture);
    EXPECT_EQ(fixture_counter(fixture, "unclaimed_reads"), 1);
    EXPECT_EQ(fixture_counter(fixture, "unclaimed_writes"), 1);
    fixture_destroy(fixture);
}

TEST(FpgaBar, ControlTakesAccessesOf32BitsOnly)
{
    struct fixture *fixture = fixture_create_default();
    uint64_t wide = 0;
    EXPECT_TRUE(pcie_rc_cpu_write(fixture->rc, FIXTURE_CONTROL_BASE + FPGA_DESCRIPTOR, &wide, 8, NULL, NULL));
    EXPECT_EQ(fixture_load(fixture, FIXTURE_CONTROL_BASE + FPGA_STATUS, 8, &wide), PCIE_CPL_CA);
    EXPECT_EQ(fixture_control(fixture, FPGA_READ, FPGA_WORDS), 0);
    EXPECT_EQ(fixture_counter(fixture, "control_ignored"), 2);
    fixture_destroy(fixture);
}

TEST(FpgaBar, StatusWordsCannotBeWritten)
{
    struct fixture *fixture = fixture_create_default();
    fixture_store_control(fixture, FPGA_STATUS, 0xffffffff);
    EXPECT_EQ(fixture_status(fixture, FPGA_READ, 0), 0);
    EXPECT_EQ(fixture_counter(fixture, "control_ignored"), 1);
    fixture_destroy(fixture);
}

TEST(FpgaBar, RefusesAConfigurationThatCannotBe)
{
    struct fixture *fixture = fixture_create_default();
    struct fpga_config config = fixture_config().fpga;
    fpga_t *fpga = NULL;
    config.read_tags = 17;
    EXPECT_EQ(fpga_create(fixture->sim, fixture->pool, "other", &config, &fpga), SIM_ERR_INVALID);
    config.read_tags = 16;
    config.mrrs_bytes = 384;
    EXPECT_EQ(fpga_create(fixture->sim, fixture->pool, "other", &config, &fpga), SIM_ERR_INVALID);
    config.mrrs_bytes = 512;
    EXPECT_EQ(fpga_create(fixture->sim, fixture->pool, "fpga", &config, &fpga), SIM_ERR_EXISTS);
    fixture_destroy(fixture);
}
