// The endpoint with its driver (verbs-shim/fpga): a program's view of both.
#include <errno.h>
#include <string.h>

#include "fixture.h"
#include "tests/shim/test.h"
#include "verbs-shim/fpga/fpga_driver.h"

#define MEMORY_BAR  BACKEND_BAR_DEVICE0
#define CONTROL_BAR ((enum backend_bar)(BACKEND_BAR_DEVICE0 + 1))

// --- a backend whose loads run the simulation ------------------------------------------------------------------------

static uint64_t bar_base(enum backend_bar bar)
{
    return bar == CONTROL_BAR ? FIXTURE_CONTROL_BASE : FIXTURE_MEMORY_BASE;
}

static uint64_t bar_bytes(void *ctx, enum backend_bar bar)
{
    (void)ctx;
    return bar == CONTROL_BAR ? FPGA_CONTROL_BYTES : FIXTURE_FPGA_BYTES;
}

static void store(void *ctx, enum backend_bar bar, uint64_t offset, uint64_t value, unsigned bytes)
{
    EXPECT_EQ(bar, CONTROL_BAR);
    EXPECT_EQ(bytes, 4);
    fixture_store_control(ctx, (uint32_t)offset, (uint32_t)value);
}

static int load(void *ctx, enum backend_bar bar, uint64_t offset, unsigned bytes, uint64_t *value_out)
{
    *value_out = 0;
    return fixture_load(ctx, bar_base(bar) + offset, bytes, value_out) == PCIE_CPL_SC ? 0 : -EIO;
}

static uint64_t time_ps(void *ctx)
{
    return sim_now_ps(((struct fixture *)ctx)->sim);
}

static void cost(void *ctx, enum backend_cost kind, uint64_t amount)
{
    (void)ctx, (void)kind, (void)amount;
}

static const struct backend_ops OPS = {
    .bar_bytes = bar_bytes, .write = store, .read = load, .time_ps = time_ps, .cost = cost};

static fpga_handle_t *driver_open(struct fixture *fixture)
{
    const struct backend backend = {&OPS, fixture};
    fpga_handle_t *handle = NULL;
    EXPECT_EQ(fpga_open(&backend, MEMORY_BAR, CONTROL_BAR, &handle), 0);
    return handle;
}

// --- tests -----------------------------------------------------------------------------------------------------------

TEST(FpgaWithDriver, FullQueueInEachDirectionMovesEveryByte)
{
    struct fixture *fixture = fixture_create_default();
    fpga_handle_t *handle = driver_open(fixture);
    fixture_fill(fixture->peer.memory, 1 << 19, 1);
    fixture_fill(fixture->fpga_memory, 1 << 19, 2);
    for (uint32_t id = 0; id < 128; id++) {
        EXPECT_EQ(fpga_read(handle, FIXTURE_PEER_BASE + id * 4096, (1 << 19) + id * 4096, 4096, (uint8_t)id), 0);
        EXPECT_EQ(fpga_write(handle, id * 4096, FIXTURE_HOST_BASE + id * 4096, 4096, (uint8_t)id), 0);
    }
    for (unsigned id = 128; id-- > 0;) {
        EXPECT_EQ(fpga_wait(handle, FPGA_READ, (uint8_t)id, 0, NULL), 0);
        EXPECT_EQ(fpga_wait(handle, FPGA_WRITE, (uint8_t)id, 0, NULL), 0);
    }
    EXPECT_MEMEQ(fixture->fpga_memory + (1 << 19), fixture->peer.memory, 1 << 19);
    EXPECT_MEMEQ(fixture->host_memory, fixture->fpga_memory, 1 << 19);
    fpga_close(handle);
    fixture_destroy(fixture);
}

TEST(FpgaWithDriver, CounterIsTheEndpointsInNanoseconds)
{
    struct fixture *fixture = fixture_create_default();
    fpga_handle_t *handle = driver_open(fixture);
    uint64_t ns = 0;
    EXPECT_EQ(fpga_write(handle, 0, FIXTURE_PEER_BASE, 4, 3), 0);
    EXPECT_EQ(fpga_wait(handle, FPGA_WRITE, 3, 0, NULL), 0);
    EXPECT_EQ(fpga_counter(handle, FPGA_WRITE, 3, &ns), 0);
    EXPECT_EQ(ns, (30 + 1 + 7) * 4);
    fpga_close(handle);
    fixture_destroy(fixture);
}

TEST(FpgaWithDriver, ErrorsReachTheCallerAndTheNextTransferWorks)
{
    struct fixture *fixture = fixture_create_default();
    fpga_handle_t *handle = driver_open(fixture);
    enum fpga_error error = FPGA_OK;
    EXPECT_EQ(fpga_read(handle, FIXTURE_NOWHERE, 0, 4096, 1), 0);
    EXPECT_EQ(fpga_wait(handle, FPGA_READ, 1, 0, &error), -EREMOTEIO);
    EXPECT_EQ(error, FPGA_ERROR_UR);
    EXPECT_EQ(fpga_read(handle, FIXTURE_HOST_BASE, 0, 0, 1), 0);
    EXPECT_EQ(fpga_wait(handle, FPGA_READ, 1, 0, &error), -EREMOTEIO);
    EXPECT_EQ(error, FPGA_ERROR_LENGTH);
    EXPECT_EQ(fpga_read(handle, FIXTURE_HOST_BASE, 0, 4, 1), 0);
    EXPECT_EQ(fpga_wait(handle, FPGA_READ, 1, 0, &error), 0);
    fpga_close(handle);
    fixture_destroy(fixture);
}

TEST(FpgaWithDriver, OpenFindsTheWorkOfAnAbandonedProgram)
{
    struct fixture *fixture = fixture_create_default();
    fpga_handle_t *handle = driver_open(fixture), *other = NULL;
    const struct backend backend = {&OPS, fixture};
    fixture->peer.latency_ps = 20 * SIM_PS_PER_US;
    EXPECT_EQ(fpga_read(handle, FIXTURE_PEER_BASE, 0, 4, 1), 0);
    fpga_close(handle);
    EXPECT_EQ(fpga_open(&backend, MEMORY_BAR, CONTROL_BAR, &other), -EBUSY);
    fixture_run(fixture);
    EXPECT_EQ(fpga_open(&backend, MEMORY_BAR, CONTROL_BAR, &other), 0);
    fpga_close(other);
    fixture_destroy(fixture);
}
