// What every process has, as the records show it. Private to the room.
#pragma once

#include <stdbool.h>

#include "sim/observe/observe.h"

enum observe_kind { OBSERVE_CONTEXT, OBSERVE_MR, OBSERVE_CQ, OBSERVE_SRQ, OBSERVE_QP, OBSERVE_OTHER };

// A request that was posted and is not known to be done.
struct observe_request {
    uint64_t wr_id, posted_ps, address, bytes, number; // number: within its queue, from 0 on
    uint32_t opcode;                                   // of a send request
    bool signaled;
};

// What was posted to a queue and what completed. The requests are a ring.
struct observe_queue {
    uint64_t posted, bytes, completed, errors, depth_most;
    struct observe_request *requests; // NULL: none yet
    uint32_t first, depth, room;
};

#define OBSERVE_OPCODES 8 // values of enum ibv_wr_opcode that the devices have

struct observe_qp {
    struct journal_qp made;
    struct journal_modify path; // attributes that were set last
    uint32_t state;
    struct observe_object *peer; // valid while peer_changes equals the observer's count of changes
    uint64_t peer_changes;
    bool flush_reported;                                   // the reason why its requests are flushed
    bool overran;                                          // one of its completion queues
    unsigned losses_reported;                              // a bit for each enum hca_loss_kind
    bool error_reported, reads_reported, overlap_reported; // by checks
    struct observe_queue send, receive;
    struct observe_queue messages; // sends for which the peer needs a receive request, until its completion is polled
    uint64_t sends[OBSERVE_OPCODES], send_bytes[OBSERVE_OPCODES], signaled;
    uint64_t rnr_naks, retries; // RNR NAKs that it sent; retries of its requests
    uint64_t first_ps, last_ps; // of its posts and completions
};

struct observe_cq {
    struct journal_cq made;
    uint64_t taken, errors;
    uint64_t outstanding; // requests whose completions it will receive
    bool overrun_reported;
};

struct observe_object {
    enum observe_kind kind;
    uint32_t context, number; // of a region: its key
    observe_process_t *process;
    uint64_t made_ps, ended_ps;
    uint64_t frames[OBSERVE_FRAMES]; // with checks: the call that made it
    bool ended;
    uint8_t pool; // of a queue pair or SRQ: 1 + the library that owns its receive buffers; 0: no known library
    struct observe_object *next_ended;
    union {
        struct journal_device device;
        struct journal_mr mr;
        struct observe_cq cq;
        struct observe_qp qp;
        struct journal_object other;
    };
};

// An RDMA write that may be found in memory.
struct observe_arrival {
    const observe_process_t *from;
    struct observe_request request;
    uint64_t address; // its target
    uint32_t qp;      // of the requester
    bool under_way, arrived;
};

#define OBSERVE_ARRIVALS 64u
// The last RDMA writes to a process. A program that polls memory has few of them in flight.
struct observe_arrivals {
    uint64_t posted;
    struct observe_arrival list[OBSERVE_ARRIVALS];
};

#define OBSERVE_DMA_CHANNELS 4

#define OBSERVE_POOLS 3 // kinds of receive buffers that libraries have

// Messages that came into the receive buffers of a library.
struct observe_pool {
    uint64_t count, bytes;
};

struct observe_calls {
    uint64_t count, errors, ps;
};

struct observe_process {
    observe_t *observe;
    observe_process_t *next;
    char node[64], name[48];
    uint32_t number;
    bool ended;
    uint64_t began_ps, ended_ps;
    void *tag;
    void *objects; // a tree (tsearch)
    struct observe_object *ended_first, **ended_end;
    unsigned ended_count, object_count;
    struct observe_calls calls[JOURNAL_CALL_COUNT];
    uint64_t registered_bytes, copied_regions, copied_bytes; // copied: by the processor
    uint64_t waits[OBSERVE_WAITS], waited_ps[OBSERVE_WAITS];
    struct observe_request dmas[OBSERVE_DMA_CHANNELS]; // running transfers of the board; posted_ps 0: none
    uint64_t dma_count, dma_bytes;
    struct observe_pool pools[OBSERVE_POOLS];
    struct observe_arrivals arrivals; // with explain
};

struct observe {
    sim_t *sim;
    struct observe_options options;
    observe_process_t *processes, **processes_end;
    struct observe_explained *explained; // NULL: not requested
    struct observe_line *lines;          // a heap, in the order of time, of lines to write (trace.c)
    size_t line_count, line_room;
    uint64_t line_order;
    struct observe_traced *traced; // by the numbers of records: what they follow from (trace.c)
    size_t traced_room;
    unsigned findings; // of checks
    uint64_t datagrams;
    uint64_t changes;  // of objects; starts at 1
    uint64_t requests; // room for requests, in all queues together
};

// --- objects.c ------------------------------------------------------------------------------------------------------

// NULL: the process has no such object, and had none lately.
struct observe_object *observe_object_find(const observe_process_t *process, enum observe_kind kind, uint32_t context,
                                           uint32_t number);
void observe_objects_note(observe_process_t *process, const struct observe_call *call,
                          const struct journal_record *record);
void observe_objects_free(observe_process_t *process);
typedef void (*observe_visit_fn)(void *ctx, struct observe_object *object);
// In the order of kind, context and number.
void observe_objects_visit(const observe_process_t *process, observe_visit_fn visit, void *ctx);
// The queue pair that this one is connected to. NULL: no known process has it.
struct observe_object *observe_peer(struct observe_object *qp);
// Asks a queue pair's process for its receive requests. false: it has ended, they are of an SRQ, or nobody can be asked.
bool observe_receives_ask(const struct observe_object *qp, struct observe_receives *receives_out);
// The name of a process in messages: "node1", with its number where its node has more than one.
void observe_title(const observe_process_t *process, char *text, size_t room);

// The i-th context that the process opened.
struct observe_object *observe_context_find(const observe_process_t *process, uint32_t i);
// A queue pair that has not ended. NULL: there is none.
struct observe_object *observe_qp_find(const observe_process_t *process, uint32_t context, uint32_t number);

// --- requests.c -----------------------------------------------------------------------------------------------------

void observe_requests_note(observe_process_t *process, const struct observe_call *call,
                           const struct journal_record *record);
void observe_queues_free(struct observe_object *object); // of a queue pair; nothing for other objects
// The queue pair is reset or destroyed: forgets what was posted.
void observe_requests_drop(struct observe_object *qp);

// --- arrivals.c -----------------------------------------------------------------------------------------------------

void observe_arrivals_post(struct observe_object *qp, const struct observe_request *request, uint64_t remote_address);

// --- pools.c --------------------------------------------------------------------------------------------------------

void observe_pool_posted(observe_process_t *process, const struct journal_record *record);
void observe_pool_received(const struct observe_object *qp, const struct journal_completion *completion);
void observe_pools_print(const observe_process_t *process, FILE *out);
void observe_pools_yaml(const observe_process_t *process, FILE *out);

// --- names.c --------------------------------------------------------------------------------------------------------

const char *observe_call_name(unsigned call);
const char *observe_state_name(uint64_t state);
const char *observe_opcode_name(uint64_t opcode);    // of a send request
const char *observe_wc_opcode_name(uint64_t opcode); // of a completion
bool observe_wc_opcode_has(uint64_t opcode, unsigned traits); // any of these, of enum hca_opcode_trait
const char *observe_status_name(uint64_t status);    // of a completion, as the header calls it
const char *observe_qp_type_name(uint64_t type);
// The sentence of a refusal, with its numbers. An unknown reason: the text of the errno value.
void observe_reason_print(const struct journal_record *record, char *text, size_t room);
void observe_access_print(uint32_t access, char *text, size_t room); // "local write, remote write"

// --- text.c ---------------------------------------------------------------------------------------------------------

// A line of text. What exceeds its room is cut.
struct observe_text {
    char bytes[1024];
    size_t used;
};
__attribute__((format(printf, 2, 3))) void observe_text_add(struct observe_text *text, const char *format, ...);
void observe_text_title(struct observe_text *text, const observe_process_t *process);
void observe_text_bytes(struct observe_text *text, uint64_t bytes);
void observe_text_time(struct observe_text *text, uint64_t ps);

// --- observe.c ------------------------------------------------------------------------------------------------------

// A line for the user, and for the trace.
void observe_say(observe_process_t *process, uint64_t at_ps, const char *text);

// --- trace.c --------------------------------------------------------------------------------------------------------

void observe_trace_note(observe_process_t *process, const struct observe_call *call,
                        const struct journal_record *record);
// A sentence about what the process did: of a diagnosis or a check.
void observe_trace_say(observe_process_t *process, uint64_t at_ps, const char *text);
void observe_trace_free(observe_t *observe);
// What a record with that cause follows from, among calls that are in the trace.
uint32_t observe_trace_cause(const observe_t *observe, uint32_t cause);
// Notes which record a record follows from, by their numbers.
void observe_trace_follow(observe_t *observe, uint32_t number, uint32_t cause, uint64_t at_ps);
void observe_trace_write_due(observe_t *observe); // writes the lines whose time has come

// --- explain.c ------------------------------------------------------------------------------------------------------

bool observe_explain_begin(observe_t *observe); // false: no memory
void observe_explain_free(observe_t *observe);
// The calling thread has just polled the completion of the request. qp 0: the request is of no queue pair.
void observe_explain(const observe_process_t *from, uint32_t qp, const observe_process_t *to,
                     const struct observe_request *request, uint64_t end_ps);

// --- checks.c -------------------------------------------------------------------------------------------------------

// To be called before objects_note.
void observe_check(observe_process_t *process, const struct observe_call *call, const struct journal_record *record);

// --- diagnosis.c ----------------------------------------------------------------------------------------------------

// To be called before objects_note, which changes the objects.
void observe_diagnose(observe_process_t *process, const struct observe_call *call, const struct journal_record *record);
