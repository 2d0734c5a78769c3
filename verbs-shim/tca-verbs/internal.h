// Shared by the files of TCA Verbs. Private to the folder.
//
// Data flow: qp.c post.c -> send.c (requests) -> ring.c (packets) -> progress.c -> receive.c (the remote side) ->
// answer.c (its replies) -> response.c (back at the requester) -> cq.c.
//
// Every heap object is linked to the context before time passes, so nothing leaks when a program is abandoned in the
// middle of a call. After that this library does not touch the machine.
#pragma once

#include <stdbool.h>

#include "verbs-shim/ibverbs/opcodes.h"
#include "verbs-shim/peach2/peach2_driver.h"
#include "verbs-shim/tca-verbs/memory.h"
#include "verbs-shim/tca-verbs/packet.h"
#include "verbs-shim/tca-verbs/tca_verbs.h"

// --- queues ---------------------------------------------------------------------------------------------------------

struct tcav_cq {
    struct tcav_cq *next;
    struct tcav_context *context;
    void *user;
    struct ibv_wc *entries;
    bool *solicited;
    unsigned size, head, count, users;
    unsigned notified; // number of first entries that an event has covered
    bool armed, armed_solicited, overrun;
};

struct tcav_receive {
    uint64_t id;
    unsigned sges;
    struct ibv_sge sge[TCAV_SGES_MAX];
};

struct tcav_rq {
    struct tcav_receive *wrs;
    unsigned size, head, count;
};

struct tcav_srq {
    struct tcav_srq *next;
    struct tcav_pd *pd;
    void *user;
    struct tcav_rq rq;
    unsigned limit, users;
    uint32_t max_sge;
};

enum tcav_request_state {
    TCAV_REQUEST_QUEUED,  // nothing was sent
    TCAV_REQUEST_ASKED,   // waits for a grant
    TCAV_REQUEST_GRANTED, // the location is known
    TCAV_REQUEST_MOVING,  // the board is moving it
    TCAV_REQUEST_MOVED,
    TCAV_REQUEST_PACKETS, // some of its packets were sent
    TCAV_REQUEST_SENT,
    TCAV_REQUEST_ANSWERED // reads and atomics
};

// An address handle; a datagram copies it.
struct tcav_ah {
    uint32_t node;
    bool astray; // its GID is not that of the node: its packets are dropped
    struct tcav_route route;
};

struct tcav_destination {
    struct tcav_ah ah;
    uint32_t qp, qkey;
};

struct tcav_request {
    enum tcav_request_state state;
    uint64_t id, remote, compare, swap_add;
    uint32_t key, length, offset, immediate, message;
    enum ibv_wr_opcode opcode;
    unsigned flags, sges;
    bool denied;
    struct tcav_location location; // granted
    struct tcav_destination to;    // of a datagram
    struct ibv_sge sge[TCAV_SGES_MAX];
    unsigned char data[TCAV_INLINE_BYTES];
};

// What the remote side of a queue pair must still answer: reads and atomics, in order.
struct tcav_job {
    enum tcav_kind kind; // READ or ATOMIC_DATA
    uint32_t message, key, length, offset;
    uint64_t address, value;
    struct tcav_location location;
    bool moving, moved;
};

// The message whose packets arrive now.
struct tcav_inbound {
    bool active, has_receive, granted;
    enum tcav_kind kind;
    uint32_t length, offset, key;
    uint64_t address;
    struct tcav_location location; // granted
    struct tcav_receive receive;
};

// Data that the board moves without the rings.
struct tcav_move {
    struct tcav_move *next;
    struct tcav_peer *peer;
    uint64_t source, destination;
    uint32_t bytes;
    bool queued, running;
    bool *moved; // set when it ends
    unsigned error;
};

struct tcav_qp {
    struct tcav_qp *next, *next_active;
    struct tcav_pd *pd;
    void *user;
    struct tcav_cq *send_cq, *recv_cq;
    struct tcav_srq *srq;
    struct ibverbs_failure failure; // the last completion in error
    bool has_failure;
    struct ibv_qp_cap cap;
    bool all_signaled, active, drain_event, established;
    uint32_t number, remote_number;
    enum ibv_qp_type type; // RC or UD
    uint32_t qkey;         // UD only
    enum ibv_qp_state state;
    struct tcav_peer *peer;
    unsigned access, timeout, retries, rnr_retries, rnr_timer, reads_max, answers_max;
    // requester: requests[head..head+count), of which the first `sent` are in flight or done
    struct tcav_request *requests;
    unsigned size, head, count, sent;
    uint32_t next_message, acked; // of the next posted request; all requests before `acked` were executed
    unsigned reads_out;
    unsigned retries_left, rnr_retries_left;
    uint64_t resume_ps, progress_ps; // no request is sent before resume_ps; progress_ps: the last sign of progress
    bool draining;
    struct tcav_move request_move, job_move;
    bool request_moved;
    bool release_due; // release when request_move has ended, because its request has failed
    uint32_t release_message;
    // responder
    struct tcav_rq rq;
    struct tcav_inbound inbound;
    uint32_t expected, ack_sent;
    struct tcav_job jobs[TCAV_READS_MAX];
    unsigned job_head, job_count;
    bool answer_due; // a NAK, RNR NAK or GRANT
    bool rnr;        // packets are dropped until the message is retransmitted
    struct tcav_header answer;
    struct tcav_location answer_location;
};

// --- connections ----------------------------------------------------------------------------------------------------

enum tcav_peer_state { TCAV_PEER_CONNECTING, TCAV_PEER_CONNECTED, TCAV_PEER_GONE };

struct tcav_peer {
    struct tcav_context *context;
    uint32_t node;
    enum tcav_peer_state state;
    bool polled;       // a queue pair is connected to it: the set-up polls the unit, as the peer may send no interrupt
    uint64_t since_ps; // when the first datagram began to wait for the connection; 0: none has
    uint64_t full_ps;  // since when its ring has had no room for a datagram; 0: it has room
    uint64_t began_ps; // to connect
    uint32_t nonce, remote_nonce;
    uint64_t remote_area;
    void *memory; // from tcaMalloc: receive area, send area, pair words
    uint64_t memory_bus;
    struct tcav_area *area, *send;
    uint64_t *pairs; // 16 B apart: for each small slot, for two batches, for a pair without a packet
    peach2_chain_t *small[TCAV_SMALL_SLOTS], *pair_alone;
    uint32_t board_unit;
    bool has_units;
    struct tcav_counts out; // sent and taken by this end
    struct tcav_counts in;  // sent and taken by the other end
    uint32_t published_small, published_large;
    uint32_t order_out, order_in;
    struct tcav_header *refused; // queue of NOT_READY and RELEASE packets to send
    unsigned refused_size, refused_head, refused_count;
};

struct tcav_event_node {
    struct tcav_event_node *next;
    struct ibverbs_event event;
};

struct tcav_context {
    struct tca_verbs_device *device;
    struct backend_process *process;
    struct backend backend;
    peach2_handle_t *board; // its own handle: channels and chains are not shared
    uint32_t node;
    unsigned opened; // open count: a process has one context, which all its openings share
    bool abandoned;
    bool threaded;    // the progress thread runs
    uint64_t changes; // read when the lock was taken last, by its holder (backend_thread_ops)
    bool on_thread;   // the progress thread runs the current pass and must not call libtca
    bool units_due;   // a node may have introduced itself: the program must set up a connection
    bool datagrams;   // it has had UD queue pairs: the board interrupts when a node introduces itself
    unsigned pds;
    struct tcav_peer *peers[PEACH2_NODES_MAX];
    struct tcav_qp *qps, *active, *table[TCAV_QPS_MAX];
    uint32_t qp_serial;
    struct tcav_cq *cqs;
    struct tcav_srq *srqs;
    struct tcav_mr *mrs;
    uint32_t mr_serial;
    struct tcav_grant *grants;
    struct tcav_event_node *events;
    gdr_t gdr;
    struct backend_buffer status;        // completion words of the channels
    uint32_t ended_unit;                 // of the board's memory: where channel 2 notifies that its chain has ended
    bool has_unit;                       // it is ours
    bool ended;                          // the status came, and that did not yet
    bool wants_end;                      // somebody waits for the end of the chain that runs
    struct tcav_peer *sending;           // channel 2 runs a chain for it
    struct tcav_peer *ready_peer;        // peer of the next chain of channel 2
    peach2_chain_t *ready;               // NULL: none
    uint32_t chains, chains_ended;       // of channel 2: chains made ready so far, and chains that have ended
    peach2_chain_t *batches[2], *moves;  // host memory; rewritten for each use
    unsigned batch;                      // index of the next batch
    struct tcav_move *move, **moves_end; // queue of channel 3; the first one may be running
    uint32_t moves_begun, moves_watched; // the last one that timers saw running,
    uint64_t watched_ps;                 // since then
    uint64_t now_ps;                     // when the clock was read last
    // Counts whatever changes what a pass would do, but for words that boards write and deadlines; `settled`: its value
    // when a pass did nothing.
    uint64_t stirred, settled;
    uint64_t passed_ps; // when the last pass began
    unsigned overruns;  // CQs that overflowed and whose queue pairs have not failed yet
    unsigned polls;     // polls of words that were not paid for yet
    // The only remaining work is to retransmit what a peer is not ready for, or to refuse retransmissions.
    _Atomic bool repeats;
};

#define TCAV_NS 1000ull
// The board's interrupt for an introduction.
#define TCAV_INTRODUCTION_INTERRUPT (1u << 9) // peach2_proxy.c uses bit 8
// How long a thread pauses while timers or connection set-ups are pending, for which no device write wakes it.
#define TCAV_PAUSE_NS 1000u

// The cost of a call of the program, and the clock.
static inline void tcav_pay(const struct tcav_context *context, enum backend_cost kind, uint64_t amount)
{
    if (!context->abandoned && amount != 0) {
        context->backend.ops->cost(context->backend.ctx, kind, amount);
    }
}
uint64_t tcav_now_ps(struct tcav_context *context);

// channel.c: the flags of a chain's later copies; its last copy, after which the sender sees its end. false: it has none.
uint32_t tcav_chain_flags(const struct tcav_context *context);
bool tcav_channel_looks(const struct tcav_context *context); // the status was there before the word in the board's memory
bool tcav_chain_end(const struct tcav_context *context, struct peach2_transfer *end_out);

static inline void tcav_stir(struct tcav_context *context)
{
    context->stirred++;
}

static inline bool tcav_before(uint32_t a, uint32_t b) // of message numbers
{
    return ((b - a) & TCAV_NUMBER_MASK) - 1 < TCAV_NUMBER_MASK / 2;
}

// Only the holder of the context's lock accesses the context (guard.c takes it around each operation; thread.c around
// each pass). Without a thread there is no lock.
static inline const struct backend_thread_ops *tcav_thread_ops(const struct tcav_context *context)
{
    return context->threaded && !context->abandoned ? context->backend.ops->thread : NULL;
}
static inline void tcav_lock(struct tcav_context *context)
{
    if (tcav_thread_ops(context) != NULL) {
        tcav_thread_ops(context)->lock(context->backend.ctx, BACKEND_THREAD_TCA_VERBS);
        context->changes = tcav_thread_ops(context)->changes(context->backend.ctx, BACKEND_THREAD_TCA_VERBS);
    }
}
// An operation of the program begins.
static inline void tcav_enter(struct tcav_context *context)
{
    tcav_lock(context);
    tcav_stir(context);
}
static inline void tcav_unlock(const struct tcav_context *context)
{
    if (tcav_thread_ops(context) != NULL) {
        tcav_thread_ops(context)->unlock(context->backend.ctx, BACKEND_THREAD_TCA_VERBS);
    }
}
// Lines that the board wrote, or reads to send them: they come from the last-level cache, where its DMA goes. Without
// the lines of data copied as a run, which has a rate of its own.
static inline void tcav_pay_lines(struct tcav_context *context, size_t bytes)
{
    tcav_pay(context, BACKEND_COST_DEVICE_LINE, (bytes + 63) / 64);
}
// The other thread has new work.
static inline void tcav_wake(const struct tcav_context *context)
{
    if (tcav_thread_ops(context) != NULL) {
        tcav_thread_ops(context)->wake(context->backend.ctx, BACKEND_THREAD_TCA_VERBS);
    }
}

// thread.c
int tcav_thread_start(struct tcav_context *context);
void tcav_thread_stop(struct tcav_context *context); // called without the lock

// device.c: operations of the device's table, without the lock.
int tcav_pd_create(void *context, void **pd_out);
int tcav_pd_destroy(void *pd);
int tcav_query_device(void *device, struct ibverbs_device_info *info_out);
int tcav_query_port(void *device, unsigned port, struct ibv_port_attr *attr_out);
int tcav_query_gid(void *device, unsigned port, unsigned index, union ibv_gid *gid_out);
union ibv_gid tcav_gid(uint32_t node);
int tcav_query_pkey(void *device, unsigned port, unsigned index, uint16_t *pkey_out);
int tcav_context_open(void *device, struct backend_process *process, void **context_out);
int tcav_context_close(void *context);
void tcav_context_abandon(void *context);

// cq.c
int tcav_cq_create(void *context, unsigned *entries, unsigned vector, void *user, void **cq_out);
int tcav_cq_destroy(void *cq);
int tcav_cq_resize(void *cq, unsigned *entries);
int tcav_cq_poll(void *cq, int max, struct ibv_wc *wc_out);
bool tcav_repeats(void *context);
enum ibverbs_idle tcav_cq_idle(void *cq, struct ibverbs_idle_poll *poll_out); // idle.c
uint64_t tcav_due_ps(void *context, bool events);
bool tcav_event_waits(const void *context);
bool tcav_sends_wait(void *context);
int tcav_cq_arm(void *cq, bool solicited_only);
int tcav_cq_wait(void *cq, uint64_t timeout_ns);
unsigned tcav_cq_waiting(void *cq, struct ibv_wc *first_out);
void tcav_qp_outstanding(void *qp, unsigned *sends_out, unsigned *receives_out);
bool tcav_qp_failure(void *qp, struct ibverbs_failure *failure_out);
void tcav_cq_push(struct tcav_cq *cq, const struct ibv_wc *wc, bool solicited);
void tcav_cqs_fail(struct tcav_context *context); // fails the queue pairs of CQs that overflowed
void tcav_cq_purge(struct tcav_cq *cq, uint32_t qp_number);

// event.c
int tcav_event_get(void *context, uint64_t timeout_ns, struct ibverbs_event *event_out);
void tcav_event_push(struct tcav_context *context, const struct ibverbs_event *event);
void tcav_event_async(struct tcav_context *context, enum ibv_event_type type, void *user);
void tcav_events_purge(struct tcav_context *context, const void *user);

// rq.c
int tcav_rq_init(struct tcav_rq *rq, unsigned size);
bool tcav_rq_take(struct tcav_qp *qp, struct tcav_receive *receive_out); // also from its SRQ
int tcav_srq_create(void *pd, struct ibv_srq_attr *attr, void *user, void **srq_out);
int tcav_srq_destroy(void *srq);
int tcav_srq_arm(void *srq, unsigned limit);
int tcav_srq_query(void *srq, struct ibv_srq_attr *attr_out);
int tcav_post_recv(void *qp, const struct ibv_recv_wr *wr, unsigned count, const struct ibv_recv_wr **bad_out);
int tcav_post_srq_recv(void *srq, const struct ibv_recv_wr *wr, unsigned count, const struct ibv_recv_wr **bad_out);

// qp.c
int tcav_qp_create(void *pd, struct ibverbs_qp_create *create, void **qp_out, uint32_t *number_out);
int tcav_qp_destroy(void *qp);
int tcav_qp_modify(void *qp, const struct ibv_qp_attr *attr, int mask);
int tcav_qp_query(void *qp, struct ibv_qp_attr *attr);
void tcav_qp_activate(struct tcav_qp *qp);
// Moves it to the error state; what is queued is flushed.
void tcav_qp_fail(struct tcav_qp *qp);
// Ends the oldest request that has not ended with this status, then calls tcav_qp_fail. fault: NONE: derived from the
// status.
void tcav_qp_fail_request(struct tcav_qp *qp, struct tcav_request *request, enum ibv_wc_status status,
                          enum hca_fault fault);
static inline struct tcav_request *tcav_request_at(const struct tcav_qp *qp, unsigned index)
{
    return &qp->requests[(qp->head + index) % qp->size];
}

// post.c
int tcav_post_send(void *qp, const struct ibv_send_wr *wr, unsigned count, const struct ibv_send_wr **bad_out);
unsigned tcav_send_room(void *qp);

// send.c: sends the next packet of the queue pair if a ring has room. True: something was sent.
bool tcav_send_step(struct tcav_qp *qp);
void tcav_send_retire(struct tcav_qp *qp); // completes ended requests, in order
void tcav_send_rewind(struct tcav_qp *qp, uint32_t message);
bool tcav_send_is_read(const struct tcav_request *request);
enum ibv_wc_opcode tcav_send_opcode(const struct tcav_request *request); // opcode of its completion

struct tcav_header tcav_send_header(const struct tcav_qp *qp, const struct tcav_request *request, enum tcav_kind kind);

// datagram.c
int tcav_ah_create(void *pd, const struct ibv_ah_attr *attr, void **ah_out);
int tcav_ah_destroy(void *ah);
int tcav_datagrams_begin(struct tcav_context *context); // before the first UD queue pair
void tcav_datagrams_step(struct tcav_context *context); // checks for introductions
bool tcav_datagram_send_step(struct tcav_qp *qp);       // as tcav_send_step
void tcav_datagram_packet(struct tcav_peer *peer, const struct tcav_header *header, const unsigned char *payload);

// receive.c: handles a packet for this queue pair as the remote side of a request. False: it was dropped.
bool tcav_receive_packet(struct tcav_qp *qp, const struct tcav_header *header, const unsigned char *payload);
// atomic.c: executes it; -EFAULT.
int tcav_atomic_execute(struct tcav_qp *qp, const struct tcav_mr *mr, const struct tcav_header *header,
                        const struct tcav_operands *operands, uint64_t *value_out);
// answer.c: sends the next reply of the remote side. True: something was sent.
bool tcav_answer_step(struct tcav_qp *qp);
void tcav_answer_nak(struct tcav_qp *qp, uint32_t message, enum tcav_nak nak, enum hca_fault fault);
void tcav_answer_ack(struct tcav_qp *qp);
void tcav_answer_drop(struct tcav_qp *qp); // drops all replies
// response.c: handles a reply. False: no request waits for it.
bool tcav_response_packet(struct tcav_qp *qp, const struct tcav_header *header, const unsigned char *payload);

// ring.c
bool tcav_ring_may_send(const struct tcav_context *context);
unsigned tcav_ring_small_room(const struct tcav_peer *peer);
unsigned tcav_ring_large_room(const struct tcav_peer *peer);
// Sends header and payload in the low-latency ring, which has room; payload: at most TCAV_SMALL_PAYLOAD.
void tcav_ring_send_small(struct tcav_peer *peer, struct tcav_header header, const void *payload);
// Sends a message's data from header.offset on, in either ring, which has room: as much as fits in one write. Returns
// the bytes, or -EFAULT. Fills in header.bytes. The list is in this process; flags go with every packet.
struct tcav_source {
    const struct tcav_pd *pd;
    const struct ibv_sge *sge;
    unsigned sges;
    const unsigned char *inline_data; // instead of a list
};
int tcav_ring_send_data(struct tcav_peer *peer, struct tcav_header header, const struct tcav_source *source);
void tcav_ring_send_pair(struct tcav_peer *peer);
// The next packet of the connection in order; NULL: none. It stays until tcav_ring_take.
const struct tcav_header *tcav_ring_next(struct tcav_peer *peer);
void tcav_ring_take(struct tcav_peer *peer);
void tcav_ring_poll(struct tcav_peer *peer); // takes the pair from its word
bool tcav_ring_owes_room(const struct tcav_peer *peer);

// channel.c
int tcav_channels_open(struct tcav_context *context); // for the first queue pair; else nothing. -EBUSY: libtca uses one
void tcav_channels_close(struct tcav_context *context);
void tcav_channel_ready(struct tcav_peer *peer, peach2_chain_t *chain);
void tcav_channels_step(struct tcav_context *context);
bool tcav_channel_drain(struct tcav_context *context); // waits until all packets have left; false: timeout
void tcav_move_queue(struct tcav_context *context, struct tcav_move *move);
void tcav_move_cancel(struct tcav_context *context, struct tcav_move *move); // waits if the board is moving it
void tcav_moves_watch(struct tcav_context *context, uint64_t now_ps);        // the one that the board has begun
// After that time the board has been moving it for longer than it can take: it was reset meanwhile.
uint64_t tcav_moves_late_ps(const struct tcav_context *context);
// Has a DMA ended? *polls: counts the words that a pass polls to know that.
bool tcav_channels_have_ended(const struct tcav_context *context, unsigned *polls);
// Splits a run of bytes into whole words and the bytes around them; *before_out: the bytes before them.
uint32_t tcav_move_split(uint64_t offset, uint32_t bytes, uint32_t *before_out);

// connection.c
uint32_t tcav_path_node(const struct ibv_ah_attr *ah);
int tcav_peer_connect(struct tcav_context *context, uint32_t node, struct tcav_peer **peer_out);
void tcav_peer_step(struct tcav_peer *peer);                              // while it is connecting
bool tcav_peer_is_new(const struct tcav_context *context, uint32_t node); // an unknown node has introduced itself
void tcav_peer_introduce(struct tcav_peer *peer);
void tcav_peer_free(struct tcav_peer *peer);
void tcav_peer_bye(struct tcav_peer *peer);
// Queues a packet until there is room. Without memory for it the peer counts as down, because it would wait forever.
void tcav_peer_notify(struct tcav_peer *peer, struct tcav_header header);
bool tcav_peer_notify_step(struct tcav_peer *peer);                     // true: one was sent
uint64_t tcav_peer_area(const struct tcav_peer *peer, uint64_t offset); // the address for this board

// progress.c: one pass over everything. Returns the number of packets and acks that it took.
unsigned tcav_progress(struct tcav_context *context);
void tcav_transmit(struct tcav_context *context);
static inline bool tcav_timer_runs(const struct tcav_qp *qp)
{
    return qp->count != 0 && (qp->state == IBV_QPS_RTS || qp->sent != 0);
}
uint64_t tcav_timer_ps(const struct tcav_qp *qp);                 // when it passes; UINT64_MAX: never
bool tcav_acked(const struct tcav_qp *qp, uint32_t *message_out); // by a word that the peer has written
bool tcav_is_idle(const struct tcav_context *context);            // only a packet or the program can give it work
// Waits, without the lock, until a pass may find something; until_ps 0: forever.
void tcav_progress_pause(struct tcav_context *context); // for about a microsecond
void tcav_progress_wait(struct tcav_context *context, uint64_t until_ps);
