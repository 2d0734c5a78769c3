// The objects of the HCA: reads in progress, regions, queues, queue pairs, and the order at the responder. Private to
// the room.
#pragma once

#include "models/flow/flow.h"
#include "models/hca/hca.h"
#include "models/pcie/ring.h"
#include "sim/kernel/cause.h"

// --- DMA -----------------------------------------------------------------------------------------------------------

enum hca_dma_source { HCA_DMA_QUEUES, HCA_DMA_GATHER, HCA_DMA_RESPONSE, HCA_DMA_ATOMIC, HCA_DMA_SOURCES };
#define HCA_DMA_BYTES_MAX 1024u

// A read in progress. done is called once all of it was answered; failed: part of it was answered with an error.
struct hca_dma_read {
    struct hca_dma_read *next, *made;
    void (*done)(hca_t *hca, struct hca_dma_read *read);
    void *owner;
    uint32_t generation, detail;
    uint64_t address;
    uint32_t bytes, issued, answered;
    bool failed;
    uint8_t *target; // the data below, or memory that lives as long as the read
    uint8_t data[HCA_DMA_BYTES_MAX];
};

struct hca_dma_queue {
    struct hca_dma_read *first, *last;
};

// --- regions -------------------------------------------------------------------------------------------------------

// Of a key; the other bits distinguish successive regions with the same index.
#define HCA_KEY_INDEX_BITS 17

struct hca_pd {
    uint32_t users;
    bool used;
};

struct hca_mr {
    uint32_t key, pdn, access, page_shift;
    uint64_t iova, bytes;
    uint64_t *pages;
    bool used;
};

// --- event and completion queues -----------------------------------------------------------------------------------

struct hca_held_event;

struct hca_eq {
    struct hca_eq_init init;
    uint32_t producer, users, generation;
    uint32_t consumer; // as last read from the record
    bool used, reading, overflown;
    struct hca_held_event *held, *held_last; // events that wait for a free entry while the record is read
};

enum hca_arm { HCA_ARM_NONE, HCA_ARM_SOLICITED, HCA_ARM_ANY };

struct hca_held_cqe {
    struct hca_held_cqe *next;
    struct hca_cqe cqe;
    bool solicited;
};

struct hca_cq {
    hca_t *hca;
    uint32_t number, users, generation;
    struct hca_cq_init init;
    uint32_t producer, consumer; // consumer as last read from the record
    uint32_t solicited;          // producer after the last solicited completion, or one in error
    uint32_t notified;           // producer at the last event
    enum hca_arm arm;
    bool used, reading, overrun;
    struct hca_held_cqe *held, *held_last; // they wait for a free entry while the record is read, or they are late
    // With an adversary: until held completions are written, and until events are raised; number of these events.
    sim_event_t late, notifying;
    uint32_t pending_events;
};

// --- receive queues ------------------------------------------------------------------------------------------------

#define HCA_RECEIVE_CACHE 16u
#define HCA_PIECES_MAX    (2 * HCA_SEGMENTS_MAX + 2) // of a packet: each segment may cross a page

struct hca_receive {
    uint32_t cookie, segments;
    struct hca_wqe_data data[HCA_SEGMENTS_MAX];
};

struct hca_qp;

struct hca_rq {
    hca_t *hca;
    uint64_t base, record;
    uint32_t entries, stride_bytes;
    uint32_t producer;           // as last read from the record
    uint32_t fetched, consumed;  // counts
    uint32_t limit, eqn, number; // SRQ
    uint32_t pdn, xrcdn, cqn, users, generation;
    bool used, fetching, reading, failed, shared;
    bool record_wanted;     // requested while the record was being read
    struct hca_qp *waiters; // QPs whose packets wait for an entry
    struct hca_receive cache[HCA_RECEIVE_CACHE];
};

enum hca_take { HCA_TAKEN, HCA_TAKE_WAIT, HCA_TAKE_NONE, HCA_TAKE_FAILED };

// --- queue pairs ---------------------------------------------------------------------------------------------------

// Packets of a message that go as one stream. It belongs to the queue pair that sends them.
struct hca_stream {
    struct hca_qp *qp;
    bool response;
    flow_stream_t *flow; // NULL: there is none
    struct hca_qp *peer; // which receives it
    uint32_t peer_generation;
    uint32_t psn, at; // of its first packet; at: the first byte in the message
    uint32_t bytes, mtu_bytes;
    uint32_t data_bytes;     // of a packet, as port_xmit_data counts it
    struct flow_source from; // the memories behind the two slots, of any bus address
    struct flow_target to;
    uint64_t to_address; // at which the stream's target begins
};

// The requester's state for a request in the send queue.
struct hca_request {
    uint32_t first_psn, packets, bytes;
    uint32_t streamed; // packets that went by stream since the last go-back
    uint8_t opcode, flags, segments;
    uint8_t status; // enum hca_status with which it will end
    bool sent;      // UC, UD: it has left the HCA
    uint16_t data_offset;
};

struct hca_sq {
    uint64_t base;
    uint32_t entries, stride_bytes;
    // counts of requests: posted, fetched, being sent or next to send, first one never begun, oldest not completed,
    // ready for the send engine
    uint32_t producer, fetched, next, begun, una, worked;
    sim_event_t work; // on the request `next`
    uint8_t *raw;     // [entries][stride_bytes]
    struct hca_request *requests;
    bool recovering;        // a lost response was detected; no second retry for it
    bool fetching, stopped; // stopped: the request `failed` failed locally and waits for its turn to complete
    uint32_t failed;
    enum hca_status failed_status;
    enum hca_fault fault; // of the request that fails next
    // RC
    uint32_t psn, una_psn; // next to send, oldest not acknowledged
    uint32_t max_psn;      // one more than the highest PSN sent
    uint32_t packet;       // of the request `next`
    uint32_t reads;        // reads and atomics outstanding
    uint32_t since_ack_request;
    uint8_t retries_left, rnr_left;
    bool rnr_waiting;
    bool damage_outstanding; // the adversary damaged packet damage_psn or its answer, and it is not acknowledged yet
    uint32_t damage_psn;
    uint64_t deadline_ps;
    sim_event_t timer;
    struct hca_stream stream;
    uint32_t streamed; // packets of requests not completed that went by stream
    uint32_t expected; // packets of responses that are on their way in a stream
};

enum hca_slot_state { HCA_SLOT_FREE, HCA_SLOT_EXECUTING, HCA_SLOT_READY, HCA_SLOT_SENT };

// A read or atomic at the responder, kept until its slot is needed again, for duplicates.
struct hca_slot {
    enum hca_slot_state state;
    bool atomic, again; // again: it was requested once more
    uint32_t psn, packets, sent_packets, rkey, bytes, msn;
    uint32_t pdn;
    uint64_t address, original;
    uint64_t due_ps;     // earliest time of the answer
    uint32_t order_mark; // reads: wait for this many ordered accesses of the QP
};

struct hca_rsp {
    uint32_t psn, msn; // expected; messages completed
    bool nak_sent;     // a sequence error was reported; silent until the expected packet arrives
    bool dead;         // a fatal NAK is pending
    bool in_message, write_message;
    uint64_t address; // of the current message
    uint32_t rkey, left, received, message_bytes;
    bool has_receive, drop_message;
    struct hca_receive receive;
    struct ib_queue parked; // packets that wait for a receive entry
    bool waiting;           // on the list of rq->waiters
    bool fresh;             // the record was read since the oldest parked packet arrived
    uint32_t order_issued, order_done;
    struct hca_slot *slots;                    // a ring
    uint32_t slot_count, slot_next, slot_send; // counts: next to fill, next to answer
    uint32_t responses_queued;                 // packets that have not left yet
    bool ack_pending, ack_listed, reader_listed;
    uint8_t ack_syndrome, ack_fault;
    uint32_t ack_psn;
    uint64_t ack_due_ps;
    bool established;
    struct hca_stream stream; // of the slot slot_send
    bool damage_next; // the next packet that answers arrives damaged
};

struct hca_qp {
    hca_t *hca;
    bool used;
    uint32_t number, generation;
    struct hca_qp_init init;
    struct hca_qp_attr attr;
    enum hca_qp_state state;
    struct hca_sq sq;
    struct hca_rsp rsp;
    struct hca_rq own_rq, *rq; // rq: of an XRC target, the one of the current message
    bool send_listed, draining, flushing_receives;
    uint32_t shorts; // short messages, each soon after the one before (stream.c)
    uint64_t short_ps;
    sim_event_t arrival;                   // with an adversary: until parked packets continue
    sim_event_t answer;                    // until the oldest read or atomic may be answered
    uint64_t send_since_ps, read_since_ps; // when it was listed
    struct hca_qp *next_send, *next_ack, *next_reader, *next_waiter, *next_free;
};

// A queue pair that receives the packets of a group.
struct hca_member {
    uint32_t qpn;
    uint16_t mlid;
    uint8_t mgid[16];
};

struct hca_qp_list {
    struct hca_qp *first, *last;
};

// --- order at the responder ----------------------------------------------------------------------------------------

enum hca_order_kind { HCA_ORDER_WRITE, HCA_ORDER_ATOMIC };

struct hca_order {
    struct hca_order *next;
    enum hca_order_kind kind;
    struct hca_qp *qp;
    uint32_t generation;
    uint64_t since_ps;
    ib_packet_t *packet; // WRITE: its payload
    // pieces of bus memory
    struct hca_piece {
        uint64_t bus;
        uint32_t bytes;
    } pieces[HCA_PIECES_MAX];
    unsigned piece_count;
    bool completes; // a receive request
    uint32_t cqn;   // of the completion
    bool solicited;
    struct hca_cqe cqe;
    bool acknowledge, fails; // after the access: acknowledge up to psn; fail the QP
    uint32_t psn;
    uint32_t slot; // ATOMIC: count of the slot
    uint8_t opcode;
    bool failed; // its read failed
    uint64_t swap_add, compare, original;
};
