// Rates and latencies compared with the published values that set parameters, and consequences of the queues.
#include "perf.h"

enum { MEBI = 1 << 20 };

static struct perf_setup alone(const char *preset, enum hca_opcode opcode, uint32_t bytes, unsigned iterations)
{
    return (struct perf_setup){.preset = preset, .measured = {opcode, bytes, iterations}};
}

static void expect_within_5_percent(uint64_t actual, uint64_t published)
{
    EXPECT_BETWEEN(actual, published * 95 / 100, published * 105 / 100);
}

static void expect_bandwidth(const char *preset, enum hca_opcode opcode, uint32_t bytes, unsigned iterations,
                             uint64_t published_kib)
{
    const struct perf_setup setup = alone(preset, opcode, bytes, iterations);
    expect_within_5_percent(perf_kib_per_second(&setup), published_kib);
}

static void expect_atomic_latency(const char *preset, uint64_t published_ps)
{
    const struct perf_setup setup = alone(preset, HCA_OP_FETCH_ADD, 8, 300);
    expect_within_5_percent(perf_latency_ps(&setup), published_ps);
}

// perftest's MB is 2^20 bytes.
TEST(Rates, OfLargeMessagesAreA01AndA02)
{
    expect_bandwidth("connectx-ddr", HCA_OP_WRITE, MEBI, 50, 1590 * 1024);
    expect_bandwidth("connectx-ddr", HCA_OP_READ, MEBI, 50, 1590 * 1024);
    expect_bandwidth("connectx-qdr", HCA_OP_WRITE, MEBI, 50, 3060 * 1024);
    expect_bandwidth("connectx-qdr", HCA_OP_READ, MEBI, 50, 3060 * 1024);
}

TEST(Rates, OfWritesOfConnectX3AreTheComponentsValues)
{
    expect_bandwidth("connectx3-qdr", HCA_OP_WRITE, 2, 3000, 10664); // 5.46 M messages/s
    expect_bandwidth("connectx3-qdr", HCA_OP_WRITE, 512, 3000, 2607 * 1024);
    expect_bandwidth("connectx3-qdr", HCA_OP_WRITE, 1024, 3000, 3406 * 1024);
    expect_bandwidth("connectx3-qdr", HCA_OP_WRITE, MEBI, 50, 3662 * 1024);
}

// Requests without inline data are fetched, like in libmlx4 without MLX4_POST_SEND_PREFER_BF.
TEST(Rates, WriteLatenciesOfConnectX3AreNearTheComponentsValues)
{
    static const struct {
        uint32_t bytes;
        uint64_t published_ns;
    } FACTS[] = {{2, 980}, {64, 1090}, {128, 1220}, {256, 1840}, {1024, 2420}, {4096, 3740}, {65536, 19970}};
    for (unsigned i = 0; i < sizeof FACTS / sizeof *FACTS; i++) {
        uint64_t actual_ps = perf_write_latency_ps("connectx3-qdr", false, FACTS[i].bytes, 200);
        EXPECT_BETWEEN(actual_ps, FACTS[i].published_ns * 860, FACTS[i].published_ns * 1000);
    }
}

TEST(Rates, ARequestSentWholeSavesAReadOfHostMemory)
{
    uint64_t fetched_ps = perf_write_latency_ps("connectx3-qdr", false, 256, 200);
    EXPECT_BETWEEN(fetched_ps - perf_write_latency_ps("connectx3-qdr", true, 256, 200), 330 * NS, 430 * NS);
}

// One queue pair is limited by its own request processing, not by the send engine that all share.
TEST(Rates, OfSmallMessagesOfTwoQueuePairsAddUp)
{
    struct perf_setup setup = alone("connectx3-qdr", HCA_OP_WRITE, 2, 3000);
    uint64_t by_itself = perf_kib_per_second(&setup);
    setup.beside = (struct perf){HCA_OP_WRITE, 2, 1};
    EXPECT_BETWEEN(perf_kib_per_second(&setup), by_itself * 95 / 100, by_itself);
}

// A write's data need a read of host memory, more than 300 ns; packets of other queue pairs pass meanwhile.
TEST(Rates, ALoneAtomicDoesNotWaitForTheDataOfWritesBesideIt)
{
    struct perf_setup setup = alone("connectx-qdr", HCA_OP_FETCH_ADD, 8, 300);
    uint64_t by_itself_ps = perf_latency_ps(&setup);
    setup.beside = (struct perf){HCA_OP_WRITE, 8, 1};
    EXPECT_BETWEEN(perf_latency_ps(&setup), by_itself_ps, by_itself_ps + 150 * NS);
}

TEST(Rates, ALoneAtomicDoesNotWaitForTheDataOfReadsBesideIt)
{
    struct perf_setup setup = alone("connectx-qdr", HCA_OP_FETCH_ADD, 8, 300);
    uint64_t by_itself_ps = perf_latency_ps(&setup);
    setup.beside = (struct perf){HCA_OP_READ, 8, 1};
    EXPECT_BETWEEN(perf_latency_ps(&setup), by_itself_ps, by_itself_ps + 150 * NS);
}

TEST(Rates, WaitingOfAtomicsIsCountedWhereTheyQueue)
{
    uint64_t atomic_ps = 0, responder_ps = 0, service_ps = 341 * NS;
    struct perf_setup setup = alone("connectx-qdr", HCA_OP_FETCH_ADD, 8, 300);
    setup.beside = (struct perf){HCA_OP_FETCH_ADD, 8, 1};
    setup.wait = "atomic";
    setup.mean_wait_ps_out = &atomic_ps;
    (void)perf_latency_ps(&setup);
    setup.wait = "responder";
    setup.mean_wait_ps_out = &responder_ps;
    (void)perf_latency_ps(&setup);
    EXPECT_BETWEEN(atomic_ps, 10 * service_ps, 16 * service_ps);
    EXPECT_BETWEEN(responder_ps, 0, 20 * NS);
}

TEST(Rates, OfAtomicsAreA12AndA17)
{
    expect_bandwidth("connectx-ddr", HCA_OP_FETCH_ADD, 8, 2000, 18022); // 17.6 MiB/s
    expect_bandwidth("connectx-qdr", HCA_OP_FETCH_ADD, 8, 2000, 22938); // 22.4 MiB/s
}

TEST(Rates, LatenciesOfAtomicsAreA22A27AndS20)
{
    expect_atomic_latency("connectx-ddr", 2080 * NS);
    expect_atomic_latency("connectx-qdr", 1690 * NS);
    expect_atomic_latency("connectx3-qdr", 1500 * NS);
}

TEST(Rates, OfAtomicsAreSharedByTwoFlows)
{
    struct perf_setup setup = alone("connectx-qdr", HCA_OP_FETCH_ADD, 8, 2000);
    uint64_t by_itself = perf_kib_per_second(&setup);
    setup.beside = (struct perf){HCA_OP_COMPARE_SWAP, 8, 1};
    EXPECT_BETWEEN(perf_kib_per_second(&setup), by_itself * 48 / 100, by_itself * 52 / 100);
}

TEST(Rates, AnAtomicWaitsForTheSixteenOfAFlowBesideIt)
{
    struct perf_setup setup = alone("connectx-qdr", HCA_OP_FETCH_ADD, 8, 300);
    uint64_t service_ps = 341 * NS; // 8 B at 22.4 MiB/s
    setup.beside = (struct perf){HCA_OP_FETCH_ADD, 8, 1};
    EXPECT_BETWEEN(perf_latency_ps(&setup), 16 * service_ps, 19 * service_ps);
}

TEST(Rates, OfWritesDoNotSufferFromReadsInTheOtherDirection)
{
    struct perf_setup setup = alone("connectx-qdr", HCA_OP_WRITE, MEBI, 40);
    uint64_t by_itself = perf_kib_per_second(&setup);
    setup.beside = (struct perf){HCA_OP_READ, MEBI, 1};
    EXPECT_BETWEEN(perf_kib_per_second(&setup), by_itself * 90 / 100, by_itself);
    setup.beside = (struct perf){HCA_OP_WRITE, MEBI, 1};
    EXPECT_BETWEEN(perf_kib_per_second(&setup), by_itself * 45 / 100, by_itself * 55 / 100);
}

TEST(Rates, LoopbackTakesAboutAsLongAsTheCable)
{
    struct perf_setup setup = alone("connectx-qdr", HCA_OP_FETCH_ADD, 8, 300);
    uint64_t by_cable_ps = perf_latency_ps(&setup);
    setup.loopback = true;
    EXPECT_BETWEEN(perf_latency_ps(&setup), by_cable_ps * 85 / 100, by_cable_ps);
}

TEST(Rates, AnInlineSendOfEightBytesIsNearTheComponentsLatency)
{
    EXPECT_BETWEEN(perf_send_latency_ps("connectx3-qdr", 500), 830 * NS, 1130 * NS); // 0.98 us, 2 B write
}
