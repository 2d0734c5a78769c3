#include <string.h>

#include "host.h"
#include "tests/shim/test.h"

static const uint8_t ONES[256] = {1, 1, 1, 1, 1, 1, 1, 1};

static struct host *host_plain(void)
{
    const struct host_config config = host_config();
    return host_create(&config);
}

TEST(RootComplex, MakesAWriteVisibleAfterItsLatency)
{
    struct host *host = host_plain();
    device_write(&host->devices[0], HOST_MEMORY_BASE + 8, 8, ONES);
    (void)sim_run(host->sim);
    EXPECT_EQ(host->writes, 1);
    // 32 B at 250 ps, then 100 ns.
    EXPECT_EQ(host->write_log[0].time_ps, 8000 + 100000);
    EXPECT_EQ(host->write_log[0].address, HOST_MEMORY_BASE + 8);
    EXPECT_EQ(host->write_log[0].bytes, 8);
    EXPECT_EQ(host->memory[7], 0);
    EXPECT_MEMEQ(host->memory + 8, ONES, 8);
    EXPECT_EQ(host->memory[16], 0);
    host_destroy(host);
}

TEST(RootComplex, MakesWritesVisibleInOrderOfArrivalOverAllPorts)
{
    struct host *host = host_plain();
    for (unsigned i = 0; i < 30; i++) {
        device_write(&host->devices[i % 3], HOST_MEMORY_BASE, 4 + i % 7 * 4, ONES);
    }
    (void)sim_run(host->sim);
    EXPECT_EQ(host->writes, 30);
    for (unsigned i = 1; i < 30; i++) {
        EXPECT_GE(host->write_log[i].time_ps, host->write_log[i - 1].time_ps);
    }
    host_destroy(host);
}

TEST(RootComplex, WritesOnlyEnabledBytesOneRunACall)
{
    struct host *host = host_plain();
    pcie_tlp_t *tlp = pcie_tlp_write(host->pool, 0x100, HOST_MEMORY_BASE, 12, "abcdefghijkl");
    tlp->first_be = 0xa; // bytes 1 and 3
    tlp->last_be = 0x5;  // bytes 8 and 10
    device_offer(&host->devices[0], tlp);
    (void)sim_run(host->sim);
    EXPECT_EQ(host->writes, 3);
    EXPECT_EQ(host->write_log[1].bytes, 6);
    EXPECT_MEMEQ(host->memory, "\0b\0defghi\0k\0", 12);
    EXPECT_EQ(host_counter(host, "memory_write_bytes"), 8);
    host_destroy(host);
}

TEST(RootComplex, WritesNothingWithoutByteEnables)
{
    struct host *host = host_plain();
    pcie_tlp_t *tlp = pcie_tlp_write(host->pool, 0x100, HOST_MEMORY_BASE, 4, "abcd");
    tlp->first_be = 0;
    device_offer(&host->devices[0], tlp);
    (void)sim_run(host->sim);
    EXPECT_EQ(host->writes, 0);
    EXPECT_EQ(host_counter(host, "unsupported_writes"), 0);
    host_destroy(host);
}

TEST(RootComplex, AnswersAReadAfterItsLatency)
{
    struct host *host = host_plain();
    memcpy(host->memory + 64, "0123456789", 10);
    device_read(&host->devices[0], 5, HOST_MEMORY_BASE + 64, 8);
    (void)sim_run(host->sim);
    const struct device_read *read = &host->devices[0].reads[5];
    EXPECT_EQ(read->received_bytes, 8);
    EXPECT_MEMEQ(read->data, "01234567", 8);
    // 24 B for the request, 200 ns, 28 B for the completion.
    EXPECT_EQ(read->first_ps, 6000 + 200000 + 7000);
    host_destroy(host);
}

TEST(RootComplex, SplitsCompletionsAtTheReadCompletionBoundary)
{
    static const struct {
        uint32_t offset, bytes, rcb, count, first, last;
    } ROWS[] = {
        {0, 256, 64, 1, 256, 256}, {0, 512, 64, 2, 256, 256},   {0x30, 512, 64, 3, 208, 48},
        {0x3f, 2, 64, 1, 2, 2},    {0x50, 512, 64, 3, 240, 16}, {0x50, 512, 128, 3, 176, 80},
        {1, 512, 64, 3, 255, 1},   {4, 4092, 64, 16, 252, 256},
    };
    for (unsigned i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++) {
        struct host_config config = host_config();
        config.rc.rcb_bytes = ROWS[i].rcb;
        struct host *host = host_create(&config);
        for (unsigned j = 0; j < HOST_BYTES; j++) {
            host->memory[j] = (uint8_t)(j * 5 + j / 256);
        }
        device_read(&host->devices[0], 0, HOST_MEMORY_BASE + ROWS[i].offset, ROWS[i].bytes);
        (void)sim_run(host->sim);
        const struct device_read *read = &host->devices[0].reads[0];
        EXPECT_EQ(read->completions, ROWS[i].count);
        EXPECT_EQ(read->completion_bytes[0], ROWS[i].first);
        EXPECT_EQ(read->completion_bytes[read->completions - 1], ROWS[i].last);
        EXPECT_EQ(read->received_bytes, ROWS[i].bytes);
        EXPECT_MEMEQ(read->data, host->memory + ROWS[i].offset, ROWS[i].bytes);
        host_destroy(host);
    }
}

TEST(RootComplex, ReadSeesEveryWriteThatArrivedBeforeIt)
{
    struct host_config config = host_config();
    config.rc.memory_read_ps = 10000;
    config.rc.memory_write_ps = 500000;
    struct host *host = host_create(&config);
    device_write(&host->devices[0], HOST_MEMORY_BASE, 8, ONES);
    device_read(&host->devices[0], 0, HOST_MEMORY_BASE, 8);
    (void)sim_run(host->sim);
    EXPECT_MEMEQ(host->devices[0].reads[0].data, ONES, 8);
    EXPECT_EQ(host->devices[0].reads[0].first_ps, 8000 + 500000 + 7000);
    host_destroy(host);
}

TEST(RootComplex, WorksOnAsManyReadsAsConfigured)
{
    struct host_config config = host_config();
    config.rc.memory_reads_max = 2;
    struct host *host = host_create(&config);
    for (uint8_t tag = 0; tag < 4; tag++) {
        device_read(&host->devices[0], tag, HOST_MEMORY_BASE, 4);
    }
    (void)sim_run(host->sim);
    // Two at 6 and 12 ns; the third starts when the first ends.
    EXPECT_EQ(host->devices[0].reads[0].first_ps, 6000 + 200000 + 6000);
    EXPECT_EQ(host->devices[0].reads[1].first_ps, 12000 + 200000 + 6000);
    EXPECT_EQ(host->devices[0].reads[2].first_ps, 6000 + 2 * 200000 + 6000);
    EXPECT_EQ(host->devices[0].reads[3].first_ps, 12000 + 2 * 200000 + 6000);
    host_destroy(host);
}

TEST(RootComplex, AnswersUnclaimedReadsWithUnsupportedRequest)
{
    static const uint64_t ADDRESSES[] = {0x10, HOST_MEMORY_BASE + HOST_BYTES, HOST_WINDOW(0) - 8,
                                         HOST_WINDOW(HOST_DEVICES), HOST_WINDOW(0)};
    struct host *host = host_plain();
    for (uint8_t i = 0; i < 5; i++) {
        device_read(&host->devices[0], i, ADDRESSES[i], 8);
    }
    (void)sim_run(host->sim);
    for (uint8_t i = 0; i < 5; i++) {
        EXPECT_EQ(host->devices[0].reads[i].completions, 1);
        EXPECT_EQ(host->devices[0].reads[i].status, PCIE_CPL_UR);
    }
    EXPECT_EQ(host_counter(host, "unsupported_reads"), 5);
    EXPECT_EQ(host->reads, 0);
    host_destroy(host);
}

TEST(RootComplex, DropsAndCountsUnclaimedWrites)
{
    struct host *host = host_plain();
    device_write(&host->devices[0], 0x10, 8, ONES);
    device_write(&host->devices[0], HOST_MEMORY_BASE + HOST_BYTES, 8, ONES);
    device_write(&host->devices[0], HOST_MEMORY_BASE, 8, ONES);
    (void)sim_run(host->sim);
    EXPECT_EQ(host_counter(host, "unsupported_writes"), 2);
    EXPECT_EQ(host->writes, 1);
    host_destroy(host);
}

TEST(RootComplex, CountsTheWritesAndReadsOfMemory)
{
    struct host *host = host_plain();
    for (unsigned i = 0; i < 5; i++) {
        device_write(&host->devices[i % 3], HOST_MEMORY_BASE, 8, ONES);
    }
    device_read(&host->devices[0], 0, HOST_MEMORY_BASE, 64);
    device_read(&host->devices[1], 0, HOST_MEMORY_BASE, 512); // one TLP, two completions
    device_write(&host->devices[0], HOST_WINDOW(1), 8, ONES); // not to memory
    device_read(&host->devices[0], 1, HOST_WINDOW(1), 8);
    (void)sim_run(host->sim);
    EXPECT_EQ(host_counter(host, "memory_writes"), 5);
    EXPECT_EQ(host_counter(host, "memory_write_bytes"), 5 * 8);
    EXPECT_EQ(host_counter(host, "memory_reads"), 2);
    EXPECT_EQ(host_counter(host, "memory_read_bytes"), 64 + 512);
    host_destroy(host);
}

TEST(RootComplex, LeavesAnAccessThatBeginsInAWindowAndEndsBehindItUnclaimed)
{
    struct host *host = host_plain();
    const uint64_t window = HOST_WINDOW(HOST_DEVICES);
    ASSERT_EQ(pcie_rc_add_window(host->rc, 2, window, 12), SIM_OK);
    device_write(&host->devices[0], window + 8, 8, ONES);
    device_read(&host->devices[0], 0, window + 8, 8);
    (void)sim_run(host->sim);
    EXPECT_EQ(host->devices[2].writes, 0);
    EXPECT_EQ(host_counter(host, "unsupported_writes"), 1);
    EXPECT_EQ(host->devices[0].reads[0].status, PCIE_CPL_UR);
    EXPECT_EQ(host_counter(host, "unsupported_reads"), 1);
    host_destroy(host);
}

TEST(RootComplex, RefusesWindowsThatOverlap)
{
    struct host *host = host_plain();
    EXPECT_EQ(pcie_rc_add_window(host->rc, 0, HOST_WINDOW(1), 1), SIM_ERR_EXISTS);
    EXPECT_EQ(pcie_rc_add_window(host->rc, 0, HOST_WINDOW(0) - 1, 2), SIM_ERR_EXISTS);
    EXPECT_EQ(pcie_rc_add_window(host->rc, 0, HOST_MEMORY_BASE - 1, 2), SIM_ERR_EXISTS);
    EXPECT_EQ(pcie_rc_add_window(host->rc, 7, 0x2000000000, 4096), SIM_ERR_INVALID);
    EXPECT_EQ(pcie_rc_add_window(host->rc, 0, 0x2000000000, 4096), SIM_OK);
    host_destroy(host);
}

TEST(RootComplex, TakesWritesAtLineRate)
{
    struct host *host = host_plain();
    for (unsigned i = 0; i < 1000; i++) {
        device_write(&host->devices[0], HOST_MEMORY_BASE + i % 64 * 256, 256, ONES);
    }
    (void)sim_run(host->sim);
    EXPECT_EQ(host->writes, 1000);
    // The 200th to be visible: 200 x 70 ns, four SKP ordered sets of 8 ns, 100 ns.
    EXPECT_EQ(host->write_log[199].time_ps, 200 * 70000 + 4 * 8000 + 100000);
    host_destroy(host);
}

TEST(RootComplex, HoldsCompletionsBackWhileTheLinkHasNoRoom)
{
    struct host_config config = host_config();
    config.link.ends[0].tx_queue_tlps = 1;
    config.link.ends[1].headers[PCIE_COMPLETION] = 1;
    config.link.ends[1].data[PCIE_COMPLETION] = 16;
    config.rc.memory_reads_max = 1;
    struct host *host = host_create(&config);
    for (uint8_t tag = 0; tag < 8; tag++) {
        device_read(&host->devices[0], tag, HOST_MEMORY_BASE, 2048);
    }
    EXPECT_EQ(sim_run(host->sim), SIM_RUN_DONE);
    for (uint8_t tag = 0; tag < 8; tag++) {
        EXPECT_EQ(host->devices[0].reads[tag].received_bytes, 2048);
        EXPECT_EQ(host->devices[0].reads[tag].completions, 8);
    }
    host_destroy(host);
}

TEST(RootComplex, DropsCompletionsOfNoRead)
{
    struct host *host = host_plain();
    for (uint16_t requester = 0; requester < 0x20; requester += 8) {
        pcie_tlp_t *read = pcie_tlp_read(host->pool, requester, 40, HOST_WINDOW(0), 4);
        device_offer(&host->devices[0], pcie_tlp_completion(read, 0x100, 0, 4, ONES));
        pcie_tlp_unref(read);
    }
    (void)sim_run(host->sim);
    EXPECT_EQ(host_counter(host, "unexpected_completions"), 4);
    host_destroy(host);
}

// --- memory that is released -----------------------------------------------------------------------------------------

TEST(RootComplex, EndsAReadWithUnsupportedRequestWhereMemoryIsGone)
{
    struct host *host = host_plain();
    host->lost_after = 1;
    device_read(&host->devices[0], 5, HOST_MEMORY_BASE, 1024);
    (void)sim_run(host->sim);
    const struct device_read *read = &host->devices[0].reads[5];
    EXPECT_EQ(read->completions, 2);
    EXPECT_EQ(read->received_bytes, 256);
    EXPECT_EQ(read->status, PCIE_CPL_UR);
    EXPECT_EQ(host_counter(host, "unsupported_reads"), 1);
    EXPECT_EQ(host_counter(host, "memory_read_bytes"), 256);
    host->lost_after = 0;
    device_read(&host->devices[0], 6, HOST_MEMORY_BASE, 1024);
    (void)sim_run(host->sim);
    EXPECT_EQ(host->devices[0].reads[6].received_bytes, 1024);
    host_destroy(host);
}

TEST(RootComplex, DropsAWriteWhoseMemoryIsGone)
{
    struct host *host = host_plain();
    host->lost_after = 1;
    device_write(&host->devices[0], HOST_MEMORY_BASE + 8, 8, ONES);
    device_write(&host->devices[0], HOST_MEMORY_BASE + 16, 8, ONES);
    (void)sim_run(host->sim);
    EXPECT_EQ(host->writes, 1);
    EXPECT_EQ(host_counter(host, "unsupported_writes"), 1);
    EXPECT_EQ(host_counter(host, "memory_write_bytes"), 8);
    host_destroy(host);
}

// --- configuration -----------------------------------------------------------------------------------------------------

// A root complex with another value of one key.
#define EXPECT_WITH(key, value, expected)                                                                              \
    do {                                                                                                               \
        struct pcie_rc_config config = host_config().rc;                                                               \
        pcie_rc_t *rc = NULL;                                                                                          \
        config.key = (value);                                                                                          \
        EXPECT_EQ(pcie_rc_create(host->sim, host->pool, "other", &config, &ops, NULL, &rc), expected);                 \
        pcie_rc_destroy(rc);                                                                                           \
    } while (0)

// Each limit by itself, from both sides.
TEST(PcieRcConfig, RefusesWhatARootComplexCannotBe)
{
    static const struct pcie_memory_ops ops = {0};
    const struct host_config plain = host_config();
    struct host *host = host_create(&plain);
    EXPECT_WITH(memory_reads_max, 0, SIM_ERR_INVALID);
    EXPECT_WITH(memory_reads_max, 1, SIM_OK);
    EXPECT_WITH(rcb_bytes, 32, SIM_ERR_INVALID);
    EXPECT_WITH(rcb_bytes, 64, SIM_OK);
    EXPECT_WITH(rcb_bytes, 128, SIM_OK);
    EXPECT_WITH(rcb_bytes, 256, SIM_ERR_INVALID);
    EXPECT_WITH(mps_bytes, 64, SIM_ERR_INVALID);
    EXPECT_WITH(mps_bytes, 128, SIM_OK);
    EXPECT_WITH(mps_bytes, 192, SIM_ERR_INVALID);
    EXPECT_WITH(mps_bytes, 4096, SIM_OK);
    EXPECT_WITH(mps_bytes, 8192, SIM_ERR_INVALID);
    EXPECT_WITH(peer_reads_max, 0, SIM_ERR_INVALID);
    EXPECT_WITH(peer_reads_max, 1, SIM_OK);
    EXPECT_WITH(peer_read_bytes, 0, SIM_OK); // as they come
    EXPECT_WITH(peer_read_bytes, 32, SIM_ERR_INVALID);
    EXPECT_WITH(peer_read_bytes, 64, SIM_OK);
    EXPECT_WITH(peer_read_bytes, 96, SIM_ERR_INVALID);
    host_destroy(host);
}
