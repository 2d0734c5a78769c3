// The translation of the window: its cache, and the cost of a miss.
#include <string.h>

#include "fixture.h"
#include "tests/shim/test.h"

enum { MISS_PS = 700000 };

static uint64_t read_ps(struct fixture *fixture, uint64_t bus)
{
    uint64_t begin_ps = sim_now_ps(fixture->sim);
    probe_read(fixture, 0, bus, 64);
    fixture_run(fixture);
    return fixture->probe.reads[0].done_ps - begin_ps;
}

static uint64_t fixture_with_pages(struct fixture *fixture, uint32_t translations, uint32_t walks, uint64_t pages)
{
    struct fixture_config config = fixture_config();
    config.gpu.translations = translations;
    config.gpu.translation_miss_ps = MISS_PS;
    config.gpu.translation_walks_max = walks;
    fixture_init(fixture, &config);
    return fixture_pinned(fixture, 0, pages * GPU_PAGE_BYTES, NULL);
}

TEST(Translation, AMissCostsTimeOnceAPage)
{
    struct fixture fixture;
    uint64_t bus = fixture_with_pages(&fixture, 4, 1, 2);
    uint64_t miss_ps = read_ps(&fixture, bus), hit_ps = read_ps(&fixture, bus + 4096);
    EXPECT_BETWEEN(miss_ps - hit_ps, MISS_PS - 10 * NS, MISS_PS + 10 * NS);
    EXPECT_EQ(fixture_counter(&fixture, 0, "translation_misses"), 1);
    EXPECT_GT(read_ps(&fixture, bus + GPU_PAGE_BYTES), hit_ps + MISS_PS - 10 * NS);
    EXPECT_EQ(fixture_counter(&fixture, 0, "translation_misses"), 2);
    fixture_fini(&fixture);
}

TEST(Translation, ReachesAsManyPagesAsItHasEntries)
{
    struct fixture fixture;
    uint64_t bus = fixture_with_pages(&fixture, 4, 1, 5);
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned page = 0; page < 4; page++) {
            (void)read_ps(&fixture, bus + page * GPU_PAGE_BYTES);
        }
    }
    EXPECT_EQ(fixture_counter(&fixture, 0, "translation_misses"), 4);
    // One page more than the cache holds, in turn: the next page is always the one that was evicted.
    for (unsigned i = 4; i < 14; i++) {
        (void)read_ps(&fixture, bus + i % 5 * GPU_PAGE_BYTES);
    }
    EXPECT_EQ(fixture_counter(&fixture, 0, "translation_misses"), 14);
    fixture_fini(&fixture);
}

TEST(Translation, KeepsWhatWasUsedLast)
{
    struct fixture fixture;
    uint64_t bus = fixture_with_pages(&fixture, 2, 1, 3);
    (void)read_ps(&fixture, bus);
    (void)read_ps(&fixture, bus + GPU_PAGE_BYTES);
    (void)read_ps(&fixture, bus);
    (void)read_ps(&fixture, bus + 2 * GPU_PAGE_BYTES); // evicts the second page
    EXPECT_EQ(fixture_counter(&fixture, 0, "translation_misses"), 3);
    (void)read_ps(&fixture, bus);
    EXPECT_EQ(fixture_counter(&fixture, 0, "translation_misses"), 3);
    fixture_fini(&fixture);
}

static uint64_t four_misses_ps(uint32_t walks)
{
    struct fixture fixture;
    uint64_t bus = fixture_with_pages(&fixture, 8, walks, 4);
    for (uint8_t tag = 0; tag < 4; tag++) {
        probe_read(&fixture, tag, bus + tag * GPU_PAGE_BYTES, 64);
    }
    fixture_run(&fixture);
    uint64_t ps = fixture.probe.reads[3].done_ps;
    fixture_fini(&fixture);
    return ps;
}

TEST(Translation, MissesBlockEachOtherBeyondTheWalksAtOnce)
{
    uint64_t one_ps = four_misses_ps(1), two_ps = four_misses_ps(2), four_ps = four_misses_ps(4);
    EXPECT_BETWEEN(one_ps - two_ps, 2 * MISS_PS - 50 * NS, 2 * MISS_PS);
    EXPECT_BETWEEN(two_ps - four_ps, MISS_PS - 50 * NS, MISS_PS);
}

TEST(Translation, AMissOfAWriteHoldsUpTheReadBehindIt)
{
    struct fixture fixture;
    uint64_t bus = fixture_with_pages(&fixture, 8, 4, 2);
    (void)read_ps(&fixture, bus + GPU_PAGE_BYTES);
    uint64_t begin_ps = sim_now_ps(fixture.sim);
    probe_write(&fixture, bus, 4, "cold");
    uint64_t warm_ps = read_ps(&fixture, bus + GPU_PAGE_BYTES);
    EXPECT_GT(warm_ps, MISS_PS);
    EXPECT_GT(fixture.probe.reads[0].done_ps, begin_ps + MISS_PS + 100 * NS);
    fixture_fini(&fixture);
}

TEST(Translation, AMissFillsTheReceiveBufferAndLosesNothing)
{
    struct fixture fixture;
    uint64_t bus = fixture_with_pages(&fixture, 1, 1, 2);
    for (uint32_t i = 0; i < 200; i++) {
        probe_write(&fixture, bus + i % 2 * GPU_PAGE_BYTES + i * 4, 4, &i);
    }
    fixture_run_for(&fixture, 20 * US);
    // 64 headers at the GPU, and the writes that have been translated.
    EXPECT_BETWEEN(fixture_counter(&fixture, 0, "bar_writes"), 64, 64 + 29);
    fixture_run(&fixture);
    EXPECT_EQ(fixture_counter(&fixture, 0, "bar_write_bytes"), 800);
    EXPECT_EQ(fixture_counter(&fixture, 0, "translation_misses"), 200);
    fixture_fini(&fixture);
}

TEST(Translation, ForgetsAPageThatIsUnpinned)
{
    struct fixture fixture;
    uint64_t bus = fixture_with_pages(&fixture, 8, 1, 2);
    (void)read_ps(&fixture, bus);
    EXPECT_EQ(gpu_unpin(fixture.gpus[0], bus - FIXTURE_BAR(0)), SIM_OK);
    uint64_t other, again = fixture_pinned(&fixture, 0, 64, &other);
    EXPECT_EQ(again, bus);
    memcpy(gpu_memory_at(fixture.gpus[0], other, 5), "other", 5);
    (void)read_ps(&fixture, bus);
    EXPECT_MEMEQ(fixture.probe.reads[0].data, "other", 5);
    EXPECT_EQ(fixture_counter(&fixture, 0, "translation_misses"), 2);
    fixture_fini(&fixture);
}

TEST(Translation, AnUnpinnedPageLeavesItsEntryFree)
{
    struct fixture fixture;
    uint64_t bus = fixture_with_pages(&fixture, 2, 1, 1);
    uint64_t other = fixture_pinned(&fixture, 0, 64, NULL);
    (void)read_ps(&fixture, bus);
    EXPECT_EQ(gpu_unpin(fixture.gpus[0], bus - FIXTURE_BAR(0)), SIM_OK);
    EXPECT_EQ(fixture_pinned(&fixture, 0, 64, NULL), bus);
    (void)read_ps(&fixture, bus);
    (void)read_ps(&fixture, other);
    EXPECT_EQ(fixture_counter(&fixture, 0, "translation_misses"), 3);
    (void)read_ps(&fixture, bus);
    EXPECT_EQ(fixture_counter(&fixture, 0, "translation_misses"), 3);
    fixture_fini(&fixture);
}

TEST(Translation, AWindowThatEndedLeavesItsEntriesFree)
{
    struct fixture fixture;
    uint64_t bus = fixture_with_pages(&fixture, 2, 1, 1);
    (void)read_ps(&fixture, bus);
    gpu_window_end(fixture.gpus[0]);
    EXPECT_EQ(gpu_unpin(fixture.gpus[0], bus - FIXTURE_BAR(0)), SIM_OK);
    EXPECT_EQ(fixture_pinned(&fixture, 0, 64, NULL), bus);
    uint64_t other = fixture_pinned(&fixture, 0, 64, NULL);
    (void)read_ps(&fixture, bus);
    (void)read_ps(&fixture, other);
    EXPECT_EQ(fixture_counter(&fixture, 0, "translation_misses"), 3);
    (void)read_ps(&fixture, bus);
    EXPECT_EQ(fixture_counter(&fixture, 0, "translation_misses"), 3);
    fixture_fini(&fixture);
}
