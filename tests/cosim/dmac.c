// The scripted host and the images of all memories, for the tests of the DMA controller.
#include "tests/cosim/dmac.h"

#include <stdlib.h>
#include <string.h>

enum { RCB_BYTES = 64, WATCHDOG_CYCLES = 8 * DMAC_TIMEOUT_CYCLES, BOARD_MEMORY = 0x10000 };

static uint64_t cycles_ps(uint64_t cycles)
{
    return cycles * CHIP_PERIOD_PS;
}

// --- memories -------------------------------------------------------------------------------------------------------

uint64_t dmac_window(unsigned space, uint32_t offset)
{
    static const struct {
        unsigned node, block;
        uint64_t offset;
    } targets[SPACE_COUNT] = {
        [SPACE_HOST] = {OWN_NODE, BLOCK_HOST, 0}, [SPACE_GPU] = {OWN_NODE, BLOCK_GPU0, 0},
        [SPACE_EAST] = {4, BLOCK_HOST, 0},        [SPACE_WEST] = {1, BLOCK_GPU0, 0x7000000},
        [SPACE_SOUTH] = {9, BLOCK_GPU1, 0x30000}, [SPACE_BOARD] = {OWN_NODE, BLOCK_BOARD, BOARD_MEMORY},
    };
    return chip_window(targets[space].node, targets[space].block, targets[space].offset) + offset;
}

uint64_t dmac_address(unsigned space, uint32_t offset)
{
    return space <= SPACE_GPU ? HOST_BASE + space * HOST_STRIDE + offset : dmac_window(space, offset);
}

uint64_t dmac_status_address(unsigned space, unsigned channel)
{
    return dmac_window(space, (space == SPACE_BOARD ? BOARD_BYTES : SPACE_BYTES) - 64 + 8 * channel);
}

static void create_spaces(struct dmac *dmac)
{
    static const unsigned ports[SPACE_COUNT] = {PORT_N, PORT_N, PORT_E, PORT_W, PORT_S, COSIM_PORTS};
    for (unsigned i = 0; i < SPACE_COUNT; i++) {
        uint32_t bytes = i == SPACE_BOARD ? BOARD_BYTES : SPACE_BYTES;
        dmac->spaces[i] = (struct dmac_space){ports[i],         dmac_address(i, 0), dmac_window(i, 0), bytes,
                                              calloc(1, bytes), calloc(1, bytes),   calloc(1, bytes)};
        if (i <= SPACE_GPU) {
            chip_fill(&dmac->random, dmac->spaces[i].got, SOURCE_BYTES);
            memcpy(dmac->spaces[i].want, dmac->spaces[i].got, SOURCE_BYTES);
            memcpy(dmac->spaces[i].before, dmac->spaces[i].got, SOURCE_BYTES);
        }
    }
}

// The space of a bus address (if window: of an address as programs use it) and the offset in it.
static struct dmac_space *find(struct dmac *dmac, uint64_t address, bool window, uint32_t *offset_out)
{
    for (unsigned i = 0; i < SPACE_COUNT; i++) {
        struct dmac_space *space = &dmac->spaces[i];
        uint64_t base = !window || address - space->base < space->bytes ? space->base : space->alias;
        if (address - base < space->bytes) {
            *offset_out = (uint32_t)(address - base);
            return space;
        }
    }
    return NULL;
}

// Records bytes that the test itself writes, or expects to be written.
static void put(struct dmac *dmac, uint64_t address, uint32_t bytes, const void *data, bool got)
{
    uint32_t offset = 0;
    struct dmac_space *space = find(dmac, address, true, &offset);
    ASSERT_NOT_NULL(space);
    ASSERT_LE(offset + bytes, space->bytes);
    memcpy(space->want + offset, data, bytes);
    memcpy(space->before + offset, data, bytes);
    if (got) {
        memcpy(space->got + offset, data, bytes);
    }
}

const uint8_t *dmac_got(struct dmac *dmac, uint64_t address)
{
    uint32_t offset = 0;
    struct dmac_space *space = find(dmac, address, true, &offset);
    return space == NULL ? NULL : space->got + offset;
}

// --- the host's answers ---------------------------------------------------------------------------------------------

static uint32_t piece_bytes(struct dmac *dmac, uint64_t address, uint32_t left)
{
    uint32_t to_boundary = RCB_BYTES - address % RCB_BYTES;
    if (!dmac->split && !dmac->shuffle) {
        return left;
    }
    if (dmac->shuffle) {
        to_boundary += chip_random(&dmac->random) % 4 * RCB_BYTES;
    }
    return left < to_boundary ? left : to_boundary;
}

static void on_reply(void *ctx)
{
    struct dmac_reply *reply = ctx;
    struct dmac *dmac = reply->dmac;
    uint32_t total = pcie_tlp_byte_count(reply->read);
    if (reply->answer != ANSWER_DATA) {
        enum pcie_cpl_status status = reply->answer == ANSWER_ABORT ? PCIE_CPL_CA : PCIE_CPL_UR;
        chip_send(dmac->chip, PORT_N, BAR_REGISTERS, pcie_tlp_error(reply->read, REQUESTER_HOST, status));
        reply->read = NULL;
        return;
    }
    uint32_t bytes = piece_bytes(dmac, reply->read->address + reply->offset, total - reply->offset);
    chip_send(dmac->chip, PORT_N, BAR_REGISTERS,
              pcie_tlp_completion(reply->read, REQUESTER_HOST, reply->offset, bytes, reply->data + reply->offset));
    reply->offset += bytes;
    if (reply->offset == total) {
        reply->read = NULL;
        return;
    }
    uint32_t gap = dmac->shuffle ? chip_random(&dmac->random) % 100 : reply->gap_cycles;
    sim_event_schedule(dmac->chip->sim, &reply->event, cycles_ps(gap));
}

static const struct dmac_rule *rule_for(const struct dmac *dmac, const pcie_tlp_t *read)
{
    for (unsigned i = 0; i < sizeof dmac->rules / sizeof dmac->rules[0]; i++) {
        const struct dmac_rule *rule = &dmac->rules[i];
        if (read->address < rule->address + rule->bytes && rule->address < read->address + read->dwords * 4u) {
            return rule;
        }
    }
    return NULL;
}

static struct dmac_reply *free_reply(struct dmac *dmac)
{
    for (unsigned i = 0; i < sizeof dmac->replies / sizeof dmac->replies[0]; i++) {
        if (dmac->replies[i].read == NULL) {
            return &dmac->replies[i];
        }
    }
    return NULL;
}

static void take_read(struct dmac *dmac, pcie_tlp_t *read)
{
    const struct dmac_rule *rule = rule_for(dmac, read);
    uint32_t bytes = read->dwords * 4u;
    dmac->reads = realloc(dmac->reads, (dmac->read_count + 1) * sizeof(pcie_tlp_t *));
    dmac->reads[dmac->read_count++] = read;
    if (read->tag >> 7 == 0) {
        EXPECT_LE(read->address % dmac->config.read_bytes + bytes, dmac->config.read_bytes);
    }
    EXPECT_LE(read->address % 4096 + bytes, 4096);
    if (rule != NULL && rule->answer == ANSWER_NOTHING) {
        return;
    }
    struct dmac_reply *reply = free_reply(dmac);
    uint32_t delay = rule != NULL && rule->delay_cycles > 0 ? rule->delay_cycles : dmac->delay_cycles;
    ASSERT_NOT_NULL(reply);
    reply->read = read;
    reply->answer = rule != NULL ? rule->answer : ANSWER_DATA;
    reply->offset = 0;
    reply->gap_cycles = rule != NULL ? rule->gap_cycles : 0;
    if (reply->answer == ANSWER_DATA) {
        uint32_t offset = 0;
        struct dmac_space *space = find(dmac, read->address, false, &offset);
        if (space == NULL || space->port != PORT_N || offset + bytes > space->bytes) {
            reply->answer = ANSWER_UNSUPPORTED;
        } else {
            memcpy(reply->data, space->got + offset, bytes);
        }
    }
    delay = dmac->shuffle ? 1 + chip_random(&dmac->random) % 400 : delay;
    sim_event_schedule(dmac->chip->sim, &reply->event, cycles_ps(delay));
}

void dmac_answer_again(struct dmac *dmac, pcie_tlp_t *read)
{
    uint8_t data[512];
    memset(data, 0xee, sizeof data);
    chip_send(dmac->chip, PORT_N, BAR_REGISTERS,
              pcie_tlp_completion(read, REQUESTER_HOST, 0, pcie_tlp_byte_count(read), data));
}

// --- what leaves the chip -------------------------------------------------------------------------------------------

static void take_write(struct dmac *dmac, unsigned port, pcie_tlp_t *tlp)
{
    uint64_t address = pcie_tlp_first_byte(tlp);
    uint32_t bytes = pcie_tlp_byte_count(tlp), offset = 0;
    struct dmac_space *space = find(dmac, address, false, &offset);
    if (space == NULL || space->port != port || offset + bytes > space->bytes) {
        FAIL("a write of %u bytes to 0x%llx left port %u", bytes, (unsigned long long)address, port);
        return;
    }
    EXPECT_LE(address % dmac->config.mps_bytes + bytes, dmac->config.mps_bytes);
    memcpy(space->got + offset, pcie_tlp_data(tlp) + (address & 3), bytes);
    if (dmac->on_write != NULL) {
        dmac->on_write(dmac, port, address, bytes);
    }
}

static void on_tx(struct chip *chip, unsigned port, pcie_tlp_t *tlp)
{
    struct dmac *dmac = chip->user;
    if (tlp->kind == PCIE_TLP_MWR && tlp->requester == REQUESTER_CHIP) {
        take_write(dmac, port, tlp);
    } else if (tlp->kind == PCIE_TLP_MRD) {
        EXPECT_EQ(port, PORT_N);
        take_read(dmac, tlp);
    }
}

// --- time -----------------------------------------------------------------------------------------------------------

static void on_timer(void *ctx)
{
    struct dmac_timer *timer = ctx;
    timer->fn(timer->dmac, timer->number);
}

void dmac_after(struct dmac *dmac, uint32_t cycles, void (*fn)(struct dmac *dmac, unsigned number), unsigned number)
{
    struct dmac_timer *timer = &dmac->timers[dmac->timer_count++ % (sizeof dmac->timers / sizeof dmac->timers[0])];
    timer->dmac = dmac;
    timer->fn = fn;
    timer->number = number;
    sim_event_init(&timer->event, on_timer, timer);
    sim_event_schedule(dmac->chip->sim, &timer->event, cycles_ps(cycles));
}

static void on_stall(void *ctx)
{
    struct dmac *dmac = ctx;
    for (unsigned port = 0; port < COSIM_PORTS; port++) {
        cosim_peach2_set_tx_ready(dmac->chip->board, port,
                                  dmac->stalls_left == 0 || chip_random(&dmac->random) % 3 != 0);
    }
    if (dmac->stalls_left > 0) {
        dmac->stalls_left--;
        sim_event_schedule(dmac->chip->sim, &dmac->stall, cycles_ps(1 + chip_random(&dmac->random) % 40));
    }
}

void dmac_stall(struct dmac *dmac, unsigned times)
{
    dmac->stalls_left = times;
    sim_event_schedule(dmac->chip->sim, &dmac->stall, 0);
}

// An idle chip has no cycles; one that still runs at this time will never end.
static void on_watchdog(void *ctx)
{
    struct dmac *dmac = ctx;
    uint64_t cycles = cosim_peach2_cycles(dmac->chip->board);
    if (dmac->watched_cycles == 0) {
        dmac->watched_cycles = cycles;
        sim_event_schedule(dmac->chip->sim, &dmac->watchdog, cycles_ps(1000));
    } else if (cycles != dmac->watched_cycles) {
        FAIL("the DMA controller hangs");
        sim_stop(dmac->chip->sim);
    }
}

void dmac_run(struct dmac *dmac)
{
    dmac->watched_cycles = 0;
    sim_event_schedule(dmac->chip->sim, &dmac->watchdog, cycles_ps(WATCHDOG_CYCLES));
    chip_run(dmac->chip);
    dmac->chip->ports[PORT_N].next = dmac->chip->ports[PORT_N].count;
}

struct dmac *dmac_create(const struct cosim_peach2_config *config)
{
    struct dmac *dmac = calloc(1, sizeof *dmac);
    dmac->config = config != NULL ? *config : chip_config();
    dmac->chip = chip_create(&dmac->config);
    dmac->chip->user = dmac;
    dmac->chip->on_tx = on_tx;
    dmac->random = UINT64_C(0x9e3779b97f4a7c15);
    dmac->delay_cycles = 100;
    create_spaces(dmac);
    for (unsigned i = 0; i < sizeof dmac->replies / sizeof dmac->replies[0]; i++) {
        dmac->replies[i].dmac = dmac;
        sim_event_init(&dmac->replies[i].event, on_reply, &dmac->replies[i]);
    }
    sim_event_init(&dmac->stall, on_stall, dmac);
    sim_event_init(&dmac->watchdog, on_watchdog, dmac);
    chip_join(dmac->chip);
    return dmac;
}

void dmac_destroy(struct dmac *dmac)
{
    chip_destroy(dmac->chip);
    for (unsigned i = 0; i < SPACE_COUNT; i++) {
        free(dmac->spaces[i].got);
        free(dmac->spaces[i].want);
        free(dmac->spaces[i].before);
    }
    free(dmac->reads);
    free(dmac);
}

// --- registers and descriptors --------------------------------------------------------------------------------------

static void queue(struct dmac *dmac, uint64_t offset, uint32_t bytes, const void *data)
{
    chip_send(dmac->chip, PORT_N, BAR_REGISTERS, pcie_tlp_write(dmac->chip->pool, REQUESTER_HOST, offset, bytes, data));
}

void dmac_set32(struct dmac *dmac, unsigned channel, uint32_t offset, uint32_t value)
{
    queue(dmac, PEACH2_DMAC_BASE + channel * PEACH2_DMAC_STRIDE + offset, sizeof value, &value);
}

void dmac_set64(struct dmac *dmac, unsigned channel, uint32_t offset, uint64_t value)
{
    queue(dmac, PEACH2_DMAC_BASE + channel * PEACH2_DMAC_STRIDE + offset, sizeof value, &value);
}

void dmac_prepare(struct dmac *dmac, const struct dmac_order *order)
{
    unsigned c = order->channel;
    dmac_set64(dmac, c, PEACH2_DMAC_SOURCE, order->transfer.source);
    dmac_set64(dmac, c, PEACH2_DMAC_DESTINATION, order->transfer.destination);
    dmac_set32(dmac, c, PEACH2_DMAC_LENGTH, order->transfer.bytes);
    dmac_set64(dmac, c, PEACH2_DMAC_DESCRIPTOR, order->descriptor);
    dmac_set64(dmac, c, PEACH2_DMAC_NOTIFY_LOCAL, order->local);
    dmac_set64(dmac, c, PEACH2_DMAC_NOTIFY_REMOTE, order->remote);
    dmac_set32(dmac, c, PEACH2_DMAC_NOTIFY_VALUE, order->value);
    dmac_set32(dmac, c, PEACH2_DMAC_STRIDE_WIDTH, order->transfer.width);
    dmac_set32(dmac, c, PEACH2_DMAC_STRIDE_SOURCE_PITCH, order->transfer.source_pitch);
    dmac_set32(dmac, c, PEACH2_DMAC_STRIDE_DESTINATION_PITCH, order->transfer.destination_pitch);
}

void dmac_go(struct dmac *dmac, const struct dmac_order *order)
{
    dmac_set32(dmac, order->channel, PEACH2_DMAC_CONTROL,
               PEACH2_DMAC_CONTROL_START_MASK | order->mode << PEACH2_DMAC_CONTROL_MODE_LSB |
                   (uint32_t)order->notify_local << PEACH2_DMAC_CONTROL_NOTIFY_LOCAL_LSB |
                   (uint32_t)order->notify_remote << PEACH2_DMAC_CONTROL_NOTIFY_REMOTE_LSB |
                   (uint32_t)order->transfer.stride << PEACH2_DMAC_CONTROL_STRIDE_LSB |
                   (uint32_t)order->interrupt << PEACH2_DMAC_CONTROL_INTERRUPT_LSB);
}

void dmac_start(struct dmac *dmac, const struct dmac_order *order)
{
    dmac_prepare(dmac, order);
    dmac_go(dmac, order);
}

// The layout of docs/decisions/0005.
void dmac_describe(struct dmac *dmac, unsigned mode, uint64_t at, const struct dmac_transfer *transfer, uint64_t next)
{
    const struct peach2_descriptor descriptor = {.source = transfer->source,
                                                 .destination = transfer->destination,
                                                 .length = transfer->bytes,
                                                 .reserved = transfer->reserved,
                                                 .fence = transfer->fence,
                                                 .interrupt = transfer->interrupt,
                                                 .stride = transfer->stride,
                                                 .last = next == 0,
                                                 .width = transfer->width / 4,
                                                 .source_pitch = transfer->source_pitch / 4,
                                                 .next = next,
                                                 .destination_pitch = transfer->destination_pitch / 4};
    uint64_t words[PEACH2_DESCRIPTOR_WORDS];
    peach2_descriptor_pack(&descriptor, words);
    if (mode == PEACH2_MODE_CHAIN_BOARD) {
        queue(dmac, PEACH2_MEMORY_BASE + at, sizeof words, words);
        put(dmac, dmac_window(SPACE_BOARD, (uint32_t)at), sizeof words, words, false);
    } else {
        put(dmac, at, sizeof words, words, true);
    }
}

void dmac_chain(struct dmac *dmac, unsigned mode, uint64_t at, const struct dmac_transfer *transfers, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        dmac_describe(dmac, mode, at + 32 * i, &transfers[i], i + 1 < count ? at + 32 * (i + 1) : 0);
    }
}

uint32_t dmac_get32(struct dmac *dmac, uint32_t offset)
{
    dmac_run(dmac);
    return chip_get32(dmac->chip, offset);
}

uint32_t dmac_status(struct dmac *dmac, unsigned channel)
{
    return dmac_get32(dmac, PEACH2_DMAC_BASE + channel * PEACH2_DMAC_STRIDE + PEACH2_DMAC_STATUS);
}

uint32_t dmac_completed(struct dmac *dmac, unsigned channel)
{
    return dmac_get32(dmac, PEACH2_DMAC_BASE + channel * PEACH2_DMAC_STRIDE + PEACH2_DMAC_COMPLETED);
}

// --- register settings ----------------------------------------------------------------------------------------------

struct dmac_transfer dmac_copy(uint32_t from, unsigned space, uint32_t to, uint32_t bytes)
{
    uint32_t offset = space == SPACE_BOARD ? BOARD_BYTES / 2 : TARGET_OFFSET;
    return (struct dmac_transfer){
        .source = dmac_address(SPACE_HOST, from), .destination = dmac_window(space, offset + to), .bytes = bytes};
}

struct dmac_order dmac_order(unsigned channel, struct dmac_transfer transfer)
{
    return (struct dmac_order){.channel = channel,
                               .mode = PEACH2_MODE_REGISTER,
                               .notify_local = true,
                               .notify_remote = true,
                               .transfer = transfer,
                               .local = dmac_status_address(SPACE_HOST, channel),
                               .remote = dmac_status_address(SPACE_EAST, channel),
                               .value = 0xabcd0000 + channel};
}

struct dmac_order dmac_order_chain(unsigned channel, unsigned mode, uint64_t descriptor)
{
    struct dmac_order order = dmac_order(channel, (struct dmac_transfer){0});
    order.mode = mode;
    order.descriptor = descriptor;
    return order;
}

// --- the reference --------------------------------------------------------------------------------------------------

void dmac_expect(struct dmac *dmac, const struct dmac_transfer *transfer)
{
    uint32_t width = transfer->stride ? transfer->width : transfer->bytes, from = 0, to = 0;
    for (uint32_t i = 0; i < transfer->bytes; i++) {
        uint64_t row = i / width, column = i % width;
        uint64_t source = transfer->source + row * transfer->source_pitch + column;
        uint64_t destination = transfer->destination + row * transfer->destination_pitch + column;
        struct dmac_space *in = find(dmac, source, true, &from), *out = find(dmac, destination, true, &to);
        ASSERT_NOT_NULL(in);
        ASSERT_NOT_NULL(out);
        out->want[to] = in->want[from];
    }
}

void dmac_expect_bytes(struct dmac *dmac, uint64_t address, uint32_t bytes, const void *data)
{
    put(dmac, address, bytes, data, false);
}
