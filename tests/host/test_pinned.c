// Memory of a program, with an owner in the test: its addresses are not real memory.
#include <string.h>

#include "bench.h"

#define MIB      (1ull << 20)
#define PAGE     4096u
#define BASE     0x7fff12345000ull // of the owner's memory, a multiple of a page
#define PAGES    4u
#define FIRST    (64 * MIB) // the first bus page after the bench's memory
#define NEVER_VA 0x1000ull

struct process {
    struct host_owner owner;
    uint8_t bytes[PAGES * PAGE];
    bool lost; // it has lost its pages
    unsigned asked, notified;
    uint64_t notified_va;
    uint32_t notified_bytes, all_notified_bytes;
};

static bool process_read(void *ctx, uint64_t va, void *data, uint32_t bytes)
{
    struct process *process = ctx;
    process->asked++;
    EXPECT_EQ(va / PAGE, (va + bytes - 1) / PAGE);
    if (!process->lost) {
        memcpy(data, process->bytes + (va - BASE), bytes);
    }
    return !process->lost;
}

static bool process_write(void *ctx, uint64_t va, const void *data, uint32_t bytes)
{
    struct process *process = ctx;
    process->asked++;
    EXPECT_EQ(va / PAGE, (va + bytes - 1) / PAGE);
    if (!process->lost) {
        memcpy(process->bytes + (va - BASE), data, bytes);
    }
    return !process->lost;
}

static void process_written(void *ctx, uint64_t va, uint32_t bytes)
{
    struct process *process = ctx;
    process->notified++;
    process->notified_va = va;
    process->notified_bytes = bytes;
    process->all_notified_bytes += bytes;
}

static const struct host_owner_ops process_ops = {
    .read = process_read, .write = process_write, .written = process_written};

static struct process process_make(void)
{
    return (struct process){.owner = {.ops = &process_ops}};
}

struct pinned {
    struct bench bench;
    struct process process;
    uint64_t bus[PAGES + 1];
};

// All pages are those of a process.
static void pinned_init(struct pinned *p)
{
    bench_init(&p->bench);
    p->process = process_make();
    p->process.owner.ctx = &p->process;
    ASSERT_EQ(host_memory_pin(p->bench.memory, &p->process.owner, BASE, PAGES * PAGE, p->bus), SIM_OK);
}

static bool device_write(struct pinned *p, uint64_t bus, const void *data, uint32_t bytes)
{
    return host_memory_pcie_ops.claims(p->bench.memory, bus, bytes) &&
           host_memory_pcie_ops.write(p->bench.memory, bus, data, bytes);
}

static bool device_read(struct pinned *p, uint64_t bus, void *data, uint32_t bytes)
{
    return host_memory_pcie_ops.claims(p->bench.memory, bus, bytes) &&
           host_memory_pcie_ops.read(p->bench.memory, bus, data, bytes);
}

// --- bytes -----------------------------------------------------------------------------------------------------------

TEST(PinnedMemory, IsReadAndWrittenByDevicesWhereItsOwnerHasIt)
{
    struct pinned p;
    char back[8] = "";
    pinned_init(&p);
    EXPECT_TRUE(device_write(&p, p.bus[2] + 5, "program", 8));
    EXPECT_MEMEQ(p.process.bytes + 2 * PAGE + 5, "program", 8);
    memcpy(p.process.bytes + PAGE + 100, "changed", 8);
    EXPECT_TRUE(device_read(&p, p.bus[1] + 100, back, 8));
    EXPECT_STREQ(back, "changed");
    bench_fini(&p.bench);
}

TEST(PinnedMemory, IsAskedForPageByPageWhenAnAccessCrossesThem)
{
    struct pinned p;
    uint8_t data[600], back[600];
    pinned_init(&p);
    memset(data, 7, sizeof data);
    ASSERT_EQ(p.bus[1], p.bus[0] + PAGE);
    EXPECT_TRUE(device_write(&p, p.bus[0] + PAGE - 300, data, sizeof data));
    EXPECT_MEMEQ(p.process.bytes + PAGE - 300, data, sizeof data);
    EXPECT_TRUE(device_read(&p, p.bus[0] + PAGE - 300, back, sizeof back));
    EXPECT_MEMEQ(back, data, sizeof data);
    EXPECT_EQ(p.process.asked, 4);
    bench_fini(&p.bench);
}

TEST(PinnedMemory, TellsItsOwnerOfEveryWriteOfADevice)
{
    struct pinned p;
    uint64_t word;
    pinned_init(&p);
    EXPECT_TRUE(device_write(&p, p.bus[3] + 16, "12345678", 8));
    EXPECT_EQ(p.process.notified, 1);
    EXPECT_EQ(p.process.notified_va, BASE + 3 * PAGE + 16);
    EXPECT_EQ(p.process.notified_bytes, 8);
    EXPECT_TRUE(device_read(&p, p.bus[3] + 16, &word, 8));
    EXPECT_EQ(p.process.notified, 1);
    bench_fini(&p.bench);
}

TEST(PinnedMemory, TellsItsOwnerOfThePartOfAWriteInEachPage)
{
    struct pinned p;
    const uint8_t data[600] = {1};
    pinned_init(&p);
    EXPECT_TRUE(device_write(&p, p.bus[0] + PAGE - 200, data, sizeof data));
    EXPECT_EQ(p.process.notified, 2);
    EXPECT_EQ(p.process.notified_va, BASE + PAGE);
    EXPECT_EQ(p.process.notified_bytes, 400);
    EXPECT_EQ(p.process.all_notified_bytes, 600);
    bench_fini(&p.bench);
}

// --- bus pages -------------------------------------------------------------------------------------------------------

TEST(PinnedMemory, HasBusPagesByTheOrderOfPinningAndNotByItsAddresses)
{
    struct bench b;
    struct process process = process_make();
    uint64_t high[2], low[1];
    bench_init(&b);
    EXPECT_EQ(host_memory_pin(b.memory, &process.owner, BASE + 4095, 2, high), SIM_OK);
    EXPECT_EQ(host_memory_pin(b.memory, &process.owner, NEVER_VA, 1, low), SIM_OK);
    EXPECT_EQ(high[0], FIRST);
    EXPECT_EQ(high[1], FIRST + PAGE);
    EXPECT_EQ(low[0], FIRST + 2 * PAGE);
    bench_fini(&b);
}

TEST(PinnedMemory, SharesTheBusPageOfAPageThatIsPinnedTwice)
{
    struct pinned p;
    uint64_t again[2], address = 0;
    pinned_init(&p);
    EXPECT_EQ(host_memory_pin(p.bench.memory, &p.process.owner, BASE + PAGE + 1, PAGE, again), SIM_OK);
    EXPECT_EQ(again[0], p.bus[1]);
    EXPECT_EQ(again[1], p.bus[2]);
    host_memory_unpin(p.bench.memory, p.bus, PAGES);
    EXPECT_FALSE(host_memory_pcie_ops.claims(p.bench.memory, p.bus[0], 1));
    EXPECT_TRUE(host_memory_pcie_ops.claims(p.bench.memory, p.bus[1], 2 * PAGE));
    EXPECT_FALSE(host_memory_pcie_ops.claims(p.bench.memory, p.bus[1], 2 * PAGE + 1));
    EXPECT_FALSE(host_memory_pinned_address(p.bench.memory, &p.process.owner, BASE, &address));
    EXPECT_TRUE(host_memory_pinned_address(p.bench.memory, &p.process.owner, BASE + PAGE + 9, &address));
    EXPECT_EQ(address, p.bus[1] + 9);
    bench_fini(&p.bench);
}

TEST(PinnedMemory, KeepsTheSameAddressesOfTwoOwnersApart)
{
    struct pinned p;
    struct process other = process_make();
    uint64_t theirs[1];
    other.owner.ctx = &other;
    pinned_init(&p);
    EXPECT_EQ(host_memory_pin(p.bench.memory, &other.owner, BASE, 1, theirs), SIM_OK);
    EXPECT_TRUE(device_write(&p, theirs[0], "theirs", 7));
    EXPECT_STREQ((const char *)other.bytes, "theirs");
    EXPECT_EQ(p.process.bytes[0], 0);
    bench_fini(&p.bench);
}

TEST(PinnedMemory, GivesAFreedBusPageToTheNextOneOnlyWhenOthersAreUsedUp)
{
    struct bench b;
    struct process process = process_make();
    uint64_t bus = 0;
    bench_init(&b);
    for (unsigned i = 0; i < 64; i++) {
        EXPECT_EQ(host_memory_pin(b.memory, &process.owner, BASE + i * PAGE, 1, &bus), SIM_OK);
        EXPECT_EQ(bus, FIRST + i * PAGE);
        host_memory_unpin(b.memory, &bus, 1);
    }
    EXPECT_EQ(host_memory_pin(b.memory, &process.owner, BASE, 1, &bus), SIM_OK);
    EXPECT_EQ(bus, FIRST);
    bench_fini(&b);
}

TEST(PinnedMemory, FindsEachOfManyPages)
{
    struct bench b;
    struct process process = process_make();
    static uint64_t bus[5000];
    uint64_t address = 0;
    bench_init(&b);
    EXPECT_EQ(host_memory_pin(b.memory, &process.owner, BASE, sizeof bus / sizeof *bus * PAGE, bus), SIM_OK);
    for (unsigned i = 0; i < sizeof bus / sizeof *bus; i++) {
        EXPECT_TRUE(host_memory_pinned_address(b.memory, &process.owner, BASE + i * PAGE + 1, &address));
        EXPECT_EQ(address, bus[i] + 1);
    }
    bench_fini(&b);
}

// The pages of the process fill the table but for one place, which other owners have one after the other.
TEST(PinnedMemory, FindsPagesWhenThoseOfOwnersThatHaveGoneAreUnpinned)
{
    struct bench b;
    struct process process = process_make(), other = process_make();
    uint64_t bus[63], theirs = 0, address = 0;
    bench_init(&b);
    ASSERT_EQ(host_memory_pin(b.memory, &process.owner, BASE, sizeof bus / sizeof *bus * PAGE, bus), SIM_OK);
    for (unsigned round = 0; round < 64; round++) {
        ASSERT_EQ(host_memory_pin(b.memory, &other.owner, BASE + round * PAGE, 1, &theirs), SIM_OK);
        host_memory_owner_gone(b.memory, &other.owner);
        EXPECT_FALSE(host_memory_pinned_address(b.memory, &other.owner, BASE + round * PAGE, &address));
        host_memory_unpin(b.memory, &theirs, 1);
        for (unsigned i = 0; i < sizeof bus / sizeof *bus; i++) {
            TEST_TRACE("round %u, page %u", round, i);
            ASSERT_TRUE(host_memory_pinned_address(b.memory, &process.owner, BASE + i * PAGE, &address));
            ASSERT_EQ(address, bus[i]);
        }
    }
    bench_fini(&b);
}

// An owner that has gone keeps 40 bus pages, so that there is an unpinned one when the 65th page of the other is pinned.
TEST(PinnedMemory, DoesNotFindAnUnpinnedPageHoweverManyArePinnedThen)
{
    struct bench b;
    struct process process = process_make(), other = process_make();
    uint64_t theirs[40], bus[100], unpinned = 0, address = 0;
    bench_init(&b);
    ASSERT_EQ(host_memory_pin(b.memory, &other.owner, BASE, 40 * PAGE, theirs), SIM_OK);
    host_memory_owner_gone(b.memory, &other.owner);
    ASSERT_EQ(host_memory_pin(b.memory, &process.owner, BASE, 30 * PAGE, bus), SIM_OK);
    ASSERT_EQ(host_memory_pin(b.memory, &process.owner, NEVER_VA, 1, &unpinned), SIM_OK);
    host_memory_unpin(b.memory, &unpinned, 1);
    for (unsigned i = 30; i < 100; i++) {
        TEST_TRACE("page %u", i);
        ASSERT_EQ(host_memory_pin(b.memory, &process.owner, BASE + i * PAGE, 1, &bus[i]), SIM_OK);
        ASSERT_FALSE(host_memory_pinned_address(b.memory, &process.owner, NEVER_VA, &address));
    }
    bench_fini(&b);
}

// --- refusals --------------------------------------------------------------------------------------------------------

TEST(PinnedMemory, RefusesMoreThanTheMemoryHasAndPinsNothingThen)
{
    struct bench b;
    struct process process = process_make();
    static uint64_t bus[64 * MIB / PAGE + 1];
    bench_init(&b);
    EXPECT_EQ(host_memory_pin(b.memory, &process.owner, BASE, 64 * MIB + 1, bus), SIM_ERR_NO_MEMORY);
    EXPECT_FALSE(host_memory_pcie_ops.claims(b.memory, FIRST, 1));
    EXPECT_EQ(host_memory_pin(b.memory, &process.owner, BASE, 64 * MIB, bus), SIM_OK);
    EXPECT_EQ(host_memory_pin(b.memory, &process.owner, NEVER_VA, 1, bus), SIM_ERR_NO_MEMORY);
    bench_fini(&b);
}

TEST(PinnedMemory, RefusesRangesOfNoBytesAndOnesThatWrap)
{
    struct bench b;
    struct process process = process_make();
    uint64_t bus[2];
    bench_init(&b);
    EXPECT_EQ(host_memory_pin(b.memory, &process.owner, BASE, 0, bus), SIM_ERR_INVALID);
    EXPECT_EQ(host_memory_pin(b.memory, &process.owner, UINT64_MAX - 4, 6, bus), SIM_ERR_INVALID);
    bench_fini(&b);
}

// --- memory that is released -----------------------------------------------------------------------------------------

TEST(PinnedMemory, FailsTheAccessWhenItsOwnerHasLostThePage)
{
    struct pinned p;
    uint64_t word = 0;
    pinned_init(&p);
    p.process.lost = true;
    EXPECT_FALSE(device_read(&p, p.bus[0], &word, 8));
    EXPECT_FALSE(device_write(&p, p.bus[0], &word, 8));
    EXPECT_EQ(p.process.asked, 2);
    EXPECT_EQ(p.process.notified, 0);
    EXPECT_EQ(bench_counter(&p.bench, "memory", "writes") + bench_counter(&p.bench, "memory", "reads"), 0);
    bench_fini(&p.bench);
}

TEST(PinnedMemory, AsksAnOwnerThatHasGoneNoMoreAndKeepsItsPagesUntilTheyAreUnpinned)
{
    struct pinned p;
    struct process other = process_make();
    uint64_t word = 0, bus[2 * 64];
    pinned_init(&p);
    host_memory_owner_gone(p.bench.memory, &p.process.owner);
    EXPECT_FALSE(device_read(&p, p.bus[0], &word, 8));
    EXPECT_FALSE(device_write(&p, p.bus[0], &word, 8));
    EXPECT_EQ(p.process.asked, 0);
    EXPECT_EQ(host_memory_pin(p.bench.memory, &other.owner, BASE, sizeof bus / sizeof *bus * PAGE, bus), SIM_OK);
    EXPECT_EQ(bus[0], FIRST + PAGES * PAGE);
    host_memory_unpin(p.bench.memory, p.bus, PAGES);
    EXPECT_FALSE(host_memory_pcie_ops.claims(p.bench.memory, p.bus[0], 1));
    bench_fini(&p.bench);
}

// --- waiting ---------------------------------------------------------------------------------------------------------

static void poll_word(void *arg)
{
    struct pinned *p = arg;
    uint64_t address = 0;
    EXPECT_TRUE(host_memory_pinned_address(p->bench.memory, &p->process.owner, BASE + PAGE + 8, &address));
    EXPECT_TRUE(host_core_poll(p->bench.core, address, UINT64_MAX, 9, SIM_NEVER_PS));
    EXPECT_EQ(sim_now_ps(p->bench.sim), 50 * NS); // the sample at 40 ns, and the iteration that saw it
}

TEST(PinnedMemory, WakesWhoPollsAWordOfIt)
{
    struct pinned p;
    pinned_init(&p);
    bench_write_later(&p.bench, 12 * NS, p.bus[1] + 16, 9); // the next word
    bench_write_later(&p.bench, 35 * NS, p.bus[1] + 8, 9);
    EXPECT_EQ(bench_run(&p.bench, poll_word), SIM_RUN_DONE);
    bench_fini(&p.bench);
}

static void poll_lost_word(void *arg)
{
    struct pinned *p = arg;
    EXPECT_FALSE(host_core_poll(p->bench.core, p->bus[0], UINT64_MAX, 0, 100 * NS));
}

TEST(PinnedMemory, NeverHasTheValueThatIsPolledForWhenItIsGone)
{
    struct pinned p;
    pinned_init(&p);
    p.process.lost = true;
    EXPECT_EQ(bench_run(&p.bench, poll_lost_word), SIM_RUN_DONE);
    bench_fini(&p.bench);
}

struct unpinning {
    sim_event_t event;
    struct pinned *pinned;
};

static void unpin_run(void *ctx)
{
    struct unpinning *unpinning = ctx;
    host_memory_unpin(unpinning->pinned->bench.memory, unpinning->pinned->bus, PAGES);
}

static void unpin_later(struct pinned *p, struct unpinning *unpinning, uint64_t delay_ps)
{
    unpinning->pinned = p;
    sim_event_init(&unpinning->event, unpin_run, unpinning);
    sim_event_schedule(p->bench.sim, &unpinning->event, delay_ps);
}

TEST(PinnedMemory, WakesWhoPollsAWordOfItWhileAnotherPinIsLeft)
{
    struct pinned p;
    struct unpinning first;
    uint64_t again[PAGES];
    pinned_init(&p);
    ASSERT_EQ(host_memory_pin(p.bench.memory, &p.process.owner, BASE, PAGES * PAGE, again), SIM_OK);
    unpin_later(&p, &first, 12 * NS);
    bench_write_later(&p.bench, 35 * NS, p.bus[1] + 8, 9);
    EXPECT_EQ(bench_run(&p.bench, poll_word), SIM_RUN_DONE);
    bench_fini(&p.bench);
}

static void poll_word_in_vain(void *arg)
{
    struct pinned *p = arg;
    EXPECT_FALSE(host_core_poll(p->bench.core, p->bus[1] + 8, UINT64_MAX, 9, SIM_NEVER_PS));
    EXPECT_EQ(sim_now_ps(p->bench.sim), 20 * NS);
}

TEST(PinnedMemory, EndsThePollsOfItsWordsWithItsLastPin)
{
    struct pinned p;
    struct unpinning first, last;
    uint64_t again[PAGES];
    pinned_init(&p);
    ASSERT_EQ(host_memory_pin(p.bench.memory, &p.process.owner, BASE, PAGES * PAGE, again), SIM_OK);
    unpin_later(&p, &first, 12 * NS);
    unpin_later(&p, &last, 20 * NS);
    EXPECT_EQ(bench_run(&p.bench, poll_word_in_vain), SIM_RUN_DONE);
    bench_fini(&p.bench);
}
