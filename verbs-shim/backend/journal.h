// The journal: what libraries report of a program's calls, for traces, summaries and diagnoses.
//
// A library writes a record when a call returns. Calls that make, change or destroy objects, calls that are refused,
// and completions in error are always reported; posts, polls and waits only if all calls are asked for (--trace,
// --summary). A record holds what the call was given and what it answered; the backend adds the caller and the time.
// Numbers are those that the program sees: queue pair numbers, keys, wr_id; other objects have a handle, which is
// unique within a context (`context` of the record).
//
// Writing a record takes no simulated time. Records come from programs, so a reader must validate them.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// --- calls ----------------------------------------------------------------------------------------------------------
// name, the call as the program writes it, the member of `struct journal_record` that it fills

#define JOURNAL_CALLS(C)                                                                                               \
    C(OPEN_DEVICE, "ibv_open_device", device)                                                                          \
    C(CLOSE_DEVICE, "ibv_close_device", object)                                                                        \
    C(ALLOC_PD, "ibv_alloc_pd", object)                                                                                \
    C(DEALLOC_PD, "ibv_dealloc_pd", object)                                                                            \
    C(REG_MR, "ibv_reg_mr", mr)                                                                                        \
    C(DEREG_MR, "ibv_dereg_mr", mr)                                                                                    \
    C(CREATE_CHANNEL, "ibv_create_comp_channel", object)                                                               \
    C(DESTROY_CHANNEL, "ibv_destroy_comp_channel", object)                                                             \
    C(CREATE_CQ, "ibv_create_cq", cq)                                                                                  \
    C(RESIZE_CQ, "ibv_resize_cq", cq)                                                                                  \
    C(DESTROY_CQ, "ibv_destroy_cq", cq)                                                                                \
    C(CREATE_SRQ, "ibv_create_srq", object)                                                                            \
    C(MODIFY_SRQ, "ibv_modify_srq", object)                                                                            \
    C(DESTROY_SRQ, "ibv_destroy_srq", object)                                                                          \
    C(CREATE_QP, "ibv_create_qp", qp)                                                                                  \
    C(MODIFY_QP, "ibv_modify_qp", modify)                                                                              \
    C(DESTROY_QP, "ibv_destroy_qp", qp)                                                                                \
    C(CREATE_AH, "ibv_create_ah", object)                                                                              \
    C(DESTROY_AH, "ibv_destroy_ah", object)                                                                            \
    C(POST_SEND, "ibv_post_send", send)                                                                                \
    C(POST_RECV, "ibv_post_recv", receive)                                                                             \
    C(POST_SRQ_RECV, "ibv_post_srq_recv", receive)                                                                     \
    C(POLL_CQ, "ibv_poll_cq", completion)                                                                              \
    C(REQ_NOTIFY_CQ, "ibv_req_notify_cq", object)                                                                      \
    C(GET_CQ_EVENT, "ibv_get_cq_event", object)                                                                        \
    C(GET_ASYNC_EVENT, "ibv_get_async_event", object)                                                                  \
    C(TCA_START, "tcaStartDMADesc", dma)                                                                               \
    C(TCA_WAIT, "tcaWaitDMAC", dma)                                                                                    \
    C(TCA_WAIT_RECEIVE, "tcaWaitDMARecvDesc", dma)                                                                     \
    C(TCA_REFUSED, "libtca", refusal)                                                                                  \
    C(CHECK, "check", check)

enum journal_call {
#define JOURNAL_CALL(name, text, member) JOURNAL_##name,
    JOURNAL_CALLS(JOURNAL_CALL)
#undef JOURNAL_CALL
        JOURNAL_CALL_COUNT
};

// --- why a call was refused -----------------------------------------------------------------------------------------
// name, sentence. {a} and {b} are the record's numbers: {a:state} a state of a queue pair, {a:attributes} a mask of
// attributes of ibv_modify_qp, {a:type} a type of queue pair, {a:opcode} an opcode of a send, {a:hex}.

#define JOURNAL_REASONS(R)                                                                                             \
    R(NONE, "")                                                                                                        \
    R(NO_MEMORY, "the device has no room for another one")                                                             \
    R(BUSY, "{a} other objects still use it")                                                                          \
    R(LIMIT_SEND_WR, "max_send_wr is {a}, the device has at most {b}")                                                 \
    R(LIMIT_SEND_SGE, "max_send_sge is {a}, the device has at most {b}")                                               \
    R(LIMIT_INLINE, "max_inline_data is {a}, the device has at most {b}")                                              \
    R(LIMIT_RECV_WR, "max_recv_wr is {a}, the device has at most {b}")                                                 \
    R(LIMIT_RECV_SGE, "max_recv_sge is {a}, the device has at most {b}")                                               \
    R(LIMIT_CQE, "{a} entries of a completion queue are asked for, the device has 1 to {b}")                           \
    R(LIMIT_VECTOR, "comp_vector is {a}, the device has 0 to {b}")                                                     \
    R(LIMIT_SRQ_WR, "max_wr is {a}, a shared receive queue has 1 to {b}")                                              \
    R(LIMIT_SRQ_SGE, "max_sge is {a}, a shared receive queue has at most {b}")                                         \
    R(LIMIT_SRQ_LIMIT, "srq_limit is {a}, the queue has {b} requests; only the limit can be changed")                  \
    R(LID, "no port of the fabric has LID {a}")                                                                        \
    R(ZERO, "a size of 0 is asked for")                                                                                \
    R(OTHER_CONTEXT, "an object that is given belongs to another context")                                             \
    R(NO_CQ, "a completion queue is missing")                                                                          \
    R(QP_TYPE, "the device has no queue pairs of type {a:type}")                                                       \
    R(UNSUPPORTED, "the device does not have what is asked for")                                                       \
    R(TRANSITION, "a queue pair cannot go from {a:state} to {b:state}")                                                \
    R(CURRENT_STATE, "the queue pair is in state {a:state}, not in {b:state} as cur_qp_state says")                    \
    R(ATTRIBUTES_MISSING, "this transition also needs {a:attributes}")                                                 \
    R(ATTRIBUTES_UNKNOWN, "this transition does not take {a:attributes}")                                              \
    R(ATTRIBUTE_RANGE, "{a:attributes} is {b}, which is out of range")                                                 \
    R(ADDRESS_VECTOR, "the address vector is not valid on this port (port, sl, sgid_index or static_rate)")            \
    R(ACCESS_FLAGS, "access flags {a:hex} are not known")                                                              \
    R(ACCESS_LOCAL, "remote write and remote atomic access need IBV_ACCESS_LOCAL_WRITE too")                           \
    R(NO_SUCH_MEMORY, "{b} B at {a:hex} are not memory of the program with these rights")                              \
    R(MEMORY_RANGE, "{b} B at {a:hex} are not a range that a region can have")                                         \
    R(STATE_SEND, "the queue pair is in state {a:state}; send requests are taken in RTS (SQD, SQE and ERR)")           \
    R(STATE_RECEIVE, "the queue pair is in state {a:state}, which takes no receive requests")                          \
    R(NO_RECEIVES, "the queue pair has no receive queue of its own")                                                   \
    R(OPCODE, "opcode {a:opcode} does not exist on queue pairs of type {b:type}, or was not asked for")                \
    R(SEND_FLAGS, "the device does not have IBV_SEND_IP_CSUM")                                                         \
    R(INLINE_OPCODE, "IBV_SEND_INLINE does not go with {a:opcode}")                                                    \
    R(INLINE_BYTES, "{a} B of inline data, the queue pair was created with max_inline_data {b}")                       \
    R(SEGMENTS, "{a} segments, the queue was created with {b}")                                                        \
    R(ADDRESS_HANDLE, "a datagram needs an address handle of the queue pair's protection domain")                      \
    R(SEND_QUEUE_FULL,                                                                                                 \
      "the send queue is full ({a} requests): a request leaves it when its completion, or one of a later signalled "   \
      "request, is polled")                                                                                            \
    R(RECEIVE_QUEUE_FULL, "the receive queue is full ({a} requests)")                                                  \
    R(UNACKNOWLEDGED, "{a} of its events are not acknowledged")

enum journal_reason {
#define JOURNAL_REASON(name, text) JOURNAL_WHY_##name,
    JOURNAL_REASONS(JOURNAL_REASON)
#undef JOURNAL_REASON
        JOURNAL_REASON_COUNT
};

// --- mistakes that a program's own libraries detect (--check) --------------------------------------------------------
// name, what is wrong with the memory that the record names.

#define JOURNAL_MISTAKES(M)                                                                                            \
    M(CHANGED, "was changed before the request was complete")                                                          \
    M(ACCESSED, "was accessed before the request was complete")                                                        \
    M(FREED, "was freed while it is registered")                                                                       \
    M(UNMAPPED, "was unmapped while it is registered")

enum journal_mistake {
#define JOURNAL_MISTAKE(name, text) JOURNAL_MISTAKE_##name,
    JOURNAL_MISTAKES(JOURNAL_MISTAKE)
#undef JOURNAL_MISTAKE
        JOURNAL_MISTAKE_COUNT
};

// --- records --------------------------------------------------------------------------------------------------------

#define JOURNAL_NAME_BYTES 16

struct journal_object {
    uint32_t handle, value; // value: of MODIFY_SRQ the limit, REQ_NOTIFY_CQ solicited only, of an asynchronous event
                            // its type
};

struct journal_device {
    char device[JOURNAL_NAME_BYTES];
    uint32_t lid, vendor_part;
};

struct journal_mr {
    uint64_t address, bytes, iova;
    uint32_t handle, pd, lkey, rkey, access;
    uint32_t is_copied; // the device cannot reach it: the processor copies what is sent from it or to it
};

struct journal_cq {
    uint32_t handle, entries, channel; // channel: its handle + 1; 0: none
};

struct journal_qp {
    uint32_t number, type, pd, send_cq, receive_cq, srq; // handles; receive_cq, srq: + 1; 0: none
    uint32_t max_send, max_receive, max_send_segments, max_receive_segments, max_inline;
    uint32_t all_signaled;
};

// Only the attributes that the mask (IBV_QP_*) names are valid.
struct journal_modify {
    uint32_t number, mask, from, to;
    uint32_t dest, dlid, mtu_bytes, access, send_psn, receive_psn, qkey;
    uint8_t retry_count, rnr_retry, timeout, min_rnr_timer, reads, dest_reads;
};

struct journal_send {
    uint64_t wr_id, bytes, address, remote_address; // address: of the first segment
    uint32_t qp, opcode, flags, segments, lkey, rkey;
    uint32_t signaled; // a completion reports that it is done
};

struct journal_receive {
    uint64_t wr_id, bytes, address;
    uint32_t queue, segments, lkey;  // queue: a queue pair's number, or the handle of a shared receive queue
    char poster[JOURNAL_NAME_BYTES]; // the program or library whose code posted it, cut after 15 characters
};

// is_known: the device knows the request of a completion in error, so the fields of that request are valid.
struct journal_completion {
    uint64_t wr_id, bytes, remote_address, posted_bytes, address, first_bytes; // address: of the first segment
    uint32_t is_known, segments, cq, qp, status, opcode, vendor_error, source_qp, rkey, lkey;
    uint32_t is_receive;
};

// qp, wr_id, opcode (of a send; not if is_receive): the request that uses the memory. CHANGED and ACCESSED only.
struct journal_check {
    uint64_t address, bytes, wr_id;
    uint32_t mistake, qp, opcode, is_receive; // mistake: enum journal_mistake
};

// bytes: total of the descriptor's copies, TCA_START only. sender, slot, tag: TCA_WAIT_RECEIVE only.
struct journal_dma {
    uint64_t bytes;
    uint32_t channel, sender, slot, tag;
};

// A refused call of libtca: the library's own message, which begins with the name of the call.
#define JOURNAL_SENTENCE_BYTES 160
struct journal_refusal {
    char sentence[JOURNAL_SENTENCE_BYTES];
};

struct journal_record {
    uint16_t call; // enum journal_call
    uint16_t reason;
    int32_t error;        // an errno value; 0: the call succeeded
    uint64_t a, b;        // numbers of the reason
    uint64_t began_ps;    // the caller's own time when the call began
    uint64_t instruction; // of CHECK: the instruction that did it, where that is known; else 0
    uint32_t context;
    uint32_t follows; // of a call with several records (a list, a poll): this is not the first one
    union {
        struct journal_object object;
        struct journal_device device;
        struct journal_mr mr;
        struct journal_cq cq;
        struct journal_qp qp;
        struct journal_modify modify;
        struct journal_send send;
        struct journal_receive receive;
        struct journal_completion completion;
        struct journal_check check;
        struct journal_dma dma;
        struct journal_refusal refusal;
    };
};

// --- states ---------------------------------------------------------------------------------------------------------
// The state of queues, on request: of a run that makes no progress, or of a side that did not receive a message.

struct journal_request {
    uint64_t wr_id;
    uint32_t qp, opcode, status; // of a completion
};

struct journal_qp_state {
    uint64_t sends_posted, receives_posted, last_receive_ps; // last_receive_ps: when the last receive was posted
    uint32_t state, sends_outstanding, receives_outstanding;
    uint32_t unsignaled;    // sends after the last signalled one
    uint32_t needs_receive; // bool: one that is outstanding needs a receive request of the peer
};

enum journal_armed { JOURNAL_ARMED_NO_CHANNEL, JOURNAL_ARMED_NOT, JOURNAL_ARMED_ALL, JOURNAL_ARMED_SOLICITED };

struct journal_cq_state {
    uint64_t taken, taken_ps;           // completions that the program took, and when it took the last
    struct journal_request first, last; // first: of those that wait; last: the last one taken
    uint32_t waiting;
    uint32_t is_polled;      // the program's last empty poll was here
    uint32_t armed;          // enum journal_armed, as the program knows it
    uint32_t unacknowledged; // events that the program has taken
};

struct journal_state {
    uint32_t is_cq, context, number;
    union {
        struct journal_qp_state qp;
        struct journal_cq_state cq;
    };
};

// Implemented by a backend that keeps a journal. All functions may be called from any thread of the process.
struct backend_journal_ops {
    bool (*all)(void *ctx);    // are posts, polls and waits to be reported as well?
    bool (*checks)(void *ctx); // must mistakes be detected? This takes real time of the libraries, no simulated time
    // The caller's own time, which takes none. Libraries ask for it once, where a call of the program begins.
    uint64_t (*now_ps)(void *ctx);
    // When a thread of the process was last scheduled: cheap to record at every call, for a time that is seldom needed.
    const _Atomic uint64_t *(*slot_ps)(void *ctx);
    void (*note)(void *ctx, const struct journal_record *record); // copied
    void (*nothing)(void *ctx); // the call ends without a record: a poll that found nothing. NULL: of no interest
    // For checks. watch: from now on accesses of the calling thread to the first and the last bytes of the memory are
    // counted; a number for unwatch, or -1: there is no room for another one, or the machine cannot. unwatch: have
    // there been any? instruction_out: the instruction behind the first, or 0.
    int (*watch)(void *ctx, const void *address, size_t bytes);
    bool (*unwatch)(void *ctx, int watch, uint64_t *instruction_out);
    // The memory is registered, or no longer registered. Freeing it while it is registered is reported.
    void (*memory)(void *ctx, const void *address, size_t bytes, bool registered);
    // From now on the backend calls describe() to learn the state of queues. A thread of the process calls it at any
    // point, so it takes no locks and does not wait. It returns how many of `room` entries it filled in.
    void (*describe_by)(void *ctx, unsigned (*describe)(void *arg, struct journal_state *states, unsigned room),
                        void *arg);
};
