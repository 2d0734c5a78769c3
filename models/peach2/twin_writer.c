// Memory writes of the DMAC: finished reads as writes of at most Max_Payload_Size, the channels' status words, and the
// board's interrupt message. One beat a cycle, up to four ahead of the router.
#include <string.h>

#include "models/peach2/twin_internal.h"

enum { AHEAD_BEATS = 4, BUFFER_CYCLES = 2, ISSUES = 4, STATUS_BYTES = 8, MESSAGE_BYTES = 4 };

static struct twin_issue *issue_at(struct twin_writer *writer, uint32_t number)
{
    return &writer->issues[number % ISSUES];
}

// --- to the router --------------------------------------------------------------------------------------------------

static void front_offer(peach2_twin_t *twin)
{
    struct twin_writer *writer = &twin->writer;
    if (writer->issue_head == writer->issue_tail) {
        return;
    }
    struct twin_issue *issue = issue_at(writer, writer->issue_head);
    uint64_t from = twin_later(issue->edge + BUFFER_CYCLES, writer->last_move + 1);
    const struct twin_offer offer = {issue->tlp, from, issue->beats, issue->beats, issue->dest, false};
    issue->tlp = NULL;
    twin_offer_put(twin, TWIN_SOURCE_WRITE, &offer);
}

void twin_writer_moved(peach2_twin_t *twin, uint64_t last, uint32_t count, bool whole)
{
    struct twin_writer *writer = &twin->writer;
    twin_moves_add(&writer->moves, last, count);
    if (whole) {
        // A read, or a status word, is reported when its last beat has gone to its output: nothing later can pass it
        // there.
        const struct twin_issue *gone = issue_at(writer, writer->issue_head++);
        writer->last_move = last;
        if (gone->retires) {
            writer->last_report = last;
            twin_channel_retire(&twin->channels[gone->report.channel], &gone->report, last);
        }
        if (gone->notifier != NULL) {
            twin_channel_notified(gone->notifier, last);
        }
        front_offer(twin);
    }
    twin_writer_plan(twin);
}

// The edge from which the output buffer takes the beat of that number; TWIN_NEVER: not known yet.
static uint64_t credit_from(const struct twin_writer *writer, uint64_t beat)
{
    if (beat < AHEAD_BEATS) {
        return 0;
    }
    uint64_t freed = twin_moved(&writer->moves, beat - AHEAD_BEATS);
    return freed == TWIN_NEVER ? TWIN_NEVER : freed + 1;
}

// report: result of the read that the packet ends, or NULL.
static void issue(peach2_twin_t *twin, pcie_tlp_t *tlp, uint8_t dest, const struct twin_report *report, uint64_t edge)
{
    struct twin_writer *writer = &twin->writer;
    uint32_t beats = twin_beats(tlp);
    bool alone = writer->issue_head == writer->issue_tail;
    struct twin_issue *new = issue_at(writer, writer->issue_tail++);
    *new = (struct twin_issue){.tlp = tlp, .edge = edge, .beats = beats, .dest = dest, .retires = report != NULL};
    if (report != NULL) {
        new->report = *report;
    }
    writer->busy = true;
    writer->header_edge = edge;
    writer->beats = beats;
    writer->issued += beats;
    if (alone) {
        front_offer(twin);
    }
}

// The edge at which the last beat of the current packet is issued; TWIN_NEVER: not known yet.
static uint64_t last_issue(const struct twin_writer *writer)
{
    uint64_t credit = credit_from(writer, writer->issued - 1);
    return credit == TWIN_NEVER ? TWIN_NEVER : twin_later(writer->header_edge + writer->beats - 1, credit);
}

// --- what to write --------------------------------------------------------------------------------------------------

static uint64_t notify_from(const struct twin_channel *channel)
{
    return channel->notify_due ? channel->from : TWIN_NEVER;
}

static bool notify_issue(peach2_twin_t *twin, uint64_t edge)
{
    struct twin_writer *writer = &twin->writer;
    uint32_t candidates = 0;
    for (unsigned i = 0; i < TWIN_CHANNELS; i++) {
        candidates |= notify_from(&twin->channels[i]) <= edge ? 1u << i : 0;
    }
    if (candidates == 0) {
        return false;
    }
    writer->notify_owner = twin_round_robin(candidates, writer->notify_owner);
    struct twin_channel *channel = &twin->channels[writer->notify_owner];
    uint32_t ignored = twin_channel_ignored(channel, edge);
    const struct peach2_completion_status status = {.value = channel->notify_value,
                                                    .status = PEACH2_PUT(1, DMAC_STATUS_DONE) |
                                                              PEACH2_PUT(channel->error, DMAC_STATUS_ERROR) |
                                                              PEACH2_PUT(ignored, DMAC_STATUS_IGNORED_STARTS)};
    uint64_t words[PEACH2_COMPLETION_STATUS_WORDS];
    peach2_completion_status_pack(&status, words);
    pcie_tlp_t *tlp = pcie_tlp_write(twin->pool, twin->config.requester, channel->notify_address,
                                     PEACH2_COMPLETION_STATUS_BYTES, words);
    issue(twin, tlp, channel->notify_dest, NULL, edge);
    issue_at(writer, writer->issue_tail - 1)->notifier = channel;
    channel->notify_due = false;
    return true;
}

static bool message_issue(peach2_twin_t *twin, uint64_t edge)
{
    struct twin_message message;
    if (!twin_interrupt_send(twin, edge, &message)) {
        return false;
    }
    pcie_tlp_t *tlp =
        pcie_tlp_write(twin->pool, twin->config.requester, message.address, MESSAGE_BYTES, &message.value);
    issue(twin, tlp, TWIN_N, NULL, edge);
    return true;
}

// Everything of the oldest read has been issued, or the read is dropped.
static void pop(peach2_twin_t *twin, uint64_t edge)
{
    twin->writer.first = true;
    twin->writer.offset = 0;
    twin_reorder_pop(twin, edge);
}

// The next write of the oldest read.
static void data_issue(peach2_twin_t *twin, struct twin_slot *slot, uint64_t edge)
{
    struct twin_writer *writer = &twin->writer;
    uint64_t destination = slot->destination + writer->offset;
    uint32_t room = twin->config.mps_bytes - (uint32_t)(destination & (twin->config.mps_bytes - 1));
    uint32_t left = slot->bytes - writer->offset;
    uint32_t bytes = left < room ? left : room;
    pcie_tlp_t *tlp = twin_slot_write(twin, slot, writer->offset, bytes);
    writer->offset += bytes;
    writer->first = false;
    issue(twin, tlp, slot->dest, writer->offset == slot->bytes ? &slot->report : NULL, edge);
}

// The edge from which the oldest read has its data, or no longer waits for it.
static uint64_t ready_from(const peach2_twin_t *twin, const struct twin_slot *slot)
{
    uint64_t lost = twin_channel_lost(&twin->channels[slot->report.channel]);
    return slot->done_from < lost ? slot->done_from : lost;
}

// WRITER_HEADER at that edge: as in the RTL, status words first, then the message, then data.
static void header_issue(peach2_twin_t *twin, uint64_t edge)
{
    struct twin_writer *writer = &twin->writer;
    bool credit = credit_from(writer, writer->issued) <= edge;
    if (writer->first && credit && (notify_issue(twin, edge) || message_issue(twin, edge))) {
        return;
    }
    struct twin_slot *slot = twin_reorder_head(twin);
    if (slot == NULL || ready_from(twin, slot) > edge) {
        return;
    }
    struct twin_channel *channel = &twin->channels[slot->report.channel];
    if (!writer->first || (slot->report.error == PEACH2_DMA_OK && !twin_channel_failed(channel, edge))) {
        if (credit) {
            data_issue(twin, slot, edge);
        }
        return;
    }
    writer->from = edge + 1;
    if (writer->last_report != edge) {
        const struct twin_report report = slot->report;
        pop(twin, edge);
        twin_channel_retire(channel, &report, edge);
    }
}

// --- when -----------------------------------------------------------------------------------------------------------

// When the oldest read can be written or dropped; dropping needs no slot in the buffer.
static uint64_t read_edge(peach2_twin_t *twin, uint64_t credit)
{
    const struct twin_slot *slot = twin_reorder_head(twin);
    if (slot == NULL) {
        return TWIN_NEVER;
    }
    const struct twin_channel *channel = &twin->channels[slot->report.channel];
    uint64_t ready = ready_from(twin, slot), written = twin_later(ready, credit), dropped = TWIN_NEVER;
    if (twin->writer.first && slot->report.error != PEACH2_DMA_OK) {
        dropped = ready;
    } else if (twin->writer.first && channel->error != PEACH2_DMA_OK) {
        dropped = twin_later(ready, channel->error_from);
    }
    return written < dropped ? written : dropped;
}

static uint64_t next_edge(peach2_twin_t *twin)
{
    const struct twin_writer *writer = &twin->writer;
    if (writer->busy) {
        uint64_t last = last_issue(writer);
        return last == TWIN_NEVER ? TWIN_NEVER : last + 1;
    }
    uint64_t credit = credit_from(writer, writer->issued);
    uint64_t next = read_edge(twin, credit);
    if (writer->first) {
        uint64_t due = twin_interrupt_due(twin);
        for (unsigned i = 0; i < TWIN_CHANNELS; i++) {
            uint64_t from = notify_from(&twin->channels[i]);
            due = from < due ? from : due;
        }
        due = twin_later(due, credit);
        next = due < next ? due : next;
    }
    return twin_later(next, writer->from);
}

void twin_writer_plan(peach2_twin_t *twin)
{
    twin_event_set(twin, &twin->writer.event, next_edge(twin));
}

static void packet_end(peach2_twin_t *twin)
{
    struct twin_writer *writer = &twin->writer;
    uint64_t edge = last_issue(writer);
    writer->busy = false;
    writer->from = edge + 1;
    if (!writer->first && writer->offset == twin_reorder_head(twin)->bytes) {
        pop(twin, edge);
    }
}

static void writer_run(void *ctx)
{
    static const struct sim_work writing = {"board", "DMA writer", false};
    peach2_twin_t *twin = ctx;
    sim_cause_label(twin->sim, twin->name, &writing);
    struct twin_writer *writer = &twin->writer;
    uint64_t edge = twin_edge(twin);
    if (writer->busy && next_edge(twin) <= edge) {
        packet_end(twin);
    }
    if (!writer->busy && writer->from <= edge) {
        header_issue(twin, edge);
    }
    twin_writer_plan(twin);
}

void twin_writer_init(peach2_twin_t *twin)
{
    twin->writer.first = true;
    twin->writer.notify_owner = TWIN_CHANNELS - 1;
    sim_event_init(&twin->writer.event, writer_run, twin);
}

void twin_writer_fini(peach2_twin_t *twin)
{
    struct twin_writer *writer = &twin->writer;
    sim_event_cancel(twin->sim, &writer->event);
    for (; writer->issue_head != writer->issue_tail; writer->issue_head++) {
        if (issue_at(writer, writer->issue_head)->tlp != NULL) {
            pcie_tlp_unref(issue_at(writer, writer->issue_head)->tlp);
        }
    }
}
