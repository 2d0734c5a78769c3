#include <errno.h>

#include "machine.h"

#define CHANNEL(n) (0x400u + 0x80u * (n))

static const struct peach2_transfer transfer = {.source = 0x100040, .destination = 0x9000200040, .bytes = 4096};

TEST(DriverDma, PreparesTheRegistersOfTheChannelButDoesNotStart)
{
    struct machine m;
    machine_init(&m);
    peach2_handle_t *handle = machine_open(&m);
    const struct peach2_notify notify = {.local_address = 0x300000, .remote_address = 0x9000300008, .value = 77};
    EXPECT_EQ(peach2_dma_prepare(handle, 2, &transfer, &notify), 0);
    EXPECT_EQ(machine_register(&m, CHANNEL(2) + 0x00, 8), 0x100040);
    EXPECT_EQ(machine_register(&m, CHANNEL(2) + 0x08, 8), 0x9000200040);
    EXPECT_EQ(machine_register(&m, CHANNEL(2) + 0x10, 4), 4096);
    EXPECT_EQ(machine_register(&m, CHANNEL(2) + 0x20, 8), 0x300000);
    EXPECT_EQ(machine_register(&m, CHANNEL(2) + 0x28, 8), 0x9000300008);
    EXPECT_EQ(machine_register(&m, CHANNEL(2) + 0x30, 4), 77);
    EXPECT_NULL(machine_last_write(&m, CHANNEL(2) + 0x14));
    peach2_close(handle);
    machine_fini(&m);
}

TEST(DriverDma, StartsWithOneWriteAsOftenAsAsked)
{
    struct machine m;
    machine_init(&m);
    peach2_handle_t *handle = machine_open(&m);
    const struct peach2_notify notify = {.remote_address = 0x9000300008};
    EXPECT_EQ(peach2_dma_prepare(handle, 1, &transfer, &notify), 0);
    unsigned before = m.log_count;
    uint64_t calls = m.calls;
    EXPECT_EQ(peach2_dma_start(handle, 1), 0);
    EXPECT_EQ(peach2_dma_start(handle, 1), 0);
    EXPECT_EQ(m.log_count, before + 2);
    EXPECT_EQ(m.calls, calls);
    EXPECT_EQ(m.log[before].offset, CHANNEL(1) + 0x14);
    EXPECT_EQ(m.log[before].bytes, 4);
    EXPECT_EQ(m.log[before].value, 0x21); // START and NOTIFY_REMOTE
    peach2_close(handle);
    machine_fini(&m);
}

TEST(DriverDma, RefusesBadChannelsAndWhatWasNotPrepared)
{
    struct machine m;
    machine_init(&m);
    peach2_handle_t *handle = machine_open(&m);
    unsigned error;
    EXPECT_EQ(peach2_dma_prepare(handle, 4, &transfer, NULL), -EINVAL);
    EXPECT_EQ(peach2_dma_prepare(handle, 0, NULL, NULL), -EINVAL);
    EXPECT_EQ(peach2_dma_prepare(NULL, 0, &transfer, NULL), -EINVAL);
    EXPECT_EQ(peach2_dma_start(handle, 4), -EINVAL);
    EXPECT_EQ(peach2_dma_start(handle, 0), -EINVAL);
    EXPECT_EQ(peach2_dma_wait(handle, 4, &error), -EINVAL);
    peach2_close(handle);
    machine_fini(&m);
}

TEST(DriverDma, RefusesStatusWordsThatTheBoardWouldNotWrite)
{
    struct machine m;
    machine_init(&m);
    peach2_handle_t *handle = machine_open(&m);
    const struct peach2_notify local = {.local_address = 0x300004}, remote = {.remote_address = 0x9000300001};
    EXPECT_EQ(peach2_dma_prepare(handle, 0, &transfer, &local), -EINVAL);
    EXPECT_EQ(peach2_dma_prepare(handle, 0, &transfer, &remote), -EINVAL);
    EXPECT_EQ(peach2_dma_start(handle, 0), -EINVAL);
    peach2_close(handle);
    machine_fini(&m);
}

TEST(DriverDma, LeavesLimitsOfTheTransferToTheBoard)
{
    struct machine m;
    machine_init(&m);
    peach2_handle_t *handle = machine_open(&m);
    const struct peach2_transfer bad = {.source = 0x100001, .destination = 0x2, .bytes = 0x1000000};
    EXPECT_EQ(peach2_dma_prepare(handle, 0, &bad, NULL), 0);
    EXPECT_EQ(machine_register(&m, CHANNEL(0) + 0x10, 4), 0x1000000);
    peach2_close(handle);
    machine_fini(&m);
}

TEST(DriverDma, WaitsUntilTheChannelIsNotBusy)
{
    struct machine m;
    machine_init(&m);
    peach2_handle_t *handle = machine_open(&m);
    unsigned error = 99;
    machine_register_set(&m, CHANNEL(3) + 0x34, 0x2, 4); // DONE
    m.busy_reads = 3;
    EXPECT_EQ(peach2_dma_poll(handle, 3, &error), -EAGAIN);
    EXPECT_EQ(peach2_dma_wait(handle, 3, &error), 0);
    EXPECT_EQ(error, PEACH2_DMA_OK);
    EXPECT_EQ(m.busy_reads, 0);
    peach2_close(handle);
    machine_fini(&m);
}

TEST(DriverDma, GivesUpOnAChannelThatStaysBusy)
{
    struct machine m;
    machine_init(&m);
    peach2_handle_t *handle = machine_open(&m);
    unsigned error = 99;
    machine_register_set(&m, CHANNEL(3) + 0x34, 0x2, 4); // DONE
    m.busy_reads = UINT32_MAX;
    m.read_ps = 1000000;
    EXPECT_EQ(peach2_dma_wait(handle, 3, &error), -ETIMEDOUT);
    EXPECT_GE(m.now_ps, PEACH2_DMA_TIMEOUT_NS * 1000);
    EXPECT_LE(m.now_ps, PEACH2_DMA_TIMEOUT_NS * 1000 + 128 * m.read_ps);
    m.busy_reads = 0;
    EXPECT_EQ(peach2_dma_wait(handle, 3, &error), 0); // a second wait is allowed
    peach2_close(handle);
    machine_fini(&m);
}

TEST(DriverDma, TellsTheErrorOfAFailedDma)
{
    struct machine m;
    machine_init(&m);
    peach2_handle_t *handle = machine_open(&m);
    unsigned error = 0;
    machine_register_set(&m, CHANNEL(0) + 0x34, 0x32, 4); // DONE, error 3
    EXPECT_EQ(peach2_dma_wait(handle, 0, &error), -EREMOTEIO);
    EXPECT_EQ(error, PEACH2_DMA_UNROUTABLE);
    m.silent = true;
    EXPECT_EQ(peach2_dma_wait(handle, 0, &error), -EIO);
    peach2_close(handle);
    machine_fini(&m);
}

TEST(DriverDma, SplitsAStatusWordAndTakesIt)
{
    struct machine m;
    machine_init(&m);
    peach2_handle_t *handle = machine_open(&m);
    volatile uint64_t word = 0;
    uint32_t value = 0;
    unsigned error = 99;
    m.word_after_wait = 0x0000000200000011;
    EXPECT_EQ(peach2_wait_status(handle, &word, 0, &value, &error), 0);
    EXPECT_EQ(value, 0x11);
    EXPECT_EQ(error, PEACH2_DMA_OK);
    EXPECT_EQ(word, 0);
    m.word_after_wait = 0x0000004200000000;
    EXPECT_EQ(peach2_wait_status(handle, &word, 0, NULL, &error), -EREMOTEIO);
    EXPECT_EQ(error, PEACH2_DMA_READ_UR);
    peach2_close(handle);
    machine_fini(&m);
}

TEST(DriverDma, LeavesTheWordAloneWhenTheWaitTimesOut)
{
    struct machine m;
    machine_init(&m);
    peach2_handle_t *handle = machine_open(&m);
    volatile uint64_t word = 5;
    unsigned error = 99;
    m.wait_times_out = true;
    EXPECT_EQ(peach2_wait_status(handle, &word, 1000, NULL, &error), -ETIMEDOUT);
    EXPECT_EQ(word, 5);
    EXPECT_EQ(error, 99);
    peach2_close(handle);
    machine_fini(&m);
}

TEST(DriverDma, NamesEveryErrorAndAlsoUnknownOnes)
{
    EXPECT_STREQ(peach2_dma_error_name(PEACH2_DMA_CHAIN_LOOP), "chain loops");
    EXPECT_STREQ(peach2_dma_error_name(PEACH2_DMA_DESCRIPTOR), "bad descriptor address");
    EXPECT_STREQ(peach2_dma_error_name(15), "unknown error");
}

TEST(DriverPio, WritesThroughTheWindowAndFences)
{
    struct machine m;
    machine_init(&m);
    peach2_handle_t *handle = machine_open(&m);
    unsigned before = m.log_count;
    EXPECT_EQ(peach2_pio_write(handle, peach2_window_address(handle, 2, 0x1004), "abcdefgh", 8), 0);
    ASSERT_EQ(m.log_count, before + 2);
    EXPECT_EQ(m.log[before].access, ACCESS_WRITE_COMBINED);
    EXPECT_EQ(m.log[before].bar, BACKEND_BAR_WINDOW);
    EXPECT_EQ(m.log[before].offset, 0x1000001004);
    EXPECT_EQ(m.log[before].bytes, 8);
    EXPECT_EQ(m.log[before + 1].access, ACCESS_FENCE);
    peach2_close(handle);
    machine_fini(&m);
}

TEST(DriverPio, ReachesTheLastByteOfTheWindow)
{
    struct machine m;
    machine_init(&m);
    peach2_handle_t *handle = machine_open(&m);
    EXPECT_EQ(peach2_pio_write(handle, WINDOW_BASE + (512ull << 30) - 8, "abcdefgh", 8), 0);
    EXPECT_EQ(m.log[m.log_count - 2].offset, (512ull << 30) - 8); // a fence follows
    peach2_close(handle);
    machine_fini(&m);
}

TEST(DriverPio, RefusesAddressesOutsideTheWindow)
{
    struct machine m;
    machine_init(&m);
    peach2_handle_t *handle = machine_open(&m);
    EXPECT_EQ(peach2_pio_write(handle, WINDOW_BASE - 8, "abcdefgh", 8), -EINVAL);
    EXPECT_EQ(peach2_pio_write(handle, WINDOW_BASE + (512ull << 30) - 4, "abcdefgh", 8), -EINVAL);
    EXPECT_EQ(peach2_pio_write(handle, 0, "abcdefgh", 8), -EINVAL);
    peach2_close(handle);
    machine_fini(&m);
}

TEST(DriverDma, WritesRowsToTheStrideRegisters)
{
    struct machine m;
    machine_init(&m);
    peach2_handle_t *handle = machine_open(&m);
    struct peach2_transfer rows = transfer;
    rows.width = 64;
    rows.source_pitch = 256;
    rows.destination_pitch = 128;
    rows.flags = PEACH2_TRANSFER_INTERRUPT;
    EXPECT_EQ(peach2_dma_prepare(handle, 1, &rows, NULL), 0);
    EXPECT_EQ(machine_register(&m, 0x480 + 0x40, 4), 64);
    EXPECT_EQ(machine_register(&m, 0x480 + 0x44, 4), 256);
    EXPECT_EQ(machine_register(&m, 0x480 + 0x48, 4), 128);
    EXPECT_EQ(peach2_dma_start(handle, 1), 0);
    EXPECT_EQ(machine_last_write(&m, 0x494)->value, 0xc1); // START, STRIDE, INTERRUPT
    EXPECT_EQ(peach2_dma_prepare(handle, 1, &transfer, NULL), 0);
    EXPECT_EQ(peach2_dma_start(handle, 1), 0);
    EXPECT_EQ(machine_last_write(&m, 0x494)->value, 0x1); // no stride bits remain
    peach2_close(handle);
    machine_fini(&m);
}
