#include <string.h>

#include "fixture.h"
#include "tests/shim/test.h"

static gpu_t *gpu_plain(struct fixture *fixture)
{
    const struct fixture_config config = fixture_config();
    fixture_init(fixture, &config);
    return fixture->gpus[0];
}

TEST(Pin, MapsWholePagesOneAfterTheOther)
{
    struct fixture fixture;
    gpu_t *gpu = gpu_plain(&fixture);
    uint64_t a, b, first, second;
    ASSERT_EQ(gpu_memory_alloc(gpu, 3 * GPU_PAGE_BYTES, &a), SIM_OK);
    ASSERT_EQ(gpu_memory_alloc(gpu, 10, &b), SIM_OK);
    ASSERT_EQ(gpu_pin(gpu, b, 10, &first), SIM_OK);
    ASSERT_EQ(gpu_pin(gpu, a + GPU_PAGE_BYTES, GPU_PAGE_BYTES + 1, &second), SIM_OK);
    EXPECT_EQ(first, 0);
    EXPECT_EQ(second, GPU_PAGE_BYTES);
    probe_write(&fixture, FIXTURE_BAR(0) + second + GPU_PAGE_BYTES + 5, 4, "deep");
    fixture_run(&fixture);
    EXPECT_MEMEQ(gpu_memory_at(gpu, a + 2 * GPU_PAGE_BYTES + 5, 4), "deep", 4);
    fixture_fini(&fixture);
}

TEST(Pin, RefusesWhatIsNotAllocatedOrNotAPage)
{
    struct fixture fixture;
    gpu_t *gpu = gpu_plain(&fixture);
    uint64_t a, offset = 77;
    ASSERT_EQ(gpu_memory_alloc(gpu, GPU_PAGE_BYTES + 1, &a), SIM_OK);
    EXPECT_EQ(gpu_pin(gpu, a + 256, 256, &offset), SIM_ERR_INVALID);
    EXPECT_EQ(gpu_pin(gpu, a, 0, &offset), SIM_ERR_INVALID);
    EXPECT_EQ(gpu_pin(gpu, 0, 1, &offset), SIM_ERR_NOT_FOUND);
    EXPECT_EQ(gpu_pin(gpu, a + 2 * GPU_PAGE_BYTES, 1, &offset), SIM_ERR_NOT_FOUND);
    EXPECT_EQ(gpu_pin(gpu, a, 2 * GPU_PAGE_BYTES + 1, &offset), SIM_ERR_RANGE);
    EXPECT_EQ(gpu_pin(gpu, a, UINT64_MAX, &offset), SIM_ERR_RANGE);
    EXPECT_EQ(offset, 77);
    EXPECT_EQ(gpu_pin(gpu, a, 2 * GPU_PAGE_BYTES, &offset), SIM_OK);
    fixture_fini(&fixture);
}

TEST(Pin, RefusesWhatTheWindowHasNoRoomForUntilSomeIsUnpinned)
{
    struct fixture fixture;
    gpu_t *gpu = gpu_plain(&fixture);
    uint64_t a, first, second, third;
    ASSERT_EQ(gpu_memory_alloc(gpu, 32 * MIB, &a), SIM_OK);
    EXPECT_EQ(gpu_pin(gpu, a, 16 * MIB + 1, &first), SIM_ERR_NO_MEMORY);
    ASSERT_EQ(gpu_pin(gpu, a, MIB, &first), SIM_OK);
    ASSERT_EQ(gpu_pin(gpu, a, 15 * MIB, &second), SIM_OK);
    EXPECT_EQ(gpu_pin(gpu, a, 1, &third), SIM_ERR_NO_MEMORY);
    EXPECT_EQ(gpu_unpin(gpu, first), SIM_OK);
    EXPECT_EQ(gpu_pin(gpu, a, MIB + 1, &third), SIM_ERR_NO_MEMORY);
    EXPECT_EQ(gpu_pin(gpu, a, MIB, &third), SIM_OK);
    EXPECT_EQ(third, first);
    fixture_fini(&fixture);
}

TEST(Pin, EveryPinIsAMappingOfItsOwn)
{
    struct fixture fixture;
    gpu_t *gpu = gpu_plain(&fixture);
    uint64_t device, first = fixture_pinned(&fixture, 0, 10, &device), second;
    ASSERT_EQ(gpu_pin(gpu, device, 10, &second), SIM_OK);
    EXPECT_EQ(gpu_unpin(gpu, first - FIXTURE_BAR(0)), SIM_OK);
    EXPECT_EQ(gpu_unpin(gpu, first - FIXTURE_BAR(0)), SIM_ERR_NOT_FOUND);
    probe_write(&fixture, first, 4, "dead");
    probe_write(&fixture, FIXTURE_BAR(0) + second, 4, "live");
    fixture_run(&fixture);
    EXPECT_MEMEQ(gpu_memory_at(gpu, device, 4), "live", 4);
    EXPECT_EQ(fixture_counter(&fixture, 0, "unsupported_writes"), 1);
    fixture_fini(&fixture);
}

TEST(Pin, KeepsMemoryFromBeingFreed)
{
    struct fixture fixture;
    gpu_t *gpu = gpu_plain(&fixture);
    uint64_t device, bus = fixture_pinned(&fixture, 0, 10, &device);
    EXPECT_EQ(gpu_memory_free(gpu, device), SIM_ERR_BUSY);
    probe_write(&fixture, bus, 4, "kept");
    fixture_run(&fixture);
    EXPECT_MEMEQ(gpu_memory_at(gpu, device, 4), "kept", 4);
    EXPECT_EQ(gpu_unpin(gpu, bus - FIXTURE_BAR(0)), SIM_OK);
    EXPECT_EQ(gpu_memory_free(gpu, device), SIM_OK);
    fixture_fini(&fixture);
}

TEST(Pin, AnAccessOutsideAPinnedPageIsAnUnsupportedRequest)
{
    struct fixture fixture;
    gpu_t *gpu = gpu_plain(&fixture);
    uint64_t device, bus = fixture_pinned(&fixture, 0, 10, &device);
    probe_write(&fixture, bus + GPU_PAGE_BYTES, 4, "gone");
    probe_read(&fixture, 1, bus + GPU_PAGE_BYTES, 4);
    probe_read(&fixture, 2, bus, 4);
    fixture_run(&fixture);
    EXPECT_EQ(fixture.probe.reads[1].status, PCIE_CPL_UR);
    EXPECT_EQ(fixture.probe.reads[2].status, PCIE_CPL_SC);
    EXPECT_EQ(fixture_counter(&fixture, 0, "unsupported_writes"), 1);
    EXPECT_EQ(fixture_counter(&fixture, 0, "unsupported_reads"), 1);
    EXPECT_EQ(fixture_counter(&fixture, 0, "bar_write_bytes"), 0);
    EXPECT_EQ(*(uint32_t *)gpu_memory_at(gpu, device, 4), 0);
    fixture_fini(&fixture);
}

TEST(Pin, IsLeftWithoutItsPagesWhenTheWindowEnds)
{
    struct fixture fixture;
    gpu_t *gpu = gpu_plain(&fixture);
    uint64_t device, bus = fixture_pinned(&fixture, 0, 10, &device);
    probe_read(&fixture, 1, bus, 4);
    fixture_run(&fixture);
    gpu_window_end(gpu);
    probe_write(&fixture, bus, 4, "gone");
    probe_read(&fixture, 2, bus, 4);
    fixture_run(&fixture);
    EXPECT_EQ(fixture.probe.reads[1].status, PCIE_CPL_SC);
    EXPECT_EQ(fixture.probe.reads[2].status, PCIE_CPL_UR);
    EXPECT_EQ(fixture_counter(&fixture, 0, "unsupported_writes"), 1);
    EXPECT_EQ(gpu_memory_free(gpu, device), SIM_ERR_BUSY);
    uint64_t offset;
    EXPECT_EQ(gpu_pin(gpu, device, 10, &offset), SIM_OK);
    EXPECT_NE(FIXTURE_BAR(0) + offset, bus);
    probe_write(&fixture, FIXTURE_BAR(0) + offset, 4, "here");
    fixture_run(&fixture);
    EXPECT_MEMEQ(gpu_memory_at(gpu, device, 4), "here", 4);
    EXPECT_EQ(gpu_unpin(gpu, bus - FIXTURE_BAR(0)), SIM_OK);
    EXPECT_EQ(gpu_unpin(gpu, offset), SIM_OK);
    EXPECT_EQ(gpu_memory_free(gpu, device), SIM_OK);
    fixture_fini(&fixture);
}

TEST(Pin, WhatIsOnItsWayWhenAPageIsUnpinnedTouchesNothing)
{
    struct fixture fixture;
    gpu_t *gpu = gpu_plain(&fixture);
    uint64_t device, bus = fixture_pinned(&fixture, 0, 10, &device);
    probe_write(&fixture, bus, 4, "late");
    probe_read(&fixture, 1, bus, 4);
    fixture_run_for(&fixture, 100 * NS); // at the GPU, not yet visible
    EXPECT_EQ(fixture_counter(&fixture, 0, "bar_reads"), 1);
    EXPECT_EQ(gpu_unpin(gpu, bus - FIXTURE_BAR(0)), SIM_OK);
    EXPECT_EQ(gpu_memory_free(gpu, device), SIM_OK);
    uint64_t again;
    ASSERT_EQ(gpu_memory_alloc(gpu, 10, &again), SIM_OK);
    EXPECT_EQ(again, device);
    fixture_run(&fixture);
    EXPECT_EQ(*(uint32_t *)gpu_memory_at(gpu, again, 4), 0);
    EXPECT_EQ(fixture.probe.reads[1].status, PCIE_CPL_UR);
    EXPECT_EQ(fixture_counter(&fixture, 0, "unsupported_writes"), 1);
    fixture_fini(&fixture);
}
