// The translation of the window: its cache, and what a miss costs.
#include <string.h>

#include "rig.h"
#include "tests/shim/test.h"

enum { MISS_PS = 700000 };

static uint64_t read_ps(struct rig *rig, uint64_t bus)
{
    uint64_t begin_ps = sim_now_ps(rig->sim);
    probe_read(rig, 0, bus, 64);
    rig_run(rig);
    return rig->probe.reads[0].done_ps - begin_ps;
}

static uint64_t rig_with_pages(struct rig *rig, uint32_t translations, uint32_t walks, uint64_t pages)
{
    struct rig_config config = rig_config();
    config.gpu.translations = translations;
    config.gpu.translation_miss_ps = MISS_PS;
    config.gpu.translation_walks_max = walks;
    rig_init(rig, &config);
    return rig_pinned(rig, 0, pages * GPU_PAGE_BYTES, NULL);
}

TEST(Translation, AMissCostsTimeOnceAPage)
{
    struct rig rig;
    uint64_t bus = rig_with_pages(&rig, 4, 1, 2);
    uint64_t miss_ps = read_ps(&rig, bus), hit_ps = read_ps(&rig, bus + 4096);
    EXPECT_BETWEEN(miss_ps - hit_ps, MISS_PS - 10 * NS, MISS_PS + 10 * NS);
    EXPECT_EQ(rig_counter(&rig, 0, "translation_misses"), 1);
    EXPECT_TRUE(read_ps(&rig, bus + GPU_PAGE_BYTES) > hit_ps + MISS_PS - 10 * NS);
    EXPECT_EQ(rig_counter(&rig, 0, "translation_misses"), 2);
    rig_fini(&rig);
}

TEST(Translation, ReachesAsManyPagesAsItHasEntries)
{
    struct rig rig;
    uint64_t bus = rig_with_pages(&rig, 4, 1, 5);
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned page = 0; page < 4; page++) {
            (void)read_ps(&rig, bus + page * GPU_PAGE_BYTES);
        }
    }
    EXPECT_EQ(rig_counter(&rig, 0, "translation_misses"), 4);
    // One page more than that, in turn: the least recently used one is always the next.
    for (unsigned i = 4; i < 14; i++) {
        (void)read_ps(&rig, bus + i % 5 * GPU_PAGE_BYTES);
    }
    EXPECT_EQ(rig_counter(&rig, 0, "translation_misses"), 14);
    rig_fini(&rig);
}

TEST(Translation, KeepsWhatWasUsedLast)
{
    struct rig rig;
    uint64_t bus = rig_with_pages(&rig, 2, 1, 3);
    (void)read_ps(&rig, bus);
    (void)read_ps(&rig, bus + GPU_PAGE_BYTES);
    (void)read_ps(&rig, bus);
    (void)read_ps(&rig, bus + 2 * GPU_PAGE_BYTES); // in place of the second page
    EXPECT_EQ(rig_counter(&rig, 0, "translation_misses"), 3);
    (void)read_ps(&rig, bus);
    EXPECT_EQ(rig_counter(&rig, 0, "translation_misses"), 3);
    rig_fini(&rig);
}

static uint64_t four_misses_ps(uint32_t walks)
{
    struct rig rig;
    uint64_t bus = rig_with_pages(&rig, 8, walks, 4);
    for (uint8_t tag = 0; tag < 4; tag++) {
        probe_read(&rig, tag, bus + tag * GPU_PAGE_BYTES, 64);
    }
    rig_run(&rig);
    uint64_t ps = rig.probe.reads[3].done_ps;
    rig_fini(&rig);
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
    struct rig rig;
    uint64_t bus = rig_with_pages(&rig, 8, 4, 2);
    (void)read_ps(&rig, bus + GPU_PAGE_BYTES);
    uint64_t begin_ps = sim_now_ps(rig.sim);
    probe_write(&rig, bus, 4, "cold");
    uint64_t warm_ps = read_ps(&rig, bus + GPU_PAGE_BYTES);
    EXPECT_TRUE(warm_ps > MISS_PS);
    EXPECT_TRUE(rig.probe.reads[0].done_ps > begin_ps + MISS_PS + 100 * NS);
    rig_fini(&rig);
}

TEST(Translation, AMissFillsTheReceiveBufferAndLosesNothing)
{
    struct rig rig;
    uint64_t bus = rig_with_pages(&rig, 1, 1, 2);
    for (uint32_t i = 0; i < 200; i++) {
        probe_write(&rig, bus + i % 2 * GPU_PAGE_BYTES + i * 4, 4, &i);
    }
    rig_run_for(&rig, 20 * US);
    // 64 headers at the GPU, and what has been translated.
    EXPECT_BETWEEN(rig_counter(&rig, 0, "bar_writes"), 64, 64 + 29);
    rig_run(&rig);
    EXPECT_EQ(rig_counter(&rig, 0, "bar_write_bytes"), 800);
    EXPECT_EQ(rig_counter(&rig, 0, "translation_misses"), 200);
    rig_fini(&rig);
}

TEST(Translation, ForgetsAPageThatIsUnpinned)
{
    struct rig rig;
    uint64_t bus = rig_with_pages(&rig, 8, 1, 2);
    (void)read_ps(&rig, bus);
    EXPECT_EQ(gpu_unpin(rig.gpus[0], bus - RIG_BAR(0)), SIM_OK);
    uint64_t other, again = rig_pinned(&rig, 0, 64, &other);
    EXPECT_EQ(again, bus);
    memcpy(gpu_memory_at(rig.gpus[0], other, 5), "other", 5);
    (void)read_ps(&rig, bus);
    EXPECT_MEMEQ(rig.probe.reads[0].data, "other", 5);
    EXPECT_EQ(rig_counter(&rig, 0, "translation_misses"), 2);
    rig_fini(&rig);
}

TEST(Translation, AnUnpinnedPageLeavesItsEntryFree)
{
    struct rig rig;
    uint64_t bus = rig_with_pages(&rig, 2, 1, 1);
    uint64_t other = rig_pinned(&rig, 0, 64, NULL);
    (void)read_ps(&rig, bus);
    EXPECT_EQ(gpu_unpin(rig.gpus[0], bus - RIG_BAR(0)), SIM_OK);
    EXPECT_EQ(rig_pinned(&rig, 0, 64, NULL), bus);
    (void)read_ps(&rig, bus);
    (void)read_ps(&rig, other);
    EXPECT_EQ(rig_counter(&rig, 0, "translation_misses"), 3);
    (void)read_ps(&rig, bus);
    EXPECT_EQ(rig_counter(&rig, 0, "translation_misses"), 3);
    rig_fini(&rig);
}
