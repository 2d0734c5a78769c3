#include "machine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void log_add(struct machine *machine, struct log_entry entry)
{
    if (machine->log_count < LOG_MAX) {
        machine->log[machine->log_count++] = entry;
    }
}

static int alloc_pinned(void *ctx, size_t bytes, struct backend_buffer *buffer_out)
{
    struct machine *machine = ctx;
    if (machine->pinned_left == 0 || machine->pinned_count == PINNED_MAX) {
        return -ENOMEM;
    }
    void *memory = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    if (memory == NULL) {
        return -ENOMEM;
    }
    memset(memory, 0, (bytes + 4095) / 4096 * 4096);
    machine->pinned_left--;
    machine->pinned_live++;
    buffer_out->address = memory;
    buffer_out->bus_address = 0x100000ull * ++machine->pinned_count;
    buffer_out->bytes = bytes;
    return 0;
}

static void free_pinned(void *ctx, struct backend_buffer *buffer)
{
    struct machine *machine = ctx;
    machine->pinned_live--;
    free(buffer->address);
    *buffer = (struct backend_buffer){0};
}

static bool is_gpu(enum backend_bar bar)
{
    return bar >= BACKEND_BAR_GPU0 && bar < BACKEND_BAR_GPU0 + BACKEND_GPUS_MAX;
}

static uint64_t bar_bytes(void *ctx, enum backend_bar bar)
{
    const struct machine *machine = ctx;
    if (is_gpu(bar)) {
        return bar - BACKEND_BAR_GPU0 < machine->gpus ? 256u << 20 : 0;
    }
    return bar == BACKEND_BAR_REGISTERS ? BAR0_BYTES : 512ull << 30;
}

static uint64_t bar_bus_address(void *ctx, enum backend_bar bar)
{
    (void)ctx;
    if (is_gpu(bar)) {
        return GPU_BASE(bar - BACKEND_BAR_GPU0);
    }
    return bar == BACKEND_BAR_REGISTERS ? BAR0_BASE : WINDOW_BASE;
}

static void bar0_store(struct machine *machine, enum backend_bar bar, uint64_t offset, const void *data, size_t bytes)
{
    if (bar == BACKEND_BAR_REGISTERS && offset + bytes <= BAR0_BYTES) {
        memcpy(machine->bar0 + offset, data, bytes);
    }
}

static void write_combined(void *ctx, enum backend_bar bar, uint64_t offset, const void *data, size_t bytes)
{
    bar0_store(ctx, bar, offset, data, bytes);
    log_add(ctx, (struct log_entry){ACCESS_WRITE_COMBINED, bar, offset, 0, bytes});
}

static void fence(void *ctx)
{
    log_add(ctx, (struct log_entry){.access = ACCESS_FENCE});
}

static void write_uncached(void *ctx, enum backend_bar bar, uint64_t offset, uint64_t value, unsigned bytes)
{
    bar0_store(ctx, bar, offset, &value, bytes);
    log_add(ctx, (struct log_entry){ACCESS_WRITE, bar, offset, value, bytes});
}

static int read_uncached(void *ctx, enum backend_bar bar, uint64_t offset, unsigned bytes, uint64_t *value_out)
{
    struct machine *machine = ctx;
    log_add(machine, (struct log_entry){ACCESS_READ, bar, offset, 0, bytes});
    machine->now_ps += machine->read_ps;
    if (machine->silent) {
        *value_out = UINT64_MAX;
        return -EIO;
    }
    *value_out = machine_register(machine, offset, bytes);
    if (machine->busy_reads != 0 && offset % PEACH2_DMAC_STRIDE == PEACH2_DMAC_STATUS) {
        machine->busy_reads--;
        *value_out |= PEACH2_DMAC_STATUS_BUSY_MASK;
    }
    return 0;
}

static int wait_word(void *ctx, const volatile uint64_t *word, uint64_t mask, uint64_t value, uint64_t timeout_ns)
{
    struct machine *machine = ctx;
    (void)timeout_ns;
    if (machine->wait_times_out) {
        return -ETIMEDOUT;
    }
    *(volatile uint64_t *)word = machine->word_after_wait; // the board's write
    return (machine->word_after_wait & mask) == value ? 0 : -ETIMEDOUT;
}

static uint64_t time_ps(void *ctx)
{
    const struct machine *machine = ctx;
    return machine->now_ps;
}

static void cost(void *ctx, enum backend_cost kind, uint64_t amount)
{
    struct machine *machine = ctx;
    machine->calls += kind == BACKEND_COST_CALL ? amount : 0;
    machine->interrupts += kind == BACKEND_COST_INTERRUPT ? amount : 0;
}

static const struct backend_ops ops = {
    .alloc_pinned = alloc_pinned,
    .free_pinned = free_pinned,
    .bar_bytes = bar_bytes,
    .bar_bus_address = bar_bus_address,
    .write_combined = write_combined,
    .fence = fence,
    .write = write_uncached,
    .read = read_uncached,
    .wait_word = wait_word,
    .time_ps = time_ps,
    .cost = cost,
};

void machine_init(struct machine *machine)
{
    memset(machine, 0, sizeof *machine);
    machine->backend = (struct backend){&ops, machine};
    machine->pinned_left = PINNED_MAX;
    machine_register_set(machine, PEACH2_CHIP_ID, PEACH2_CHIP_ID_RESET, 4);
    machine_register_set(machine, PEACH2_CHIP_VERSION, PEACH2_CHIP_VERSION_RESET, 4);
}

void machine_fini(struct machine *machine)
{
    EXPECT_EQ(machine->pinned_live, 0);
}

peach2_handle_t *machine_open(struct machine *machine)
{
    const struct peach2_routing routing = {.node = 1, .node_count = 4, .port_of_node = {2, PEACH2_NO_PORT, 1, 1}};
    peach2_handle_t *handle = NULL;
    EXPECT_EQ(peach2_open(&machine->backend, &routing, &handle), 0);
    return handle;
}

uint64_t machine_register(const struct machine *machine, uint64_t offset, unsigned bytes)
{
    uint64_t value = 0;
    memcpy(&value, machine->bar0 + offset, bytes);
    return value;
}

void machine_register_set(struct machine *machine, uint64_t offset, uint64_t value, unsigned bytes)
{
    memcpy(machine->bar0 + offset, &value, bytes);
}

const struct log_entry *machine_last_write(const struct machine *machine, uint64_t offset)
{
    for (unsigned i = machine->log_count; i > 0; i--) {
        const struct log_entry *entry = &machine->log[i - 1];
        if (entry->access == ACCESS_WRITE && entry->bar == BACKEND_BAR_REGISTERS && entry->offset == offset) {
            return entry;
        }
    }
    return NULL;
}
