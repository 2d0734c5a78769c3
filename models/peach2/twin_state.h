// The state of the twin's parts. Private to the room.
#pragma once

#include "models/pcie/ring.h"
#include "models/peach2/twin.h"
#include "sim/kernel/cause.h"
#include "rtl/peach2_regs.h"

#define TWIN_NEVER UINT64_MAX

enum {
    TWIN_CHANNELS = PEACH2_DMAC_COUNT,
    TWIN_ROUTES = PEACH2_ROUTE_COUNT,
    TWIN_BLOCKS = PEACH2_OFFSET_COUNT,
    TWIN_SLOTS = 32,
    TWIN_SLOT_BYTES = 512,
    TWIN_PIECES = 4,
    TWIN_HELD_DESCRIPTORS = 8,
    TWIN_STREAMS = 4, // of a channel
    TWIN_MEMORY_BYTES = PEACH2_MEMORY_DESCRIPTORS * PEACH2_DESCRIPTOR_BYTES,
    TWIN_REGISTERS = 1024, // DWs
    TWIN_BEAT_BYTES = 16
};

enum twin_dest { TWIN_N, TWIN_E, TWIN_W, TWIN_S, TWIN_LOCAL, TWIN_DMAC, TWIN_DISCARD };

// The first four are the ports.
enum twin_source { TWIN_SOURCE_LOCAL = 4, TWIN_SOURCE_READ, TWIN_SOURCE_WRITE, TWIN_SOURCES };

// --- packets between the parts --------------------------------------------------------------------------------------

// The offer of a source: one packet at a time, with its first beat from that edge on.
struct twin_offer {
    pcie_tlp_t *tlp; // NULL: nothing
    uint64_t from;
    uint32_t beats;
    uint32_t span; // cycles from the first to the last beat without a stall; more than beats only from LOCAL
    uint8_t dest;
    bool unsupported; // with LOCAL: answer Unsupported Request
};

// The edges at which the last beats of a source left it; beats are counted from the start of the simulation.
#define TWIN_MOVES_KEPT 8u
struct twin_moves {
    uint64_t edges[TWIN_MOVES_KEPT];
    uint64_t count;
};

struct twin_arrival {
    pcie_tlp_t *tlp;
    uint64_t edge; // the first that may see it
    uint64_t end;  // the port's beats up to the packet's last
    uint32_t beats;
    uint8_t bar;
};

// Like an output, laid out by cache lines of the simulating machine: members that are used together.
#define TWIN_LINE _Alignas(64)

struct twin_ingress {
    TWIN_LINE peach2_twin_t *twin;
    struct twin_arrival *arrivals; // a ring
    uint32_t capacity;             // a power of two
    // Running numbers: offered now, the next whose time of entry is not known yet, free.
    uint32_t head, timed, tail;
    uint64_t beats;
    uint64_t last_move;  // edge of the last beat before the head's first beat
    uint64_t last_taken; // the same at the input, of the last packet whose time is known
    uint8_t port;
    bool offered;
    TWIN_LINE struct twin_moves moves;
    uint32_t tlps, unroutable, unexpected; // counters
    sim_event_t route_event;               // the head waits for registers that are being written
};

struct twin_leaving {
    pcie_tlp_t *tlp;
    uint64_t since; // edge at which its first beat came to the front of the buffer
    uint32_t span, beats;
    uint32_t moved; // beats that left their source before a stall
    uint8_t source;
};

struct twin_output {
    TWIN_LINE peach2_twin_t *twin;
    uint64_t due; // edge at which the first one's last beat leaves; TWIN_NEVER: it stalls
    uint64_t free_from;
    uint64_t hold_edge;
    uint32_t hold_cycles; // how long packets of the ring may still be held, as of edge hold_edge
    uint32_t rest_tlps;   // how many packets of the ring go before the next hold
    uint32_t tlps, holds; // counters
    uint8_t hold_level;
    uint8_t port;
    uint8_t owner;      // served last
    uint8_t held_count; // two: the first is a single beat and stalls
    bool running;       // its event runs; it plans the next step at its end
    TWIN_LINE struct twin_leaving held[2];
    TWIN_LINE sim_event_t event;
};

// Inputs from the hard IPs, one bit for each port. A change holds from `edge` on; the chip samples its inputs, so it
// never sees a change that is undone before that edge.
struct twin_inputs {
    uint8_t ready, room; // before edge
    uint8_t ready_wanted, room_wanted;
    uint64_t edge;
    bool emitting; // the chip's own packet causes the change, after the inputs of this edge were sampled
};

// --- LOCAL ----------------------------------------------------------------------------------------------------------

struct twin_local {
    unsigned owner;
    uint64_t free_from;   // TWIN_NEVER: a read is in progress
    pcie_tlp_t *request;  // the read
    uint64_t sample_edge; // of its registers; TWIN_NEVER: none to sample
    uint8_t dest;         // destination of its completions
    uint8_t *data;        // the data read, from the request's first DW on
    uint8_t sampled[64];
    uint32_t dwords_done;
    bool registers;
    sim_event_t event;
    uint32_t unsupported, refused; // counters
    pcie_tlp_t *write;             // of registers, one DW at each edge; NULL: none
    uint64_t write_next;           // edge of its next DW; TWIN_NEVER: none
    uint32_t written;              // DWs of it
    bool write_mapped;             // all of these exist
    // The last write to the memory, whose header came at this edge, and what it replaced.
    uint64_t write_edge;
    uint32_t write_offset, write_dwords;
    uint8_t replaced[PCIE_PAYLOAD_MAX];
};

// --- the DMAC -------------------------------------------------------------------------------------------------------

enum twin_channel_state {
    TWIN_CHANNEL_IDLE,
    TWIN_CHANNEL_START,
    TWIN_CHANNEL_NEXT,
    TWIN_CHANNEL_SEGMENT, // the two states that check take the two cycles before it
    TWIN_CHANNEL_DRAIN,   // with FINISH
    TWIN_CHANNEL_NOTIFY_REMOTE,
    TWIN_CHANNEL_NOTIFY_LOCAL
};

struct twin_transfer {
    uint64_t source, destination, row_source, row_destination;
    uint32_t left, row_left, width, source_pitch, destination_pitch;
    uint64_t source_block, block; // 8 GB blocks for which it was checked
    uint8_t dest;
    bool source_in_window, in_window, stride, interrupt, last;
    bool length_bad, reserved;
};

// A contiguous part of a transfer of which all but the last segment goes as a stream.
struct twin_stream {
    struct twin_channel *channel;
    flow_stream_t *flow; // NULL: it has ended
    bool finished;       // the rest goes as packets,
    uint64_t from;       // from this edge on
    uint64_t source, destination;
    uint32_t left; // bytes that the stream has not carried and no packet yet
    uint8_t dest;
    bool last, interrupt; // of the transfer
    uint64_t body;        // bytes of it that the stream carries
    bool counted;         // it has left its source, and counts as outstanding
    bool issued;          // its last packet
};

struct twin_channel {
    peach2_twin_t *twin;
    unsigned index;
    enum twin_channel_state state;
    uint64_t from;
    struct twin_transfer transfer;
    enum peach2_dma_error error;
    uint64_t error_from;
    uint32_t outstanding;  // segments
    uint64_t drained_from; // outstanding is 0 from this edge on
    uint8_t mode;
    bool notify_local, notify_remote, end_interrupt, done;
    uint8_t ignored;
    uint64_t ignored_from; // edge from which the last one counts
    uint32_t completed;
    uint64_t completed_edge;                                             // of the last one, perhaps in the future
    uint32_t raised;                                                     // bits of interrupts that it set
    uint64_t chain_address, notify_local_address, notify_remote_address; // copied at the start
    uint32_t notify_value;
    uint64_t notify_address; // in the NOTIFY states, if a status word has to be written
    uint8_t notify_dest;
    bool notify_due;
    uint64_t start_edge; // of a start that comes while the channel runs
    struct twin_stream streams[TWIN_STREAMS]; // a ring, the oldest first
    uint32_t stream_head, stream_tail;        // running numbers
    uint64_t streamed_bytes;                  // of those that went without a pause, up to the youngest
    bool begins;                              // the youngest still carries the present transfer
    bool packets;                             // for the rest of the transfer
    sim_event_t event, start_event;
};

enum twin_fetch_state { TWIN_FETCH_IDLE, TWIN_FETCH_REQUEST, TWIN_FETCH_WAIT, TWIN_FETCH_END };

struct twin_descriptor {
    uint64_t words[PEACH2_DESCRIPTOR_WORDS];
    uint64_t from;
};

struct twin_fetch {
    peach2_twin_t *twin;
    unsigned channel;
    enum twin_fetch_state state;
    uint64_t from;
    bool board;
    uint64_t next, expected;
    bool follows, ended, half;
    uint64_t low[PEACH2_DESCRIPTOR_WORDS / 2];
    uint32_t due;
    uint8_t generation;
    enum peach2_dma_error error;
    uint64_t saved;
    uint32_t steps, power;
    struct twin_descriptor held[TWIN_HELD_DESCRIPTORS];
    uint32_t write, read; // running numbers
    uint64_t room_from;   // the count is valid from this edge on
    sim_event_t event;    // in WAIT the time-out, in REQUEST the end by an error
};

// The result of a read, reported to its channel.
struct twin_report {
    enum peach2_dma_error error;
    uint8_t channel;
    bool last, interrupt;
};

struct twin_segment {
    uint64_t source, destination;
    uint32_t bytes;
    uint8_t dest;
    struct twin_report report;
};

struct twin_slot {
    uint64_t destination, take_edge;
    uint64_t done_from; // TWIN_NEVER: data is missing
    uint32_t bytes, left;
    uint32_t word; // of 16 bytes, that the next beat of data fills
    struct twin_report report;
    uint8_t dest, generation;
    bool open;
    // Its data: completions that are kept as they came, each with its offset, and copies of the data of others.
    uint8_t piece_count;
    uint16_t piece_offsets[TWIN_PIECES];
    pcie_tlp_t *pieces[TWIN_PIECES];
    uint8_t data[TWIN_SLOT_BYTES];
};

struct twin_reader {
    uint64_t free_from; // TWIN_NEVER: its request waits for the output
    unsigned fetch_owner, segment_owner;
    sim_event_t event;
};

struct twin_reorder {
    struct twin_slot slots[TWIN_SLOTS];
    uint32_t tail; // generation and slot
    uint32_t head;
    uint32_t used;
    uint64_t used_from; // used is valid from this edge on
    uint64_t last_pop;
    sim_event_t timeout;
    struct pcie_ring early; // completions that nothing waits for yet, judged at their edges
    sim_event_t early_event;
    uint32_t unexpected; // counter
};

struct twin_issue {
    pcie_tlp_t *tlp;
    uint64_t edge; // of its header
    uint32_t beats;
    uint8_t dest;
    bool retires; // ends a read, which it reports
    struct twin_report report;
    struct twin_channel *notifier; // the channel whose status word it is, or NULL
};

struct twin_writer {
    uint64_t from; // in WRITER_HEADER from this edge on
    bool busy;     // a packet is being issued
    uint64_t header_edge;
    uint32_t beats;  // of that packet
    bool first;      // the next header is the first of its read
    uint32_t offset; // bytes of the read that have been written
    unsigned notify_owner;
    struct twin_issue issues[4]; // not yet granted; a ring
    uint32_t issue_head, issue_tail;
    uint64_t issued; // beats
    uint64_t last_move;
    uint64_t last_report; // one report for each edge
    struct twin_moves moves;
    TWIN_LINE sim_event_t event;
};

// The board's memory as the fetch units share it: one read in progress.
struct twin_memory_port {
    unsigned owner;
    uint64_t free_from;
    sim_event_t event;
};

enum { TWIN_INTERRUPTS = 32 };

// Ends of DMAs and writes of registers are known some edges ahead, each by another number.
// ENABLE, ADDRESS and VALUE of the block INTERRUPT.
struct twin_message {
    uint64_t address;
    uint32_t enable, value;
};

struct twin_interrupt {
    uint32_t pending; // also bits that are set at an edge ahead
    // The edge from which each of them is set, and the same for the last time that it was set.
    uint64_t from[TWIN_INTERRUPTS], last_from[TWIN_INTERRUPTS];
    uint64_t message_from; // a message may be sent from this edge on
    uint64_t sent_edge;
    bool sent;      // a message is outstanding
    bool clear_due; // a CLEAR of the bits `cleared` is in force from clear_from on
    uint32_t cleared;
    uint64_t clear_from;
    struct twin_message before; // in force from before_from until written_from
    uint64_t before_from, written_from;
};

struct twin_route {
    uint64_t mask, lower, upper;
};

// A write of a register: its value up to that edge.
struct twin_write {
    uint32_t offset, before;
    uint64_t edge;
};

struct twin_routing {
    struct twin_route routes[TWIN_ROUTES];
    uint64_t window_base;
    uint8_t enabled; // one bit each
};

struct peach2_twin {
    sim_t *sim;
    pcie_pool_t *pool;
    char *name;
    struct peach2_twin_config config;
    const struct peach2_twin_ops *ops;
    void *ctx;
    TWIN_LINE struct twin_offer offers[TWIN_SOURCES];
    uint8_t offered[TWIN_LOCAL + 1]; // by destination: the sources that offer
    struct twin_ingress ingresses[PEACH2_PORTS];
    struct twin_output outputs[PEACH2_PORTS];
    struct twin_inputs inputs;
    struct twin_local local;
    struct twin_channel channels[TWIN_CHANNELS];
    struct twin_fetch fetches[TWIN_CHANNELS];
    struct twin_reader reader;
    struct twin_reorder reorder;
    struct twin_writer writer;
    struct twin_memory_port memory_port;
    struct twin_interrupt interrupt;
    struct twin_routing routing, routing_before; // before: for packets up to the edge routing_written
    uint64_t routing_written;
    struct twin_write writes[2]; // the last two, the newest first: both may come into force at edges ahead
    uint32_t registers[TWIN_REGISTERS];
    uint8_t memory[TWIN_MEMORY_BYTES];
};
