#include <errno.h>
#include <string.h>

#include "endpoint.h"

TEST(FpgaDriver, RefusesANodeWithoutAnFpga)
{
    struct endpoint endpoint;
    fpga_handle_t *handle = NULL;
    endpoint_init(&endpoint);
    endpoint.absent = true;
    EXPECT_EQ(fpga_open(&endpoint.backend, ENDPOINT_MEMORY_BAR, ENDPOINT_CONTROL_BAR, &handle), -ENODEV);
    EXPECT_NULL(handle);
}

TEST(FpgaDriver, RefusesAnEndpointThatIsAtWorkOrSilent)
{
    struct endpoint endpoint;
    fpga_handle_t *handle = NULL;
    endpoint_init(&endpoint);
    endpoint.level[FPGA_WRITE] = 1;
    EXPECT_EQ(fpga_open(&endpoint.backend, ENDPOINT_MEMORY_BAR, ENDPOINT_CONTROL_BAR, &handle), -EBUSY);
    endpoint.silent = true;
    EXPECT_EQ(fpga_open(&endpoint.backend, ENDPOINT_MEMORY_BAR, ENDPOINT_CONTROL_BAR, &handle), -EIO);
    EXPECT_NULL(handle);
}

TEST(FpgaDriver, ForgetsHalfADescriptorOfEachControllerAtOpen)
{
    struct endpoint endpoint;
    endpoint_init(&endpoint);
    endpoint.word_count[FPGA_READ] = 3;
    endpoint.word_count[FPGA_WRITE] = 2;
    fpga_handle_t *handle = endpoint_open(&endpoint);
    EXPECT_EQ(endpoint.word_count[FPGA_READ], 0);
    EXPECT_EQ(endpoint.word_count[FPGA_WRITE], 0);
    EXPECT_EQ(endpoint.calls, 1);
    fpga_close(handle);
}

TEST(FpgaDriver, ReadIsFiveWordsAsInTable1)
{
    struct endpoint endpoint;
    endpoint_init(&endpoint);
    fpga_handle_t *handle = endpoint_open(&endpoint);
    EXPECT_EQ(fpga_read(handle, 0x123456789abcdef0, 0x1100000040, 0xffffc, 0xa5), 0);
    ASSERT_EQ(endpoint.log_count, 1);
    EXPECT_EQ(endpoint.log[0].direction, FPGA_READ);
    EXPECT_EQ(endpoint.log[0].words[0], 0x9abcdef0);
    EXPECT_EQ(endpoint.log[0].words[1], 0x12345678);
    EXPECT_EQ(endpoint.log[0].words[2], 0x40);
    EXPECT_EQ(endpoint.log[0].words[3], 0x11);
    EXPECT_EQ(endpoint.log[0].words[4], (0xa5u << 18) | 0x3ffff);
    EXPECT_EQ(endpoint.other_sizes, 0);
    fpga_close(handle);
}

TEST(FpgaDriver, WriteHasItsSourceOnChip)
{
    struct endpoint endpoint;
    endpoint_init(&endpoint);
    fpga_handle_t *handle = endpoint_open(&endpoint);
    EXPECT_EQ(fpga_write(handle, 0x80, 0x3000000100, 8, 1), 0);
    ASSERT_EQ(endpoint.log_count, 1);
    EXPECT_EQ(endpoint.log[0].direction, FPGA_WRITE);
    EXPECT_EQ(endpoint.log[0].words[0], 0x80);
    EXPECT_EQ(endpoint.log[0].words[1], 0);
    EXPECT_EQ(endpoint.log[0].words[2], 0x100);
    EXPECT_EQ(endpoint.log[0].words[3], 0x30);
    EXPECT_EQ(endpoint.log[0].words[4], (1u << 18) | 2);
    fpga_close(handle);
}

TEST(FpgaDriver, RefusesLengthsThatADescriptorCannotCarry)
{
    struct endpoint endpoint;
    endpoint_init(&endpoint);
    fpga_handle_t *handle = endpoint_open(&endpoint);
    EXPECT_EQ(fpga_read(handle, 0, 0, 1 << 20, 1), -EINVAL);
    EXPECT_EQ(fpga_read(handle, 0, 0, 6, 1), -EINVAL);
    EXPECT_EQ(fpga_write(handle, 0, 0, 1 << 20, 1), -EINVAL);
    EXPECT_EQ(endpoint.log_count, 0);
    fpga_close(handle);
}

TEST(FpgaDriver, IdInFlightIsRefusedInItsDirectionOnly)
{
    struct endpoint endpoint;
    endpoint_init(&endpoint);
    fpga_handle_t *handle = endpoint_open(&endpoint);
    EXPECT_EQ(fpga_read(handle, 0, 0, 4, 7), 0);
    EXPECT_EQ(fpga_read(handle, 0, 0, 4, 7), -EBUSY);
    EXPECT_EQ(fpga_write(handle, 0, 0, 4, 7), 0);
    EXPECT_EQ(fpga_wait(handle, FPGA_READ, 7, 0, NULL), 0);
    EXPECT_EQ(fpga_read(handle, 0, 0, 4, 7), 0);
    fpga_close(handle);
}

TEST(FpgaDriver, NeverSendsThe129thDescriptor)
{
    struct endpoint endpoint;
    endpoint_init(&endpoint);
    fpga_handle_t *handle = endpoint_open(&endpoint);
    for (unsigned id = 0; id < 128; id++) {
        EXPECT_EQ(fpga_write(handle, 0, 0, 4, (uint8_t)id), 0);
    }
    EXPECT_EQ(fpga_write(handle, 0, 0, 4, 200), -EAGAIN);
    EXPECT_EQ(endpoint.log_count, 128);
    EXPECT_EQ(fpga_wait(handle, FPGA_WRITE, 5, 0, NULL), 0);
    EXPECT_EQ(fpga_write(handle, 0, 0, 4, 200), 0);
    fpga_close(handle);
}

TEST(FpgaDriver, WaitPollsUntilDone)
{
    struct endpoint endpoint;
    enum fpga_error error = FPGA_ERROR_CA;
    endpoint_init(&endpoint);
    fpga_handle_t *handle = endpoint_open(&endpoint);
    EXPECT_EQ(fpga_read(handle, 0, 0, 4, 3), 0);
    endpoint.polls_to_end = 9;
    EXPECT_EQ(fpga_wait(handle, FPGA_READ, 3, 0, &error), 0);
    EXPECT_EQ(error, FPGA_OK);
    EXPECT_EQ(endpoint.polls, 10);
    EXPECT_EQ(fpga_wait(handle, FPGA_READ, 3, 0, &error), -ENOENT);
    fpga_close(handle);
}

TEST(FpgaDriver, WaitGivesTheEndpointsError)
{
    struct endpoint endpoint;
    enum fpga_error error = FPGA_OK;
    endpoint_init(&endpoint);
    fpga_handle_t *handle = endpoint_open(&endpoint);
    endpoint.error = FPGA_ERROR_TIMEOUT;
    EXPECT_EQ(fpga_read(handle, 0, 0, 4, 3), 0);
    EXPECT_EQ(fpga_wait(handle, FPGA_READ, 3, 0, &error), -EREMOTEIO);
    EXPECT_EQ(error, FPGA_ERROR_TIMEOUT);
    fpga_close(handle);
}

TEST(FpgaDriver, WaitGivesUpAndMayBeCalledAgain)
{
    struct endpoint endpoint;
    endpoint_init(&endpoint);
    fpga_handle_t *handle = endpoint_open(&endpoint);
    EXPECT_EQ(fpga_read(handle, 0, 0, 4, 3), 0);
    endpoint.polls_to_end = 9;
    EXPECT_EQ(fpga_wait(handle, FPGA_READ, 3, 5000, NULL), -ETIMEDOUT);
    EXPECT_EQ(endpoint.polls, 5);
    EXPECT_EQ(fpga_read(handle, 0, 0, 4, 3), -EBUSY);
    EXPECT_EQ(fpga_wait(handle, FPGA_READ, 3, 0, NULL), 0);
    fpga_close(handle);
}

TEST(FpgaDriver, WaitTellsTheEndThatItsLastPollSaw)
{
    struct endpoint endpoint;
    endpoint_init(&endpoint);
    fpga_handle_t *handle = endpoint_open(&endpoint);
    EXPECT_EQ(fpga_read(handle, 0, 0, 4, 3), 0);
    endpoint.polls_to_end = 4;
    EXPECT_EQ(fpga_wait(handle, FPGA_READ, 3, 5000, NULL), 0); // the fifth poll ends after 5 us
    EXPECT_EQ(endpoint.polls, 5);
    fpga_close(handle);
}

TEST(FpgaDriver, SilentEndpointEndsTheWait)
{
    struct endpoint endpoint;
    endpoint_init(&endpoint);
    fpga_handle_t *handle = endpoint_open(&endpoint);
    uint64_t ns = 1;
    EXPECT_EQ(fpga_read(handle, 0, 0, 4, 3), 0);
    endpoint.silent = true;
    EXPECT_EQ(fpga_wait(handle, FPGA_READ, 3, 0, NULL), -EIO);
    EXPECT_EQ(fpga_counter(handle, FPGA_READ, 3, &ns), -EIO);
    EXPECT_EQ(ns, 1);
    fpga_close(handle);
}

TEST(FpgaDriver, DescriptorStaysInFlightWhileTheEndpointIsSilent)
{
    struct endpoint endpoint;
    endpoint_init(&endpoint);
    fpga_handle_t *handle = endpoint_open(&endpoint);
    EXPECT_EQ(fpga_read(handle, 0, 0, 4, 3), 0);
    endpoint.silent = true;
    EXPECT_EQ(fpga_wait(handle, FPGA_READ, 3, 0, NULL), -EIO);
    endpoint.silent = false;
    EXPECT_EQ(fpga_read(handle, 0, 0, 4, 3), -EBUSY);
    EXPECT_EQ(fpga_wait(handle, FPGA_READ, 3, 0, NULL), 0);
    fpga_close(handle);
}

TEST(FpgaDriver, LoadFromASilentEndpointFails)
{
    struct endpoint endpoint;
    endpoint_init(&endpoint);
    fpga_handle_t *handle = endpoint_open(&endpoint);
    uint8_t data[4];
    endpoint.silent = true;
    EXPECT_EQ(fpga_load(handle, 0, data, sizeof data), -EIO);
    fpga_close(handle);
}

TEST(FpgaDriver, CounterHoldsTheLongestTransferThatTheEndpointCanMeasure)
{
    struct endpoint endpoint;
    endpoint_init(&endpoint);
    fpga_handle_t *handle = endpoint_open(&endpoint);
    uint64_t ns = 0;
    endpoint.count[FPGA_READ][0] = UINT32_MAX;
    EXPECT_EQ(fpga_counter(handle, FPGA_READ, 0, &ns), 0);
    EXPECT_EQ(ns, 17179869180); // (2^32 - 1) cycles of 4 ns, 17 s
    fpga_close(handle);
}

TEST(FpgaDriver, CounterIsInNanosecondsOf4)
{
    struct endpoint endpoint;
    endpoint_init(&endpoint);
    fpga_handle_t *handle = endpoint_open(&endpoint);
    uint64_t ns = 0;
    endpoint.count[FPGA_WRITE][255] = 108;
    EXPECT_EQ(fpga_counter(handle, FPGA_WRITE, 255, &ns), 0);
    EXPECT_EQ(ns, 432);
    EXPECT_EQ(fpga_counter(handle, FPGA_READ, 255, &ns), 0);
    EXPECT_EQ(ns, 0);
    fpga_close(handle);
}

TEST(FpgaDriver, StoresAndLoadsTheOnChipMemoryWithinItsBounds)
{
    struct endpoint endpoint;
    endpoint_init(&endpoint);
    fpga_handle_t *handle = endpoint_open(&endpoint);
    uint8_t data[5] = {1, 2, 3, 4, 5}, back[5] = {0};
    EXPECT_EQ(fpga_memory_bytes(handle), ENDPOINT_MEMORY_BYTES);
    EXPECT_EQ(fpga_memory_bus_address(handle, 0x40), ENDPOINT_MEMORY_BUS + 0x40);
    EXPECT_EQ(fpga_store(handle, ENDPOINT_MEMORY_BYTES - 5, data, 5), 0);
    EXPECT_EQ(endpoint.fences, 1);
    EXPECT_EQ(fpga_load(handle, ENDPOINT_MEMORY_BYTES - 5, back, 5), 0);
    EXPECT_MEMEQ(back, data, 5);
    EXPECT_EQ(fpga_store(handle, ENDPOINT_MEMORY_BYTES - 4, data, 5), -EINVAL);
    EXPECT_EQ(fpga_load(handle, UINT64_MAX, back, 5), -EINVAL);
    fpga_close(handle);
}

TEST(FpgaDriver, NamesEveryErrorByItsOwn)
{
    for (enum fpga_error error = FPGA_OK; error < FPGA_ERRORS; error++) {
        EXPECT_STRNE(fpga_error_name(error), fpga_error_name(FPGA_ERRORS));
        for (enum fpga_error other = FPGA_OK; other < error; other++) {
            EXPECT_STRNE(fpga_error_name(error), fpga_error_name(other));
        }
    }
}
