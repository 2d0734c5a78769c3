// Sequencer of a DMA channel: takes transfers from the registers or from a chain, checks them, cuts them into segments,
// waits until all are written, and reports the completion.
//
// Where the RTL counts cycles, the twin computes the edge from which the next state holds.
#include <string.h>

#include "models/peach2/twin_internal.h"

enum { CHECK_SOURCE_CYCLES = 1, CHECK_CYCLES = 2 }; // the two checks

static struct twin_fetch *fetch_of(const struct twin_channel *channel)
{
    return &channel->twin->fetches[channel->index];
}

static void enter(struct twin_channel *channel, enum twin_channel_state state, uint64_t from)
{
    channel->state = state;
    channel->from = from;
}

bool twin_channel_failed(const struct twin_channel *channel, uint64_t edge)
{
    return channel->error != PEACH2_DMA_OK && channel->error_from <= edge;
}

static void enter_drain(struct twin_channel *channel, uint64_t from)
{
    enter(channel, TWIN_CHANNEL_DRAIN, from);
    twin_event_set(channel->twin, &channel->event, TWIN_NEVER);
    twin_channel_drain(channel);
}

// In SEGMENT or NEXT with an error: the error ends the state at the first edge that sees both.
static void error_await(struct twin_channel *channel)
{
    if (channel->error_from <= channel->from) {
        enter_drain(channel, channel->from + 1);
    } else {
        twin_event_set(channel->twin, &channel->event, channel->error_from);
    }
}

// The first error is kept, and of two in one cycle the later call's. Segments are no longer issued from `from` on.
static void fail(struct twin_channel *channel, enum peach2_dma_error error, uint64_t from)
{
    if (twin_channel_failed(channel, from - 1)) {
        return;
    }
    channel->error = error;
    channel->error_from = from;
    if (channel->completed_edge >= from) { // its last beat would have left after the error
        channel->completed--;
        channel->completed_edge = 0;
        twin_interrupt_withdraw(channel->twin, channel->raised);
    }
    twin_fetch_stop(fetch_of(channel));
    twin_streams_stop(channel);
    twin_writer_plan(channel->twin);
    if (channel->state == TWIN_CHANNEL_SEGMENT || channel->state == TWIN_CHANNEL_NEXT) {
        error_await(channel);
    }
}

// No more of the transfer is issued. The error holds from an edge on that may lie ahead: a read may fail before it, and
// at the same edge a read's error goes before a check's.
static void transfer_fail(struct twin_channel *channel, enum peach2_dma_error error, uint64_t from)
{
    enter(channel, TWIN_CHANNEL_DRAIN, from);
    if (!twin_channel_failed(channel, from)) {
        fail(channel, error, from);
    }
    enter_drain(channel, from);
}

// --- segments -------------------------------------------------------------------------------------------------------

// A segment is ready from that edge on.
static void enter_segment(struct twin_channel *channel, uint64_t from)
{
    enter(channel, TWIN_CHANNEL_SEGMENT, from);
    if (channel->error != PEACH2_DMA_OK) {
        error_await(channel);
    } else if (twin_transfer_leaves_window(channel->twin, &channel->transfer)) {
        transfer_fail(channel, PEACH2_DMA_UNROUTABLE, from + 1);
    }
}

void twin_channels_window_moved(peach2_twin_t *twin, uint64_t from)
{
    for (unsigned i = 0; i < TWIN_CHANNELS; i++) {
        struct twin_channel *channel = &twin->channels[i];
        if (channel->state == TWIN_CHANNEL_SEGMENT && channel->error == PEACH2_DMA_OK &&
            twin_transfer_leaves_window(twin, &channel->transfer)) {
            transfer_fail(channel, PEACH2_DMA_UNROUTABLE, twin_later(channel->from, from) + 1);
        }
    }
}

void twin_channel_segment_taken(struct twin_channel *channel, uint64_t edge, uint32_t bytes)
{
    channel->outstanding++;
    twin_channel_advance(channel, edge, bytes);
}

void twin_channel_advance(struct twin_channel *channel, uint64_t edge, uint32_t bytes)
{
    const struct twin_transfer *transfer = &channel->transfer;
    twin_transfer_advance(&channel->transfer, bytes);
    if (transfer->left == 0) {
        if (transfer->last) {
            enter_drain(channel, edge + 1);
        } else {
            enter(channel, TWIN_CHANNEL_NEXT, edge + 1);
            twin_channel_feed(channel);
        }
        return;
    }
    enter_segment(channel, edge + 1);
}

// --- checks ---------------------------------------------------------------------------------------------------------

// CHECK_SOURCE and CHECK_DESTINATION, from that edge on.
static void transfer_begin(struct twin_channel *channel, uint64_t from)
{
    channel->packets = false;
    enum peach2_dma_error error = twin_transfer_check_source(channel->twin, &channel->transfer);
    if (error != PEACH2_DMA_OK) {
        transfer_fail(channel, error, from + CHECK_SOURCE_CYCLES);
        return;
    }
    if (!twin_transfer_check_destination(channel->twin, &channel->transfer)) {
        transfer_fail(channel, PEACH2_DMA_UNROUTABLE, from + CHECK_CYCLES);
        return;
    }
    enter_segment(channel, from + CHECK_CYCLES);
    twin_reader_plan(channel->twin);
}

// --- transfers ------------------------------------------------------------------------------------------------------

static void descriptor_take(struct twin_channel *channel, const struct twin_descriptor *held, uint64_t edge)
{
    channel->transfer = twin_transfer_of_descriptor(held->words);
    twin_fetch_pop(fetch_of(channel), edge);
    transfer_begin(channel, edge + 1);
}

void twin_channel_feed(struct twin_channel *channel)
{
    struct twin_fetch *fetch = fetch_of(channel);
    if (channel->state != TWIN_CHANNEL_NEXT) {
        return;
    }
    if (channel->error != PEACH2_DMA_OK) {
        error_await(channel);
    }
    const struct twin_descriptor *descriptor = twin_fetch_front(fetch);
    if (descriptor != NULL) {
        bool fence = peach2_descriptor_unpack(descriptor->words).fence;
        if (!fence || channel->outstanding == 0) {
            uint64_t edge = twin_later(channel->from, descriptor->from);
            edge = fence ? twin_later(edge, channel->drained_from) : edge;
            if (!twin_channel_failed(channel, edge)) {
                struct twin_descriptor taken = *descriptor;
                descriptor_take(channel, &taken, edge);
            }
        }
    } else if (fetch->state == TWIN_FETCH_END && fetch->error != PEACH2_DMA_OK) {
        transfer_fail(channel, fetch->error, twin_later(channel->from, fetch->from) + 1);
    }
}

// --- the end --------------------------------------------------------------------------------------------------------

void twin_channel_drain(struct twin_channel *channel)
{
    uint64_t settled = twin_fetch_settled(fetch_of(channel));
    if (channel->state != TWIN_CHANNEL_DRAIN || channel->outstanding != 0 || settled == TWIN_NEVER) {
        return;
    }
    uint64_t edge = twin_later(twin_later(channel->from, channel->drained_from), settled);
    // One edge before the status word may leave, because the writer checks for it there.
    twin_event_set(channel->twin, &channel->event, edge + 1 + channel->twin->config.finish_cycles);
}

static void go_idle(struct twin_channel *channel, uint64_t from)
{
    enter(channel, TWIN_CHANNEL_IDLE, from);
    channel->done = true;
    if (channel->end_interrupt) {
        (void)twin_interrupt_raise(channel->twin, 1u << channel->index, from - 1);
    }
}

// Passes the status word to the writer. false: there is none to write, perhaps because of an error in its address.
static bool notify_begin(struct twin_channel *channel, bool wanted, uint64_t address, uint64_t from)
{
    bool inside;
    if (!wanted) {
        return false;
    }
    bool routable = twin_destination_routable(channel->twin, address, &channel->notify_dest, &inside);
    if (address % 8 != 0 || !routable) {
        fail(channel, address % 8 != 0 ? PEACH2_DMA_MISALIGNED : PEACH2_DMA_UNROUTABLE, from + 1);
        return false;
    }
    channel->notify_address = address;
    channel->notify_due = true;
    twin_writer_plan(channel->twin);
    return true;
}

static void enter_notify_local(struct twin_channel *channel, uint64_t from)
{
    enter(channel, TWIN_CHANNEL_NOTIFY_LOCAL, from);
    if (!notify_begin(channel, channel->notify_local, channel->notify_local_address, from)) {
        go_idle(channel, from + 1);
    }
}

static void enter_notify_remote(struct twin_channel *channel, uint64_t from)
{
    enter(channel, TWIN_CHANNEL_NOTIFY_REMOTE, from);
    bool wanted = channel->notify_remote && channel->error == PEACH2_DMA_OK;
    if (!notify_begin(channel, wanted, channel->notify_remote_address, from)) {
        enter_notify_local(channel, from + 1);
    }
}

void twin_channel_notified(struct twin_channel *channel, uint64_t edge)
{
    if (channel->state == TWIN_CHANNEL_NOTIFY_REMOTE) {
        enter_notify_local(channel, edge + 1);
    } else {
        go_idle(channel, edge + 1);
    }
}

uint64_t twin_channel_lost(const struct twin_channel *channel)
{
    return channel->error == PEACH2_DMA_READ_LOST ? channel->error_from : TWIN_NEVER;
}

void twin_channel_retire(struct twin_channel *channel, const struct twin_report *report, uint64_t edge)
{
    if (report->error == PEACH2_DMA_OK && report->last && !twin_channel_failed(channel, edge)) {
        channel->completed++;
        channel->completed_edge = edge;
        channel->raised = report->interrupt ? twin_interrupt_raise(channel->twin, 1u << channel->index, edge) : 0;
    }
    // A dropped read is reported at once, perhaps before the last beat of one that was announced earlier has left.
    channel->drained_from = twin_later(channel->drained_from, edge + 1);
    channel->outstanding--;
    if (report->error != PEACH2_DMA_OK) {
        fail(channel, report->error, edge + 1);
    }
    if (channel->outstanding == 0) {
        twin_channel_feed(channel);
        twin_channel_drain(channel);
    }
}

// --- the start ------------------------------------------------------------------------------------------------------

static void start_at(struct twin_channel *channel, uint64_t edge)
{
    const struct peach2_twin_config *config = &channel->twin->config;
    uint32_t control = twin_channel_register(channel, PEACH2_DMAC_CONTROL);
    if (channel->state != TWIN_CHANNEL_IDLE || channel->from > edge) {
        if (channel->ignored < UINT8_MAX) {
            channel->ignored++;
            channel->ignored_from = edge + 1;
        }
        return;
    }
    channel->mode = PEACH2_FIELD(control, DMAC_CONTROL_MODE);
    channel->notify_local = (control & PEACH2_DMAC_CONTROL_NOTIFY_LOCAL_MASK) != 0;
    channel->notify_remote = (control & PEACH2_DMAC_CONTROL_NOTIFY_REMOTE_MASK) != 0;
    channel->end_interrupt = (control & PEACH2_DMAC_CONTROL_INTERRUPT_MASK) != 0;
    channel->notify_local_address = twin_channel_register64(channel, PEACH2_DMAC_NOTIFY_LOCAL);
    channel->notify_remote_address = twin_channel_register64(channel, PEACH2_DMAC_NOTIFY_REMOTE);
    channel->notify_value = twin_channel_register(channel, PEACH2_DMAC_NOTIFY_VALUE);
    channel->transfer = twin_transfer_of_registers(channel);
    channel->chain_address = twin_channel_register64(channel, PEACH2_DMAC_DESCRIPTOR);
    channel->error = PEACH2_DMA_OK;
    channel->done = false;
    channel->completed = 0;
    uint64_t begun = edge + 2;
    enter(channel, TWIN_CHANNEL_START, edge + 1);
    twin_event_set(channel->twin, &channel->event, begun + config->start_cycles);
    if (channel->mode == PEACH2_MODE_CHAIN_HOST || channel->mode == PEACH2_MODE_CHAIN_BOARD) {
        uint32_t cycles = config->fetch_cycles < config->start_cycles ? config->fetch_cycles : config->start_cycles;
        twin_fetch_begin(fetch_of(channel), channel->mode == PEACH2_MODE_CHAIN_BOARD, channel->chain_address,
                         begun + cycles);
    }
}

void twin_channel_start(peach2_twin_t *twin, unsigned index, uint64_t edge)
{
    struct twin_channel *channel = &twin->channels[index];
    if (channel->state == TWIN_CHANNEL_IDLE) {
        start_at(channel, edge);
        return;
    }
    // The channel may have ended by then.
    channel->start_edge = edge;
    twin_event_set(twin, &channel->start_event, edge);
}

static void start_run(void *ctx)
{
    static const struct sim_work sequencing = {"board", "DMA controller", false};
    struct twin_channel *channel = ctx;
    sim_cause_label(channel->twin->sim, channel->twin->name, &sequencing);
    start_at(channel, channel->start_edge);
}

static void channel_run(void *ctx)
{
    static const struct sim_work sequencing = {"board", "DMA controller", false};
    struct twin_channel *channel = ctx;
    sim_cause_label(channel->twin->sim, channel->twin->name, &sequencing);
    uint64_t edge = twin_edge(channel->twin);
    if (channel->state == TWIN_CHANNEL_SEGMENT || channel->state == TWIN_CHANNEL_NEXT) {
        enter_drain(channel, edge + 1);
        return;
    }
    if (channel->state == TWIN_CHANNEL_DRAIN) {
        enter_notify_remote(channel, edge + 1);
        return;
    }
    switch (channel->mode) {
    case PEACH2_MODE_REGISTER:
        transfer_begin(channel, edge);
        break;
    case PEACH2_MODE_CHAIN_HOST:
    case PEACH2_MODE_CHAIN_BOARD:
        enter(channel, TWIN_CHANNEL_NEXT, edge);
        twin_channel_feed(channel);
        break;
    default:
        transfer_fail(channel, PEACH2_DMA_INVALID, edge);
        break;
    }
}

uint32_t twin_channel_ignored(const struct twin_channel *channel, uint64_t edge)
{
    return channel->ignored - (edge < channel->ignored_from ? 1u : 0);
}

uint32_t twin_channel_status(const peach2_twin_t *twin, unsigned index, uint64_t edge)
{
    const struct twin_channel *channel = &twin->channels[index];
    bool idle = channel->state == TWIN_CHANNEL_IDLE && channel->from <= edge;
    enum peach2_dma_error error = twin_channel_failed(channel, edge) ? channel->error : PEACH2_DMA_OK;
    uint32_t status = PEACH2_PUT(error, DMAC_STATUS_ERROR) |
                      PEACH2_PUT(twin_channel_ignored(channel, edge), DMAC_STATUS_IGNORED_STARTS);
    status |= idle ? 0 : PEACH2_DMAC_STATUS_BUSY_MASK;
    status |= idle && channel->done ? PEACH2_DMAC_STATUS_DONE_MASK : 0;
    return status;
}

void twin_channels_init(peach2_twin_t *twin)
{
    for (unsigned i = 0; i < TWIN_CHANNELS; i++) {
        struct twin_channel *channel = &twin->channels[i];
        channel->twin = twin;
        channel->index = i;
        sim_event_init(&channel->event, channel_run, channel);
        sim_event_init(&channel->start_event, start_run, channel);
    }
}

void twin_channels_fini(peach2_twin_t *twin)
{
    for (unsigned i = 0; i < TWIN_CHANNELS; i++) {
        sim_event_cancel(twin->sim, &twin->channels[i].event);
        sim_event_cancel(twin->sim, &twin->channels[i].start_event);
        twin_streams_drop(&twin->channels[i]);
    }
}
