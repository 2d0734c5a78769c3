#include <string.h>

#include "fixture.h"
#include "tests/shim/test.h"

static gpu_t *gpu_plain(struct fixture *fixture)
{
    const struct fixture_config config = fixture_config();
    fixture_init(fixture, &config);
    return fixture->gpus[0];
}

TEST(GpuMemory, GivesZeroedPagesAndNeverAddressZero)
{
    struct fixture fixture;
    gpu_t *gpu = gpu_plain(&fixture);
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
    fixture_fini(&fixture);
}

TEST(GpuMemory, RefusesMoreThanItHasUntilSomeIsFreed)
{
    struct fixture fixture;
    gpu_t *gpu = gpu_plain(&fixture);
    uint64_t a, b;
    EXPECT_EQ(gpu_memory_alloc(gpu, 64 * MIB, &a), SIM_ERR_NO_MEMORY);
    EXPECT_EQ(gpu_memory_alloc(gpu, 0, &a), SIM_ERR_INVALID);
    EXPECT_EQ(gpu_memory_alloc(gpu, UINT64_MAX, &a), SIM_ERR_NO_MEMORY);
    ASSERT_EQ(gpu_memory_alloc(gpu, 64 * MIB - GPU_PAGE_BYTES, &a), SIM_OK);
    EXPECT_EQ(gpu_memory_alloc(gpu, 1, &b), SIM_ERR_NO_MEMORY);
    EXPECT_EQ(gpu_memory_free(gpu, a), SIM_OK);
    EXPECT_EQ(gpu_memory_alloc(gpu, 1, &b), SIM_OK);
    fixture_fini(&fixture);
}

TEST(GpuMemory, CountsAsFreeWhatCanBeAllocated)
{
    struct fixture fixture;
    gpu_t *gpu = gpu_plain(&fixture);
    uint64_t bytes = gpu_memory_free_bytes(gpu), a;
    EXPECT_EQ(bytes, 64 * MIB - GPU_PAGE_BYTES); // no buffer has the page at address 0
    EXPECT_EQ(gpu_memory_alloc(gpu, bytes, &a), SIM_OK);
    EXPECT_EQ(gpu_memory_free_bytes(gpu), 0);
    fixture_fini(&fixture);
}

TEST(GpuMemory, ShowsNothingBeyondAnAllocation)
{
    struct fixture fixture;
    gpu_t *gpu = gpu_plain(&fixture);
    uint64_t a, b, base = 0, bytes = 0;
    ASSERT_EQ(gpu_memory_alloc(gpu, 100, &a), SIM_OK);
    ASSERT_EQ(gpu_memory_alloc(gpu, 100, &b), SIM_OK);
    EXPECT_NOT_NULL(gpu_memory_at(gpu, a, 100));
    EXPECT_NULL(gpu_memory_at(gpu, a, 101));
    EXPECT_NULL(gpu_memory_at(gpu, a + 99, 2));
    EXPECT_NULL(gpu_memory_at(gpu, a, UINT64_MAX));
    EXPECT_NULL(gpu_memory_at(gpu, 0, 1));
    EXPECT_TRUE(gpu_memory_find(gpu, b + 99, &base, &bytes));
    EXPECT_EQ(base, b);
    EXPECT_EQ(bytes, 100);
    EXPECT_FALSE(gpu_memory_find(gpu, b + 100, &base, &bytes));
    fixture_fini(&fixture);
}

TEST(GpuMemory, FreesWhatBeginsThereOnly)
{
    struct fixture fixture;
    gpu_t *gpu = gpu_plain(&fixture);
    uint64_t a;
    ASSERT_EQ(gpu_memory_alloc(gpu, 100, &a), SIM_OK);
    EXPECT_EQ(gpu_memory_free(gpu, a + 1), SIM_ERR_NOT_FOUND);
    EXPECT_EQ(gpu_memory_free(gpu, a), SIM_OK);
    EXPECT_EQ(gpu_memory_free(gpu, a), SIM_ERR_NOT_FOUND);
    EXPECT_NULL(gpu_memory_at(gpu, a, 1));
    fixture_fini(&fixture);
}

TEST(GpuMemory, CostsOnlyWhatIsTouched)
{
    struct fixture_config config = fixture_config();
    config.gpu.memory_bytes = UINT64_C(6) << 30;
    struct fixture fixture;
    fixture_init(&fixture, &config);
    uint64_t a;
    ASSERT_EQ(gpu_memory_alloc(fixture.gpus[0], UINT64_C(5) << 30, &a), SIM_OK);
    uint8_t *last = gpu_memory_at(fixture.gpus[0], a + (UINT64_C(5) << 30) - 1, 1);
    EXPECT_EQ(*last, 0);
    *last = 1;
    EXPECT_EQ(gpu_memory_free(fixture.gpus[0], a), SIM_OK);
    fixture_fini(&fixture);
}

// What the GPU of the fixture would be with another value of one key.
#define EXPECT_WITH(key, value, expected)                                                                              \
    do {                                                                                                               \
        struct gpu_config config = *gpu_get_config(fixture.gpus[0]);                                                   \
        gpu_t *gpu = NULL;                                                                                             \
        config.key = (value);                                                                                          \
        EXPECT_EQ(gpu_create(fixture.sim, fixture.pool, "other", &config, &gpu), expected);                            \
        gpu_destroy(gpu);                                                                                              \
    } while (0)

// Each limit by itself, from both sides.
TEST(GpuMemory, RefusesImpossibleConfigurations)
{
    const uint64_t page = 65536;
    struct fixture fixture;
    (void)gpu_plain(&fixture);
    EXPECT_WITH(memory_bytes, page, SIM_ERR_INVALID); // the first page is no memory
    EXPECT_WITH(memory_bytes, 2 * page, SIM_OK);
    EXPECT_WITH(memory_bytes, 2 * page + 1, SIM_ERR_INVALID);
    EXPECT_WITH(memory_bytes, page << 32, SIM_ERR_INVALID);
    EXPECT_WITH(bar_bytes, 0, SIM_ERR_INVALID);
    EXPECT_WITH(bar_bytes, page, SIM_OK);
    EXPECT_WITH(bar_bytes, page + 4096, SIM_ERR_INVALID);
    EXPECT_WITH(bar_bytes, page * UINT32_MAX, SIM_ERR_INVALID);
    EXPECT_WITH(reads_max, 0, SIM_ERR_INVALID);
    EXPECT_WITH(reads_max, 1, SIM_OK);
    EXPECT_WITH(mps_bytes, 64, SIM_ERR_INVALID);
    EXPECT_WITH(mps_bytes, 128, SIM_OK);
    EXPECT_WITH(mps_bytes, 192, SIM_ERR_INVALID);
    EXPECT_WITH(mps_bytes, 4096, SIM_OK);
    EXPECT_WITH(mps_bytes, 8192, SIM_ERR_INVALID);
    EXPECT_WITH(completion_bytes, 32, SIM_ERR_INVALID);
    EXPECT_WITH(completion_bytes, 64, SIM_OK);
    EXPECT_WITH(completion_bytes, 128, SIM_OK);
    EXPECT_WITH(completion_bytes, 256, SIM_ERR_INVALID);
    EXPECT_WITH(l2_bytes, 0, SIM_ERR_INVALID);
    EXPECT_WITH(l2_bytes, 512, SIM_ERR_INVALID);
    EXPECT_WITH(l2_bytes, 1024, SIM_OK);
    EXPECT_WITH(l2_bytes, 1536, SIM_ERR_INVALID);
    EXPECT_WITH(copy_engines, 0, SIM_ERR_INVALID);
    EXPECT_WITH(copy_engines, 1, SIM_OK);
    EXPECT_WITH(copy_engines, 2, SIM_OK);
    EXPECT_WITH(copy_engines, 3, SIM_ERR_INVALID);
    EXPECT_WITH(mrrs_bytes, 64, SIM_ERR_INVALID);
    EXPECT_WITH(mrrs_bytes, 8192, SIM_ERR_INVALID);
    EXPECT_WITH(copy_reads_max, 0, SIM_ERR_INVALID);
    EXPECT_WITH(copy_reads_max, 1, SIM_OK);
    EXPECT_WITH(memory_bytes_per_us, 0, SIM_ERR_INVALID);
    EXPECT_WITH(memory_bytes_per_us, 1, SIM_OK);
    EXPECT_WITH(flops_per_us, 0, SIM_ERR_INVALID);
    EXPECT_WITH(flops_per_us, 1, SIM_OK);
    struct gpu_config config = *gpu_get_config(fixture.gpus[0]);
    gpu_t *gpu = NULL;
    EXPECT_EQ(gpu_create(fixture.sim, fixture.pool, "gpu0", &config, &gpu), SIM_ERR_EXISTS);
    enum { NAME_BYTES = 64 }; // with its end
    char name[NAME_BYTES + 1] = "";
    memset(name, 'n', NAME_BYTES);
    EXPECT_EQ(gpu_create(fixture.sim, fixture.pool, name, &config, &gpu), SIM_ERR_INVALID);
    name[NAME_BYTES - 1] = '\0';
    EXPECT_EQ(gpu_create(fixture.sim, fixture.pool, name, &config, &gpu), SIM_OK);
    gpu_destroy(gpu);
    fixture_fini(&fixture);
}

TEST(GpuMemory, LeavesATagForTheReadBehindTheWritesOfACopy)
{
    struct fixture fixture;
    struct gpu_config config = *gpu_get_config(gpu_plain(&fixture));
    gpu_t *gpu = NULL;
    config.copy_reads_max = 256; // every tag of 8 bits
    EXPECT_EQ(gpu_create(fixture.sim, fixture.pool, "other", &config, &gpu), SIM_ERR_INVALID);
    config.copy_reads_max = 255;
    EXPECT_EQ(gpu_create(fixture.sim, fixture.pool, "other", &config, &gpu), SIM_OK);
    gpu_destroy(gpu);
    fixture_fini(&fixture);
}

struct sleeper {
    struct fixture *fixture;
    uint64_t address, deadline_ps, woken_ps;
    bool written;
};

static void sleep_until_written(void *arg)
{
    struct sleeper *sleeper = arg;
    sleeper->written = gpu_memory_wait_write(sleeper->fixture->gpus[0], sleeper->address, sleeper->deadline_ps, NULL);
    sleeper->woken_ps = sim_now_ps(sleeper->fixture->sim);
}

TEST(GpuMemory, WakesWhoWaitsForTheWordThatIsWritten)
{
    struct fixture fixture;
    (void)gpu_plain(&fixture);
    uint64_t device, bus = fixture_pinned(&fixture, 0, 100, &device);
    struct sleeper word = {.fixture = &fixture, .address = device + 8, .deadline_ps = SIM_NEVER_PS};
    struct sleeper next = {.fixture = &fixture, .address = device + 16, .deadline_ps = 5 * US};
    ASSERT_EQ(sim_thread_spawn(fixture.sim, "word", sleep_until_written, &word), SIM_OK);
    ASSERT_EQ(sim_thread_spawn(fixture.sim, "next", sleep_until_written, &next), SIM_OK);
    probe_write(&fixture, bus + 12, 4, "four");
    fixture_run(&fixture);
    EXPECT_TRUE(word.written);
    // 28 B at 4 B/ns, 50 ns, at 8 B/ns, and 100 ns to be visible; two flights.
    EXPECT_EQ(word.woken_ps, 7000 + 50000 + 3500 + 100000 + 4000);
    EXPECT_FALSE(next.written);
    EXPECT_EQ(next.woken_ps, 5 * US);
    fixture_fini(&fixture);
}

static void word_set(void *word)
{
    *(uint64_t *)word = 1;
}

TEST(GpuMemory, WakesWhoWaitsForAWordThatAKernelWrites)
{
    struct fixture fixture;
    gpu_t *gpu = gpu_plain(&fixture);
    uint64_t device;
    gpu_queue_t *queue;
    ASSERT_EQ(gpu_memory_alloc(gpu, 8, &device), SIM_OK);
    ASSERT_EQ(gpu_queue_create(gpu, &queue), SIM_OK);
    struct sleeper word = {.fixture = &fixture, .address = device, .deadline_ps = 100 * US};
    ASSERT_EQ(sim_thread_spawn(fixture.sim, "word", sleep_until_written, &word), SIM_OK);
    const struct gpu_work kernel = {.kind = GPU_WORK_KERNEL,
                                    .duration_ps = 3 * US,
                                    .effect = word_set,
                                    .effect_ctx = gpu_memory_at(gpu, device, 8)};
    EXPECT_EQ(gpu_queue_submit(queue, &kernel, NULL), SIM_OK);
    fixture_run(&fixture);
    EXPECT_TRUE(word.written);
    EXPECT_EQ(word.woken_ps, 5 * US + 3 * US); // launch and duration
    fixture_fini(&fixture);
}
