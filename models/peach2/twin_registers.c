// The registers of rtl/registers.def, and the interrupt message.
#include "models/peach2/twin_internal.h"

static uint32_t *stored(peach2_twin_t *twin, uint32_t offset)
{
    return &twin->registers[offset / 4];
}

uint64_t twin_register64(const peach2_twin_t *twin, uint32_t offset)
{
    return twin->registers[offset / 4] | (uint64_t)twin->registers[offset / 4 + 1] << 32;
}

// --- what lies where ------------------------------------------------------------------------------------------------

// A DW of a block: the bits that a write keeps. Counters and states are read where they are, so they keep none.
struct dword {
    uint32_t offset;
    uint32_t kept;
};

enum {
    ALL = 0xffffffff,
    CONTROL_KEPT = PEACH2_DMAC_CONTROL_MODE_MASK | PEACH2_DMAC_CONTROL_NOTIFY_LOCAL_MASK |
                   PEACH2_DMAC_CONTROL_NOTIFY_REMOTE_MASK | PEACH2_DMAC_CONTROL_STRIDE_MASK |
                   PEACH2_DMAC_CONTROL_INTERRUPT_MASK
};

static const struct dword chip[] = {{PEACH2_CHIP_ID, 0},
                                    {PEACH2_CHIP_VERSION, 0},
                                    {PEACH2_CHIP_SCRATCH, ALL},
                                    {PEACH2_CHIP_WINDOW_BASE, 0},
                                    {PEACH2_CHIP_WINDOW_BASE + 4, 0xffffff80}};

static const struct dword route[] = {{PEACH2_ROUTE_MASK, 0xfffff000},
                                     {PEACH2_ROUTE_MASK + 4, 0x7f},
                                     {PEACH2_ROUTE_LOWER, 0xfffff000},
                                     {PEACH2_ROUTE_LOWER + 4, 0x7f},
                                     {PEACH2_ROUTE_UPPER, 0xfffff000},
                                     {PEACH2_ROUTE_UPPER + 4, 0x7f},
                                     {PEACH2_ROUTE_CONTROL, PEACH2_ROUTE_CONTROL_ENABLE_MASK}};

static const struct dword offset_block[] = {{PEACH2_OFFSET_SUBTRACT, ALL}, {PEACH2_OFFSET_SUBTRACT + 4, ALL}};

static const struct dword interrupt[] = {{PEACH2_INTERRUPT_RAISE, 0},     {PEACH2_INTERRUPT_PENDING, 0},
                                         {PEACH2_INTERRUPT_CLEAR, 0},     {PEACH2_INTERRUPT_ENABLE, ALL},
                                         {PEACH2_INTERRUPT_ADDRESS, ALL}, {PEACH2_INTERRUPT_ADDRESS + 4, ALL},
                                         {PEACH2_INTERRUPT_VALUE, ALL}};

static const struct dword dmac[] = {{PEACH2_DMAC_SOURCE, ALL},
                                    {PEACH2_DMAC_SOURCE + 4, ALL},
                                    {PEACH2_DMAC_DESTINATION, ALL},
                                    {PEACH2_DMAC_DESTINATION + 4, ALL},
                                    {PEACH2_DMAC_LENGTH, ALL},
                                    {PEACH2_DMAC_CONTROL, CONTROL_KEPT},
                                    {PEACH2_DMAC_DESCRIPTOR, ALL},
                                    {PEACH2_DMAC_DESCRIPTOR + 4, ALL},
                                    {PEACH2_DMAC_NOTIFY_LOCAL, ALL},
                                    {PEACH2_DMAC_NOTIFY_LOCAL + 4, ALL},
                                    {PEACH2_DMAC_NOTIFY_REMOTE, ALL},
                                    {PEACH2_DMAC_NOTIFY_REMOTE + 4, ALL},
                                    {PEACH2_DMAC_NOTIFY_VALUE, ALL},
                                    {PEACH2_DMAC_STATUS, 0},
                                    {PEACH2_DMAC_COMPLETED, 0},
                                    {PEACH2_DMAC_STRIDE_WIDTH, ALL},
                                    {PEACH2_DMAC_STRIDE_SOURCE_PITCH, ALL},
                                    {PEACH2_DMAC_STRIDE_DESTINATION_PITCH, ALL}};

static const struct dword counter[] = {{PEACH2_COUNTER_TLPS_IN_N, 0},
                                       {PEACH2_COUNTER_TLPS_IN_E, 0},
                                       {PEACH2_COUNTER_TLPS_IN_W, 0},
                                       {PEACH2_COUNTER_TLPS_IN_S, 0},
                                       {PEACH2_COUNTER_TLPS_OUT_N, 0},
                                       {PEACH2_COUNTER_TLPS_OUT_E, 0},
                                       {PEACH2_COUNTER_TLPS_OUT_W, 0},
                                       {PEACH2_COUNTER_TLPS_OUT_S, 0},
                                       {PEACH2_COUNTER_UNROUTABLE_WRITES, 0},
                                       {PEACH2_COUNTER_UNSUPPORTED_READS, 0},
                                       {PEACH2_COUNTER_UNEXPECTED_COMPLETIONS, 0},
                                       {PEACH2_COUNTER_REFUSED_WRITES, 0},
                                       {PEACH2_COUNTER_RING_HOLDS_E, 0},
                                       {PEACH2_COUNTER_RING_HOLDS_W, 0}};

#define ROWS(rows) rows, sizeof rows / sizeof rows[0]

static const struct block {
    uint32_t base, stride, count;
    const struct dword *rows;
    size_t row_count;
} blocks[] = {
    {PEACH2_CHIP_BASE, PEACH2_CHIP_STRIDE, PEACH2_CHIP_COUNT, ROWS(chip)},
    {PEACH2_ROUTE_BASE, PEACH2_ROUTE_STRIDE, PEACH2_ROUTE_COUNT, ROWS(route)},
    {PEACH2_OFFSET_BASE, PEACH2_OFFSET_STRIDE, PEACH2_OFFSET_COUNT, ROWS(offset_block)},
    {PEACH2_INTERRUPT_BASE, PEACH2_INTERRUPT_STRIDE, PEACH2_INTERRUPT_COUNT, ROWS(interrupt)},
    {PEACH2_DMAC_BASE, PEACH2_DMAC_STRIDE, PEACH2_DMAC_COUNT, ROWS(dmac)},
    {PEACH2_COUNTER_BASE, PEACH2_COUNTER_STRIDE, PEACH2_COUNTER_COUNT, ROWS(counter)},
};
enum { BLOCKS = sizeof blocks / sizeof blocks[0] };

// The register at `offset`, its block and instance. NULL: nothing lies there.
static const struct dword *dword_find(uint32_t offset, const struct block **block_out, unsigned *instance_out)
{
    for (unsigned i = BLOCKS; i-- > 0;) {
        const struct block *block = &blocks[i];
        if (offset < block->base) {
            continue;
        }
        uint32_t within = offset - block->base;
        unsigned instance = block->stride == 0 ? 0 : within / block->stride;
        if (instance >= block->count) {
            return NULL;
        }
        *block_out = block;
        *instance_out = instance;
        for (size_t row = 0; row < block->row_count; row++) {
            if (block->rows[row].offset == within - instance * block->stride) {
                return &block->rows[row];
            }
        }
        return NULL;
    }
    return NULL;
}

// --- reading --------------------------------------------------------------------------------------------------------

static uint32_t counter_read(const peach2_twin_t *twin, uint32_t offset)
{
    uint32_t unroutable = 0, unexpected = twin->reorder.unexpected;
    for (unsigned port = 0; port < PEACH2_PORTS; port++) {
        unroutable += twin->ingresses[port].unroutable;
        unexpected += twin->ingresses[port].unexpected;
    }
    switch (offset) {
    case PEACH2_COUNTER_UNROUTABLE_WRITES:
        return unroutable;
    case PEACH2_COUNTER_UNSUPPORTED_READS:
        return twin->local.unsupported;
    case PEACH2_COUNTER_UNEXPECTED_COMPLETIONS:
        return unexpected;
    case PEACH2_COUNTER_REFUSED_WRITES:
        return twin->local.refused;
    case PEACH2_COUNTER_RING_HOLDS_E:
        return twin->outputs[TWIN_E].holds;
    case PEACH2_COUNTER_RING_HOLDS_W:
        return twin->outputs[TWIN_W].holds;
    default:
        break;
    }
    unsigned port = (offset - PEACH2_COUNTER_TLPS_IN_N) / 4 % PEACH2_PORTS;
    return offset < PEACH2_COUNTER_TLPS_OUT_N ? twin->ingresses[port].tlps : twin->outputs[port].tlps;
}

void peach2_twin_counters(const peach2_twin_t *twin, uint32_t values[PEACH2_TWIN_COUNTERS])
{
    _Static_assert(PEACH2_TWIN_COUNTERS == sizeof counter / sizeof counter[0], "one for each register");
    for (unsigned i = 0; i < PEACH2_TWIN_COUNTERS; i++) {
        values[i] = counter_read(twin, counter[i].offset);
    }
}

bool twin_register_read(peach2_twin_t *twin, uint32_t offset, uint64_t edge, uint32_t *value_out)
{
    const struct block *block;
    unsigned instance;
    const struct dword *dword = dword_find(offset, &block, &instance);
    *value_out = 0;
    if (dword == NULL) {
        return false;
    }
    *value_out = *stored(twin, offset);
    if (block->rows == counter) {
        *value_out = counter_read(twin, dword->offset);
    } else if (block->rows == interrupt && dword->offset == PEACH2_INTERRUPT_PENDING) {
        *value_out = twin->interrupt.pending;
    } else if (block->rows == dmac && dword->offset == PEACH2_DMAC_STATUS) {
        *value_out = twin_channel_status(twin, instance, edge);
    } else if (block->rows == dmac && dword->offset == PEACH2_DMAC_COMPLETED) {
        *value_out = twin->channels[instance].completed;
    }
    return true;
}

// --- writing --------------------------------------------------------------------------------------------------------

static void route_decode(peach2_twin_t *twin, unsigned index)
{
    uint32_t base = PEACH2_ROUTE_BASE + index * PEACH2_ROUTE_STRIDE;
    bool enable = (*stored(twin, base + PEACH2_ROUTE_CONTROL) & PEACH2_ROUTE_CONTROL_ENABLE_MASK) != 0;
    twin->routes_enabled =
        (uint8_t)(enable ? twin->routes_enabled | 1u << index : twin->routes_enabled & ~(1u << index));
    twin->routes[index] = (struct twin_route){
        .mask = twin_register64(twin, base + PEACH2_ROUTE_MASK),
        .lower = twin_register64(twin, base + PEACH2_ROUTE_LOWER),
        .upper = twin_register64(twin, base + PEACH2_ROUTE_UPPER),
    };
}

// What a write does besides being kept. A pulse of the register file is seen in the next cycle.
static void effect(peach2_twin_t *twin, const struct block *block, const struct dword *dword, unsigned instance,
                   uint32_t value, uint64_t edge)
{
    if (block->rows == route) {
        route_decode(twin, instance);
    } else if (block->rows == chip) {
        twin->window_base = twin_register64(twin, PEACH2_CHIP_BASE + PEACH2_CHIP_WINDOW_BASE);
    } else if (block->rows == dmac && dword->offset == PEACH2_DMAC_CONTROL) {
        if ((value & PEACH2_DMAC_CONTROL_START_MASK) != 0) {
            twin_channel_start(twin, instance, edge + 1);
        }
    } else if (block->rows == interrupt && dword->offset == PEACH2_INTERRUPT_RAISE) {
        (void)twin_interrupt_raise(twin, value & 0xffffff00, edge + 1);
    } else if (block->rows == interrupt) {
        if (dword->offset == PEACH2_INTERRUPT_CLEAR) {
            twin->interrupt.pending &= ~value;
            twin->interrupt.sent = false;
        }
        twin->interrupt.pending_from = twin_later(twin->interrupt.pending_from, edge + 2);
        twin_writer_plan(twin);
    }
}

bool twin_register_write(peach2_twin_t *twin, uint32_t offset, uint8_t enable, uint32_t value, uint64_t edge)
{
    const struct block *block;
    unsigned instance;
    const struct dword *dword = dword_find(offset, &block, &instance);
    if (dword == NULL || enable == 0) {
        return enable == 0;
    }
    uint32_t mask = 0;
    for (unsigned k = 0; k < 4; k++) {
        mask |= (enable >> k & 1) != 0 ? 0xffu << 8 * k : 0;
    }
    uint32_t *kept = stored(twin, offset);
    value = (*kept & ~mask) | (value & mask);
    *kept = (value & dword->kept) | (*kept & ~dword->kept);
    effect(twin, block, dword, instance, value, edge);
    return true;
}

void twin_registers_init(peach2_twin_t *twin)
{
    *stored(twin, PEACH2_CHIP_BASE + PEACH2_CHIP_ID) = PEACH2_CHIP_ID_RESET;
    *stored(twin, PEACH2_CHIP_BASE + PEACH2_CHIP_VERSION) = PEACH2_CHIP_VERSION_RESET;
}

// --- interrupts -----------------------------------------------------------------------------------------------------

uint32_t twin_interrupt_raise(peach2_twin_t *twin, uint32_t bits, uint64_t edge)
{
    uint32_t new = bits & ~twin->interrupt.pending;
    twin->interrupt.pending |= bits;
    twin->interrupt.pending_from = twin_later(twin->interrupt.pending_from, edge + 1);
    twin_writer_plan(twin);
    return new;
}

uint64_t twin_interrupt_due(const peach2_twin_t *twin)
{
    uint32_t enable = twin->registers[(PEACH2_INTERRUPT_BASE + PEACH2_INTERRUPT_ENABLE) / 4];
    bool due = (twin->interrupt.pending & enable) != 0 && !twin->interrupt.sent;
    return due ? twin->interrupt.pending_from : TWIN_NEVER;
}
