#include <string.h>

#include "host.h"
#include "sim/kernel/random.h"
#include "tests/shim/test.h"

static struct host *host_plain(void)
{
    const struct host_config config = host_config();
    return host_create(&config);
}

TEST(Peer, ForwardsWritesAfterTheLatencyBetweenPorts)
{
    struct host *host = host_plain();
    device_write(&host->devices[0], HOST_WINDOW(2) + 3, 5, "peers");
    (void)sim_run(host->sim);
    EXPECT_EQ(host->devices[2].writes, 1);
    EXPECT_MEMEQ(host->devices[2].memory + 2, "\0peers\0", 7);
    EXPECT_EQ(host->devices[2].log[0].time_ps, 8000 + 50000 + 8000);
    EXPECT_EQ(host_counter(host, "peer_writes"), 1);
    EXPECT_EQ(host->writes, 0);
    host_destroy(host);
}

TEST(Peer, AnswersReadsUnderTheRequestersOwnTag)
{
    struct host *host = host_plain();
    memcpy(host->devices[2].memory + 1, "two here", 8);
    memcpy(host->devices[1].memory + 1, "one here", 8);
    device_read(&host->devices[0], 9, HOST_WINDOW(2) + 1, 8);
    device_read(&host->devices[0], 10, HOST_WINDOW(1) + 1, 8);
    device_read(&host->devices[1], 9, HOST_WINDOW(2) + 1, 8);
    (void)sim_run(host->sim);
    EXPECT_MEMEQ(host->devices[0].reads[9].data, "two here", 8);
    EXPECT_MEMEQ(host->devices[0].reads[10].data, "one here", 8);
    EXPECT_MEMEQ(host->devices[1].reads[9].data, "two here", 8);
    EXPECT_EQ(host_counter(host, "peer_reads"), 3);
    host_destroy(host);
}

TEST(Peer, KeepsNoMoreReadsOutstandingThanConfigured)
{
    struct host *host = host_plain();
    for (uint8_t tag = 0; tag < 10; tag++) {
        device_read(&host->devices[0], tag, HOST_WINDOW(1) + tag * 64, 64);
    }
    host->devices[1].answer_bytes = 0;
    (void)sim_run(host->sim);
    EXPECT_EQ(sim_counter_value(host->sim, "link1.0", "tlps_sent", NULL), 4);
    host_destroy(host);
}

TEST(Peer, ReadsGoOnAsEarlierOnesComplete)
{
    struct host *host = host_plain();
    host->devices[1].answer_bytes = 48;
    for (unsigned i = 0; i < HOST_BYTES; i++) {
        host->devices[1].memory[i] = (uint8_t)(i ^ i >> 8);
    }
    for (uint8_t tag = 0; tag < 40; tag++) {
        device_read(&host->devices[tag % 2 * 2], tag, HOST_WINDOW(1) + tag * 512u, 300);
    }
    EXPECT_EQ(sim_run(host->sim), SIM_RUN_DONE);
    for (uint8_t tag = 0; tag < 40; tag++) {
        const struct device_read *read = &host->devices[tag % 2 * 2].reads[tag];
        EXPECT_EQ(read->received_bytes, 300);
        EXPECT_MEMEQ(read->data, host->devices[1].memory + tag * 512, 300);
    }
    host_destroy(host);
}

TEST(Peer, ReadDoesNotPassWritesBeforeIt)
{
    struct host *host = host_plain();
    for (unsigned i = 0; i < 20; i++) {
        uint8_t data[256];
        memset(data, (int)i + 1, sizeof data);
        device_write(&host->devices[0], HOST_WINDOW(1), 256, data);
    }
    device_read(&host->devices[0], 0, HOST_WINDOW(1), 4);
    (void)sim_run(host->sim);
    EXPECT_EQ(host->devices[0].reads[0].data[0], 20);
    host_destroy(host);
}

TEST(Peer, CompletionFromMemoryDoesNotPassWritesToItsPort)
{
    // Device 0 writes into device 1, then sets a flag in memory; device 1 reads the flag and must find the data.
    struct host_config config = host_config();
    config.rc.peer_ps = 2000000;
    config.rc.memory_read_ps = 1000;
    config.rc.memory_write_ps = 1000;
    struct host *host = host_create(&config);
    device_write(&host->devices[0], HOST_WINDOW(1), 4, "data");
    device_write(&host->devices[0], HOST_MEMORY_BASE, 4, "flag");
    sim_event_t stop;
    sim_event_init(&stop, (sim_event_fn)sim_stop, host->sim);
    sim_event_schedule(host->sim, &stop, 100000);
    EXPECT_EQ(sim_run(host->sim), SIM_RUN_STOPPED);
    device_read(&host->devices[1], 0, HOST_MEMORY_BASE, 4);
    (void)sim_run(host->sim);
    EXPECT_MEMEQ(host->devices[1].reads[0].data, "flag", 4);
    EXPECT_GT(host->devices[1].reads[0].first_ps, host->devices[1].log[0].time_ps);
    host_destroy(host);
}

TEST(Peer, BackpressureReachesTheWriterAndLosesNothing)
{
    struct host_config config = host_config();
    config.link.ends[1].headers[PCIE_POSTED] = 2;
    config.link.ends[0].headers[PCIE_POSTED] = 2;
    config.link.ends[0].tx_queue_tlps = 1;
    struct host *host = host_create(&config);
    host->devices[1].holds_writes = true;
    for (unsigned i = 0; i < 50; i++) {
        device_write(&host->devices[0], HOST_WINDOW(1) + i * 4, 4, &i);
    }
    (void)sim_run(host->sim);
    // Two at the device, one in the port's transmitter, two in the port's receiver, and the others at the sender.
    EXPECT_EQ(host->devices[1].writes, 2);
    EXPECT_EQ(sim_counter_value(host->sim, "link0.0", "tlps_received", NULL), 5);
    host->devices[1].holds_writes = false;
    device_release_writes(&host->devices[1]);
    EXPECT_EQ(sim_run(host->sim), SIM_RUN_DONE);
    EXPECT_EQ(host->devices[1].writes, 50);
    for (unsigned i = 0; i < 50; i++) {
        EXPECT_EQ(host->devices[1].log[i].address, HOST_WINDOW(1) + i * 4);
    }
    host_destroy(host);
}

TEST(Peer, WritesPassReadsThatWait)
{
    struct host *host = host_plain();
    host->devices[1].answer_bytes = 0;
    for (uint8_t tag = 0; tag < 30; tag++) {
        device_read(&host->devices[0], tag, HOST_WINDOW(1), 64);
    }
    device_write(&host->devices[0], HOST_WINDOW(1), 4, "over");
    (void)sim_run(host->sim);
    EXPECT_EQ(host->devices[1].writes, 1);
    host_destroy(host);
}

TEST(Peer, ReadsThroughALinkThatGoesDownEndAsUnsupportedRequests)
{
    struct host *host = host_plain();
    host->devices[1].answer_bytes = 0;
    for (uint8_t tag = 0; tag < 10; tag++) {
        device_read(&host->devices[0], tag, HOST_WINDOW(1), 64);
    }
    (void)sim_run(host->sim);
    pcie_link_set_down(host->devices[1].link);
    device_read(&host->devices[0], 10, HOST_WINDOW(1), 64);
    EXPECT_EQ(sim_run(host->sim), SIM_RUN_DONE);
    for (uint8_t tag = 0; tag < 11; tag++) {
        EXPECT_EQ(host->devices[0].reads[tag].completions, 1);
        EXPECT_EQ(host->devices[0].reads[tag].status, PCIE_CPL_UR);
    }
    host_destroy(host);
}

TEST(Peer, ReadsThroughALinkThatIsDownLeaveTheReceiveBuffer)
{
    struct host_config config = host_config();
    config.link.ends[0].headers[PCIE_NONPOSTED] = 2;
    struct host *host = host_create(&config);
    pcie_link_set_down(host->devices[1].link);
    for (uint8_t tag = 0; tag < 10; tag++) {
        device_read(&host->devices[0], tag, HOST_WINDOW(1), 64);
    }
    EXPECT_EQ(sim_run(host->sim), SIM_RUN_DONE);
    for (uint8_t tag = 0; tag < 10; tag++) {
        TEST_TRACE("read %u", tag);
        EXPECT_EQ(host->devices[0].reads[tag].completions, 1);
        EXPECT_EQ(host->devices[0].reads[tag].status, PCIE_CPL_UR);
    }
    host_destroy(host);
}

TEST(Peer, CompletionsToADeadRequesterAreDropped)
{
    struct host *host = host_plain();
    device_read(&host->devices[0], 0, HOST_WINDOW(1), 64);
    sim_event_t stop;
    sim_event_init(&stop, (sim_event_fn)sim_stop, host->sim);
    sim_event_schedule(host->sim, &stop, 60000);
    EXPECT_EQ(sim_run(host->sim), SIM_RUN_STOPPED);
    pcie_link_set_down(host->devices[0].link);
    EXPECT_EQ(sim_run(host->sim), SIM_RUN_DONE);
    EXPECT_EQ(sim_counter_value(host->sim, "link0.0", "tlps_dropped", NULL), 1);
    host_destroy(host);
}
