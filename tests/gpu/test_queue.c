// Work queues, the compute unit, marks and waits.
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rig.h"
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

struct scene {
    struct rig rig;
    gpu_queue_t *queues[2];
    struct notes notes;
    struct named named[26];
};

static void scene_init(struct scene *scene)
{
    const struct rig_config config = rig_config();
    memset(scene, 0, sizeof *scene);
    rig_init(&scene->rig, &config);
    scene->notes.sim = scene->rig.sim;
    for (unsigned i = 0; i < 2; i++) {
        EXPECT_EQ(gpu_queue_create(scene->rig.gpus[0], &scene->queues[i]), SIM_OK);
    }
}

static uint64_t submit(struct scene *scene, unsigned queue, char name, struct gpu_work work)
{
    uint64_t item = 0;
    scene->named[name - 'a'] = (struct named){&scene->notes, name};
    work.done = note;
    work.ctx = &scene->named[name - 'a'];
    EXPECT_EQ(gpu_queue_submit(scene->queues[queue], &work, &item), SIM_OK);
    return item;
}

static struct gpu_work kernel(uint64_t duration_ps)
{
    return (struct gpu_work){.kind = GPU_WORK_KERNEL, .duration_ps = duration_ps};
}

static const struct gpu_work MARK = {.kind = GPU_WORK_MARK};

TEST(Queue, RunsItsItemsInOrder)
{
    struct scene s;
    scene_init(&s);
    uint64_t device;
    ASSERT_EQ(gpu_memory_alloc(s.rig.gpus[0], 4096, &device), SIM_OK);
    const struct gpu_work in = {.kind = GPU_WORK_COPY_IN, .bus_address = 2 * MIB, .destination = device, .bytes = 4096};
    EXPECT_EQ(submit(&s, 0, 'a', kernel(50 * US)), 1);
    EXPECT_EQ(submit(&s, 0, 'b', in), 2);
    EXPECT_EQ(submit(&s, 0, 'c', MARK), 3);
    EXPECT_EQ(submit(&s, 0, 'd', kernel(1 * US)), 4);
    EXPECT_EQ(gpu_queue_submitted(s.queues[0]), 4);
    EXPECT_EQ(gpu_queue_done(s.queues[0]), 0);
    rig_run(&s.rig);
    EXPECT_STREQ(s.notes.names, "abcd");
    EXPECT_EQ(s.notes.times_ps[0], 55 * US);
    EXPECT_TRUE(s.notes.times_ps[1] > 56 * US);
    EXPECT_EQ(s.notes.times_ps[2], s.notes.times_ps[1]);
    EXPECT_EQ(s.notes.times_ps[3], s.notes.times_ps[2] + 6 * US);
    EXPECT_EQ(gpu_queue_done(s.queues[0]), 4);
    rig_fini(&s.rig);
}

TEST(Queue, KernelsOfTwoQueuesRunOneAfterTheOther)
{
    struct scene s;
    scene_init(&s);
    (void)submit(&s, 0, 'a', kernel(10 * US));
    (void)submit(&s, 1, 'b', kernel(10 * US));
    rig_run(&s.rig);
    EXPECT_EQ(s.notes.times_ps[0], 15 * US);
    EXPECT_EQ(s.notes.times_ps[1], 30 * US);
    rig_fini(&s.rig);
}

TEST(Queue, ACopyOfOneRunsBesideAKernelOfAnother)
{
    struct scene s;
    scene_init(&s);
    uint64_t device;
    ASSERT_EQ(gpu_memory_alloc(s.rig.gpus[0], 4096, &device), SIM_OK);
    (void)submit(&s, 0, 'a', kernel(100 * US));
    (void)submit(&s, 1, 'b',
                 (struct gpu_work){.kind = GPU_WORK_COPY_OUT, .bus_address = 2 * MIB, .source = device, .bytes = 4096});
    rig_run(&s.rig);
    EXPECT_STREQ(s.notes.names, "ba");
    EXPECT_EQ(s.notes.times_ps[1], 105 * US);
    rig_fini(&s.rig);
}

TEST(Queue, AKernelTakesTheLongestOfWhatItDoes)
{
    // 200000 bytes and 1000000 operations a microsecond, 5 us to launch.
    struct scene s;
    scene_init(&s);
    struct gpu_work work = {.kind = GPU_WORK_KERNEL, .duration_ps = 1 * US, .bytes = 2000000, .flops = 3000000};
    (void)submit(&s, 0, 'a', work);
    work.flops = 20000000;
    (void)submit(&s, 0, 'b', work);
    work.duration_ps = 30 * US;
    (void)submit(&s, 0, 'c', work);
    rig_run(&s.rig);
    EXPECT_EQ(s.notes.times_ps[0], 15 * US);
    EXPECT_EQ(s.notes.times_ps[1], 15 * US + 25 * US);
    EXPECT_EQ(s.notes.times_ps[2], 40 * US + 35 * US);
    rig_fini(&s.rig);
}

TEST(Queue, CopiesAndFillsInsideTheGpu)
{
    struct scene s;
    scene_init(&s);
    uint64_t device;
    ASSERT_EQ(gpu_memory_alloc(s.rig.gpus[0], 200000, &device), SIM_OK);
    uint8_t *bytes = gpu_memory_at(s.rig.gpus[0], device, 200000);
    (void)submit(&s, 0, 'a',
                 (struct gpu_work){.kind = GPU_WORK_FILL, .destination = device + 5, .fill = 0x7e, .bytes = 100000});
    (void)submit(
        &s, 0, 'b',
        (struct gpu_work){.kind = GPU_WORK_COPY, .source = device + 4, .destination = device + 100010, .bytes = 50000});
    rig_run(&s.rig);
    EXPECT_EQ(bytes[4], 0);
    EXPECT_EQ(bytes[5], 0x7e);
    EXPECT_EQ(bytes[100004], 0x7e);
    EXPECT_EQ(bytes[100005], 0);
    EXPECT_MEMEQ(bytes + 100010, bytes + 4, 50000);
    EXPECT_EQ(s.notes.times_ps[0], 5500 * NS);
    EXPECT_EQ(s.notes.times_ps[1], 11 * US); // every byte is read and written
    rig_fini(&s.rig);
}

// Of the simulator's own memory, by what the kernel keeps of it.
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
    struct scene s;
    scene_init(&s);
    const uint64_t bytes = 32 * MIB;
    uint64_t device;
    ASSERT_EQ(gpu_memory_alloc(s.rig.gpus[0], bytes, &device), SIM_OK);
    uint8_t *memory = gpu_memory_at(s.rig.gpus[0], device, bytes);
    memset(memory + 9 * MIB, 0x55, MIB);
    (void)submit(&s, 0, 'a', (struct gpu_work){.kind = GPU_WORK_FILL, .destination = device + 5, .bytes = bytes - 10});
    rig_run(&s.rig);
    EXPECT_TRUE(resident_bytes(memory, bytes) <= 4 * 4096);
    for (uint64_t i = 0; i < 2 * MIB; i++) {
        ASSERT_EQ(memory[8 * MIB + 512 * KIB + i], 0);
    }
    memset(memory, 0x55, 300);
    (void)submit(&s, 0, 'b', (struct gpu_work){.kind = GPU_WORK_FILL, .destination = device + 100, .bytes = 100});
    rig_run(&s.rig);
    EXPECT_EQ(memory[99], 0x55);
    EXPECT_EQ(memory[100], 0);
    EXPECT_EQ(memory[199], 0);
    EXPECT_EQ(memory[200], 0x55);
    rig_fini(&s.rig);
}

TEST(Queue, WaitsForAnItemOfAnother)
{
    struct scene s;
    scene_init(&s);
    (void)submit(&s, 0, 'a', kernel(10 * US));
    uint64_t event = submit(&s, 0, 'b', MARK);
    (void)submit(&s, 0, 'c', kernel(10 * US));
    (void)submit(&s, 1, 'd', (struct gpu_work){.kind = GPU_WORK_WAIT, .queue = s.queues[0], .item = event});
    (void)submit(&s, 1, 'e', MARK);
    EXPECT_EQ(gpu_queue_destroy(s.queues[0]), SIM_ERR_BUSY);
    rig_run(&s.rig);
    EXPECT_STREQ(s.notes.names, "abdec");
    EXPECT_EQ(s.notes.times_ps[3], 15 * US);
    rig_fini(&s.rig);
}

TEST(Queue, AWaitForWhatIsDoneIsNoWait)
{
    struct scene s;
    scene_init(&s);
    uint64_t event = submit(&s, 0, 'a', MARK);
    rig_run(&s.rig);
    (void)submit(&s, 1, 'b', (struct gpu_work){.kind = GPU_WORK_WAIT, .queue = s.queues[0], .item = event});
    EXPECT_EQ(gpu_queue_destroy(s.queues[0]), SIM_OK);
    rig_run(&s.rig);
    EXPECT_STREQ(s.notes.names, "ab");
    rig_fini(&s.rig);
}

TEST(Queue, WaitsForAnotherGpu)
{
    struct scene s;
    scene_init(&s);
    gpu_queue_t *other;
    ASSERT_EQ(gpu_queue_create(s.rig.gpus[1], &other), SIM_OK);
    const struct gpu_work slow = kernel(100 * US);
    uint64_t item;
    EXPECT_EQ(gpu_queue_submit(other, &slow, &item), SIM_OK);
    (void)submit(&s, 0, 'a', (struct gpu_work){.kind = GPU_WORK_WAIT, .queue = other, .item = item});
    rig_run(&s.rig);
    EXPECT_EQ(s.notes.times_ps[0], 105 * US);
    rig_fini(&s.rig);
}

TEST(Queue, MayWaitForAnotherGpuWhenBothAreDestroyed)
{
    for (unsigned waiter = 0; waiter < 2; waiter++) {
        struct scene s;
        scene_init(&s);
        gpu_queue_t *queues[2];
        const struct gpu_work slow = kernel(100 * US);
        for (unsigned i = 0; i < 2; i++) {
            ASSERT_EQ(gpu_queue_create(s.rig.gpus[i], &queues[i]), SIM_OK);
        }
        EXPECT_EQ(gpu_queue_submit(queues[1 - waiter], &slow, NULL), SIM_OK);
        const struct gpu_work wait = {.kind = GPU_WORK_WAIT, .queue = queues[1 - waiter], .item = 1};
        EXPECT_EQ(gpu_queue_submit(queues[waiter], &wait, NULL), SIM_OK);
        rig_run_for(&s.rig, 10 * US);
        rig_fini(&s.rig);
    }
}

TEST(Queue, RefusesWhatDoesNotFit)
{
    struct scene s;
    scene_init(&s);
    uint64_t device;
    ASSERT_EQ(gpu_memory_alloc(s.rig.gpus[0], 100, &device), SIM_OK);
    struct gpu_work work = {.kind = GPU_WORK_COPY_IN, .bus_address = 2 * MIB, .destination = device, .bytes = 101};
    EXPECT_EQ(gpu_queue_submit(s.queues[0], &work, NULL), SIM_ERR_RANGE);
    work.bytes = 0;
    EXPECT_EQ(gpu_queue_submit(s.queues[0], &work, NULL), SIM_ERR_INVALID);
    work = (struct gpu_work){.kind = GPU_WORK_COPY, .source = device, .destination = device + 1, .bytes = 100};
    EXPECT_EQ(gpu_queue_submit(s.queues[0], &work, NULL), SIM_ERR_RANGE);
    work = (struct gpu_work){.kind = GPU_WORK_WAIT, .queue = s.queues[1], .item = 1};
    EXPECT_EQ(gpu_queue_submit(s.queues[0], &work, NULL), SIM_ERR_INVALID);
    EXPECT_EQ(gpu_queue_submitted(s.queues[0]), 0);
    rig_fini(&s.rig);
}

TEST(Queue, KeepsMemoryItUsesFromBeingFreed)
{
    struct scene s;
    scene_init(&s);
    uint64_t device;
    ASSERT_EQ(gpu_memory_alloc(s.rig.gpus[0], 100, &device), SIM_OK);
    (void)submit(&s, 0, 'a', (struct gpu_work){.kind = GPU_WORK_FILL, .destination = device, .bytes = 100});
    EXPECT_EQ(gpu_memory_free(s.rig.gpus[0], device), SIM_ERR_BUSY);
    rig_run(&s.rig);
    EXPECT_EQ(gpu_memory_free(s.rig.gpus[0], device), SIM_OK);
    rig_fini(&s.rig);
}

static void submit_again(void *ctx, enum sim_status status)
{
    struct scene *s = ctx;
    EXPECT_EQ(status, SIM_OK);
    EXPECT_EQ(gpu_queue_destroy(s->queues[0]), SIM_ERR_BUSY);
    (void)submit(s, 0, 'b', MARK);
    EXPECT_EQ(s->notes.count, 0);
}

TEST(Queue, TakesWorkFromTheReportOfAnItem)
{
    struct scene s;
    scene_init(&s);
    const struct gpu_work first = {.kind = GPU_WORK_MARK, .done = submit_again, .ctx = &s};
    EXPECT_EQ(gpu_queue_submit(s.queues[0], &first, NULL), SIM_OK);
    rig_run(&s.rig);
    EXPECT_STREQ(s.notes.names, "b");
    rig_fini(&s.rig);
}
