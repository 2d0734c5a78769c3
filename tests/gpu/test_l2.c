// The L2 cache: what it holds, and what a read of something else costs.
#include "fixture.h"
#include "tests/shim/test.h"

enum { MISS_PS = 700000 };

static uint64_t fixture_with_cache(struct fixture *fixture, uint32_t l2_bytes, uint64_t *device_out)
{
    struct fixture_config config = fixture_config();
    config.gpu.l2_bytes = l2_bytes;
    config.gpu.l2_miss_ps = MISS_PS;
    fixture_init(fixture, &config);
    return fixture_pinned(fixture, 0, 64 * GPU_PAGE_BYTES, device_out);
}

static uint64_t read_ps(struct fixture *fixture, uint64_t bus, uint32_t bytes)
{
    uint64_t begin_ps = sim_now_ps(fixture->sim);
    probe_read(fixture, 0, bus, bytes);
    fixture_run(fixture);
    return fixture->probe.reads[0].done_ps - begin_ps;
}

static void read_units(struct fixture *fixture, uint64_t bus, unsigned from, unsigned count)
{
    for (unsigned unit = from; unit < from + count; unit++) {
        (void)read_ps(fixture, bus + unit * 64, 64);
    }
}

TEST(L2, AReadOfWhatItDoesNotHoldTakesLongerOnce)
{
    struct fixture fixture;
    uint64_t bus = fixture_with_cache(&fixture, 2 * KIB, NULL);
    uint64_t miss_ps = read_ps(&fixture, bus, 64), hit_ps = read_ps(&fixture, bus, 64);
    EXPECT_BETWEEN(miss_ps - hit_ps, MISS_PS - 10 * NS, MISS_PS + 10 * NS);
    (void)read_ps(&fixture, bus + 63, 1); // all of the unit is there
    EXPECT_EQ(fixture_counter(&fixture, 0, "l2_misses"), 1);
    // A read of several units waits once, although one of them is there.
    EXPECT_BETWEEN(read_ps(&fixture, bus, 128), hit_ps + MISS_PS, hit_ps + MISS_PS + 50 * NS);
    EXPECT_EQ(fixture_counter(&fixture, 0, "l2_misses"), 2);
    (void)read_ps(&fixture, bus + 60, 8); // across two that are there
    EXPECT_EQ(fixture_counter(&fixture, 0, "l2_misses"), 2);
    fixture_fini(&fixture);
}

TEST(L2, HoldsAsManyUnitsAsItHasBytes)
{
    struct fixture fixture;
    uint64_t bus = fixture_with_cache(&fixture, KIB, NULL);
    for (unsigned round = 0; round < 3; round++) {
        read_units(&fixture, bus, 0, 16);
    }
    EXPECT_EQ(fixture_counter(&fixture, 0, "l2_misses"), 16);
    // One unit more, in turn: the next one is always the one that has just left.
    read_units(&fixture, bus, 16, 1);
    for (unsigned round = 0; round < 2; round++) {
        read_units(&fixture, bus, 0, 17);
    }
    EXPECT_EQ(fixture_counter(&fixture, 0, "l2_misses"), 17 + 2 * 17);
    fixture_fini(&fixture);
}

static uint64_t misses_of_rows(uint64_t pitch)
{
    struct fixture fixture;
    uint64_t bus = fixture_with_cache(&fixture, 64 * KIB, NULL);
    for (unsigned row = 0; row < 2 * 512; row++) {
        (void)read_ps(&fixture, bus + row % 512 * pitch, 64);
    }
    uint64_t misses = fixture_counter(&fixture, 0, "l2_misses");
    fixture_fini(&fixture);
    return misses;
}

TEST(L2, HoldsRowsHoweverFarApartTheyAre)
{
    EXPECT_EQ(misses_of_rows(64), 512);
    EXPECT_BETWEEN(misses_of_rows(128), 512, 540);
    EXPECT_BETWEEN(misses_of_rows(4096), 512, 540);
    EXPECT_BETWEEN(misses_of_rows(8192), 512, 540);
}

TEST(L2, KeepsWhatWasUsedLast)
{
    struct fixture fixture;
    uint64_t bus = fixture_with_cache(&fixture, KIB, NULL);
    read_units(&fixture, bus, 0, 16);
    read_units(&fixture, bus, 0, 1);
    read_units(&fixture, bus, 16, 1); // the second unit leaves
    EXPECT_EQ(fixture_counter(&fixture, 0, "l2_misses"), 17);
    read_units(&fixture, bus, 0, 1);
    read_units(&fixture, bus, 2, 15);
    EXPECT_EQ(fixture_counter(&fixture, 0, "l2_misses"), 17);
    read_units(&fixture, bus, 1, 1);
    EXPECT_EQ(fixture_counter(&fixture, 0, "l2_misses"), 18);
    fixture_fini(&fixture);
}

TEST(L2, HoldsWhatWasWritten)
{
    struct fixture fixture;
    uint64_t bus = fixture_with_cache(&fixture, 2 * KIB, NULL);
    uint8_t data[128] = {1};
    probe_write(&fixture, bus, sizeof data, data);
    fixture_run(&fixture);
    read_units(&fixture, bus, 0, 2);
    EXPECT_EQ(fixture_counter(&fixture, 0, "l2_misses"), 0);
    read_units(&fixture, bus, 2, 1);
    EXPECT_EQ(fixture_counter(&fixture, 0, "l2_misses"), 1);
    fixture_fini(&fixture);
}

TEST(L2, KnowsDeviceMemoryAndNotTheWindow)
{
    struct fixture fixture;
    uint64_t device, bus = fixture_with_cache(&fixture, 2 * KIB, &device), again;
    read_units(&fixture, bus, 0, 1);
    ASSERT_EQ(gpu_pin(fixture.gpus[0], device, GPU_PAGE_BYTES, &again), SIM_OK);
    read_units(&fixture, FIXTURE_BAR(0) + again, 0, 1);
    EXPECT_EQ(fixture_counter(&fixture, 0, "l2_misses"), 1);
    fixture_fini(&fixture);
}

static uint64_t four_reads_ps(unsigned from, unsigned held)
{
    struct fixture fixture;
    uint64_t bus = fixture_with_cache(&fixture, 2 * KIB, NULL);
    read_units(&fixture, bus, from, held);
    uint64_t begin_ps = sim_now_ps(fixture.sim);
    for (uint8_t tag = 0; tag < 4; tag++) {
        probe_read(&fixture, tag, bus + tag * 64, 64);
    }
    fixture_run(&fixture);
    uint64_t ps = fixture.probe.reads[3].done_ps - begin_ps;
    fixture_fini(&fixture);
    return ps;
}

TEST(L2, MissesOverlapAndHoldUpTheReadsBehindThem)
{
    uint64_t none_ps = four_reads_ps(0, 0), all_ps = four_reads_ps(0, 4);
    EXPECT_BETWEEN(none_ps - all_ps, MISS_PS - 10 * NS, MISS_PS + 10 * NS);             // not four times
    EXPECT_BETWEEN(four_reads_ps(1, 3) - all_ps, MISS_PS - 60 * NS, MISS_PS + 10 * NS); // the first one misses,
    EXPECT_BETWEEN(four_reads_ps(0, 3) - all_ps, MISS_PS - 60 * NS, MISS_PS + 10 * NS); // the last one
}
