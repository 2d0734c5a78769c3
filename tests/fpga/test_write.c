// The write data mover.
#include <string.h>

#include "fixture.h"
#include "tests/shim/test.h"

TEST(FpgaWrite, SplitsAtMaxPayloadSize)
{
    struct fixture *fixture = fixture_create_default();
    fixture_fill(fixture->fpga_memory, 1024, 1);
    fixture_descriptor(fixture, FPGA_WRITE, 0, FIXTURE_PEER_BASE, 600, 1);
    fixture_run(fixture);
    EXPECT_EQ(fixture->peer.write_count, 3);
    for (unsigned i = 0; i < 3; i++) {
        EXPECT_EQ(fixture->peer.write_log[i].address, FIXTURE_PEER_BASE + 256 * i);
        EXPECT_EQ(fixture->peer.write_log[i].bytes, i < 2 ? 256 : 88);
    }
    EXPECT_MEMEQ(fixture->peer.memory, fixture->fpga_memory, 600);
    fixture_destroy(fixture);
}

TEST(FpgaWrite, NeverCrosses4KiB)
{
    struct fixture *fixture = fixture_create_default();
    fixture_descriptor(fixture, FPGA_WRITE, 0, FIXTURE_PEER_BASE + 8192 - 12, 300, 1);
    fixture_run(fixture);
    EXPECT_EQ(fixture->peer.write_count, 3);
    EXPECT_EQ(fixture->peer.write_log[0].bytes, 12);
    EXPECT_EQ(fixture->peer.write_log[1].address, FIXTURE_PEER_BASE + 8192);
    EXPECT_EQ(fixture->peer.write_log[1].bytes, 256);
    EXPECT_EQ(fixture->peer.write_log[2].bytes, 32);
    fixture_destroy(fixture);
}

TEST(FpgaWrite, IsCompleteWhenHandedToTheHardIpAndNotWhenVisible)
{
    struct fixture_config config = fixture_config();
    config.fpga_link.ends[1].tx_ps = 20 * SIM_PS_PER_US; // a hard IP that keeps packets for long
    struct fixture *fixture = fixture_create(&config);
    fixture_descriptor(fixture, FPGA_WRITE, 0, FIXTURE_PEER_BASE, 4, 1);
    fixture_run_for(fixture, 10 * SIM_PS_PER_US);
    EXPECT_EQ(fixture_counter(fixture, "writes_done"), 1);
    EXPECT_EQ(fixture->peer.write_count, 0);
    fixture_run(fixture);
    EXPECT_EQ(fixture->peer.write_count, 1);
    fixture_destroy(fixture);
}

TEST(FpgaWrite, StatusReadFollowsTheDataOnTheBus)
{
    // The completion of the status read pushes the posted writes before it: a program that sees DONE finds the data in
    // memory.
    struct fixture *fixture = fixture_create_default();
    fixture_fill(fixture->fpga_memory, 4096, 1);
    fixture_descriptor(fixture, FPGA_WRITE, 0, FIXTURE_HOST_BASE, 4096, 1);
    while (fixture_status(fixture, FPGA_WRITE, 1) != FIXTURE_DONE(1)) {
        EXPECT_LT(sim_now_ps(fixture->sim), 100 * SIM_PS_PER_US);
    }
    EXPECT_MEMEQ(fixture->host_memory, fixture->fpga_memory, 4096);
    fixture_run(fixture);
    fixture_destroy(fixture);
}

TEST(FpgaWrite, WaitsForTheHardIpsRoom)
{
    struct fixture_config config = fixture_config();
    config.fpga_link.ends[1].tx_queue_tlps = 1;
    config.fpga_link.ends[0].headers[PCIE_POSTED] = 1;
    struct fixture *fixture = fixture_create(&config);
    fixture_fill(fixture->fpga_memory, 65536, 1);
    fixture_descriptor(fixture, FPGA_WRITE, 0, FIXTURE_PEER_BASE, 65536, 1);
    fixture_run(fixture);
    EXPECT_GT(fixture_counter(fixture, "transmit_stalls"), 100);
    EXPECT_EQ(fixture_status(fixture, FPGA_WRITE, 1), FIXTURE_DONE(1));
    EXPECT_MEMEQ(fixture->peer.memory, fixture->fpga_memory, 65536);
    fixture_destroy(fixture);
}

TEST(FpgaWrite, ReadDoesNotPassAWriteThatTheHardIpRefused)
{
    // Four writes to a partner that takes none fill every buffer on the path; the fifth, to host memory, is held.
    struct fixture_config config = fixture_config();
    for (unsigned side = 0; side < 2; side++) {
        config.fpga_link.ends[side].tx_queue_tlps = config.peer_link.ends[side].tx_queue_tlps = 1;
        config.fpga_link.ends[side].headers[PCIE_POSTED] = config.peer_link.ends[side].headers[PCIE_POSTED] = 1;
    }
    config.rc.memory_read_ps = 10000; // faster than the visibility of a write that did not come before
    struct fixture *fixture = fixture_create(&config);
    fixture->peer.holds_writes = true;
    fixture_fill(fixture->fpga_memory, 64, 1);
    for (unsigned i = 0; i < 5; i++) {
        fixture_descriptor(fixture, FPGA_WRITE, 4 * i, (i < 4 ? FIXTURE_PEER_BASE : FIXTURE_HOST_BASE), 4, (uint8_t)i);
    }
    fixture_descriptor(fixture, FPGA_READ, FIXTURE_HOST_BASE, 4096, 4, 9);
    fixture_run_for(fixture, 10 * SIM_PS_PER_US);
    EXPECT_EQ(fixture_counter(fixture, "writes_done"), 4);
    EXPECT_EQ(fixture_counter(fixture, "reads_done"), 0);
    peer_release(&fixture->peer);
    fixture_run(fixture);
    EXPECT_MEMEQ(fixture->fpga_memory + 4096, fixture->fpga_memory + 16, 4);
    fixture_destroy(fixture);
}

TEST(FpgaWrite, LongOneLetsAReadAndTheAnswerToALoadTakeTheirTurns)
{
    // The write needs the internal path for 2048 packets of 9 beats of 4 ns, 73 us.
    struct fixture *fixture = fixture_create_default();
    fixture_descriptor(fixture, FPGA_WRITE, 0, FIXTURE_PEER_BASE, 1 << 19, 1);
    fixture_descriptor(fixture, FPGA_READ, FIXTURE_HOST_BASE, 1 << 20, 4, 2);
    fixture_run_for(fixture, 20 * SIM_PS_PER_US);
    EXPECT_EQ(fixture_counter(fixture, "reads_done"), 1);
    EXPECT_EQ(fixture_status(fixture, FPGA_WRITE, 1), FPGA_STATUS_BUSY | 1);
    EXPECT_LT(sim_now_ps(fixture->sim), 40 * SIM_PS_PER_US);
    fixture_run(fixture);
    EXPECT_EQ(fixture_status(fixture, FPGA_WRITE, 1), FIXTURE_DONE(1));
    fixture_destroy(fixture);
}

TEST(FpgaWrite, RateIsThatOfTheInternalPath)
{
    // A header in half a beat and 256 B of data: 9 beats of 4 ns, 7.111 GB/s; the link would carry 7.183 GB/s.
    struct fixture *fixture = fixture_create_default();
    fixture_descriptor(fixture, FPGA_WRITE, 0, FIXTURE_PEER_BASE, 1 << 19, 1);
    fixture_run(fixture);
    EXPECT_BETWEEN(fixture_cycles(fixture, FPGA_WRITE, 1), (1 << 11) * 9, (1 << 11) * 9 + 100);
    fixture_destroy(fixture);
}
