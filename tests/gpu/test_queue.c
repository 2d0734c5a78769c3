// Work queues, the compute unit, marks and waits.
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fixture.h"
#include "tests/shim/test.h"

enum { NOTES_MAX = 16 };

struct notes {
    sim_t *sim;
    unsigned count;
    uint64_t times_ps[NOTES_MAX];
    char names[NOTES_MAX + 1];
};

struct named {
    struct notes *notes;
    char name;
};

static void note(void *ctx, enum sim_status status)
{
    struct named *named = ctx;
    struct notes *notes = named->notes;
    EXPECT_EQ(status, SIM_OK);
    notes->names[notes->count] = named->name;
    notes->times_ps[notes->count++] = sim_now_ps(notes->sim);
}

struct queue_fixture {
    struct fixture base;
    gpu_queue_t *queues[2];
    struct notes notes;
    struct named named[26];
};

static void queue_fixture_init_as(struct queue_fixture *fixture, const struct fixture_config *config)
{
    memset(fixture, 0, sizeof *fixture);
    fixture_init(&fixture->base, config);
    fixture->notes.sim = fixture->base.sim;
    for (unsigned i = 0; i < 2; i++) {
        EXPECT_EQ(gpu_queue_create(fixture->base.gpus[0], &fixture->queues[i]), SIM_OK);
    }
}

static void queue_fixture_init(struct queue_fixture *fixture)
{
    const struct fixture_config config = fixture_config();
    queue_fixture_init_as(fixture, &config);
}

static uint64_t submit(struct queue_fixture *fixture, unsigned queue, char name, struct gpu_work work)
{
    uint64_t item = 0;
    fixture->named[name - 'a'] = (struct named){&fixture->notes, name};
    work.done = note;
    work.ctx = &fixture->named[name - 'a'];
    EXPECT_EQ(gpu_queue_submit(fixture->queues[queue], &work, &item), SIM_OK);
    return item;
}

static struct gpu_work kernel(uint64_t duration_ps)
{
    return (struct gpu_work){.kind = GPU_WORK_KERNEL, .duration_ps = duration_ps};
}

static const struct gpu_work MARK = {.kind = GPU_WORK_MARK};

TEST(Queue, RunsItsItemsInOrder)
{
    struct queue_fixture fixture;
    queue_fixture_init(&fixture);
    uint64_t device;
    ASSERT_EQ(gpu_memory_alloc(fixture.base.gpus[0], 4096, &device), SIM_OK);
    const struct gpu_work in = {.kind = GPU_WORK_COPY_IN, .bus_address = 2 * MIB, .destination = device, .bytes = 4096};
    EXPECT_EQ(submit(&fixture, 0, 'a', kernel(50 * US)), 1);
    EXPECT_EQ(submit(&fixture, 0, 'b', in), 2);
    EXPECT_EQ(submit(&fixture, 0, 'c', MARK), 3);
    EXPECT_EQ(submit(&fixture, 0, 'd', kernel(1 * US)), 4);
    EXPECT_EQ(gpu_queue_submitted(fixture.queues[0]), 4);
    EXPECT_EQ(gpu_queue_done(fixture.queues[0]), 0);
    fixture_run(&fixture.base);
    EXPECT_STREQ(fixture.notes.names, "abcd");
    EXPECT_EQ(fixture.notes.times_ps[0], 55 * US);
    EXPECT_GT(fixture.notes.times_ps[1], 56 * US);
    EXPECT_EQ(fixture.notes.times_ps[2], fixture.notes.times_ps[1]);
    EXPECT_EQ(fixture.notes.times_ps[3], fixture.notes.times_ps[2] + 6 * US);
    EXPECT_EQ(gpu_queue_done(fixture.queues[0]), 4);
    fixture_fini(&fixture.base);
}

TEST(Queue, KernelsOfTwoQueuesRunOneAfterTheOther)
{
    struct queue_fixture fixture;
    queue_fixture_init(&fixture);
    (void)submit(&fixture, 0, 'a', kernel(10 * US));
    (void)submit(&fixture, 1, 'b', kernel(10 * US));
    fixture_run(&fixture.base);
    EXPECT_EQ(fixture.notes.times_ps[0], 15 * US);
    EXPECT_EQ(fixture.notes.times_ps[1], 30 * US);
    fixture_fini(&fixture.base);
}

TEST(Queue, ACopyOfOneRunsBesideAKernelOfAnother)
{
    struct queue_fixture fixture;
    queue_fixture_init(&fixture);
    uint64_t device;
    ASSERT_EQ(gpu_memory_alloc(fixture.base.gpus[0], 4096, &device), SIM_OK);
    (void)submit(&fixture, 0, 'a', kernel(100 * US));
    (void)submit(&fixture, 1, 'b',
                 (struct gpu_work){.kind = GPU_WORK_COPY_OUT, .bus_address = 2 * MIB, .source = device, .bytes = 4096});
    fixture_run(&fixture.base);
    EXPECT_STREQ(fixture.notes.names, "ba");
    EXPECT_EQ(fixture.notes.times_ps[1], 105 * US);
    fixture_fini(&fixture.base);
}

TEST(Queue, AKernelTakesTheLongestOfWhatItDoes)
{
    // 200000 bytes and 1000000 operations per microsecond, 5 us to launch.
    struct queue_fixture fixture;
    queue_fixture_init(&fixture);
    struct gpu_work work = {.kind = GPU_WORK_KERNEL, .duration_ps = 1 * US, .bytes = 2000000, .flops = 3000000};
    (void)submit(&fixture, 0, 'a', work);
    work.flops = 20000000;
    (void)submit(&fixture, 0, 'b', work);
    work.duration_ps = 30 * US;
    (void)submit(&fixture, 0, 'c', work);
    fixture_run(&fixture.base);
    EXPECT_EQ(fixture.notes.times_ps[0], 15 * US);
    EXPECT_EQ(fixture.notes.times_ps[1], 15 * US + 25 * US);
    EXPECT_EQ(fixture.notes.times_ps[2], 40 * US + 35 * US);
    fixture_fini(&fixture.base);
}

TEST(Queue, AKernelTakesAPartOfAPicosecondAsAWholeOne)
{
    struct fixture_config config = fixture_config();
    config.gpu.memory_bytes_per_us = 300000;
    config.gpu.flops_per_us = 7000000;
    struct queue_fixture fixture;
    queue_fixture_init_as(&fixture, &config);
    (void)submit(&fixture, 0, 'a', (struct gpu_work){.kind = GPU_WORK_KERNEL, .bytes = 1}); // 3.3 ps
    (void)submit(&fixture, 0, 'b', (struct gpu_work){.kind = GPU_WORK_KERNEL, .flops = 8}); // 1.1 ps
    fixture_run(&fixture.base);
    EXPECT_EQ(fixture.notes.times_ps[0], 5 * US + 4);
    EXPECT_EQ(fixture.notes.times_ps[1], 5 * US + 4 + 5 * US + 2);
    fixture_fini(&fixture.base);
}

TEST(Queue, CopiesAndFillsInsideTheGpu)
{
    struct queue_fixture fixture;
    queue_fixture_init(&fixture);
    uint64_t device;
    ASSERT_EQ(gpu_memory_alloc(fixture.base.gpus[0], 200000, &device), SIM_OK);
    uint8_t *bytes = gpu_memory_at(fixture.base.gpus[0], device, 200000);
    (void)submit(&fixture, 0, 'a',
                 (struct gpu_work){.kind = GPU_WORK_FILL, .destination = device + 5, .fill = 0x7e, .bytes = 100000});
    (void)submit(
        &fixture, 0, 'b',
        (struct gpu_work){.kind = GPU_WORK_COPY, .source = device + 4, .destination = device + 100010, .bytes = 50000});
    fixture_run(&fixture.base);
    EXPECT_EQ(bytes[4], 0);
    EXPECT_EQ(bytes[5], 0x7e);
    EXPECT_EQ(bytes[100004], 0x7e);
    EXPECT_EQ(bytes[100005], 0);
    EXPECT_MEMEQ(bytes + 100010, bytes + 4, 50000);
    EXPECT_EQ(fixture.notes.times_ps[0], 5500 * NS);
    EXPECT_EQ(fixture.notes.times_ps[1], 11 * US); // every byte is read and written
    fixture_fini(&fixture.base);
}

// The simulator's resident memory of a range, as reported by the kernel.
static uint64_t resident_bytes(const uint8_t *begin, uint64_t bytes)
{
    static unsigned char pages[64 * MIB / 4096];
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), count = 0;
    const uint8_t *first = (const uint8_t *)((uintptr_t)begin & ~(uintptr_t)(page - 1));
    uint64_t span = (uint64_t)(begin + bytes - first);
    EXPECT_EQ(mincore((void *)(uintptr_t)first, span, pages), 0);
    for (uint64_t i = 0; i < (span + page - 1) / page; i++) {
        count += pages[i] & 1u;
    }
    return count * page;
}

TEST(Queue, FillsWithZerosWithoutMemory)
{
    struct queue_fixture fixture;
    queue_fixture_init(&fixture);
    const uint64_t bytes = 32 * MIB;
    uint64_t device;
    ASSERT_EQ(gpu_memory_alloc(fixture.base.gpus[0], bytes, &device), SIM_OK);
    uint8_t *memory = gpu_memory_at(fixture.base.gpus[0], device, bytes);
    memset(memory + 9 * MIB, 0x55, MIB);
    (void)submit(&fixture, 0, 'a',
                 (struct gpu_work){.kind = GPU_WORK_FILL, .destination = device + 5, .bytes = bytes - 10});
    fixture_run(&fixture.base);
    EXPECT_LE(resident_bytes(memory, bytes), 4 * 4096);
    for (uint64_t i = 0; i < 2 * MIB; i++) {
        ASSERT_EQ(memory[8 * MIB + 512 * KIB + i], 0);
    }
    memset(memory, 0x55, 300);
    (void)submit(&fixture, 0, 'b', (struct gpu_work){.kind = GPU_WORK_FILL, .destination = device + 100, .bytes = 100});
    fixture_run(&fixture.base);
    EXPECT_EQ(memory[99], 0x55);
    EXPECT_EQ(memory[100], 0);
    EXPECT_EQ(memory[199], 0);
    EXPECT_EQ(memory[200], 0x55);
    fixture_fini(&fixture.base);
}

TEST(Queue, FillsMemoryThatIsAFilesWithZeros)
{
    struct queue_fixture fixture;
    queue_fixture_init(&fixture);
    uint64_t device;
    const uint8_t zeros[100] = {0};
    uint8_t in_file[100];
    int fd = memfd_create("memory", MFD_CLOEXEC);
    ASSERT_EQ(ftruncate(fd, GPU_PAGE_BYTES), 0);
    ASSERT_EQ(gpu_memory_alloc(fixture.base.gpus[0], GPU_PAGE_BYTES, &device), SIM_OK);
    ASSERT_EQ(gpu_memory_share(fixture.base.gpus[0], device, fd), SIM_OK);
    uint8_t *memory = gpu_memory_at(fixture.base.gpus[0], device, GPU_PAGE_BYTES);
    memset(memory, 0x55, GPU_PAGE_BYTES);
    (void)submit(&fixture, 0, 'a',
                 (struct gpu_work){.kind = GPU_WORK_FILL, .destination = device, .bytes = GPU_PAGE_BYTES});
    fixture_run(&fixture.base);
    EXPECT_MEMEQ(memory + 4096, zeros, sizeof zeros);
    ASSERT_EQ(pread(fd, in_file, sizeof in_file, 4096), sizeof in_file);
    EXPECT_MEMEQ(in_file, zeros, sizeof zeros);
    fixture_fini(&fixture.base);
    close(fd);
}

TEST(Queue, WaitsForAnItemOfAnother)
{
    struct queue_fixture fixture;
    queue_fixture_init(&fixture);
    (void)submit(&fixture, 0, 'a', kernel(10 * US));
    uint64_t event = submit(&fixture, 0, 'b', MARK);
    (void)submit(&fixture, 0, 'c', kernel(10 * US));
    (void)submit(&fixture, 1, 'd', (struct gpu_work){.kind = GPU_WORK_WAIT, .queue = fixture.queues[0], .item = event});
    (void)submit(&fixture, 1, 'e', MARK);
    EXPECT_EQ(gpu_queue_destroy(fixture.queues[0]), SIM_ERR_BUSY);
    fixture_run(&fixture.base);
    EXPECT_STREQ(fixture.notes.names, "abdec");
    EXPECT_EQ(fixture.notes.times_ps[3], 15 * US);
    fixture_fini(&fixture.base);
}

TEST(Queue, AWaitForWhatIsDoneIsNoWait)
{
    struct queue_fixture fixture;
    queue_fixture_init(&fixture);
    uint64_t event = submit(&fixture, 0, 'a', MARK);
    fixture_run(&fixture.base);
    (void)submit(&fixture, 1, 'b', (struct gpu_work){.kind = GPU_WORK_WAIT, .queue = fixture.queues[0], .item = event});
    EXPECT_EQ(gpu_queue_destroy(fixture.queues[0]), SIM_OK);
    fixture_run(&fixture.base);
    EXPECT_STREQ(fixture.notes.names, "ab");
    fixture_fini(&fixture.base);
}

TEST(Queue, WaitsForAnotherGpu)
{
    struct queue_fixture fixture;
    queue_fixture_init(&fixture);
    gpu_queue_t *other;
    ASSERT_EQ(gpu_queue_create(fixture.base.gpus[1], &other), SIM_OK);
    const struct gpu_work slow = kernel(100 * US);
    uint64_t item;
    EXPECT_EQ(gpu_queue_submit(other, &slow, &item), SIM_OK);
    (void)submit(&fixture, 0, 'a', (struct gpu_work){.kind = GPU_WORK_WAIT, .queue = other, .item = item});
    fixture_run(&fixture.base);
    EXPECT_EQ(fixture.notes.times_ps[0], 105 * US);
    fixture_fini(&fixture.base);
}

TEST(Queue, MayWaitForAnotherGpuWhenBothAreDestroyed)
{
    for (unsigned waiter = 0; waiter < 2; waiter++) {
        struct queue_fixture fixture;
        queue_fixture_init(&fixture);
        gpu_queue_t *queues[2];
        const struct gpu_work slow = kernel(100 * US);
        for (unsigned i = 0; i < 2; i++) {
            ASSERT_EQ(gpu_queue_create(fixture.base.gpus[i], &queues[i]), SIM_OK);
        }
        EXPECT_EQ(gpu_queue_submit(queues[1 - waiter], &slow, NULL), SIM_OK);
        const struct gpu_work wait = {.kind = GPU_WORK_WAIT, .queue = queues[1 - waiter], .item = 1};
        EXPECT_EQ(gpu_queue_submit(queues[waiter], &wait, NULL), SIM_OK);
        fixture_run_for(&fixture.base, 10 * US);
        fixture_fini(&fixture.base);
    }
}

TEST(Queue, RefusesWhatDoesNotFit)
{
    struct queue_fixture fixture;
    queue_fixture_init(&fixture);
    uint64_t device;
    ASSERT_EQ(gpu_memory_alloc(fixture.base.gpus[0], 100, &device), SIM_OK);
    struct gpu_work work = {.kind = GPU_WORK_COPY_IN, .bus_address = 2 * MIB, .destination = device, .bytes = 101};
    EXPECT_EQ(gpu_queue_submit(fixture.queues[0], &work, NULL), SIM_ERR_RANGE);
    work.bytes = 0;
    EXPECT_EQ(gpu_queue_submit(fixture.queues[0], &work, NULL), SIM_ERR_INVALID);
    work = (struct gpu_work){.kind = GPU_WORK_COPY, .source = device, .destination = device + 1, .bytes = 100};
    EXPECT_EQ(gpu_queue_submit(fixture.queues[0], &work, NULL), SIM_ERR_RANGE);
    work = (struct gpu_work){.kind = GPU_WORK_WAIT, .queue = fixture.queues[1], .item = 1};
    EXPECT_EQ(gpu_queue_submit(fixture.queues[0], &work, NULL), SIM_ERR_INVALID);
    EXPECT_EQ(gpu_queue_submitted(fixture.queues[0]), 0);
    fixture_fini(&fixture.base);
}

TEST(Queue, KeepsMemoryItUsesFromBeingFreed)
{
    struct queue_fixture fixture;
    queue_fixture_init(&fixture);
    uint64_t device;
    ASSERT_EQ(gpu_memory_alloc(fixture.base.gpus[0], 100, &device), SIM_OK);
    (void)submit(&fixture, 0, 'a', (struct gpu_work){.kind = GPU_WORK_FILL, .destination = device, .bytes = 100});
    EXPECT_EQ(gpu_memory_free(fixture.base.gpus[0], device), SIM_ERR_BUSY);
    fixture_run(&fixture.base);
    EXPECT_EQ(gpu_memory_free(fixture.base.gpus[0], device), SIM_OK);
    fixture_fini(&fixture.base);
}

static void submit_again(void *ctx, enum sim_status status)
{
    struct queue_fixture *fixture = ctx;
    EXPECT_EQ(status, SIM_OK);
    EXPECT_EQ(gpu_queue_destroy(fixture->queues[0]), SIM_ERR_BUSY);
    (void)submit(fixture, 0, 'b', MARK);
    EXPECT_EQ(fixture->notes.count, 0);
}

TEST(Queue, TakesWorkFromTheReportOfAnItem)
{
    struct queue_fixture fixture;
    queue_fixture_init(&fixture);
    const struct gpu_work first = {.kind = GPU_WORK_MARK, .done = submit_again, .ctx = &fixture};
    EXPECT_EQ(gpu_queue_submit(fixture.queues[0], &first, NULL), SIM_OK);
    fixture_run(&fixture.base);
    EXPECT_STREQ(fixture.notes.names, "b");
    fixture_fini(&fixture.base);
}
