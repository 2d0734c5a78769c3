// The GPU as a target of other devices.
#include <string.h>

#include "fixture.h"
#include "tests/shim/test.h"

// 24 B of a request at 4 and at 8 B/ns with the flights, port to port; and the return path with 20 B and the data.
#define THERE_PS(bytes) ((24 + (bytes)) * 250 + (24 + (bytes)) * 125 + 4000 + 50000)
#define BACK_PS(bytes)  ((20 + (bytes)) * 125 + (20 + (bytes)) * 250 + 4000 + 50000)

TEST(Target, AReadTakesItsLatency)
{
    const struct fixture_config config = fixture_config();
    struct fixture fixture;
    fixture_init(&fixture, &config);
    uint64_t device, bus = fixture_pinned(&fixture, 0, 4096, &device);
    fixture_pattern(gpu_memory_at(fixture.gpus[0], device, 4096), 4096, 1);
    probe_read(&fixture, 0, bus + 64, 64);
    fixture_run(&fixture);
    // An ACK of 8 B may be on the wire before it.
    uint64_t expected_ps = THERE_PS(0) + 200 * NS + BACK_PS(64);
    EXPECT_BETWEEN(fixture.probe.reads[0].done_ps, expected_ps, expected_ps + 1 * NS);
    EXPECT_MEMEQ(fixture.probe.reads[0].data, gpu_memory_at(fixture.gpus[0], device + 64, 64), 64);
    fixture_fini(&fixture);
}

TEST(Target, SplitsCompletionsAtItsBoundary)
{
    for (uint32_t boundary = 64; boundary <= 128; boundary *= 2) {
        struct fixture_config config = fixture_config();
        config.gpu.completion_bytes = boundary;
        struct fixture fixture;
        fixture_init(&fixture, &config);
        uint64_t device, bus = fixture_pinned(&fixture, 0, 4096, &device);
        fixture_pattern(gpu_memory_at(fixture.gpus[0], device, 4096), 4096, 1);
        probe_read(&fixture, 0, bus + 70, 500);
        fixture_run(&fixture);
        const struct probe_read *read = &fixture.probe.reads[0];
        uint32_t first = boundary == 64 ? 250 : 186; // to 320, or to 256
        ASSERT_EQ(read->completions, boundary == 64 ? 2 : 3);
        EXPECT_EQ(read->completion_bytes[0], first);
        EXPECT_EQ(read->completion_bytes[1], boundary == 64 ? 250 : 256);
        EXPECT_MEMEQ(read->data, gpu_memory_at(fixture.gpus[0], device + 70, 500), 500);
        fixture_fini(&fixture);
    }
}

TEST(Target, WritesEnabledBytesOnly)
{
    const struct fixture_config config = fixture_config();
    struct fixture fixture;
    fixture_init(&fixture, &config);
    uint64_t device, bus = fixture_pinned(&fixture, 0, 64, &device);
    probe_write(&fixture, bus + 3, 7, "seventy");
    fixture_run(&fixture);
    EXPECT_MEMEQ(gpu_memory_at(fixture.gpus[0], device, 12), "\0\0\0seventy\0\0", 12);
    EXPECT_EQ(fixture_counter(&fixture, 0, "bar_write_bytes"), 7);
    fixture_fini(&fixture);
}

TEST(Target, AReadSeesEveryWriteBeforeIt)
{
    struct fixture_config config = fixture_config();
    config.gpu.write_ps = 3 * US; // far longer than a read
    struct fixture fixture;
    fixture_init(&fixture, &config);
    uint64_t bus = fixture_pinned(&fixture, 0, 4096, NULL);
    for (uint32_t i = 1; i <= 20; i++) {
        probe_write(&fixture, bus, 4, &i);
    }
    probe_read(&fixture, 0, bus, 4);
    fixture_run(&fixture);
    EXPECT_EQ(*(uint32_t *)fixture.probe.reads[0].data, 20);
    EXPECT_GT(fixture.probe.reads[0].done_ps, 3 * US);
    fixture_fini(&fixture);
}

TEST(Target, WorksOnABoundedNumberOfReads)
{
    struct fixture_config config = fixture_config();
    config.gpu.reads_max = 2;
    config.gpu.read_ps = 1 * US;
    struct fixture fixture;
    fixture_init(&fixture, &config);
    uint64_t bus = fixture_pinned(&fixture, 0, 4096, NULL);
    for (uint8_t tag = 0; tag < 6; tag++) {
        probe_read(&fixture, tag, bus + tag * 64u, 64);
    }
    fixture_run(&fixture);
    // Three pairs of reads, one latency after the other.
    for (uint8_t tag = 0; tag < 6; tag++) {
        uint64_t begin_ps = THERE_PS(0) + (tag / 2 + 1) * US;
        EXPECT_BETWEEN(fixture.probe.reads[tag].done_ps, begin_ps, begin_ps + BACK_PS(64) + 100 * NS);
    }
    fixture_fini(&fixture);
}

TEST(Target, AnswersInOrder)
{
    const struct fixture_config config = fixture_config();
    struct fixture fixture;
    fixture_init(&fixture, &config);
    uint64_t bus = fixture_pinned(&fixture, 0, 65536, NULL);
    for (uint8_t tag = 0; tag < 40; tag++) {
        probe_read(&fixture, tag, bus + tag * 1024u, tag % 3 == 0 ? 512 : 4);
    }
    fixture_run(&fixture);
    ASSERT_EQ(fixture.probe.answered, 40);
    for (uint8_t tag = 0; tag < 40; tag++) {
        EXPECT_EQ(fixture.probe.log[tag], tag);
    }
    fixture_fini(&fixture);
}

TEST(Target, TakesReadsAndWritesOfTheProcessor)
{
    const struct fixture_config config = fixture_config();
    struct fixture fixture;
    fixture_init(&fixture, &config);
    uint64_t device, bus = fixture_pinned(&fixture, 1, 64, &device);
    EXPECT_TRUE(pcie_rc_cpu_write(fixture.rc, bus + 8, "from a core", 11, NULL, NULL));
    fixture_run(&fixture);
    EXPECT_MEMEQ(gpu_memory_at(fixture.gpus[1], device + 8, 11), "from a core", 11);
    fixture_fini(&fixture);
}

TEST(Target, ALinkThatGoesDownEndsReadsAtTheRootComplex)
{
    const struct fixture_config config = fixture_config();
    struct fixture fixture;
    fixture_init(&fixture, &config);
    uint64_t bus = fixture_pinned(&fixture, 0, 4096, NULL);
    for (uint8_t tag = 0; tag < 8; tag++) {
        probe_read(&fixture, tag, bus, 512);
    }
    fixture_run_for(&fixture, 150 * NS); // in progress in the GPU
    pcie_link_set_down(fixture.links[0]);
    fixture_run(&fixture);
    for (uint8_t tag = 0; tag < 8; tag++) {
        EXPECT_EQ(fixture.probe.reads[tag].status, PCIE_CPL_UR);
        EXPECT_EQ(fixture.probe.reads[tag].received_bytes, 0);
    }
    fixture_fini(&fixture);
}
