#include "endpoint.h"

#include <errno.h>
#include <string.h>

static uint64_t bar_bytes(void *ctx, enum backend_bar bar)
{
    const struct endpoint *endpoint = ctx;
    if (endpoint->absent) {
        return 0;
    }
    return bar == ENDPOINT_CONTROL_BAR ? FPGA_CONTROL_BYTES : bar == ENDPOINT_MEMORY_BAR ? ENDPOINT_MEMORY_BYTES : 0;
}

static uint64_t bar_bus_address(void *ctx, enum backend_bar bar)
{
    (void)ctx;
    return bar == ENDPOINT_MEMORY_BAR ? ENDPOINT_MEMORY_BUS : 0;
}

static void descriptor_take(struct endpoint *endpoint, enum fpga_direction direction)
{
    struct endpoint_descriptor *descriptor = &endpoint->log[endpoint->log_count++ % ENDPOINT_LOG_MAX];
    descriptor->direction = direction;
    memcpy(descriptor->words, endpoint->words[direction], sizeof descriptor->words);
    endpoint->word_count[direction] = 0;
    uint32_t id = descriptor->words[4] >> FPGA_ID_SHIFT & 0xff;
    endpoint->status[direction][id] = FPGA_STATUS_BUSY | id;
}

static void write_uncached(void *ctx, enum backend_bar bar, uint64_t offset, uint64_t value, unsigned bytes)
{
    struct endpoint *endpoint = ctx;
    EXPECT_EQ(bar, ENDPOINT_CONTROL_BAR);
    endpoint->other_sizes += bytes != 4;
    enum fpga_direction direction = offset / FPGA_CONTROLLER_STRIDE;
    if (offset % FPGA_CONTROLLER_STRIDE == FPGA_WORDS) {
        endpoint->word_count[direction] = 0;
        return;
    }
    EXPECT_EQ(offset % FPGA_CONTROLLER_STRIDE, FPGA_DESCRIPTOR);
    endpoint->words[direction][endpoint->word_count[direction]++] = (uint32_t)value;
    if (endpoint->word_count[direction] == FPGA_DESCRIPTOR_WORDS) {
        descriptor_take(endpoint, direction);
    }
}

static uint32_t status_poll(struct endpoint *endpoint, enum fpga_direction direction, uint32_t id)
{
    endpoint->polls++;
    endpoint->now_ps += 1000000;
    uint32_t *status = &endpoint->status[direction][id];
    if (endpoint->polls_to_end > 0) {
        endpoint->polls_to_end--;
    } else if (*status & FPGA_STATUS_BUSY) {
        *status = FPGA_STATUS_DONE | (uint32_t)endpoint->error << FPGA_STATUS_ERROR_SHIFT | id;
    }
    return *status;
}

static int read_uncached(void *ctx, enum backend_bar bar, uint64_t offset, unsigned bytes, uint64_t *value_out)
{
    struct endpoint *endpoint = ctx;
    EXPECT_EQ(bar, ENDPOINT_CONTROL_BAR);
    endpoint->other_sizes += bytes != 4;
    enum fpga_direction direction = offset / FPGA_CONTROLLER_STRIDE;
    uint32_t within = offset % FPGA_CONTROLLER_STRIDE;
    *value_out = UINT64_MAX;
    if (endpoint->silent) {
        return -EIO;
    }
    if (within == FPGA_LEVEL) {
        *value_out = endpoint->level[direction];
    } else if (within >= FPGA_COUNT) {
        *value_out = endpoint->count[direction][(within - FPGA_COUNT) / 4];
    } else if (within >= FPGA_STATUS) {
        *value_out = status_poll(endpoint, direction, (within - FPGA_STATUS) / 4);
    }
    return 0;
}

static void write_combined(void *ctx, enum backend_bar bar, uint64_t offset, const void *data, size_t bytes)
{
    struct endpoint *endpoint = ctx;
    EXPECT_EQ(bar, ENDPOINT_MEMORY_BAR);
    memcpy(endpoint->memory + offset, data, bytes);
}

static int read_combined(void *ctx, enum backend_bar bar, uint64_t offset, void *data, size_t bytes)
{
    struct endpoint *endpoint = ctx;
    EXPECT_EQ(bar, ENDPOINT_MEMORY_BAR);
    if (endpoint->silent) {
        return -EIO;
    }
    memcpy(data, endpoint->memory + offset, bytes);
    return 0;
}

static void fence(void *ctx)
{
    ((struct endpoint *)ctx)->fences++;
}

static uint64_t time_ps(void *ctx)
{
    return ((struct endpoint *)ctx)->now_ps;
}

static void cost(void *ctx, enum backend_cost kind, uint64_t amount)
{
    ((struct endpoint *)ctx)->calls += kind == BACKEND_COST_CALL ? (unsigned)amount : 0;
}

static const struct backend_ops ops = {
    .bar_bytes = bar_bytes,
    .bar_bus_address = bar_bus_address,
    .write_combined = write_combined,
    .fence = fence,
    .write = write_uncached,
    .read = read_uncached,
    .read_combined = read_combined,
    .time_ps = time_ps,
    .cost = cost,
};

void endpoint_init(struct endpoint *endpoint)
{
    memset(endpoint, 0, sizeof *endpoint);
    endpoint->backend = (struct backend){&ops, endpoint};
}

fpga_handle_t *endpoint_open(struct endpoint *endpoint)
{
    fpga_handle_t *handle = NULL;
    EXPECT_EQ(fpga_open(&endpoint->backend, ENDPOINT_MEMORY_BAR, ENDPOINT_CONTROL_BAR, &handle), 0);
    return handle;
}
