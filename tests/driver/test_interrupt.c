// Offsets from rtl/registers.def: INTERRUPT at 0x300 with RAISE, PENDING, CLEAR, ENABLE, ADDRESS, VALUE.
#include <errno.h>
#include <string.h>

#include "machine.h"

TEST(DriverInterrupt, EnablesAfterEverythingElseIsSet)
{
    struct machine m;
    machine_init(&m);
    peach2_handle_t *handle = machine_open(&m);
    EXPECT_EQ(peach2_interrupt_enable(handle, 0x100), 0);
    EXPECT_EQ(machine_register(&m, 0x310, 8), 0x100000); // the machine's first pinned page
    EXPECT_EQ(machine_register(&m, 0x318, 4), 1);
    EXPECT_EQ(machine_register(&m, 0x308, 4), 0xffffffff);
    EXPECT_EQ(m.log[m.log_count - 1].offset, 0x30c);
    EXPECT_EQ(m.log[m.log_count - 1].value, 0x100);
    EXPECT_EQ(peach2_interrupt_enable(handle, 0x300), 0);
    EXPECT_EQ(m.pinned_live, 1); // the same word
    peach2_close(handle);
    machine_fini(&m);
}

TEST(DriverInterrupt, TakesWhatIsPendingAndClearsNothingElse)
{
    struct machine m;
    machine_init(&m);
    peach2_handle_t *handle = machine_open(&m);
    uint32_t pending = 0;
    EXPECT_EQ(peach2_interrupt_wait(handle, 0, &pending), -EINVAL);
    EXPECT_EQ(peach2_interrupt_enable(handle, 0x100), 0);
    machine_register_set(&m, 0x304, 0x502, 4);
    m.word_after_wait = 1;
    EXPECT_EQ(peach2_interrupt_wait(handle, 0, &pending), 0);
    EXPECT_EQ(pending, 0x502);
    EXPECT_EQ(machine_last_write(&m, 0x308)->value, 0x502);
    m.wait_times_out = true;
    EXPECT_EQ(peach2_interrupt_wait(handle, 10, &pending), -ETIMEDOUT);
    m.wait_times_out = false;
    m.silent = true;
    EXPECT_EQ(peach2_interrupt_wait(handle, 0, &pending), -EIO);
    peach2_close(handle);
    machine_fini(&m);
}

TEST(DriverInterrupt, IsPaidByWhoSleepsUntilItComes)
{
    struct machine m;
    machine_init(&m);
    peach2_handle_t *handle = machine_open(&m);
    uint32_t pending = 0;
    EXPECT_EQ(peach2_interrupt_enable(handle, 0x100), 0);
    m.wait_times_out = true;
    EXPECT_EQ(peach2_interrupt_wait(handle, 10, &pending), -ETIMEDOUT);
    EXPECT_EQ(m.interrupts, 0);
    m.wait_times_out = false;
    m.word_after_wait = 1;
    EXPECT_EQ(peach2_interrupt_wait(handle, 0, &pending), 0);
    EXPECT_EQ(m.interrupts, 1);
    *(volatile uint64_t *)(uintptr_t)peach2_interrupt_word(handle) = 1;
    EXPECT_EQ(peach2_interrupt_take(handle, &pending), 0); // does not sleep
    EXPECT_EQ(m.interrupts, 1);
    peach2_close(handle);
    machine_fini(&m);
}

TEST(DriverInterrupt, IsTakenByWhoLooksAtItsWord)
{
    struct machine m;
    machine_init(&m);
    peach2_handle_t *handle = machine_open(&m);
    uint32_t pending = 0;
    EXPECT_EQ(peach2_interrupt_take(handle, &pending), -EINVAL);
    EXPECT_EQ(peach2_interrupt_enable(handle, 0x100), 0);
    EXPECT_EQ(peach2_interrupt_take(handle, &pending), -EAGAIN);
    *(volatile uint64_t *)(uintptr_t)peach2_interrupt_word(handle) = 1;
    machine_register_set(&m, 0x304, 0x100, 4);
    EXPECT_EQ(peach2_interrupt_take(handle, &pending), 0);
    EXPECT_EQ(pending, 0x100);
    EXPECT_EQ(machine_last_write(&m, 0x308)->value, 0x100);
    EXPECT_EQ(peach2_interrupt_take(handle, &pending), -EAGAIN);
    peach2_interrupt_disable(handle);
    EXPECT_EQ(machine_register(&m, 0x30c, 4), 0);
    peach2_close(handle);
    machine_fini(&m);
}

TEST(DriverInterrupt, RaisesThroughTheBoardsBlockOfTheWindow)
{
    struct machine m;
    machine_init(&m);
    peach2_handle_t *handle = machine_open(&m);
    EXPECT_EQ(peach2_interrupt_raise(handle, 3, 0x100), 0);
    const struct log_entry *entry = &m.log[m.log_count - 2]; // a fence follows
    EXPECT_EQ(entry->access, ACCESS_WRITE_COMBINED);
    EXPECT_EQ(entry->bar, BACKEND_BAR_WINDOW);
    EXPECT_EQ(entry->offset, 0x1e00000300); // node 3, block 3, RAISE
    EXPECT_EQ(entry->bytes, 4);
    EXPECT_EQ(peach2_interrupt_raise(handle, 4, 0x100), -EINVAL);
    EXPECT_EQ(peach2_interrupt_raise(handle, 3, 0), -EINVAL);
    EXPECT_EQ(peach2_interrupt_raise(handle, 3, 0x101), -EINVAL);
    peach2_close(handle);
    machine_fini(&m);
}

TEST(DriverInterrupt, NeedsMemoryForTheMessage)
{
    struct machine m;
    machine_init(&m);
    peach2_handle_t *handle = machine_open(&m);
    m.pinned_left = 0;
    EXPECT_EQ(peach2_interrupt_enable(handle, 0x100), -ENOMEM);
    peach2_close(handle);
    machine_fini(&m);
}

TEST(DriverMemory, OfTheBoardIsReadAndWrittenInWords)
{
    struct machine m;
    machine_init(&m);
    peach2_handle_t *handle = machine_open(&m);
    uint64_t value = 0;
    EXPECT_EQ(peach2_board_memory_write(handle, 0x7ff8, 0x1122334455667788), 0);
    EXPECT_EQ(machine_register(&m, 0x17ff8, 8), 0x1122334455667788);
    EXPECT_EQ(peach2_board_memory_read(handle, 0x7ff8, &value), 0);
    EXPECT_EQ(value, 0x1122334455667788);
    EXPECT_EQ(peach2_board_memory_read(handle, 0x8000, &value), -EINVAL);
    EXPECT_EQ(peach2_board_memory_write(handle, 0x8000, 1), -EINVAL);
    EXPECT_EQ(peach2_board_memory_write(handle, 4, 0), -EINVAL);
    EXPECT_EQ(peach2_board_memory_address(handle, 2, 8), 0x9600010008); // node 2, block 3
    EXPECT_EQ(peach2_board_memory_address(handle, 16, 8), 0);
    EXPECT_EQ(peach2_board_memory_address(handle, 2, 0x8000), 0);
    peach2_close(handle);
    machine_fini(&m);
}
