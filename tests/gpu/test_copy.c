// Copies of the engines over the bus.
#include <stdlib.h>
#include <string.h>

#include "fixture.h"
#include "tests/shim/test.h"

struct outcome {
    sim_t *sim;
    unsigned calls;
    enum sim_status status;
    uint64_t done_ps;
};

static void note(void *ctx, enum sim_status status)
{
    struct outcome *outcome = ctx;
    outcome->calls++;
    outcome->status = status;
    outcome->done_ps = sim_now_ps(outcome->sim);
}

static struct outcome copy(struct fixture *fixture, unsigned gpu, struct gpu_work work)
{
    struct outcome outcome = {.sim = fixture->sim};
    gpu_queue_t *queue = NULL;
    work.done = note;
    work.ctx = &outcome;
    EXPECT_EQ(gpu_queue_create(fixture->gpus[gpu], &queue), SIM_OK);
    EXPECT_EQ(gpu_queue_submit(queue, &work, NULL), SIM_OK);
    EXPECT_EQ(outcome.calls, 0);
    fixture_run(fixture);
    EXPECT_EQ(outcome.calls, 1);
    EXPECT_EQ(gpu_queue_destroy(queue), SIM_OK);
    return outcome;
}

// In a separate queue.
static void start(struct fixture *fixture, unsigned gpu, struct gpu_work work)
{
    gpu_queue_t *queue = NULL;
    EXPECT_EQ(gpu_queue_create(fixture->gpus[gpu], &queue), SIM_OK);
    EXPECT_EQ(gpu_queue_submit(queue, &work, NULL), SIM_OK);
}

static void fixture_plain(struct fixture *fixture)
{
    const struct fixture_config config = fixture_config();
    fixture_init(fixture, &config);
}

static uint64_t device_alloc(struct fixture *fixture, unsigned gpu, uint64_t bytes)
{
    uint64_t address = 0;
    EXPECT_EQ(gpu_memory_alloc(fixture->gpus[gpu], bytes, &address), SIM_OK);
    return address;
}

static const struct {
    uint64_t host, device, bytes;
} SHAPES[] = {{0, 0, 1}, {3, 5, 7}, {1, 0, 4096}, {4093, 1, 70001}, {0, 63, 512}, {511, 2, 2}, {0, 0, 65536}};

TEST(Copy, BringsAnySizeAndOffsetIn)
{
    struct fixture fixture;
    fixture_plain(&fixture);
    uint64_t host = 2 * MIB, device = device_alloc(&fixture, 0, 2 * MIB);
    for (unsigned i = 0; i < sizeof SHAPES / sizeof SHAPES[0]; i++) {
        uint8_t *from = host_memory_at(fixture.memory, host + SHAPES[i].host);
        uint8_t *to = gpu_memory_at(fixture.gpus[0], device, 2 * MIB);
        fixture_pattern(from, SHAPES[i].bytes, i + 1);
        memset(to, 0xee, MIB);
        struct outcome outcome = copy(&fixture, 0,
                                      (struct gpu_work){.kind = GPU_WORK_COPY_IN,
                                                        .bus_address = host + SHAPES[i].host,
                                                        .destination = device + 8 + SHAPES[i].device,
                                                        .bytes = SHAPES[i].bytes});
        to += 8 + SHAPES[i].device;
        EXPECT_EQ(outcome.status, SIM_OK);
        EXPECT_MEMEQ(to, from, SHAPES[i].bytes);
        EXPECT_EQ(to[-1], 0xee);
        EXPECT_EQ(to[SHAPES[i].bytes], 0xee);
    }
    fixture_fini(&fixture);
}

TEST(Copy, TakesAnySizeAndOffsetOut)
{
    struct fixture fixture;
    fixture_plain(&fixture);
    uint64_t host = 2 * MIB, device = device_alloc(&fixture, 0, 2 * MIB);
    for (unsigned i = 0; i < sizeof SHAPES / sizeof SHAPES[0]; i++) {
        uint8_t *to = host_memory_at(fixture.memory, host + 8 + SHAPES[i].host);
        uint8_t *from = gpu_memory_at(fixture.gpus[0], device + SHAPES[i].device, SHAPES[i].bytes);
        fixture_pattern(from, SHAPES[i].bytes, i + 1);
        memset(host_memory_at(fixture.memory, host), 0xee, MIB);
        struct outcome outcome = copy(&fixture, 0,
                                      (struct gpu_work){.kind = GPU_WORK_COPY_OUT,
                                                        .bus_address = host + 8 + SHAPES[i].host,
                                                        .source = device + SHAPES[i].device,
                                                        .bytes = SHAPES[i].bytes});
        EXPECT_EQ(outcome.status, SIM_OK);
        EXPECT_MEMEQ(to, from, SHAPES[i].bytes);
        EXPECT_EQ(to[-1], 0xee);
        EXPECT_EQ(to[SHAPES[i].bytes], 0xee);
    }
    fixture_fini(&fixture);
}

struct check {
    const uint8_t *at;
    uint8_t found;
};

static void check_run(void *ctx, enum sim_status status)
{
    struct check *check = ctx;
    EXPECT_EQ(status, SIM_OK);
    check->found = *check->at;
}

static void copy_out_and_check(struct fixture *fixture, uint64_t bus, const uint8_t *last)
{
    uint64_t device = device_alloc(fixture, 0, 4096);
    memset(gpu_memory_at(fixture->gpus[0], device, 4096), 0x5a, 4096);
    struct check check = {.at = last};
    start(fixture, 0,
          (struct gpu_work){.kind = GPU_WORK_COPY_OUT,
                            .bus_address = bus,
                            .source = device,
                            .bytes = 4096,
                            .done = check_run,
                            .ctx = &check});
    fixture_run(fixture);
    EXPECT_EQ(check.found, 0x5a);
}

TEST(Copy, IsVisibleToTheProcessorWhenItIsDone)
{
    struct fixture_config config = fixture_config();
    config.rc.memory_write_ps = 20 * US; // far longer than all other latencies
    struct fixture fixture;
    fixture_init(&fixture, &config);
    copy_out_and_check(&fixture, 2 * MIB, host_memory_at(fixture.memory, 2 * MIB + 4095));
    fixture_fini(&fixture);
}

TEST(Copy, IsVisibleInAnotherGpuWhenItIsDone)
{
    struct fixture_config config = fixture_config();
    config.gpu.write_ps = 20 * US;
    config.rc.peer_read_bytes = 64;
    struct fixture fixture;
    fixture_init(&fixture, &config);
    uint64_t device, bus = fixture_pinned(&fixture, 1, 4096, &device);
    copy_out_and_check(&fixture, bus, gpu_memory_at(fixture.gpus[1], device + 4095, 1));
    fixture_fini(&fixture);
}

TEST(Copy, BeginsAfterItsSetUp)
{
    struct fixture fixture;
    fixture_plain(&fixture);
    uint64_t device = device_alloc(&fixture, 0, 64);
    struct outcome outcome =
        copy(&fixture, 0,
             (struct gpu_work){.kind = GPU_WORK_COPY_IN, .bus_address = 2 * MIB, .destination = device, .bytes = 64});
    // Setup, 24 B for the request and 84 B for the completion at 8 B/ns, the read, and the write in the GPU.
    EXPECT_EQ(outcome.done_ps, 1 * US + 3 * NS + 10500 + 4 * NS + 200 * NS + 100 * NS);
    fixture_fini(&fixture);
}

TEST(Copy, KeepsNoMoreReadsOutstandingThanConfigured)
{
    struct fixture_config config = fixture_config();
    config.gpu.copy_reads_max = 3;
    config.rc.memory_read_ps = 100 * US;
    struct fixture fixture;
    fixture_init(&fixture, &config);
    uint64_t device = device_alloc(&fixture, 0, 8192);
    start(&fixture, 0,
          (struct gpu_work){.kind = GPU_WORK_COPY_IN, .bus_address = 2 * MIB, .destination = device, .bytes = 8192});
    fixture_run_for(&fixture, 50 * US);
    EXPECT_EQ(fixture_counter(&fixture, 0, "copy_reads"), 3);
    fixture_run(&fixture);
    EXPECT_EQ(fixture_counter(&fixture, 0, "copy_reads"), 16);
    fixture_fini(&fixture);
}

TEST(Copy, ReachesAnotherGpusWindowByWritesAndByReads)
{
    struct fixture fixture;
    fixture_plain(&fixture);
    uint64_t near = device_alloc(&fixture, 0, MIB), far, bus = fixture_pinned(&fixture, 1, MIB, &far);
    fixture_pattern(gpu_memory_at(fixture.gpus[0], near, MIB), MIB, 3);
    struct outcome out = copy(
        &fixture, 0, (struct gpu_work){.kind = GPU_WORK_COPY_OUT, .bus_address = bus, .source = near, .bytes = MIB});
    EXPECT_EQ(out.status, SIM_OK);
    EXPECT_MEMEQ(gpu_memory_at(fixture.gpus[1], far, MIB), gpu_memory_at(fixture.gpus[0], near, MIB), MIB);
    fixture_pattern(gpu_memory_at(fixture.gpus[1], far, MIB), MIB, 9);
    struct outcome in =
        copy(&fixture, 0,
             (struct gpu_work){.kind = GPU_WORK_COPY_IN, .bus_address = bus, .destination = near, .bytes = MIB});
    EXPECT_EQ(in.status, SIM_OK);
    EXPECT_MEMEQ(gpu_memory_at(fixture.gpus[0], near, MIB), gpu_memory_at(fixture.gpus[1], far, MIB), MIB);
    fixture_fini(&fixture);
}

TEST(Copy, BothGpusMayWriteAndReadEachOtherAcrossQpi)
{
    struct fixture_config config = fixture_k20x();
    config.far = true;
    struct fixture fixture;
    fixture_init(&fixture, &config);
    uint64_t device[2], bus[2], written = 64 * KIB;
    for (unsigned i = 0; i < 2; i++) {
        bus[i] = fixture_pinned(&fixture, i, 4 * written, &device[i]);
        fixture_pattern(gpu_memory_at(fixture.gpus[i], device[i], 2 * written), 2 * written, i + 1);
    }
    for (unsigned i = 0; i < 2; i++) {
        uint64_t other = bus[1 - i];
        start(
            &fixture, i,
            (struct gpu_work){
                .kind = GPU_WORK_COPY_OUT, .bus_address = other + 2 * written, .source = device[i], .bytes = written});
        start(&fixture, i,
              (struct gpu_work){.kind = GPU_WORK_COPY_IN,
                                .bus_address = other + written,
                                .destination = device[i] + 3 * written,
                                .bytes = written});
    }
    fixture_run(&fixture);
    for (unsigned i = 0; i < 2; i++) {
        EXPECT_MEMEQ(gpu_memory_at(fixture.gpus[i], device[i] + 2 * written, 2 * written),
                     gpu_memory_at(fixture.gpus[1 - i], device[1 - i], 2 * written), 2 * written);
    }
    fixture_fini(&fixture);
}

TEST(Copy, FromNowhereFailsAndWritesNothing)
{
    struct fixture fixture;
    fixture_plain(&fixture);
    uint64_t device = device_alloc(&fixture, 0, 8192);
    memset(gpu_memory_at(fixture.gpus[0], device, 8192), 0xee, 8192);
    struct outcome outcome = copy(
        &fixture, 0,
        (struct gpu_work){.kind = GPU_WORK_COPY_IN, .bus_address = 64 * MIB, .destination = device, .bytes = 8192});
    EXPECT_EQ(outcome.status, SIM_ERR_FAULT);
    EXPECT_EQ(*(uint8_t *)gpu_memory_at(fixture.gpus[0], device, 1), 0xee);
    EXPECT_EQ(fixture_counter(&fixture, 0, "work_faults"), 1);
    fixture_fini(&fixture);
}

TEST(Copy, FromNowhereEndsWithTheReadsThatWereSent)
{
    struct fixture_config config = fixture_config();
    config.gpu.copy_reads_max = 2; // of 16
    struct fixture fixture;
    fixture_init(&fixture, &config);
    uint64_t device = device_alloc(&fixture, 0, 8192);
    struct outcome outcome = copy(
        &fixture, 0,
        (struct gpu_work){.kind = GPU_WORK_COPY_IN, .bus_address = 64 * MIB, .destination = device, .bytes = 8192});
    EXPECT_EQ(outcome.status, SIM_ERR_FAULT);
    EXPECT_EQ(fixture_counter(&fixture, 0, "copy_reads"), 2);
    fixture_fini(&fixture);
}

TEST(Copy, BehindOneThatFailedIsDone)
{
    struct fixture fixture;
    fixture_plain(&fixture);
    uint64_t device = device_alloc(&fixture, 0, 512);
    struct gpu_work work = {.kind = GPU_WORK_COPY_IN, .bus_address = 64 * MIB, .destination = device, .bytes = 512};
    EXPECT_EQ(copy(&fixture, 0, work).status, SIM_ERR_FAULT);
    work.bus_address = 2 * MIB;
    fixture_pattern(host_memory_at(fixture.memory, 2 * MIB), 512, 1);
    EXPECT_EQ(copy(&fixture, 0, work).status, SIM_OK);
    EXPECT_MEMEQ(gpu_memory_at(fixture.gpus[0], device, 512), host_memory_at(fixture.memory, 2 * MIB), 512);
    fixture_fini(&fixture);
}

TEST(Copy, IntoAWindowWithoutAPinFails)
{
    struct fixture fixture;
    fixture_plain(&fixture);
    uint64_t device = device_alloc(&fixture, 0, 4096);
    struct outcome outcome = copy(
        &fixture, 0,
        (struct gpu_work){.kind = GPU_WORK_COPY_OUT, .bus_address = FIXTURE_BAR(1), .source = device, .bytes = 4096});
    EXPECT_EQ(outcome.status, SIM_ERR_FAULT);
    EXPECT_EQ(fixture_counter(&fixture, 1, "unsupported_writes"), 16);
    fixture_fini(&fixture);
}

static void fail_by_link(enum gpu_work_kind kind)
{
    struct fixture fixture;
    fixture_plain(&fixture);
    uint64_t device = device_alloc(&fixture, 0, MIB);
    struct outcome outcomes[2] = {{.sim = fixture.sim}, {.sim = fixture.sim}};
    for (unsigned i = 0; i < 2; i++) {
        start(&fixture, 0,
              (struct gpu_work){.kind = kind,
                                .bus_address = 2 * MIB,
                                .source = device,
                                .destination = device,
                                .bytes = MIB,
                                .done = note,
                                .ctx = &outcomes[i]});
    }
    fixture_run_for(&fixture, 20 * US);
    pcie_link_set_down(fixture.links[0]);
    fixture_run(&fixture);
    EXPECT_EQ(outcomes[0].status, SIM_ERR_FAULT);
    EXPECT_EQ(outcomes[1].status, SIM_ERR_FAULT);
    EXPECT_EQ(outcomes[0].calls, 1);
    EXPECT_EQ(outcomes[1].calls, 1);
    fixture_fini(&fixture);
}

TEST(Copy, FailsWhenTheLinkGoesDownAndSoDoesTheNext)
{
    fail_by_link(GPU_WORK_COPY_IN);
    fail_by_link(GPU_WORK_COPY_OUT);
}

TEST(Copy, FailsWhenTheLinkGoesDownUnderTheReadBehindItsWrites)
{
    struct fixture_config config = fixture_config();
    config.rc.memory_read_ps = 100 * US;
    struct fixture fixture;
    fixture_init(&fixture, &config);
    uint64_t device = device_alloc(&fixture, 0, 64);
    struct outcome outcome = {.sim = fixture.sim};
    start(&fixture, 0,
          (struct gpu_work){.kind = GPU_WORK_COPY_OUT,
                            .bus_address = 2 * MIB,
                            .source = device,
                            .bytes = 64,
                            .done = note,
                            .ctx = &outcome});
    fixture_run_for(&fixture, 10 * US);
    EXPECT_EQ(fixture_counter(&fixture, 0, "copy_write_bytes"), 64);
    EXPECT_EQ(outcome.calls, 0);
    pcie_link_set_down(fixture.links[0]);
    fixture_run(&fixture);
    EXPECT_EQ(outcome.calls, 1);
    EXPECT_EQ(outcome.status, SIM_ERR_FAULT);
    fixture_fini(&fixture);
}

TEST(Copy, BothDirectionsRunAtOnceWithTwoEnginesOnly)
{
    uint64_t ps[3];
    for (uint32_t engines = 1; engines <= 2; engines++) {
        struct fixture_config config = fixture_config();
        config.gpu.copy_engines = engines;
        struct fixture fixture;
        fixture_init(&fixture, &config);
        uint64_t device = device_alloc(&fixture, 0, MIB);
        for (unsigned out = 0; out < 2; out++) {
            start(&fixture, 0,
                  (struct gpu_work){.kind = out == 1 ? GPU_WORK_COPY_OUT : GPU_WORK_COPY_IN,
                                    .bus_address = (2 + 2 * out) * MIB,
                                    .source = device,
                                    .destination = device,
                                    .bytes = MIB});
        }
        fixture_run(&fixture);
        ps[engines] = sim_now_ps(fixture.sim);
        fixture_fini(&fixture);
    }
    EXPECT_BETWEEN(ps[1] * 100 / ps[2], 170, 205);
}

TEST(Copy, MayBeUnderWayWhenTheGpuIsDestroyed)
{
    struct fixture fixture;
    fixture_plain(&fixture);
    uint64_t device = device_alloc(&fixture, 0, MIB);
    gpu_queue_t *queue;
    ASSERT_EQ(gpu_queue_create(fixture.gpus[0], &queue), SIM_OK);
    const struct gpu_work in = {.kind = GPU_WORK_COPY_IN, .bus_address = 2 * MIB, .destination = device, .bytes = MIB};
    EXPECT_EQ(gpu_queue_submit(queue, &in, NULL), SIM_OK);
    EXPECT_EQ(gpu_queue_submit(queue, &in, NULL), SIM_OK);
    fixture_run_for(&fixture, 20 * US);
    fixture_fini(&fixture);
}

// A notification in host memory may be seen while the data before it are not yet visible; work launched then must see
// the data.
TEST(Copy, OfWhatHasArrivedWaitsUntilItIsVisible)
{
    struct fixture fixture;
    struct fixture_config config = fixture_config();
    config.gpu.launch_ps = 100 * NS;
    config.gpu.write_ps = 9 * US;
    fixture_init(&fixture, &config);
    uint64_t device, inside = 0, bus;
    uint8_t data[64];
    bus = fixture_pinned(&fixture, 0, GPU_PAGE_BYTES, &device);
    inside = device_alloc(&fixture, 0, 64);
    fixture_pattern(data, sizeof data, 3);
    probe_write(&fixture, bus, sizeof data, data);
    fixture_run_for(&fixture, 500 * NS);
    EXPECT_EQ(fixture_counter(&fixture, 0, "bar_writes"), 1); // the write has arrived
    start(&fixture, 0, (struct gpu_work){.kind = GPU_WORK_COPY, .source = device, .destination = inside, .bytes = 64});
    struct outcome outcome = copy(
        &fixture, 0, (struct gpu_work){.kind = GPU_WORK_COPY_OUT, .source = device, .bus_address = 4096, .bytes = 64});
    EXPECT_MEMEQ(gpu_memory_at(fixture.gpus[0], inside, 64), data, sizeof data);
    EXPECT_MEMEQ(host_memory_at(fixture.memory, 4096), data, sizeof data);
    EXPECT_GT(outcome.done_ps, 9 * US);
    fixture_fini(&fixture);
}

// Work waits only for earlier writes: a stream of writes does not delay it.
TEST(Copy, DoesNotWaitForWritesThatComeLater)
{
    struct fixture fixture;
    fixture_plain(&fixture);
    uint64_t bus = fixture_pinned(&fixture, 0, 512 * KIB, NULL), device = device_alloc(&fixture, 0, 64);
    uint8_t data[256] = {0};
    for (uint64_t offset = 0; offset < 512 * KIB; offset += sizeof data) { // 140 us of the probe's link
        probe_write(&fixture, bus + offset, sizeof data, data);
    }
    struct outcome outcome = copy(
        &fixture, 0, (struct gpu_work){.kind = GPU_WORK_COPY_OUT, .source = device, .bus_address = 4096, .bytes = 64});
    EXPECT_LT(outcome.done_ps, 10 * US);
    EXPECT_GT(sim_now_ps(fixture.sim), 100 * US);
    fixture_fini(&fixture);
}
