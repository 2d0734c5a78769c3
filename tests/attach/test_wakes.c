// Which device writes, and which alarms, wake a thread that waits.
#include <errno.h>

#include "tests/shim/test.h"
#include "tests/support/script.h"

enum { PAGE = 4096, WRITE_US = 50, GIVE_UP_US = 200 };

// Waits for something of the flags. What a script's other thread does at WRITE_US may wake it.
static enum attach_woken await(struct attach_thread *thread, unsigned flags)
{
    const union attach_args args = {.wait = {.flags = flags, .deadline_ps = GIVE_UP_US * SIM_PS_PER_US}};
    return (enum attach_woken)script_request(thread, ATTACH_OP_WAIT, &args);
}

static void expect_woken(struct attach_thread *thread, unsigned flags)
{
    EXPECT_EQ(await(thread, flags), ATTACH_WOKEN_MEMORY);
    EXPECT_EQ(script_now_us(thread), WRITE_US);
}

static void expect_not_woken(struct attach_thread *thread, unsigned flags)
{
    EXPECT_EQ(await(thread, flags), ATTACH_WOKEN_DEADLINE);
    EXPECT_EQ(script_now_us(thread), GIVE_UP_US);
}

// Where the device of a script writes, and how much.
static uint64_t written;
static uint32_t written_bytes;

static void device_write(struct attach_thread *thread)
{
    script_sleep_until_us(thread, WRITE_US);
    script_device_writes(thread, written, written_bytes);
}

static void write_later(uint64_t bus_address, uint32_t bytes)
{
    written = bus_address;
    written_bytes = bytes;
}

// --- events ----------------------------------------------------------------------------------------------------------

static void event_queue_create(struct attach_thread *thread, uint64_t memory)
{
    (void)script_create(
        thread, (struct hca_command){.id = HCA_CMD_EQ_CREATE,
                                     .eq_create = {.base = memory, .record = memory + PAGE / 2, .entries = 16}});
}

static void event_queues_await(struct attach_thread *thread)
{
    uint64_t low = script_pinned(thread, PAGE), high = script_pinned(thread, PAGE);
    EXPECT_LT(low, high);
    event_queue_create(thread, high);
    event_queue_create(thread, low);
    write_later(high, 8);
    expect_woken(thread, ATTACH_WAIT_EVENTS);
}

TEST(Wakes, EventsOfAQueueWakeAlsoAfterAnotherOneWasCreated)
{
    script_run(&(struct script){.first = event_queues_await, .first_too = device_write});
}

static int64_t range_declare(struct attach_thread *thread, enum attach_op op, uint64_t bus_address, uint64_t bytes)
{
    union attach_args args = {.event_writes = {bus_address, bytes}};
    if (op == ATTACH_OP_IGNORE_WRITES) {
        args = (union attach_args){.ignore_writes = {bus_address, bytes}};
    }
    return script_request(thread, op, &args);
}

// More often than a process may have such ranges at a time.
static void event_ranges_end(struct attach_thread *thread)
{
    for (unsigned i = 0; i < ATTACH_RANGES + 1; i++) {
        TEST_TRACE("range %u", i);
        uint64_t memory = script_pinned(thread, PAGE);
        EXPECT_EQ(range_declare(thread, ATTACH_OP_EVENT_WRITES, memory, 64), 0);
        EXPECT_EQ(script_free(thread, memory), 0);
    }
    write_later(script_pinned(thread, PAGE), 8);
    expect_not_woken(thread, ATTACH_WAIT_EVENTS);
}

TEST(Wakes, WritesToMemoryThatTookThePlaceOfEventsAreNone)
{
    script_run(&(struct script){.first = event_ranges_end, .first_too = device_write});
}

static void other_memory_free(struct attach_thread *thread)
{
    uint64_t low = script_pinned(thread, PAGE), high = script_pinned(thread, PAGE);
    EXPECT_LT(low, high);
    EXPECT_EQ(range_declare(thread, ATTACH_OP_EVENT_WRITES, low, 64), 0);
    EXPECT_EQ(script_free(thread, high), 0);
    write_later(low, 8);
    expect_woken(thread, ATTACH_WAIT_EVENTS);
}

TEST(Wakes, EventsInMemoryStayWhereOtherMemoryIsFreed)
{
    script_run(&(struct script){.first = other_memory_free, .first_too = device_write});
}

// --- memory ----------------------------------------------------------------------------------------------------------

enum { IGNORED_BYTES = 1024 };

static void write_across_the_end(struct attach_thread *thread)
{
    uint64_t memory = script_pinned(thread, PAGE);
    EXPECT_EQ(range_declare(thread, ATTACH_OP_IGNORE_WRITES, memory, IGNORED_BYTES), 0);
    write_later(memory + IGNORED_BYTES - 8, 16);
    expect_woken(thread, ATTACH_WAIT_MEMORY);
}

static void write_before_the_end(struct attach_thread *thread)
{
    uint64_t memory = script_pinned(thread, PAGE);
    EXPECT_EQ(range_declare(thread, ATTACH_OP_IGNORE_WRITES, memory, IGNORED_BYTES), 0);
    write_later(memory + IGNORED_BYTES - 16, 16);
    expect_not_woken(thread, ATTACH_WAIT_MEMORY);
}

TEST(Wakes, AWriteThatEndsBehindIgnoredMemoryWakes)
{
    script_run(&(struct script){.first = write_across_the_end, .first_too = device_write});
    script_run(&(struct script){.first = write_before_the_end, .first_too = device_write});
}

static uint32_t region_access;
static bool region_wakes;

// Memory of the program itself, where devices may write with that access. Returns its bus address.
static uint64_t region_of_the_program(struct attach_thread *thread, uint32_t access)
{
    uint32_t pd = script_create(thread, (struct hca_command){.id = HCA_CMD_PD_CREATE});
    (void)script_create(thread,
                        (struct hca_command){
                            .id = HCA_CMD_MR_REGISTER,
                            .mr_register = {.pdn = pd, .iova = ASKERS_MEMORY, .bytes = PAGE, .access = access}});
    uint64_t bus_address = 0;
    EXPECT_TRUE(
        host_memory_pinned_address(thread->backend.memory, &thread->process->owner, ASKERS_MEMORY, &bus_address));
    return bus_address;
}

static void region_await(struct attach_thread *thread)
{
    write_later(region_of_the_program(thread, region_access), 8);
    if (region_wakes) {
        expect_woken(thread, ATTACH_WAIT_MEMORY);
    } else {
        expect_not_woken(thread, ATTACH_WAIT_MEMORY);
    }
}

// What others cannot reach is reported by completions.
TEST(Wakes, WritesToARegionWakeIfOthersMayWriteOrCountThere)
{
    static const struct {
        uint32_t access;
        bool wakes;
    } cases[] = {{HCA_LOCAL_WRITE, false},
                 {HCA_LOCAL_WRITE | HCA_REMOTE_WRITE, true},
                 {HCA_LOCAL_WRITE | HCA_REMOTE_ATOMIC, true}};
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        TEST_TRACE("access 0x%x", cases[i].access);
        region_access = cases[i].access;
        region_wakes = cases[i].wakes;
        script_run(&(struct script){.first = region_await, .first_too = device_write});
    }
}

static void pinned_await(struct attach_thread *thread)
{
    uint64_t own = region_of_the_program(thread, HCA_LOCAL_WRITE | HCA_REMOTE_WRITE);
    uint64_t pinned = script_pinned(thread, PAGE);
    script_device_writes(thread, own, 8);
    EXPECT_EQ(await(thread, ATTACH_WAIT_MEMORY), ATTACH_WOKEN_MEMORY);
    EXPECT_EQ(script_now_us(thread), 0);
    write_later(pinned, 8);
    expect_woken(thread, ATTACH_WAIT_MEMORY | ATTACH_WAIT_PINNED);
    script_device_writes(thread, own, 8);
    expect_not_woken(thread, ATTACH_WAIT_MEMORY | ATTACH_WAIT_PINNED);
}

TEST(Wakes, WritesToMemoryOfTheProgramDoNotEndAWaitForPinnedMemory)
{
    script_run(&(struct script){.first = pinned_await, .first_too = device_write});
}

// --- alarms ----------------------------------------------------------------------------------------------------------

static void alarm_set(struct attach_process *process, uint64_t us)
{
    atomic_store(&process->segment->alarm_ps, us * SIM_PS_PER_US);
    attach_alarm_note(process);
}

static int64_t word_await(struct attach_thread *thread, uint64_t timeout_us)
{
    uint64_t memory = script_pinned(thread, PAGE);
    const union attach_args args = {
        .wait_word = {.bus_address = memory, .mask = UINT64_MAX, .value = 1, .timeout_ns = timeout_us * 1000}};
    return script_request(thread, ATTACH_OP_WAIT_WORD, &args);
}

static void word_or_alarm_await(struct attach_thread *thread)
{
    alarm_set(thread->process, 50);
    EXPECT_EQ(word_await(thread, 20), -ETIMEDOUT);
    EXPECT_EQ(script_now_us(thread), 20);
    EXPECT_EQ(word_await(thread, 100), -EINTR);
    EXPECT_EQ(script_now_us(thread), 50);
}

TEST(Wakes, AnAlarmInterruptsAWaitForAWordWhoseTimeIsNotOver)
{
    script_run(&(struct script){.first = word_or_alarm_await});
}

static void alarm_await(struct attach_thread *thread)
{
    EXPECT_EQ(await(thread, ATTACH_WAIT_MEMORY), ATTACH_WOKEN_OUTSIDE);
    EXPECT_EQ(script_now_us(thread), 80);
}

static void alarm_set_later(struct attach_thread *thread)
{
    script_sleep_until_us(thread, 50);
    alarm_set(thread->process, 80);
}

TEST(Wakes, AnAlarmThatIsSetWhileAThreadSleepsWakesIt)
{
    script_run(&(struct script){.first = alarm_await, .first_too = alarm_set_later});
}
