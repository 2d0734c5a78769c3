#include <string.h>

#include "bench.h"

#define MIB (1ull << 20)

TEST(HostMemory, GivesZeroedPagesAboveTheFirstMebibyte)
{
    struct bench b;
    bench_init(&b);
    uint64_t address;
    const uint8_t zeros[64] = {0};
    ASSERT_EQ(host_memory_alloc(b.memory, 100, &address), SIM_OK);
    EXPECT_EQ(address, MIB);
    memset(host_memory_at(b.memory, address), 0xff, 64);
    host_memory_free(b.memory, address);
    ASSERT_EQ(host_memory_alloc(b.memory, 100, &address), SIM_OK);
    EXPECT_EQ(address, MIB);
    EXPECT_MEMEQ(host_memory_at(b.memory, address), zeros, sizeof zeros);
    bench_fini(&b);
}

TEST(HostMemory, RefusesMoreThanItHas)
{
    struct bench b;
    bench_init(&b);
    uint64_t address;
    EXPECT_EQ(host_memory_alloc(b.memory, 64 * MIB, &address), SIM_ERR_NO_MEMORY);
    EXPECT_EQ(host_memory_alloc(b.memory, 0, &address), SIM_ERR_INVALID);
    EXPECT_EQ(host_memory_alloc(b.memory, 63 * MIB, &address), SIM_OK);
    bench_fini(&b);
}

TEST(HostMemory, ClaimsItsOwnRangeAndNothingBeyond)
{
    struct bench b;
    bench_init(&b);
    EXPECT_TRUE(host_memory_pcie_ops.claims(b.memory, 0, 1));
    EXPECT_TRUE(host_memory_pcie_ops.claims(b.memory, 64 * MIB - 4, 4));
    EXPECT_FALSE(host_memory_pcie_ops.claims(b.memory, 64 * MIB - 4, 5));
    EXPECT_FALSE(host_memory_pcie_ops.claims(b.memory, 64 * MIB, 1));
    EXPECT_FALSE(host_memory_pcie_ops.claims(b.memory, UINT64_MAX, 2));
    bench_fini(&b);
}

TEST(HostMemory, FindsTheBusAddressOfItsPointersOnly)
{
    struct bench b;
    bench_init(&b);
    uint64_t address = 0;
    EXPECT_TRUE(host_memory_bus_address(b.memory, host_memory_at(b.memory, 3 * MIB + 5), &address));
    EXPECT_EQ(address, 3 * MIB + 5);
    EXPECT_FALSE(host_memory_bus_address(b.memory, &address, &address));
    bench_fini(&b);
}

static void wait_for_word(void *arg)
{
    struct bench *b = arg;
    EXPECT_TRUE(host_memory_wait_write(b->memory, 2 * MIB, SIM_NEVER_PS, NULL));
    EXPECT_EQ(sim_now_ps(b->sim), 30 * NS);
}

TEST(HostMemory, WakesAWaiterByAWriteThatTouchesItsWordAndByNoOther)
{
    struct bench b;
    bench_init(&b);
    bench_write_later(&b, 10 * NS, 2 * MIB - 8, 1);         // ends right before
    bench_write_later(&b, 20 * NS, 2 * MIB + 8, 1);         // begins right after
    bench_write_later(&b, 25 * NS, 2 * MIB + 64 * 4096, 1); // same bucket, other page
    bench_write_later(&b, 30 * NS, 2 * MIB + 7, 1);         // its last byte
    EXPECT_EQ(bench_run(&b, wait_for_word), SIM_RUN_DONE);
    bench_fini(&b);
}

static void wait_until_deadline(void *arg)
{
    struct bench *b = arg;
    EXPECT_FALSE(host_memory_wait_write(b->memory, 2 * MIB, 40 * NS, NULL));
    EXPECT_EQ(sim_now_ps(b->sim), 40 * NS);
}

TEST(HostMemory, GivesUpAtTheDeadline)
{
    struct bench b;
    bench_init(&b);
    bench_write_later(&b, 41 * NS, 2 * MIB, 1);
    EXPECT_EQ(bench_run(&b, wait_until_deadline), SIM_RUN_DONE);
    bench_fini(&b);
}

TEST(HostMemory, SaysWhoWaitsForAWordThatNobodyWrites)
{
    struct bench b;
    char text[256];
    bench_init(&b);
    EXPECT_EQ(bench_run(&b, wait_for_word), SIM_RUN_STUCK);
    EXPECT_EQ(sim_describe_waiters(b.sim, text, sizeof text), 1);
    EXPECT_CONTAINS(text, "program waits for memory: a device's write to 0x200000");
    bench_fini(&b);
}

static void wait_at(struct bench *b, uint64_t address, uint64_t when_ns)
{
    EXPECT_TRUE(host_memory_wait_write(b->memory, address, SIM_NEVER_PS, NULL));
    EXPECT_EQ(sim_now_ps(b->sim), when_ns * NS);
}

static void first_waiter(void *arg)
{
    wait_at(arg, 2 * MIB, 20);
}

static void second_waiter(void *arg)
{
    wait_at(arg, 2 * MIB + 64, 10);
}

TEST(HostMemory, KeepsSeveralWaitersOfOnePageApart)
{
    struct bench b;
    bench_init(&b);
    ASSERT_EQ(sim_thread_spawn(b.sim, "first", first_waiter, &b), SIM_OK);
    bench_write_later(&b, 10 * NS, 2 * MIB + 64, 1);
    bench_write_later(&b, 20 * NS, 2 * MIB, 1);
    EXPECT_EQ(bench_run(&b, second_waiter), SIM_RUN_DONE);
    bench_fini(&b);
}

static void any_waiter(void *arg)
{
    struct bench *b = arg;
    uint64_t seen = host_memory_changes(b->memory);
    EXPECT_FALSE(host_memory_wait_change(b->memory, seen, 5 * NS));
    EXPECT_TRUE(host_memory_wait_change(b->memory, seen, SIM_NEVER_PS));
    EXPECT_EQ(sim_now_ps(b->sim), 10 * NS);
    EXPECT_TRUE(host_memory_wait_change(b->memory, seen, SIM_NEVER_PS)); // there has been a change already
    host_memory_touch(b->memory);
    EXPECT_EQ(host_memory_changes(b->memory), seen + 2);
    EXPECT_EQ(sim_now_ps(b->sim), 10 * NS);
}

TEST(HostMemory, TellsThatAnythingWasWritten)
{
    struct bench b;
    bench_init(&b);
    bench_write_later(&b, 10 * NS, 3 * MIB + 64, 1);
    EXPECT_EQ(bench_run(&b, any_waiter), SIM_RUN_DONE);
    bench_fini(&b);
}

TEST(HostMemory, CountsAccessesOfDevicesAndTheirBytes)
{
    struct bench b;
    uint8_t data[24] = {0};
    bench_init(&b);
    EXPECT_TRUE(host_memory_pcie_ops.write(b.memory, 2 * MIB, data, 24));
    EXPECT_TRUE(host_memory_pcie_ops.read(b.memory, 2 * MIB, data, 16));
    EXPECT_TRUE(host_memory_pcie_ops.read(b.memory, 2 * MIB, data, 4));
    EXPECT_EQ(bench_counter(&b, "memory", "writes"), 1);
    EXPECT_EQ(bench_counter(&b, "memory", "written_bytes"), 24);
    EXPECT_EQ(bench_counter(&b, "memory", "reads"), 2);
    EXPECT_EQ(bench_counter(&b, "memory", "read_bytes"), 20);
    bench_fini(&b);
}

struct seen {
    unsigned writes;
    uint64_t address;
};

static void note_write(void *ctx, uint64_t bus_address, uint32_t bytes)
{
    struct seen *seen = ctx;
    seen->writes++;
    seen->address = bus_address;
    EXPECT_EQ(bytes, 8);
}

TEST(HostMemory, WatchesEveryPageOfARangeThatEndsWithinOne)
{
    struct bench b;
    struct seen seen = {0};
    const struct host_watch watch = {note_write, &seen};
    const uint64_t word = 1;
    bench_init(&b);
    ASSERT_EQ(host_memory_watch(b.memory, 2 * MIB, 4096 + 100, &watch), SIM_OK);
    EXPECT_TRUE(host_memory_pcie_ops.write(b.memory, 2 * MIB + 8, &word, sizeof word));
    EXPECT_EQ(seen.address, 2 * MIB + 8);
    EXPECT_TRUE(host_memory_pcie_ops.write(b.memory, 2 * MIB + 4096 + 16, &word, sizeof word));
    EXPECT_EQ(seen.address, 2 * MIB + 4096 + 16);
    EXPECT_TRUE(host_memory_pcie_ops.write(b.memory, 2 * MIB + 2 * 4096, &word, sizeof word));
    EXPECT_EQ(seen.writes, 2);
    bench_fini(&b);
}

TEST(HostMemory, RefusesSizesThatAreNoPages)
{
    struct bench b;
    host_memory_t *memory = NULL;
    bench_init(&b);
    EXPECT_EQ(host_memory_create(b.sim, "odd", 16 * MIB + 1, &memory), SIM_ERR_INVALID);
    EXPECT_EQ(host_memory_create(b.sim, "small", MIB, &memory), SIM_ERR_INVALID);
    EXPECT_NULL(memory);
    bench_fini(&b);
}
