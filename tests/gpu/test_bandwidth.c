// The bandwidth of the links with limits on outstanding requests and with latencies, for the machines of the papers.
#include <stdlib.h>

#include "fixture.h"
#include "tests/shim/test.h"

enum { STREAM_BYTES = 1 << 20 };

// Of what the L2 cache holds, or of what it does not.
static uint64_t read_rate_of(const struct fixture_config *config, uint32_t tags, bool held)
{
    struct fixture fixture;
    fixture_init(&fixture, config);
    uint64_t device, bus = fixture_pinned(&fixture, 0, STREAM_BYTES, &device);
    void *bytes = gpu_memory_at(fixture.gpus[0], device, STREAM_BYTES);
    fixture_pattern(bytes, STREAM_BYTES, 1);
    uint64_t rate = probe_read_rate(&fixture, bus, STREAM_BYTES, tags, 512, bytes);
    if (held) {
        rate = probe_read_rate(&fixture, bus, STREAM_BYTES, tags, 512, bytes);
    }
    fixture_fini(&fixture);
    return rate;
}

static uint64_t read_rate(const struct fixture_config *config, uint32_t tags)
{
    return read_rate_of(config, tags, true);
}

static uint64_t write_rate(const struct fixture_config *config)
{
    struct fixture fixture;
    fixture_init(&fixture, config);
    uint64_t device, bus = fixture_pinned(&fixture, 0, STREAM_BYTES, &device);
    uint8_t *data = malloc(STREAM_BYTES);
    fixture_pattern(data, STREAM_BYTES, 2);
    for (uint32_t done = 0; done < STREAM_BYTES; done += 256) {
        probe_write(&fixture, bus + done, 256, data + done);
    }
    fixture_run(&fixture);
    EXPECT_MEMEQ(gpu_memory_at(fixture.gpus[0], device, STREAM_BYTES), data, STREAM_BYTES);
    free(data);
    uint64_t rate = STREAM_BYTES * US / sim_now_ps(fixture.sim);
    fixture_fini(&fixture);
    return rate;
}

static uint64_t copy_rate(const struct fixture_config *config, enum gpu_work_kind kind)
{
    enum { BYTES = 16 << 20 };
    struct fixture fixture;
    fixture_init(&fixture, config);
    uint64_t device;
    EXPECT_EQ(gpu_memory_alloc(fixture.gpus[0], BYTES, &device), SIM_OK);
    gpu_queue_t *queue;
    EXPECT_EQ(gpu_queue_create(fixture.gpus[0], &queue), SIM_OK);
    const struct gpu_work work = {
        .kind = kind, .bus_address = 2 * MIB, .source = device, .destination = device, .bytes = BYTES};
    EXPECT_EQ(gpu_queue_submit(queue, &work, NULL), SIM_OK);
    fixture_run(&fixture);
    uint64_t rate = BYTES * US / sim_now_ps(fixture.sim);
    fixture_fini(&fixture);
    return rate;
}

TEST(Bandwidth, PeerReadsOnSandyBridgeAreLimitedByThreeLines)
{
    const struct fixture_config config = fixture_k20();
    for (uint32_t tags = 8; tags <= 32; tags *= 2) {
        EXPECT_BETWEEN(read_rate(&config, tags), 870 * 95 / 100, 870 * 105 / 100);
    }
}

TEST(Bandwidth, PeerReadsOnIvyBridgeAreLimitedByTenLines)
{
    const struct fixture_config config = fixture_k20x();
    for (uint32_t tags = 8; tags <= 32; tags *= 2) {
        EXPECT_BETWEEN(read_rate(&config, tags), 2800 * 95 / 100, 2800 * 105 / 100);
    }
}

// GTC 2015: 2.5 GB/s for the largest messages.
TEST(Bandwidth, PeerReadsBeyondTheL2CacheAreSlower)
{
    const struct fixture_config config = fixture_k20x();
    EXPECT_BETWEEN(read_rate_of(&config, 16, false), 2500 * 98 / 100, 2500 * 102 / 100);
}

TEST(Bandwidth, MoreLinesAreLimitedByTheirOwnOverheadOnTheWire)
{
    // 64 of 84 B of Gen2 x8 are 3048 MB/s.
    struct fixture_config config = fixture_k20x();
    config.rc.peer_reads_max = 32;
    EXPECT_BETWEEN(read_rate(&config, 32), 2950, 3048);
}

static uint64_t one_read_ps(const struct fixture_config *config, bool of_gpu)
{
    struct fixture fixture;
    fixture_init(&fixture, config);
    uint64_t bus = of_gpu ? fixture_pinned(&fixture, 0, 64, NULL) : 2 * MIB;
    probe_read(&fixture, 0, bus, 64);
    fixture_run(&fixture); // brings it into the cache
    uint64_t begin_ps = sim_now_ps(fixture.sim);
    probe_read(&fixture, 0, bus, 64);
    fixture_run(&fixture);
    uint64_t ps = fixture.probe.reads[0].done_ps - begin_ps;
    fixture_fini(&fixture);
    return ps;
}

TEST(Bandwidth, AReadOfAGpuIsTwoPortsAndItsOwnLatencyLonger)
{
    const struct fixture_config config = fixture_k20();
    uint64_t memory_ps = one_read_ps(&config, false), gpu_ps = one_read_ps(&config, true);
    // 2 x 25 ns port to port, 120 ns ports, 65 ns in the GPU, 18 ns of wire, minus the 150 ns of memory.
    EXPECT_BETWEEN(gpu_ps - memory_ps, 100 * NS, 106 * NS);
}

TEST(Bandwidth, PeerReadsOnBroadwellAreLimitedByLines)
{
    const struct fixture_config config = fixture_p100();
    EXPECT_BETWEEN(read_rate(&config, 16), 4480 * 90 / 100, 4480 * 110 / 100);
}

TEST(Bandwidth, PeerWritesReachTheRateOfTheWritersLink)
{
    struct fixture_config config = fixture_k20();
    EXPECT_BETWEEN(write_rate(&config), 3500, 3660);
    config = fixture_p100();
    EXPECT_BETWEEN(write_rate(&config), 6800, 7200);
}

TEST(Bandwidth, ReadsAndWritesAcrossQpiAreFarSlower)
{
    struct fixture_config config = fixture_k20x();
    config.far = true;
    EXPECT_BETWEEN(read_rate(&config, 16), 270, 330);
    EXPECT_BETWEEN(write_rate(&config), 270, 330);
}

TEST(Bandwidth, CopiesReachTheRateOfTheGpusLink)
{
    struct fixture_config config = fixture_k20();
    // 256 of 276 B, and 256 of 280 B.
    EXPECT_BETWEEN(copy_rate(&config, GPU_WORK_COPY_IN), 7420 * 98 / 100, 7420);
    EXPECT_BETWEEN(copy_rate(&config, GPU_WORK_COPY_OUT), 7314 * 98 / 100, 7314);
    config = fixture_p100();
    EXPECT_BETWEEN(copy_rate(&config, GPU_WORK_COPY_IN), 14612 * 98 / 100, 14612);
    EXPECT_BETWEEN(copy_rate(&config, GPU_WORK_COPY_OUT), 14403 * 98 / 100, 14403);
}
