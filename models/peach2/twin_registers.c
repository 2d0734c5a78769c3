// The registers of rtl/registers.def.
#include "models/peach2/twin_internal.h"
#include "rtl/peach2_regs_table.h"

static uint32_t *stored(peach2_twin_t *twin, uint32_t offset)
{
    return &twin->registers[offset / 4];
}

uint64_t twin_register64(const peach2_twin_t *twin, uint32_t offset)
{
    return twin->registers[offset / 4] | (uint64_t)twin->registers[offset / 4 + 1] << 32;
}

static uint32_t register_at(const peach2_twin_t *twin, uint32_t offset, uint64_t edge)
{
    uint32_t value = twin->registers[offset / 4];
    for (unsigned i = 0; i < 2; i++) {
        const struct twin_write *write = &twin->writes[i];
        value = write->edge >= edge && write->offset == offset ? write->before : value;
    }
    return value;
}

uint64_t twin_register64_at(const peach2_twin_t *twin, uint32_t offset, uint64_t edge)
{
    return register_at(twin, offset, edge) | (uint64_t)register_at(twin, offset + 4, edge) << 32;
}

// --- the map --------------------------------------------------------------------------------------------------------

// A DW of the map, its block and the number of the block's instance.
struct entry {
    const struct peach2_register_word *word;
    enum peach2_register_block_number block;
    unsigned instance;
};

// false: no register has that offset.
static bool entry_find(uint32_t offset, struct entry *entry_out)
{
    for (unsigned i = PEACH2_BLOCKS; i-- > 0;) {
        const struct peach2_register_block *block = &peach2_register_blocks[i];
        if (offset < block->base) {
            continue;
        }
        uint32_t within = offset - block->base;
        unsigned instance = block->stride == 0 ? 0 : within / block->stride;
        for (size_t k = 0; instance < block->count && k < block->word_count; k++) {
            if (block->words[k].offset == within - instance * block->stride) {
                *entry_out = (struct entry){&block->words[k], (enum peach2_register_block_number)i, instance};
                return true;
            }
        }
        return false;
    }
    return false;
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

void peach2_twin_counters(const peach2_twin_t *twin, uint32_t values[PEACH2_COUNTER_REGISTERS])
{
    const struct peach2_register_block *block = &peach2_register_blocks[PEACH2_BLOCK_COUNTER];
    for (unsigned i = 0; i < PEACH2_COUNTER_REGISTERS; i++) {
        values[i] = counter_read(twin, block->words[i].offset);
    }
}

// State that is not kept in the registers themselves.
static uint32_t state_read(peach2_twin_t *twin, const struct entry *entry, uint64_t edge, uint32_t kept)
{
    uint32_t offset = entry->word->offset;
    if (entry->block == PEACH2_BLOCK_COUNTER) {
        return counter_read(twin, offset);
    }
    if (entry->block == PEACH2_BLOCK_INTERRUPT && offset == PEACH2_INTERRUPT_PENDING) {
        return twin_interrupt_pending(twin, edge);
    }
    if (entry->block == PEACH2_BLOCK_DMAC && offset == PEACH2_DMAC_STATUS) {
        return twin_channel_status(twin, entry->instance, edge);
    }
    if (entry->block == PEACH2_BLOCK_DMAC && offset == PEACH2_DMAC_COMPLETED) {
        return twin->channels[entry->instance].completed;
    }
    return kept;
}

bool twin_register_read(peach2_twin_t *twin, uint32_t offset, uint64_t edge, uint32_t *value_out)
{
    struct entry entry;
    bool found = entry_find(offset, &entry);
    *value_out = found ? state_read(twin, &entry, edge, *stored(twin, offset)) : 0;
    return found;
}

// --- writing --------------------------------------------------------------------------------------------------------

static void route_decode(peach2_twin_t *twin, unsigned index)
{
    uint32_t base = PEACH2_ROUTE_BASE + index * PEACH2_ROUTE_STRIDE;
    bool enable = PEACH2_FIELD(*stored(twin, base + PEACH2_ROUTE_CONTROL), ROUTE_CONTROL_ENABLE) != 0;
    struct twin_routing *routing = &twin->routing;
    routing->enabled = (uint8_t)(enable ? routing->enabled | 1u << index : routing->enabled & ~(1u << index));
    routing->routes[index] = (struct twin_route){
        .mask = twin_register64(twin, base + PEACH2_ROUTE_MASK),
        .lower = twin_register64(twin, base + PEACH2_ROUTE_LOWER),
        .upper = twin_register64(twin, base + PEACH2_ROUTE_UPPER),
    };
}

static void interrupt_written(peach2_twin_t *twin, uint32_t offset, uint32_t value, uint64_t edge)
{
    if (offset == PEACH2_INTERRUPT_RAISE) {
        (void)twin_interrupt_raise(twin, value & UINT32_MAX << PEACH2_INTERRUPT_RAISED_LSB, edge + 1);
    } else if (offset == PEACH2_INTERRUPT_CLEAR) {
        twin_interrupt_clear(twin, value, edge);
    } else {
        twin_writer_plan(twin);
    }
}

// The effects of a write besides the new value. A pulse of the register file is seen in the next cycle.
static void written(peach2_twin_t *twin, const struct entry *entry, uint32_t value, uint64_t edge)
{
    switch (entry->block) {
    case PEACH2_BLOCK_ROUTE:
        route_decode(twin, entry->instance);
        break;
    case PEACH2_BLOCK_CHIP:
        twin->routing.window_base = twin_register64(twin, PEACH2_CHIP_BASE + PEACH2_CHIP_WINDOW_BASE);
        twin_channels_window_moved(twin, edge + 1);
        break;
    case PEACH2_BLOCK_INTERRUPT:
        interrupt_written(twin, entry->word->offset, value, edge);
        break;
    case PEACH2_BLOCK_DMAC:
        if (entry->word->offset == PEACH2_DMAC_CONTROL && PEACH2_FIELD(value, DMAC_CONTROL_START) != 0) {
            twin_channel_start(twin, entry->instance, edge + 1);
        }
        break;
    default:
        break;
    }
}

bool twin_register_write(peach2_twin_t *twin, uint32_t offset, uint8_t enable, uint32_t value, uint64_t edge)
{
    struct entry entry;
    if (enable == 0 || !entry_find(offset, &entry)) {
        return enable == 0;
    }
    uint32_t mask = 0;
    for (unsigned k = 0; k < 4; k++) {
        mask |= (enable >> k & 1) != 0 ? 0xffu << 8 * k : 0;
    }
    if (entry.block == PEACH2_BLOCK_INTERRUPT) {
        twin_interrupt_changes(twin, edge);
    } else if (entry.block == PEACH2_BLOCK_ROUTE || entry.block == PEACH2_BLOCK_CHIP) {
        twin->routing_before = twin->routing;
        twin->routing_written = edge;
    }
    uint32_t *kept = stored(twin, offset);
    twin->writes[1] = twin->writes[0];
    twin->writes[0] = (struct twin_write){offset, *kept, edge};
    value = (*kept & ~mask) | (value & mask);
    *kept = (value & entry.word->kept) | (*kept & ~entry.word->kept);
    written(twin, &entry, value, edge);
    return true;
}

void twin_registers_init(peach2_twin_t *twin)
{
    for (unsigned i = 0; i < PEACH2_BLOCKS; i++) {
        const struct peach2_register_block *block = &peach2_register_blocks[i];
        for (unsigned k = 0; k < block->count * block->word_count; k++) {
            const struct peach2_register_word *word = &block->words[k % block->word_count];
            *stored(twin, block->base + (uint32_t)(k / block->word_count) * block->stride + word->offset) = word->reset;
        }
    }
}
