#include <string.h>

#include "rig.h"
#include "tests/shim/test.h"

static gpu_t *gpu_plain(struct rig *rig)
{
    const struct rig_config config = rig_config();
    rig_init(rig, &config);
    return rig->gpus[0];
}

TEST(GpuMemory, GivesZeroedPagesAndNeverAddressZero)
{
    struct rig rig;
    gpu_t *gpu = gpu_plain(&rig);
    const uint8_t zeros[64] = {0};
    uint64_t first, second;
    ASSERT_EQ(gpu_memory_alloc(gpu, 100, &first), SIM_OK);
    ASSERT_EQ(gpu_memory_alloc(gpu, GPU_PAGE_BYTES + 1, &second), SIM_OK);
    EXPECT_EQ(first, GPU_PAGE_BYTES);
    EXPECT_EQ(second, 2 * GPU_PAGE_BYTES);
    memset(gpu_memory_at(gpu, first, 100), 0xff, 100);
    EXPECT_EQ(gpu_memory_free(gpu, first), SIM_OK);
    ASSERT_EQ(gpu_memory_alloc(gpu, 64, &first), SIM_OK);
    EXPECT_EQ(first, GPU_PAGE_BYTES);
    EXPECT_MEMEQ(gpu_memory_at(gpu, first, 64), zeros, 64);
    rig_fini(&rig);
}

TEST(GpuMemory, RefusesMoreThanItHasUntilSomeIsFreed)
{
    struct rig rig;
    gpu_t *gpu = gpu_plain(&rig);
    uint64_t a, b;
    EXPECT_EQ(gpu_memory_alloc(gpu, 64 * MIB, &a), SIM_ERR_NO_MEMORY);
    EXPECT_EQ(gpu_memory_alloc(gpu, 0, &a), SIM_ERR_INVALID);
    EXPECT_EQ(gpu_memory_alloc(gpu, UINT64_MAX, &a), SIM_ERR_NO_MEMORY);
    ASSERT_EQ(gpu_memory_alloc(gpu, 64 * MIB - GPU_PAGE_BYTES, &a), SIM_OK);
    EXPECT_EQ(gpu_memory_alloc(gpu, 1, &b), SIM_ERR_NO_MEMORY);
    EXPECT_EQ(gpu_memory_free(gpu, a), SIM_OK);
    EXPECT_EQ(gpu_memory_alloc(gpu, 1, &b), SIM_OK);
    rig_fini(&rig);
}

TEST(GpuMemory, ShowsNothingBeyondAnAllocation)
{
    struct rig rig;
    gpu_t *gpu = gpu_plain(&rig);
    uint64_t a, b, base = 0, bytes = 0;
    ASSERT_EQ(gpu_memory_alloc(gpu, 100, &a), SIM_OK);
    ASSERT_EQ(gpu_memory_alloc(gpu, 100, &b), SIM_OK);
    EXPECT_TRUE(gpu_memory_at(gpu, a, 100) != NULL);
    EXPECT_TRUE(gpu_memory_at(gpu, a, 101) == NULL);
    EXPECT_TRUE(gpu_memory_at(gpu, a + 99, 2) == NULL);
    EXPECT_TRUE(gpu_memory_at(gpu, a, UINT64_MAX) == NULL);
    EXPECT_TRUE(gpu_memory_at(gpu, 0, 1) == NULL);
    EXPECT_TRUE(gpu_memory_find(gpu, b + 99, &base, &bytes));
    EXPECT_EQ(base, b);
    EXPECT_EQ(bytes, 100);
    EXPECT_FALSE(gpu_memory_find(gpu, b + 100, &base, &bytes));
    rig_fini(&rig);
}

TEST(GpuMemory, FreesWhatBeginsThereOnly)
{
    struct rig rig;
    gpu_t *gpu = gpu_plain(&rig);
    uint64_t a;
    ASSERT_EQ(gpu_memory_alloc(gpu, 100, &a), SIM_OK);
    EXPECT_EQ(gpu_memory_free(gpu, a + 1), SIM_ERR_NOT_FOUND);
    EXPECT_EQ(gpu_memory_free(gpu, a), SIM_OK);
    EXPECT_EQ(gpu_memory_free(gpu, a), SIM_ERR_NOT_FOUND);
    EXPECT_TRUE(gpu_memory_at(gpu, a, 1) == NULL);
    rig_fini(&rig);
}

TEST(GpuMemory, CostsOnlyWhatIsTouched)
{
    struct rig_config config = rig_config();
    config.gpu.memory_bytes = UINT64_C(6) << 30;
    struct rig rig;
    rig_init(&rig, &config);
    uint64_t a;
    ASSERT_EQ(gpu_memory_alloc(rig.gpus[0], UINT64_C(5) << 30, &a), SIM_OK);
    uint8_t *last = gpu_memory_at(rig.gpus[0], a + (UINT64_C(5) << 30) - 1, 1);
    EXPECT_EQ(*last, 0);
    *last = 1;
    EXPECT_EQ(gpu_memory_free(rig.gpus[0], a), SIM_OK);
    rig_fini(&rig);
}

TEST(GpuMemory, RefusesImpossibleConfigurations)
{
    struct rig rig;
    struct gpu_config config = *gpu_get_config(gpu_plain(&rig));
    gpu_t *gpu = NULL;
    config.bar_bytes += 4096;
    EXPECT_EQ(gpu_create(rig.sim, rig.pool, "other", &config, &gpu), SIM_ERR_INVALID);
    config = *gpu_get_config(rig.gpus[0]);
    config.completion_bytes = 32;
    EXPECT_EQ(gpu_create(rig.sim, rig.pool, "other", &config, &gpu), SIM_ERR_INVALID);
    config = *gpu_get_config(rig.gpus[0]);
    EXPECT_EQ(gpu_create(rig.sim, rig.pool, "gpu0", &config, &gpu), SIM_ERR_EXISTS);
    rig_fini(&rig);
}

struct sleeper {
    struct rig *rig;
    uint64_t address, deadline_ps, woken_ps;
    bool written;
};

static void sleep_until_written(void *arg)
{
    struct sleeper *sleeper = arg;
    sleeper->written = gpu_memory_wait_write(sleeper->rig->gpus[0], sleeper->address, sleeper->deadline_ps, NULL);
    sleeper->woken_ps = sim_now_ps(sleeper->rig->sim);
}

TEST(GpuMemory, WakesWhoWaitsForTheWordThatIsWritten)
{
    struct rig rig;
    (void)gpu_plain(&rig);
    uint64_t device, bus = rig_pinned(&rig, 0, 100, &device);
    struct sleeper word = {.rig = &rig, .address = device + 8, .deadline_ps = SIM_NEVER_PS};
    struct sleeper next = {.rig = &rig, .address = device + 16, .deadline_ps = 5 * US};
    ASSERT_EQ(sim_thread_spawn(rig.sim, "word", sleep_until_written, &word), SIM_OK);
    ASSERT_EQ(sim_thread_spawn(rig.sim, "next", sleep_until_written, &next), SIM_OK);
    probe_write(&rig, bus + 12, 4, "four");
    rig_run(&rig);
    EXPECT_TRUE(word.written);
    // 28 B at 4 B/ns, 50 ns, at 8 B/ns, and 100 ns to be visible; the two flights.
    EXPECT_EQ(word.woken_ps, 7000 + 50000 + 3500 + 100000 + 4000);
    EXPECT_FALSE(next.written);
    EXPECT_EQ(next.woken_ps, 5 * US);
    rig_fini(&rig);
}
