// What the files of the twin share: the chip's state (twin_state.h), and the interfaces between the parts. Private to the
// room.
//
// Parts exchange facts with the edge from which they hold: an offer exists `from` an edge on, a slot is done
// `done_from`. A fact is always announced before that edge, so that events of one edge may run in any order, as
// registers make the order of the RTL's modules irrelevant.
#pragma once

#include "models/peach2/twin_state.h"

// --- edges ----------------------------------------------------------------------------------------------------------

// Number of the edge at this instant, or of the next one between edges.
static inline uint64_t twin_edge(const peach2_twin_t *twin)
{
    return (sim_now_ps(twin->sim) + twin->config.period_ps - 1) / twin->config.period_ps;
}

// The first edge that sees a change made now.
static inline uint64_t twin_next_edge(const peach2_twin_t *twin)
{
    return sim_now_ps(twin->sim) / twin->config.period_ps + 1;
}

static inline uint64_t twin_later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

// The edge at which that beat left; TWIN_NEVER: it has not left. 0: so long ago that it no longer matters.
static inline uint64_t twin_moved(const struct twin_moves *moves, uint64_t beat)
{
    if (beat >= moves->count) {
        return TWIN_NEVER;
    }
    return moves->count - beat > TWIN_MOVES_KEPT ? 0 : moves->edges[beat % TWIN_MOVES_KEPT];
}

// Moves the event to the edge, or to now when that has passed. TWIN_NEVER: cancels it.
void twin_event_set(peach2_twin_t *twin, sim_event_t *event, uint64_t edge);
// The same unless it is pending for an earlier edge.
void twin_event_by(peach2_twin_t *twin, sim_event_t *event, uint64_t edge);

// --- router (twin_router.c, twin_ingress.c) -------------------------------------------------------------------------

uint32_t twin_beats(const pcie_tlp_t *tlp);
// The words of a payload beat. A completion from elsewhere may begin in any lane; lanes without a word are zero.
void twin_beat_get(pcie_tlp_t *tlp, uint32_t beat, uint64_t words[2]);
// Round robin: the lowest bit of candidates above the last owner, cyclically; candidates are not 0.
unsigned twin_round_robin(uint32_t candidates, unsigned owner);
// The destination of a route: TWIN_N .. TWIN_LOCAL, or TWIN_DISCARD when the window has no route for the address.
uint8_t twin_route_find(const struct twin_routing *routing, uint64_t address, bool *in_window_out);

void twin_outputs_init(peach2_twin_t *twin);
void twin_outputs_fini(peach2_twin_t *twin);
// Takes the reference of tlp unless source is a port: the port keeps its packet.
void twin_offer_put(peach2_twin_t *twin, unsigned source, const struct twin_offer *offer);
void twin_offer_clear(peach2_twin_t *twin, unsigned source);
// `count` consecutive beats of the packet offered by source left it, the last of them at `last`. whole: its last beat
// is among them, and the offer ends.
void twin_source_moved(peach2_twin_t *twin, unsigned source, uint64_t last, uint32_t count, bool whole);
void twin_core_set_tx_ready(void *twin, unsigned port, bool ready);
void twin_core_set_tx_room(void *twin, unsigned port, bool room);

void twin_moves_add(struct twin_moves *moves, uint64_t last, uint32_t count);
void twin_ingresses_init(peach2_twin_t *twin);
void twin_local_interrupt(peach2_twin_t *twin);   // the chip is reset: the beats of a write that come later do not
void twin_ingresses_release(peach2_twin_t *twin); // gives back what has not been taken
void twin_ingresses_fini(peach2_twin_t *twin);
void twin_core_rx(void *twin, unsigned port, unsigned bar, pcie_tlp_t *tlp);
void twin_ingress_moved(struct twin_ingress *ingress, uint64_t last, uint32_t count, bool whole);

// Whether packets of that source are on the output's ring already, or it has none.
bool twin_is_on_ring(uint8_t port, unsigned source);
// Where a request to the shared window goes that leaves through N at that edge: the offset of its block subtracted.
uint64_t twin_host_address(const peach2_twin_t *twin, uint64_t address, uint64_t edge);

// --- registers and memory (twin_registers.c, twin_local.c) ----------------------------------------------------------

// offset: of a DW within the registers. false: no register has it. edge: of the access.
bool twin_register_read(peach2_twin_t *twin, uint32_t offset, uint64_t edge, uint32_t *value_out);
bool twin_register_write(peach2_twin_t *twin, uint32_t offset, uint8_t enable, uint32_t value, uint64_t edge);
uint64_t twin_register64(const peach2_twin_t *twin, uint32_t offset);
// The same as a packet sees it that passes at that edge.
uint64_t twin_register64_at(const peach2_twin_t *twin, uint32_t offset, uint64_t edge);
void twin_registers_init(peach2_twin_t *twin);

// --- interrupts (twin_interrupt.c) ----------------------------------------------------------------------------------

// Requests interrupts at that edge. Returns the bits that were not pending.
uint32_t twin_interrupt_raise(peach2_twin_t *twin, uint32_t bits, uint64_t edge);
// Takes back bits that it returned, before the edge of the request.
void twin_interrupt_withdraw(peach2_twin_t *twin, uint32_t bits);
// CLEAR, or another register but RAISE, is written at that edge.
void twin_interrupt_clear(peach2_twin_t *twin, uint32_t bits, uint64_t edge);
// Before a register of the block changes.
void twin_interrupt_changes(peach2_twin_t *twin, uint64_t edge);
uint32_t twin_interrupt_pending(peach2_twin_t *twin, uint64_t edge);
// The edge from which a message is to be sent; TWIN_NEVER: none.
uint64_t twin_interrupt_due(const peach2_twin_t *twin);
// Whether a message is to be sent at that edge, the present one; it counts as sent.
bool twin_interrupt_send(peach2_twin_t *twin, uint64_t edge, struct twin_message *message_out);

void twin_local_init(peach2_twin_t *twin);
void twin_local_fini(peach2_twin_t *twin);
void twin_local_offered(peach2_twin_t *twin, uint64_t from);  // a request is to be taken
void twin_local_answered(peach2_twin_t *twin, uint64_t last); // the completion has left it

// --- the DMAC (twin_channel.c, twin_fetch.c, twin_dmac.c, twin_writer.c) --------------------------------------------

// The present value of a register of the channel.
static inline uint32_t twin_channel_register(const struct twin_channel *channel, uint32_t offset)
{
    return channel->twin->registers[(PEACH2_DMAC_BASE + channel->index * PEACH2_DMAC_STRIDE + offset) / 4];
}

static inline uint64_t twin_channel_register64(const struct twin_channel *channel, uint32_t offset)
{
    return twin_register64(channel->twin, PEACH2_DMAC_BASE + channel->index * PEACH2_DMAC_STRIDE + offset);
}

void twin_channels_init(peach2_twin_t *twin);
void twin_channels_fini(peach2_twin_t *twin);
void twin_channel_start(peach2_twin_t *twin, unsigned channel, uint64_t edge);
uint32_t twin_channel_status(const peach2_twin_t *twin, unsigned channel, uint64_t edge);
uint32_t twin_channel_ignored(const struct twin_channel *channel, uint64_t edge); // starts counted by that edge
void twin_channel_feed(struct twin_channel *channel);  // descriptors, or their end, have arrived
void twin_channel_drain(struct twin_channel *channel); // an event that it waits for in DRAIN may have happened
bool twin_channel_failed(const struct twin_channel *channel, uint64_t edge);
void twin_channel_segment_taken(struct twin_channel *channel, uint64_t edge, uint32_t bytes);
void twin_channel_advance(struct twin_channel *channel, uint64_t edge, uint32_t bytes); // the same, uncounted
void twin_channel_retire(struct twin_channel *channel, const struct twin_report *report, uint64_t edge);
// The edge from which the channel waits for no read any more, because one was lost; TWIN_NEVER: it waits.
uint64_t twin_channel_lost(const struct twin_channel *channel);
void twin_channels_window_moved(peach2_twin_t *twin, uint64_t from); // segments that wait are checked again
void twin_channel_notified(struct twin_channel *channel, uint64_t edge); // its status word has gone to its output

// --- a transfer of a channel (twin_transfer.c) ----------------------------------------------------------------------

struct twin_transfer twin_transfer_of_registers(const struct twin_channel *channel);
struct twin_transfer twin_transfer_of_descriptor(const uint64_t *words);
// The first check; notes the block of the source.
enum peach2_dma_error twin_transfer_check_source(const peach2_twin_t *twin, struct twin_transfer *transfer);
// The second; notes destination and block, and begins the first row. false: no route to it.
bool twin_transfer_check_destination(const peach2_twin_t *twin, struct twin_transfer *transfer);
// false: the window has no route to the address, or the own board no memory there.
bool twin_destination_routable(const peach2_twin_t *twin, uint64_t address, uint8_t *dest_out, bool *in_window_out);
uint32_t twin_transfer_segment_bytes(const peach2_twin_t *twin, const struct twin_transfer *transfer);
// Whether the present segment leaves the 8 GB block, or the space outside the window, for which the transfer was checked
// at its beginning, or the memory of this board, to which it goes.
bool twin_transfer_leaves_window(const peach2_twin_t *twin, const struct twin_transfer *transfer);
void twin_transfer_advance(struct twin_transfer *transfer, uint32_t bytes); // bytes of the present segment or a multiple

// --- streams (twin_stream.c) ----------------------------------------------------------------------------------------

void twin_core_writes_on(void *core, unsigned port, unsigned bar, struct flow_path *path, uint64_t address,
                         uint64_t bytes);
bool twin_stream_fits(const struct twin_channel *channel); // the present transfer is one for a stream
// A segment is ready: true: a stream takes the whole row of the transfer.
bool twin_stream_begin(struct twin_channel *channel);
// The edge from which a segment of the oldest stream can go; TWIN_NEVER: there is none. Later packets stay behind it.
uint64_t twin_stream_wants(const struct twin_channel *channel);
struct twin_segment twin_stream_segment(struct twin_channel *channel); // takes it
void twin_streams_beside_read(peach2_twin_t *twin, uint32_t bytes); // as packets: it takes its part from streams
void twin_streams_stop(struct twin_channel *channel);                  // keeps what has been carried
void twin_streams_drop(struct twin_channel *channel);
static inline bool twin_streams_any(const struct twin_channel *channel)
{
    return channel->stream_head != channel->stream_tail;
}

void twin_fetches_init(peach2_twin_t *twin);
void twin_fetches_fini(peach2_twin_t *twin);
void twin_fetch_begin(struct twin_fetch *fetch, bool board, uint64_t address, uint64_t from);
void twin_fetch_stop(struct twin_fetch *fetch);
// TWIN_NEVER: not settled.
uint64_t twin_fetch_settled(const struct twin_fetch *fetch);
// The edge from which it wants to read host memory; TWIN_NEVER: none.
uint64_t twin_fetch_wants(const struct twin_fetch *fetch);
uint32_t twin_fetch_burst(const struct twin_fetch *fetch);
void twin_fetch_taken(struct twin_fetch *fetch, uint64_t edge); // the read is sent
// A trace point: it requests so many descriptors now.
void twin_fetch_trace(const struct twin_fetch *fetch, uint64_t address, uint32_t count);
// A completion for a descriptor read, its header at edge `from`. false: unexpected.
bool twin_fetch_complete(peach2_twin_t *twin, pcie_tlp_t *tlp, enum peach2_dma_error answer, uint64_t from);
struct twin_descriptor *twin_fetch_front(struct twin_fetch *fetch); // NULL: none
void twin_fetch_pop(struct twin_fetch *fetch, uint64_t edge);

void twin_dmac_init(peach2_twin_t *twin);
void twin_dmac_fini(peach2_twin_t *twin);
void twin_reader_plan(peach2_twin_t *twin); // a read may be possible now
void twin_reader_moved(peach2_twin_t *twin, uint64_t last);
void twin_dmac_complete(peach2_twin_t *twin, pcie_tlp_t *tlp, uint64_t from);
void twin_reorder_pop(peach2_twin_t *twin, uint64_t edge);
// A write with those bytes of a finished read.
pcie_tlp_t *twin_slot_write(peach2_twin_t *twin, struct twin_slot *slot, uint32_t offset, uint32_t bytes);
static inline struct twin_slot *twin_reorder_head(peach2_twin_t *twin)
{
    return twin->reorder.used == 0 ? NULL : &twin->reorder.slots[twin->reorder.head];
}

void twin_writer_init(peach2_twin_t *twin);
void twin_writer_fini(peach2_twin_t *twin);
void twin_writer_plan(peach2_twin_t *twin); // there may be something to write
void twin_writer_moved(peach2_twin_t *twin, uint64_t last, uint32_t count, bool whole);
