// The write data mover.
#include <string.h>

#include "rig.h"
#include "tests/shim/test.h"

TEST(FpgaWrite, SplitsAtMaxPayloadSize)
{
    struct rig *rig = rig_create_default();
    rig_fill(rig->fpga_memory, 1024, 1);
    rig_descriptor(rig, FPGA_WRITE, 0, RIG_PEER_BASE, 600, 1);
    rig_run(rig);
    EXPECT_EQ(rig->peer.write_count, 3);
    for (unsigned i = 0; i < 3; i++) {
        EXPECT_EQ(rig->peer.write_log[i].address, RIG_PEER_BASE + 256 * i);
        EXPECT_EQ(rig->peer.write_log[i].bytes, i < 2 ? 256 : 88);
    }
    EXPECT_MEMEQ(rig->peer.memory, rig->fpga_memory, 600);
    rig_destroy(rig);
}

TEST(FpgaWrite, NeverCrosses4KiB)
{
    struct rig *rig = rig_create_default();
    rig_descriptor(rig, FPGA_WRITE, 0, RIG_PEER_BASE + 8192 - 12, 300, 1);
    rig_run(rig);
    EXPECT_EQ(rig->peer.write_count, 3);
    EXPECT_EQ(rig->peer.write_log[0].bytes, 12);
    EXPECT_EQ(rig->peer.write_log[1].address, RIG_PEER_BASE + 8192);
    EXPECT_EQ(rig->peer.write_log[1].bytes, 256);
    EXPECT_EQ(rig->peer.write_log[2].bytes, 32);
    rig_destroy(rig);
}

TEST(FpgaWrite, IsCompleteWhenHandedToTheHardIpAndNotWhenVisible)
{
    struct rig_config config = rig_config();
    config.fpga_link.ends[1].tx_ps = 20 * SIM_PS_PER_US; // a hard IP that keeps it for long
    struct rig *rig = rig_create(&config);
    rig_descriptor(rig, FPGA_WRITE, 0, RIG_PEER_BASE, 4, 1);
    rig_run_for(rig, 10 * SIM_PS_PER_US);
    EXPECT_EQ(rig_counter(rig, "writes_done"), 1);
    EXPECT_EQ(rig->peer.write_count, 0);
    rig_run(rig);
    EXPECT_EQ(rig->peer.write_count, 1);
    rig_destroy(rig);
}

TEST(FpgaWrite, StatusReadFollowsTheDataOnTheBus)
{
    // The completion of the status read pushes the posted writes before it: who sees DONE finds the data in memory.
    struct rig *rig = rig_create_default();
    rig_fill(rig->fpga_memory, 4096, 1);
    rig_descriptor(rig, FPGA_WRITE, 0, RIG_HOST_BASE, 4096, 1);
    while (rig_status(rig, FPGA_WRITE, 1) != RIG_DONE(1)) {
        EXPECT_TRUE(sim_now_ps(rig->sim) < 100 * SIM_PS_PER_US);
    }
    EXPECT_MEMEQ(rig->host_memory, rig->fpga_memory, 4096);
    rig_run(rig);
    rig_destroy(rig);
}

TEST(FpgaWrite, WaitsForTheHardIpsRoom)
{
    struct rig_config config = rig_config();
    config.fpga_link.ends[1].tx_queue_tlps = 1;
    config.fpga_link.ends[0].headers[PCIE_POSTED] = 1;
    struct rig *rig = rig_create(&config);
    rig_fill(rig->fpga_memory, 65536, 1);
    rig_descriptor(rig, FPGA_WRITE, 0, RIG_PEER_BASE, 65536, 1);
    rig_run(rig);
    EXPECT_TRUE(rig_counter(rig, "transmit_stalls") > 100);
    EXPECT_EQ(rig_status(rig, FPGA_WRITE, 1), RIG_DONE(1));
    EXPECT_MEMEQ(rig->peer.memory, rig->fpga_memory, 65536);
    rig_destroy(rig);
}

TEST(FpgaWrite, ReadDoesNotPassAWriteThatTheHardIpRefused)
{
    // Four writes to a partner that takes none fill every place on the way; the fifth, to host memory, is held.
    struct rig_config config = rig_config();
    for (unsigned side = 0; side < 2; side++) {
        config.fpga_link.ends[side].tx_queue_tlps = config.peer_link.ends[side].tx_queue_tlps = 1;
        config.fpga_link.ends[side].headers[PCIE_POSTED] = config.peer_link.ends[side].headers[PCIE_POSTED] = 1;
    }
    config.rc.memory_read_ps = 10000; // faster than a write becomes visible, unless it came before
    struct rig *rig = rig_create(&config);
    rig->peer.holds_writes = true;
    rig_fill(rig->fpga_memory, 64, 1);
    for (unsigned i = 0; i < 5; i++) {
        rig_descriptor(rig, FPGA_WRITE, 4 * i, (i < 4 ? RIG_PEER_BASE : RIG_HOST_BASE), 4, (uint8_t)i);
    }
    rig_descriptor(rig, FPGA_READ, RIG_HOST_BASE, 4096, 4, 9);
    rig_run_for(rig, 10 * SIM_PS_PER_US);
    EXPECT_EQ(rig_counter(rig, "writes_done"), 4);
    EXPECT_EQ(rig_counter(rig, "reads_done"), 0);
    peer_release(&rig->peer);
    rig_run(rig);
    EXPECT_MEMEQ(rig->fpga_memory + 4096, rig->fpga_memory + 16, 4);
    rig_destroy(rig);
}

TEST(FpgaWrite, RateIsThatOfTheInternalPath)
{
    // A header in half a beat and 256 B of data: 9 beats of 4 ns, 7.111 GB/s; the link would carry 7.183 GB/s.
    struct rig *rig = rig_create_default();
    rig_descriptor(rig, FPGA_WRITE, 0, RIG_PEER_BASE, 1 << 19, 1);
    rig_run(rig);
    EXPECT_BETWEEN(rig_cycles(rig, FPGA_WRITE, 1), (1 << 11) * 9, (1 << 11) * 9 + 100);
    rig_destroy(rig);
}
