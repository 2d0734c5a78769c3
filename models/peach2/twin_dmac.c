// The shared input side of the DMA channels: the reader, which sends their requests to N, and the reorder buffer, a
// ring of slots that completions fill in any order.
#include <string.h>

#include "models/peach2/twin_internal.h"

// --- the reader: descriptors first, then data, each in turn ---------------------------------------------------------

static uint64_t slot_from(const peach2_twin_t *twin)
{
    const struct twin_reorder *reorder = &twin->reorder;
    if (reorder->used >= twin->config.read_tags) {
        return TWIN_NEVER;
    }
    // The slot that was freed last is seen one edge later.
    return reorder->used + 1 == twin->config.read_tags ? reorder->used_from : 0;
}

static uint64_t segment_wants(const struct twin_channel *channel)
{
    uint64_t streamed = twin_stream_wants(channel);
    bool ready = channel->state == TWIN_CHANNEL_SEGMENT && !channel->begins &&
                 !twin_channel_failed(channel, channel->from);
    // Behind a stream only another one may begin.
    bool waits = twin_streams_any(channel) && !twin_stream_fits(channel);
    uint64_t own = ready && !waits ? channel->from : TWIN_NEVER;
    return streamed < own ? streamed : own;
}

static void request_offer(peach2_twin_t *twin, uint8_t tag, uint64_t address, uint32_t bytes, uint64_t edge)
{
    pcie_tlp_t *tlp = pcie_tlp_read(twin->pool, twin->config.requester, tag, address, bytes);
    const struct twin_offer offer = {tlp, edge + 1, 1, 1, TWIN_N, false};
    twin->reader.free_from = TWIN_NEVER;
    twin_offer_put(twin, TWIN_SOURCE_READ, &offer);
}

static void fetch_read(peach2_twin_t *twin, unsigned index, uint64_t edge)
{
    struct twin_fetch *fetch = &twin->fetches[index];
    uint8_t tag = (uint8_t)(0x80 | fetch->generation << 2 | index);
    uint64_t address = fetch->next;
    uint32_t bytes = twin_fetch_burst(fetch) * PEACH2_DESCRIPTOR_BYTES;
    twin->reader.fetch_owner = index;
    static const struct sim_work fetch_begins = {"descriptor", "fetch", true};
    sim_cause_t cause = sim_cause_now(twin->sim);
    twin_fetch_taken(fetch, edge);
    sim_cause_mark(twin->sim, twin->name, &fetch_begins);
    twin_fetch_trace(fetch, address, bytes / PEACH2_DESCRIPTOR_BYTES);
    request_offer(twin, tag, address, bytes, edge);
    twin_streams_beside_read(twin, bytes);
    sim_cause_arrive(twin->sim, cause);
}

static void segment_request(peach2_twin_t *twin, const struct twin_segment *segment, uint64_t edge)
{
    struct twin_reorder *reorder = &twin->reorder;
    struct twin_slot *slot = &reorder->slots[reorder->tail % TWIN_SLOTS];
    slot->destination = segment->destination;
    slot->take_edge = edge;
    slot->done_from = TWIN_NEVER;
    slot->bytes = slot->left = segment->bytes;
    slot->word = 0;
    slot->dest = segment->dest;
    slot->generation = reorder->tail / TWIN_SLOTS & 3;
    slot->open = true;
    slot->report = segment->report;
    uint8_t tag = reorder->tail++ & 0x7f;
    if (reorder->used++ == 0) {
        twin_event_by(twin, &reorder->timeout, edge + 1 + PEACH2_TIMEOUT_CYCLES);
    }
    twin->reader.segment_owner = segment->report.channel;
    request_offer(twin, tag, segment->source, segment->bytes, edge);
}

// The next segment of a channel: what follows its oldest stream, a new stream, or a packet.
static void segment_read(peach2_twin_t *twin, unsigned index, uint64_t edge)
{
    struct twin_channel *channel = &twin->channels[index];
    const struct twin_transfer *transfer = &channel->transfer;
    if (twin_stream_wants(channel) <= edge) {
        const struct twin_segment rest = twin_stream_segment(channel);
        segment_request(twin, &rest, edge);
        return;
    }
    if (twin_stream_begin(channel) || twin_streams_any(channel)) {
        return;
    }
    uint32_t bytes = twin_transfer_segment_bytes(twin, transfer);
    bool last = transfer->left == bytes;
    const struct twin_segment segment = {transfer->source, transfer->destination, bytes, transfer->dest,
                                         {PEACH2_DMA_OK, (uint8_t)index, last, last && transfer->interrupt}};
    segment_request(twin, &segment, edge);
    twin_streams_beside_read(twin, bytes);
    twin_channel_segment_taken(channel, edge, bytes);
}

// The reader is free at that edge.
static bool pick(peach2_twin_t *twin, uint64_t edge)
{
    uint32_t fetches = 0, segments = 0;
    for (unsigned i = 0; i < TWIN_CHANNELS; i++) {
        if (!twin_channel_failed(&twin->channels[i], edge)) {
            fetches |= !twin->fetches[i].board && twin_fetch_wants(&twin->fetches[i]) <= edge ? 1u << i : 0;
            segments |= segment_wants(&twin->channels[i]) <= edge ? 1u << i : 0;
        }
    }
    if (fetches != 0) {
        fetch_read(twin, twin_round_robin(fetches, twin->reader.fetch_owner), edge);
    } else if (segments != 0 && slot_from(twin) <= edge) {
        segment_read(twin, twin_round_robin(segments, twin->reader.segment_owner), edge);
    } else {
        return false;
    }
    return true;
}

static uint64_t next_read(const peach2_twin_t *twin)
{
    uint64_t next = TWIN_NEVER, slot = slot_from(twin);
    for (unsigned i = 0; i < TWIN_CHANNELS; i++) {
        uint64_t fetch = twin->fetches[i].board ? TWIN_NEVER : twin_fetch_wants(&twin->fetches[i]);
        uint64_t segment = twin_later(segment_wants(&twin->channels[i]), slot);
        next = fetch < next ? fetch : next;
        next = segment < next ? segment : next;
    }
    return next == TWIN_NEVER ? next : twin_later(next, twin->reader.free_from);
}

void twin_reader_plan(peach2_twin_t *twin)
{
    twin_event_set(twin, &twin->reader.event, next_read(twin));
}

static void reader_run(void *ctx)
{
    static const struct sim_work requesting = {"board", "DMA reader", false};
    peach2_twin_t *twin = ctx;
    sim_cause_label(twin->sim, twin->name, &requesting);
    uint64_t edge = twin_edge(twin);
    if (twin->reader.free_from <= edge) {
        (void)pick(twin, edge);
    }
    twin_reader_plan(twin);
}

// The output takes the request at this edge, and the reader takes another one at the same edge.
void twin_reader_moved(peach2_twin_t *twin, uint64_t last)
{
    twin->reader.free_from = last;
    if (next_read(twin) == last) {
        (void)pick(twin, last);
    }
    twin_reader_plan(twin);
}

// --- completions ----------------------------------------------------------------------------------------------------

static enum peach2_dma_error answer_of(const pcie_tlp_t *tlp)
{
    switch (tlp->cpl_status) {
    case PCIE_CPL_SC:
        return tlp->kind == PCIE_TLP_CPLD ? PEACH2_DMA_OK : PEACH2_DMA_READ_ABORT;
    case PCIE_CPL_UR:
        return PEACH2_DMA_READ_UR;
    case PCIE_CPL_CA:
        break;
    }
    return PEACH2_DMA_READ_ABORT;
}

// Most writes carry the data of one completion.
static void data_keep(struct twin_slot *slot, pcie_tlp_t *tlp, uint32_t bytes)
{
    uint32_t offset = slot->bytes - slot->left;
    if (slot->piece_count == TWIN_PIECES) {
        memcpy(slot->data + offset, pcie_tlp_data(tlp), bytes);
        return;
    }
    pcie_tlp_ref(tlp);
    slot->piece_offsets[slot->piece_count] = (uint16_t)offset;
    slot->pieces[slot->piece_count++] = tlp;
}

// As in the RTL, a beat fills a word, whatever its lanes hold.
static void words_put(struct twin_slot *slot, uint32_t word, pcie_tlp_t *tlp)
{
    uint32_t beats = twin_beats(tlp) - 1, lane = slot->destination & (TWIN_BEAT_BYTES - 4);
    for (uint32_t beat = 0; beat < beats; beat++) {
        uint64_t words[2];
        uint32_t to = (word + beat) % (TWIN_SLOT_BYTES / TWIN_BEAT_BYTES) * TWIN_BEAT_BYTES;
        twin_beat_get(tlp, beat, words);
        for (uint32_t k = to < lane ? lane - to : 0; k < TWIN_BEAT_BYTES && to + k - lane < slot->bytes; k++) {
            slot->data[to + k - lane] = ((const uint8_t *)words)[k];
        }
    }
}

static void pieces_drop(struct twin_slot *slot)
{
    while (slot->piece_count != 0) {
        pcie_tlp_unref(slot->pieces[--slot->piece_count]);
    }
}

pcie_tlp_t *twin_slot_write(peach2_twin_t *twin, struct twin_slot *slot, uint32_t offset, uint32_t bytes)
{
    uint64_t address = slot->destination + offset;
    for (unsigned i = 0; i < slot->piece_count; i++) {
        if (slot->piece_offsets[i] == offset && pcie_tlp_payload_bytes(slot->pieces[i]) == bytes) {
            return pcie_tlp_write_shared(twin->config.requester, address, slot->pieces[i]);
        }
    }
    for (unsigned i = 0; i < slot->piece_count; i++) {
        pcie_tlp_t *piece = slot->pieces[i];
        memcpy(slot->data + slot->piece_offsets[i], pcie_tlp_data(piece), pcie_tlp_payload_bytes(piece));
    }
    pieces_drop(slot);
    return pcie_tlp_write(twin->pool, twin->config.requester, address, bytes, slot->data + offset);
}

// The completion continues the bytes of the read, or comes from elsewhere and has them in other lanes.
static void data_take(struct twin_slot *slot, pcie_tlp_t *tlp, uint32_t bytes)
{
    uint32_t lane = slot->destination & (TWIN_BEAT_BYTES - 4), at = lane + slot->bytes - slot->left;
    if (slot->word * TWIN_BEAT_BYTES + (tlp->lower_address & (TWIN_BEAT_BYTES - 4)) == at) {
        data_keep(slot, tlp, bytes);
    } else {
        for (unsigned i = 0; i < slot->piece_count; i++) {
            words_put(slot, (lane + slot->piece_offsets[i]) / TWIN_BEAT_BYTES, slot->pieces[i]);
        }
        pieces_drop(slot);
        words_put(slot, slot->word, tlp);
    }
    slot->word += twin_beats(tlp) - 1;
}

// false: no slot waits for it. The header arrives at edge `from`.
static bool slot_complete(peach2_twin_t *twin, pcie_tlp_t *tlp, enum peach2_dma_error answer, uint64_t from)
{
    struct twin_slot *slot = &twin->reorder.slots[tlp->tag % TWIN_SLOTS];
    uint32_t bytes = pcie_tlp_payload_bytes(tlp);
    if (!slot->open || slot->take_edge >= from || slot->done_from != TWIN_NEVER ||
        slot->generation != (tlp->tag >> 5 & 3) || bytes > slot->left) {
        return false;
    }
    if (answer != PEACH2_DMA_OK) {
        slot->report.error = answer;
        slot->done_from = from + 1;
    } else {
        data_take(slot, tlp, bytes);
        slot->left -= bytes;
        slot->done_from = slot->left == 0 ? from + twin_beats(tlp) : TWIN_NEVER;
    }
    if (slot->done_from != TWIN_NEVER && slot == twin_reorder_head(twin)) {
        twin_writer_plan(twin);
    }
    return true;
}

static bool complete(peach2_twin_t *twin, pcie_tlp_t *tlp, uint64_t from)
{
    enum peach2_dma_error answer = answer_of(tlp);
    return (tlp->tag & 0x80) != 0 ? twin_fetch_complete(twin, tlp, answer, from)
                                  : slot_complete(twin, tlp, answer, from);
}

// A completion that nothing waits for when its edge is known. Its read may yet be sent before that edge.
struct early {
    pcie_tlp_t *tlp;
    uint64_t from;
};

static const struct early *early_front(peach2_twin_t *twin)
{
    return pcie_ring_front(&twin->reorder.early);
}

static void early_drop(peach2_twin_t *twin)
{
    pcie_tlp_unref(early_front(twin)->tlp);
    pcie_ring_pop(&twin->reorder.early);
}

static void early_run(void *ctx)
{
    peach2_twin_t *twin = ctx;
    const struct early *early = early_front(twin);
    twin->reorder.unexpected += complete(twin, early->tlp, early->from) ? 0 : 1;
    early_drop(twin);
    if (twin->reorder.early.count != 0) {
        twin_event_set(twin, &twin->reorder.early_event, early_front(twin)->from);
    }
}

void twin_dmac_complete(peach2_twin_t *twin, pcie_tlp_t *tlp, uint64_t from)
{
    struct pcie_ring *early = &twin->reorder.early;
    if (early->count == 0 && complete(twin, tlp, from)) {
        return;
    }
    pcie_tlp_ref(tlp);
    *(struct early *)pcie_ring_push(early) = (struct early){tlp, from};
    if (early->count == 1) {
        twin_event_set(twin, &twin->reorder.early_event, from);
    }
}

// --- the ring -------------------------------------------------------------------------------------------------------

void twin_reorder_pop(peach2_twin_t *twin, uint64_t edge)
{
    struct twin_reorder *reorder = &twin->reorder;
    pieces_drop(&reorder->slots[reorder->head]);
    reorder->slots[reorder->head].open = false;
    reorder->head = (reorder->head + 1) % TWIN_SLOTS;
    reorder->used--;
    reorder->used_from = edge + 1;
    reorder->last_pop = edge;
    if (reorder->used == 0) {
        sim_event_cancel(twin->sim, &reorder->timeout);
    }
    twin_reader_plan(twin);
}

// The oldest read has timed out, or the event was set for an earlier read.
static void timeout_run(void *ctx)
{
    peach2_twin_t *twin = ctx;
    struct twin_slot *head = twin_reorder_head(twin);
    uint64_t edge = twin_edge(twin);
    uint64_t due = twin_later(head->take_edge, twin->reorder.last_pop) + 1 + PEACH2_TIMEOUT_CYCLES;
    if (head->done_from != TWIN_NEVER) {
        due = edge + PEACH2_TIMEOUT_CYCLES;
    } else if (due <= edge) {
        head->report.error = PEACH2_DMA_READ_LOST;
        head->done_from = edge + 1;
        due = edge + 2 + PEACH2_TIMEOUT_CYCLES;
        twin_writer_plan(twin);
    }
    twin_event_set(twin, &twin->reorder.timeout, due);
}

void twin_dmac_init(peach2_twin_t *twin)
{
    twin->reader.fetch_owner = twin->reader.segment_owner = TWIN_CHANNELS - 1;
    sim_event_init(&twin->reader.event, reader_run, twin);
    sim_event_init(&twin->reorder.timeout, timeout_run, twin);
    sim_event_init(&twin->reorder.early_event, early_run, twin);
    pcie_ring_init(&twin->reorder.early, sizeof(struct early));
}

void twin_dmac_fini(peach2_twin_t *twin)
{
    sim_event_cancel(twin->sim, &twin->reader.event);
    sim_event_cancel(twin->sim, &twin->reorder.timeout);
    sim_event_cancel(twin->sim, &twin->reorder.early_event);
    while (twin->reorder.early.count != 0) {
        early_drop(twin);
    }
    pcie_ring_fini(&twin->reorder.early);
    for (unsigned i = 0; i < TWIN_SLOTS; i++) {
        pieces_drop(&twin->reorder.slots[i]);
    }
}
