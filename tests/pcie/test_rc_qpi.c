// Two sockets: device 1 is behind the far one, devices 0 and 2 are behind the near one.
#include <string.h>

#include "host.h"
#include "tests/shim/test.h"

enum { QPI_PS = 60000, QPI_PEER_PS = 300000, QPI_READ_PS = 70000, LINES = 2, FAR_PORT = 1 };

static struct host_config qpi_config(void)
{
    struct host_config config = host_config();
    config.rc.qpi_ps = QPI_PS;
    config.rc.qpi_peer_write_ps = QPI_PEER_PS;
    config.rc.qpi_peer_read_ps = QPI_READ_PS;
    config.rc.qpi_peer_lines_max = LINES;
    config.rc.peer_reads_max = 64;
    return config;
}

static struct host *qpi_host(void)
{
    const struct host_config config = qpi_config();
    struct host *host = host_create(&config);
    EXPECT_EQ(pcie_rc_set_port_socket(host->rc, FAR_PORT, 1), SIM_OK);
    for (unsigned i = 0; i < HOST_BYTES; i++) {
        host->devices[1].memory[i] = (uint8_t)(i ^ i >> 8);
    }
    return host;
}

static void write_many(struct device *device, uint64_t address, unsigned count, uint32_t bytes)
{
    for (unsigned i = 0; i < count; i++) {
        uint8_t data[256];
        memset(data, (int)i + 1, sizeof data);
        device_write(device, address + i * bytes, bytes, data);
    }
}

TEST(Qpi, NeedsAnEntryForASecondSocket)
{
    const struct host_config config = host_config();
    struct host *host = host_create(&config);
    EXPECT_EQ(pcie_rc_set_port_socket(host->rc, 1, 1), SIM_ERR_INVALID);
    host_destroy(host);
    host = qpi_host();
    EXPECT_EQ(pcie_rc_set_port_socket(host->rc, 1, 2), SIM_ERR_INVALID);
    EXPECT_EQ(pcie_rc_set_port_socket(host->rc, HOST_DEVICES, 1), SIM_ERR_INVALID);
    host_destroy(host);
}

TEST(Qpi, WriteArrivesAfterTheWayAndTheFarSide)
{
    struct host *host = qpi_host();
    device_write(&host->devices[0], HOST_WINDOW(1) + 3, 5, "peers");
    (void)sim_run(host->sim);
    ASSERT_EQ(host->devices[1].writes, 1);
    EXPECT_MEMEQ(host->devices[1].memory + 3, "peers", 5);
    EXPECT_EQ(host->devices[1].log[0].time_ps, 8000 + QPI_PS + QPI_PEER_PS + 8000);
    EXPECT_EQ(host_counter(host, "peer_writes"), 1);
    EXPECT_EQ(host_counter(host, "qpi_write_lines"), 1);
    host_destroy(host);
}

TEST(Qpi, WriteBandwidthIsLinesOverTheirRoundTrip)
{
    struct host *host = qpi_host();
    write_many(&host->devices[0], HOST_WINDOW(1), 50, 256);
    EXPECT_EQ(sim_run(host->sim), SIM_RUN_DONE);
    EXPECT_EQ(host->devices[1].writes, 200);
    uint64_t ps = host->devices[1].log[199].time_ps - host->devices[1].log[1].time_ps;
    uint64_t round_trip_ps = 2 * QPI_PS + QPI_PEER_PS;
    EXPECT_EQ(ps, 198 / LINES * round_trip_ps);
    host_destroy(host);
}

TEST(Qpi, ReadBandwidthIsLinesOverTheirRoundTrip)
{
    struct host *host = qpi_host();
    for (uint8_t tag = 0; tag < 16; tag++) {
        device_read(&host->devices[0], tag, HOST_WINDOW(1) + tag * 512u, 512);
    }
    EXPECT_EQ(sim_run(host->sim), SIM_RUN_DONE);
    EXPECT_EQ(host_counter(host, "qpi_read_lines"), 128);
    EXPECT_MEMEQ(host->devices[0].reads[15].data, host->devices[1].memory + 15 * 512, 512);
    uint64_t ps = host->devices[0].reads[15].last_ps - host->devices[0].reads[0].first_ps;
    // Port to port and across QPI, 24 B and 84 B at 4 B/ns.
    uint64_t line_ps = 50000 + QPI_PS + QPI_READ_PS + 6000 + 21000;
    EXPECT_BETWEEN(ps, 126 / LINES * line_ps, 126 / LINES * (line_ps + 21000));
    host_destroy(host);
}

TEST(Qpi, CutsWritesWithTheirByteEnables)
{
    struct host *host = qpi_host();
    uint8_t data[200], expected[256];
    memcpy(expected, host->devices[1].memory, sizeof expected);
    memset(data, 0xee, sizeof data);
    memset(expected + 61, 0xee, 6);
    memset(expected + 70, 0xee, 123);
    device_write(&host->devices[0], HOST_WINDOW(1) + 61, 6, data);
    device_write(&host->devices[0], HOST_WINDOW(1) + 70, 123, data);
    EXPECT_EQ(sim_run(host->sim), SIM_RUN_DONE);
    EXPECT_MEMEQ(host->devices[1].memory, expected, sizeof expected);
    EXPECT_EQ(host->devices[1].writes, 2 + 3);
    host_destroy(host);
}

TEST(Qpi, KeepsWritesInOrderAndLosesNone)
{
    struct host *host = qpi_host();
    write_many(&host->devices[0], HOST_WINDOW(1), 100, 64);
    write_many(&host->devices[2], HOST_WINDOW(1) + 32768, 100, 64);
    EXPECT_EQ(sim_run(host->sim), SIM_RUN_DONE);
    ASSERT_EQ(host->devices[1].writes, 200);
    uint64_t next[2] = {HOST_WINDOW(1), HOST_WINDOW(1) + 32768};
    for (unsigned i = 0; i < 200; i++) {
        const struct host_access *access = &host->devices[1].log[i];
        uint64_t *expected = &next[access->address >= HOST_WINDOW(1) + 32768];
        EXPECT_EQ(access->address, *expected);
        *expected += 64;
    }
    host_destroy(host);
}

TEST(Qpi, SharesTheEntriesBetweenPorts)
{
    struct host *host = qpi_host();
    write_many(&host->devices[0], HOST_WINDOW(1), 60, 64);
    write_many(&host->devices[2], HOST_WINDOW(1) + 32768, 60, 64);
    EXPECT_EQ(sim_run(host->sim), SIM_RUN_DONE);
    unsigned of_device_2 = 0;
    for (unsigned i = 0; i < 60; i++) {
        of_device_2 += host->devices[1].log[i].address >= HOST_WINDOW(1) + 32768;
    }
    EXPECT_BETWEEN(of_device_2, 20, 40);
    host_destroy(host);
}

TEST(Qpi, SharesTheEntriesBetweenTheReadsOfPorts)
{
    enum { READS = 16 };
    struct host *host = qpi_host();
    for (uint8_t tag = 0; tag < READS; tag++) {
        device_read(&host->devices[0], tag, HOST_WINDOW(1) + tag * 512u, 512);
        device_read(&host->devices[2], tag, HOST_WINDOW(1) + tag * 512u, 512);
    }
    EXPECT_EQ(sim_run(host->sim), SIM_RUN_DONE);
    // Neither is ahead of the other by a quarter of all.
    for (uint8_t tag = 0; tag + READS / 4 < READS; tag++) {
        TEST_TRACE("tag %u", tag);
        EXPECT_LT(host->devices[0].reads[tag].last_ps, host->devices[2].reads[tag + READS / 4].last_ps);
        EXPECT_LT(host->devices[2].reads[tag].last_ps, host->devices[0].reads[tag + READS / 4].last_ps);
    }
    host_destroy(host);
}

TEST(Qpi, ReadDoesNotPassWritesBeforeIt)
{
    struct host *host = qpi_host();
    for (uint8_t i = 1; i <= 20; i++) {
        device_write(&host->devices[0], HOST_WINDOW(1), 1, &i);
    }
    device_read(&host->devices[0], 0, HOST_WINDOW(1), 4);
    EXPECT_EQ(sim_run(host->sim), SIM_RUN_DONE);
    EXPECT_EQ(host->devices[0].reads[0].data[0], 20);
    host_destroy(host);
}

TEST(Qpi, AFlagInMemoryIsSetAfterTheDataHaveTheirPlaceAtTheFarPort)
{
    struct host *host = qpi_host();
    write_many(&host->devices[0], HOST_WINDOW(1), 20, 256);
    device_write(&host->devices[0], HOST_MEMORY_BASE, 4, "flag");
    EXPECT_EQ(sim_run(host->sim), SIM_RUN_DONE);
    ASSERT_EQ(host->writes, 1);
    EXPECT_EQ(host->devices[1].writes, 80);
    // 84 B each on the wire in their turn; the flag takes 100 ns.
    EXPECT_GT(host->write_log[0].time_ps, host->devices[1].log[79].time_ps);
    host_destroy(host);
}

TEST(Qpi, AFlagInMemoryStaysBehindAWriteThatIsOnItsWayAcross)
{
    struct host *host = qpi_host();
    write_many(&host->devices[0], HOST_WINDOW(1), 1, 64);
    device_write(&host->devices[0], HOST_MEMORY_BASE, 4, "flag"); // arrives while the line crosses
    EXPECT_EQ(sim_run(host->sim), SIM_RUN_DONE);
    ASSERT_EQ(host->writes, 1);
    // 24 + 64 B at 4 B/ns; when the line is in order at the far port, the flag takes 100 ns.
    EXPECT_EQ(host->write_log[0].time_ps, 22000 + QPI_PS + QPI_PEER_PS + 100000);
    host_destroy(host);
}

TEST(Qpi, ACompletionStaysBehindTheDevicesWrites)
{
    struct host *host = qpi_host();
    write_many(&host->devices[0], HOST_WINDOW(1), 20, 256);
    device_read(&host->devices[2], 0, HOST_WINDOW(0), 4); // its completion comes after the writes
    EXPECT_EQ(sim_run(host->sim), SIM_RUN_DONE);
    EXPECT_GT(host->devices[2].reads[0].first_ps, host->devices[1].log[79].time_ps);
    host_destroy(host);
}

TEST(Qpi, NothingWaitsForReadsInBothDirections)
{
    // Each side's completions are behind its writes, which need entries that reads must not hold.
    struct host *host = qpi_host();
    for (uint8_t tag = 0; tag < 32; tag++) {
        write_many(&host->devices[0], HOST_WINDOW(1), 2, 256);
        write_many(&host->devices[1], HOST_WINDOW(0), 2, 256);
        device_read(&host->devices[0], tag, HOST_WINDOW(1) + 1024, 512);
        device_read(&host->devices[1], tag, HOST_WINDOW(0) + 1024, 512);
    }
    EXPECT_EQ(sim_run(host->sim), SIM_RUN_DONE);
    for (uint8_t tag = 0; tag < 32; tag++) {
        EXPECT_EQ(host->devices[0].reads[tag].received_bytes, 512);
        EXPECT_EQ(host->devices[1].reads[tag].received_bytes, 512);
    }
    host_destroy(host);
}

TEST(Qpi, BackpressureOfTheFarDeviceReachesTheWriter)
{
    struct host_config config = qpi_config();
    config.link.ends[1].headers[PCIE_POSTED] = 2;
    config.link.ends[0].headers[PCIE_POSTED] = 2;
    config.link.ends[0].tx_queue_tlps = 1;
    struct host *host = host_create(&config);
    EXPECT_EQ(pcie_rc_set_port_socket(host->rc, FAR_PORT, 1), SIM_OK);
    host->devices[1].holds_writes = true;
    write_many(&host->devices[0], HOST_WINDOW(1), 50, 64);
    (void)sim_run(host->sim);
    EXPECT_EQ(host->devices[1].writes, 2);
    // Two at the device, one in the far port's transmitter, two in the entries; they still hold the near receiver.
    EXPECT_EQ(sim_counter_value(host->sim, "link0.0", "tlps_received", NULL), 5);
    host->devices[1].holds_writes = false;
    device_release_writes(&host->devices[1]);
    EXPECT_EQ(sim_run(host->sim), SIM_RUN_DONE);
    EXPECT_EQ(host->devices[1].writes, 50);
    host_destroy(host);
}

TEST(Qpi, AFarLinkThatGoesDownHoldsUpNobody)
{
    struct host *host = qpi_host();
    host->devices[1].answer_bytes = 0;
    write_many(&host->devices[0], HOST_WINDOW(1), 40, 256);
    device_read(&host->devices[0], 0, HOST_WINDOW(1), 512);
    sim_event_t stop;
    sim_event_init(&stop, (sim_event_fn)sim_stop, host->sim);
    sim_event_schedule(host->sim, &stop, 3000000);
    EXPECT_EQ(sim_run(host->sim), SIM_RUN_STOPPED);
    pcie_link_set_down(host->devices[1].link);
    device_write(&host->devices[0], HOST_MEMORY_BASE, 4, "alive");
    EXPECT_EQ(sim_run(host->sim), SIM_RUN_DONE);
    EXPECT_EQ(host->devices[0].reads[0].status, PCIE_CPL_UR);
    EXPECT_EQ(host->devices[0].reads[0].completions, 1);
    EXPECT_EQ(host->writes, 1);
    host_destroy(host);
}

TEST(Qpi, AddsBothWaysToAReadOfFarMemory)
{
    struct host *host = qpi_host();
    pcie_rc_set_far_memory(host->rc, HOST_MEMORY_BASE + 4096);
    device_read(&host->devices[0], 0, HOST_MEMORY_BASE, 64);
    (void)sim_run(host->sim);
    uint64_t begin_ps = sim_now_ps(host->sim);
    device_read(&host->devices[0], 1, HOST_MEMORY_BASE + 4096, 64);
    (void)sim_run(host->sim);
    EXPECT_EQ(host->devices[0].reads[1].first_ps - begin_ps, host->devices[0].reads[0].first_ps + 2 * QPI_PS);
    host_destroy(host);
}

TEST(Qpi, AReadOfNearMemoryDoesNotWaitForOneOfFarMemory)
{
    struct host *host = qpi_host();
    pcie_rc_set_far_memory(host->rc, HOST_MEMORY_BASE + 4096);
    device_read(&host->devices[0], 0, HOST_MEMORY_BASE + 4096, 64);
    device_read(&host->devices[0], 1, HOST_MEMORY_BASE, 64);
    (void)sim_run(host->sim);
    // Two requests of 24 B, 200 ns of memory, 84 B of completion, at 4 B/ns.
    EXPECT_EQ(host->devices[0].reads[1].first_ps, 2 * 6000 + 200000 + 21000);
    EXPECT_EQ(host->devices[0].reads[0].first_ps, 6000 + 200000 + 2 * QPI_PS + 21000);
    host_destroy(host);
}

TEST(Qpi, AddsOneWayToAWriteOfFarMemoryInOrder)
{
    struct host *host = qpi_host();
    pcie_rc_set_far_memory(host->rc, HOST_MEMORY_BASE + 4096);
    device_write(&host->devices[0], HOST_MEMORY_BASE + 4096, 8, "far data");
    device_write(&host->devices[0], HOST_MEMORY_BASE, 4, "near");
    (void)sim_run(host->sim);
    ASSERT_EQ(host->writes, 2);
    EXPECT_EQ(host->write_log[0].address, HOST_MEMORY_BASE + 4096);
    EXPECT_EQ(host->write_log[0].time_ps, 8000 + 100000 + QPI_PS);
    EXPECT_GE(host->write_log[1].time_ps, host->write_log[0].time_ps);
    host_destroy(host);
}

TEST(Qpi, AReadSeesAFarWriteThatANearOneFollowed)
{
    struct host_config config = qpi_config();
    config.rc.memory_read_ps = 1000;
    struct host *host = host_create(&config);
    EXPECT_EQ(pcie_rc_set_port_socket(host->rc, FAR_PORT, 1), SIM_OK);
    pcie_rc_set_far_memory(host->rc, HOST_MEMORY_BASE + 4096);
    device_write(&host->devices[0], HOST_MEMORY_BASE + 4096, 8, "far data");
    device_write(&host->devices[0], HOST_MEMORY_BASE, 4, "near");
    sim_event_t stop;
    sim_event_init(&stop, (sim_event_fn)sim_stop, host->sim);
    sim_event_schedule(host->sim, &stop, 30000);
    EXPECT_EQ(sim_run(host->sim), SIM_RUN_STOPPED);
    device_read(&host->devices[1], 0, HOST_MEMORY_BASE + 4096, 8);
    EXPECT_EQ(sim_run(host->sim), SIM_RUN_DONE);
    EXPECT_MEMEQ(host->devices[1].reads[0].data, "far data", 8);
    host_destroy(host);
}

static void read_done(void *ctx, enum pcie_cpl_status status, const uint8_t *data, uint32_t bytes)
{
    struct host *host = ctx;
    EXPECT_EQ(status, PCIE_CPL_SC);
    EXPECT_EQ(bytes, 8);
    memcpy(host->memory, data, bytes);
    host->reads = (unsigned)(sim_now_ps(host->sim) / 1000);
}

TEST(Qpi, AddsBothWaysToTheProcessorsReadOfAFarDevice)
{
    struct host *host = qpi_host();
    pcie_rc_cpu_read(host->rc, HOST_WINDOW(1) + 8, 8, read_done, host);
    (void)sim_run(host->sim);
    EXPECT_MEMEQ(host->memory, host->devices[1].memory + 8, 8);
    EXPECT_EQ(host->reads, (2 * QPI_PS + 6000 + 7000) / 1000);
    host_destroy(host);
}
