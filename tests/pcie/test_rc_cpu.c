#include <string.h>

#include "host.h"
#include "tests/shim/test.h"

struct result {
    struct host *host;
    unsigned calls;
    enum pcie_cpl_status status;
    uint64_t time_ps;
    uint32_t bytes;
    uint8_t data[64];
    unsigned writes_visible;
};

static void read_done(void *ctx, enum pcie_cpl_status status, const uint8_t *data, uint32_t bytes)
{
    struct result *result = ctx;
    result->calls++;
    result->status = status;
    result->time_ps = sim_now_ps(result->host->sim);
    result->bytes = bytes;
    result->writes_visible = result->host->writes;
    if (data != NULL) {
        memcpy(result->data, data, bytes);
    }
}

static struct host *host_plain(void)
{
    const struct host_config config = host_config();
    return host_create(&config);
}

TEST(Processor, WritesIntoAWindow)
{
    struct host *host = host_plain();
    EXPECT_TRUE(pcie_rc_cpu_write(host->rc, HOST_WINDOW(1) + 5, "hello", 5, NULL, NULL));
    (void)sim_run(host->sim);
    EXPECT_EQ(host->devices[0].writes, 0);
    EXPECT_EQ(host->devices[1].writes, 1);
    EXPECT_MEMEQ(host->devices[1].memory + 4, "\0hello\0", 7);
    // 24 + 8 B
    EXPECT_EQ(host->devices[1].log[0].time_ps, 8000);
    host_destroy(host);
}

TEST(Processor, GetsExactlyTheBytesItReads)
{
    struct host *host = host_plain();
    for (unsigned i = 0; i < HOST_BYTES; i++) {
        host->devices[0].memory[i] = (uint8_t)(i * 3);
    }
    for (uint32_t offset = 0; offset < 64; offset += 3) {
        for (uint32_t bytes = 1; bytes <= 64 - offset; bytes += 5) {
            struct result result = {.host = host};
            pcie_rc_cpu_read(host->rc, HOST_WINDOW(0) + 128 + offset, bytes, read_done, &result);
            EXPECT_EQ(result.calls, 0);
            (void)sim_run(host->sim);
            EXPECT_EQ(result.calls, 1);
            EXPECT_EQ(result.status, PCIE_CPL_SC);
            EXPECT_EQ(result.bytes, bytes);
            EXPECT_MEMEQ(result.data, host->devices[0].memory + 128 + offset, bytes);
        }
    }
    host_destroy(host);
}

TEST(Processor, PutsTogetherSeveralCompletions)
{
    struct host *host = host_plain();
    struct result result = {.host = host};
    host->devices[0].answer_bytes = 8;
    memcpy(host->devices[0].memory + 2, "the quick brown fox jumps over the lazy dog", 43);
    pcie_rc_cpu_read(host->rc, HOST_WINDOW(0) + 2, 43, read_done, &result);
    (void)sim_run(host->sim);
    EXPECT_EQ(result.calls, 1);
    EXPECT_MEMEQ(result.data, "the quick brown fox jumps over the lazy dog", 43);
    host_destroy(host);
}

TEST(Processor, KeepsMoreReadsInFlightThanThereAreTags)
{
    struct host *host = host_plain();
    struct result results[500];
    for (unsigned i = 0; i < 500; i++) {
        host->devices[0].memory[i * 8] = (uint8_t)i;
        results[i] = (struct result){.host = host};
        pcie_rc_cpu_read(host->rc, HOST_WINDOW(0) + i * 8, 1, read_done, &results[i]);
    }
    (void)sim_run(host->sim);
    for (unsigned i = 0; i < 500; i++) {
        EXPECT_EQ(results[i].calls, 1);
        EXPECT_EQ(results[i].data[0], (uint8_t)i);
    }
    host_destroy(host);
}

TEST(Processor, GetsUnsupportedRequestWhereNobodyClaims)
{
    struct host *host = host_plain();
    struct result result = {.host = host};
    pcie_rc_cpu_read(host->rc, HOST_WINDOW(HOST_DEVICES), 8, read_done, &result);
    EXPECT_EQ(result.calls, 0);
    EXPECT_TRUE(pcie_rc_cpu_write(host->rc, HOST_WINDOW(HOST_DEVICES), "x", 1, NULL, NULL));
    (void)sim_run(host->sim);
    EXPECT_EQ(result.calls, 1);
    EXPECT_EQ(result.status, PCIE_CPL_UR);
    EXPECT_EQ(host_counter(host, "unsupported_reads"), 1);
    EXPECT_EQ(host_counter(host, "unsupported_writes"), 1);
    host_destroy(host);
}

TEST(Processor, ReadPushesTheWritesItsDeviceSentBefore)
{
    struct host *host = host_plain();
    struct result result = {.host = host};
    device_write(&host->devices[0], HOST_MEMORY_BASE, 8, "01234567");
    pcie_rc_cpu_read(host->rc, HOST_WINDOW(0), 4, read_done, &result);
    (void)sim_run(host->sim);
    EXPECT_EQ(result.calls, 1);
    EXPECT_EQ(result.writes_visible, 1);
    EXPECT_EQ(result.time_ps, host->write_log[0].time_ps);
    host_destroy(host);
}

TEST(Processor, ReadComesBackAtOnceWhenNoWriteIsOnItsWay)
{
    struct host *host = host_plain();
    struct result result = {.host = host};
    pcie_rc_cpu_read(host->rc, HOST_WINDOW(0), 4, read_done, &result);
    (void)sim_run(host->sim);
    EXPECT_EQ(result.time_ps, 6000 + 6000);
    host_destroy(host);
}

TEST(Processor, ReadArrivesBehindItsOwnWrites)
{
    struct host *host = host_plain();
    struct result result = {.host = host};
    for (unsigned i = 0; i < 8; i++) {
        EXPECT_TRUE(pcie_rc_cpu_write(host->rc, HOST_WINDOW(0) + i, &(uint8_t){(uint8_t)(i + 1)}, 1, NULL, NULL));
    }
    pcie_rc_cpu_read(host->rc, HOST_WINDOW(0), 8, read_done, &result);
    (void)sim_run(host->sim);
    EXPECT_MEMEQ(result.data, "\1\2\3\4\5\6\7\10", 8);
    host_destroy(host);
}

struct writer {
    struct host *host;
    unsigned next, retries;
};

static void writer_run(void *ctx)
{
    struct writer *writer = ctx;
    while (writer->next < 100) {
        uint64_t address = HOST_WINDOW(0) + writer->next * 4;
        if (!pcie_rc_cpu_write(writer->host->rc, address, &writer->next, 4, writer_run, writer)) {
            writer->retries++;
            return;
        }
        writer->next++;
    }
}

TEST(Processor, IsCalledToTryARefusedWriteAgain)
{
    struct host_config config = host_config();
    config.link.ends[0].tx_queue_tlps = 2;
    config.link.ends[1].headers[PCIE_POSTED] = 2;
    struct host *host = host_create(&config);
    struct writer writers[2] = {{.host = host}, {.host = host}};
    writer_run(&writers[0]);
    writer_run(&writers[1]);
    EXPECT_EQ(sim_run(host->sim), SIM_RUN_DONE);
    EXPECT_EQ(writers[0].next, 100);
    EXPECT_EQ(writers[1].next, 100);
    EXPECT_GT(writers[0].retries, 10);
    EXPECT_EQ(host->devices[0].writes, 200);
    host_destroy(host);
}

TEST(Processor, GetsUnsupportedRequestWhenTheLinkGoesDown)
{
    struct host *host = host_plain();
    struct result results[3] = {{.host = host}, {.host = host}, {.host = host}};
    host->devices[0].answer_bytes = 0;
    pcie_rc_cpu_read(host->rc, HOST_WINDOW(0), 4, read_done, &results[0]);
    (void)sim_run(host->sim);
    EXPECT_EQ(results[0].calls, 0);
    pcie_rc_cpu_read(host->rc, HOST_WINDOW(0), 4, read_done, &results[1]);
    pcie_link_set_down(host->devices[0].link);
    pcie_rc_cpu_read(host->rc, HOST_WINDOW(0), 4, read_done, &results[2]);
    (void)sim_run(host->sim);
    for (unsigned i = 0; i < 3; i++) {
        EXPECT_EQ(results[i].calls, 1);
        EXPECT_EQ(results[i].status, PCIE_CPL_UR);
    }
    host_destroy(host);
}

TEST(Processor, LosesWritesToADeadLinkWithoutHanging)
{
    struct host_config config = host_config();
    config.link.ends[0].tx_queue_tlps = 2;
    struct host *host = host_create(&config);
    struct writer writer = {.host = host};
    host->devices[0].holds_writes = true;
    writer_run(&writer);
    pcie_link_set_down(host->devices[0].link);
    EXPECT_EQ(sim_run(host->sim), SIM_RUN_DONE);
    EXPECT_EQ(writer.next, 100);
    EXPECT_EQ(sim_counter_value(host->sim, "link0.0", "tlps_dropped", NULL), 100);
    host_destroy(host);
}

TEST(Processor, GetsUnsupportedRequestForReadsThatWaitForATagWhenTheLinkGoesDown)
{
    enum { READS = 300 }; // there are 224 tags
    struct host *host = host_plain();
    static struct result results[READS];
    host->devices[0].answer_bytes = 0;
    for (unsigned i = 0; i < READS; i++) {
        results[i] = (struct result){.host = host};
        pcie_rc_cpu_read(host->rc, HOST_WINDOW(0), 4, read_done, &results[i]);
    }
    (void)sim_run(host->sim);
    pcie_link_set_down(host->devices[0].link);
    (void)sim_run(host->sim);
    for (unsigned i = 0; i < READS; i++) {
        TEST_TRACE("read %u", i);
        EXPECT_EQ(results[i].calls, 1);
        EXPECT_EQ(results[i].status, PCIE_CPL_UR);
    }
    host_destroy(host);
}

static void retry_count(void *ctx)
{
    unsigned *retries = ctx;
    ++*retries;
}

// The device takes one write and keeps it, the link takes the next one, and a third one waits at the port.
TEST(Processor, IsRefusedAWriteWhileOneWaitsAlthoughAnotherPortsWriteCameMeanwhile)
{
    struct host_config config = host_config();
    config.link.ends[0].tx_queue_tlps = 1;
    config.link.ends[1].headers[PCIE_POSTED] = 1;
    struct host *host = host_create(&config);
    unsigned retries = 0;
    host->devices[0].holds_writes = true;
    for (unsigned i = 0; i < 3; i++) {
        EXPECT_TRUE(pcie_rc_cpu_write(host->rc, HOST_WINDOW(0) + i * 4, "cpu", 4, retry_count, &retries));
        (void)sim_run(host->sim);
    }
    device_write(&host->devices[1], HOST_WINDOW(0) + 64, 4, "peer");
    (void)sim_run(host->sim);
    EXPECT_FALSE(pcie_rc_cpu_write(host->rc, HOST_WINDOW(0) + 12, "cpu", 4, retry_count, &retries));
    EXPECT_EQ(host_counter(host, "cpu_refusals"), 1);
    EXPECT_EQ(retries, 0);
    host->devices[0].holds_writes = false;
    device_release_writes(&host->devices[0]);
    EXPECT_EQ(sim_run(host->sim), SIM_RUN_DONE);
    EXPECT_EQ(retries, 1);
    EXPECT_EQ(host->devices[0].writes, 3 + 1);
    host_destroy(host);
}
