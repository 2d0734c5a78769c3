// What attached programs did: their verbs calls as a trace, counts of them as a summary, and a line for each call that
// was refused and each completion in error.
//
// sim/attach passes on the records that libraries write (verbs-shim/backend/journal.h), in the order of each thread's
// own time. The observer derives from them which objects every process has. So it can describe the other side of a
// connection when a request fails.
// Observation is passive: no simulated time passes, and no model is affected. Records come from programs and are not
// trusted: numbers are compared, never used as indices.
// Leaves out: what programs do without verbs; requests of queue pairs whose process is not attached.
//
// Times are picoseconds. An observer lives as long as the simulation. It owns its processes, also those that have
// ended.
#pragma once

#include <stdio.h>

#include "sim/kernel/cause.h"
#include "sim/kernel/sim.h"
#include "sim/kernel/trace.h"
#include "verbs-shim/backend/journal.h"

typedef struct observe observe_t;
typedef struct observe_process observe_process_t;

// The receive requests of a queue pair, as its process counts them.
struct observe_receives {
    uint64_t posted, last_ps;
    uint32_t outstanding; // without a message yet
};

#define OBSERVE_ANY UINT64_MAX
// Used as an enum ibv_wr_opcode: a DMA of the board that libtca started.
#define OBSERVE_OPCODE_DMA 30u
// Used likewise: an RDMA write until the other side's poll of its memory finds it.
#define OBSERVE_OPCODE_FOUND 29u

// Which operations are explained.
struct observe_selection {
    uint32_t opcodes; // a bit for each enum ibv_wr_opcode, and OBSERVE_OPCODE_DMA
    uint64_t bytes;   // or OBSERVE_ANY
    uint32_t qp;      // the requester's; 0: any
    uint64_t number;  // within its kind, from 1 on; 0: the median
    uint64_t last;    // with number: of several; 0: only that one
};
// The most operations of a kind that are explained, of those that `last` selects.
#define OBSERVE_EXPLAINED_MAX 256u

struct observe_options {
    sim_trace_sink_fn trace; // NULL: no trace
    void *trace_ctx;
    bool trace_causes;                         // records of the trace name their causes (sim/kernel/trace.h)
    void (*line)(void *ctx, const char *text); // receives diagnoses, without a newline; NULL: none
    void *line_ctx;
    // Queries the receive requests of a queue pair (of a context, by its number) of the process with this tag. Returns
    // false if they are not known. May be NULL.
    bool (*receives)(void *ctx, void *tag, uint32_t context, uint32_t qp, struct observe_receives *receives_out);
    void *receives_ctx;
    bool summary;
    bool undiagnosed; // refused calls and completions in error are only listed
    bool check;       // reports mistakes that a real device cannot see, a line each
    // Names the call frames of a process: "f (a.c:12), called by main (a.c:30)". For check.
    bool (*where)(void *ctx, void *tag, const uint64_t *frames, unsigned count, char *text, size_t room);
    void *where_ctx;
    bool explain; // the critical path of operations; also needs the memory polls of attached programs
    struct observe_selection select;
};

// NULL: no memory.
observe_t *observe_create(sim_t *sim, const struct observe_options *options);
void observe_destroy(observe_t *observe);
// Do the options need records of posts, polls and waits?
bool observe_wants_all(const observe_t *observe);

struct observe_identity {
    const char *node; // lives as long as the observer
    uint32_t number;  // among the processes of its node
    const char *name; // of the program; copied
    uint64_t began_ps;
    void *tag;
};
// NULL: no memory; the functions below accept NULL and do nothing.
observe_process_t *observe_process_begin(observe_t *observe, const struct observe_identity *identity);
void observe_process_end(observe_process_t *process, uint64_t at_ps);

// The number that the next call of a thread will have in the trace. What the thread does before that call returns, such
// as the store that rings a doorbell, follows from it.
struct observe_upcoming {
    uint32_t number, cause; // 0: none; cause: what the call follows from if it does not wait
    bool begins;            // observe_call_begins is called
};

#define OBSERVE_FRAMES 12u
// A call of a program. thread: its name in traces. at_ps: when it ended. frames: the return addresses of its call
// frames, the innermost first, 0 after the last; NULL: not known.
struct observe_call {
    const char *thread;
    uint64_t at_ps, took_ps;
    const uint64_t *frames;
    struct observe_upcoming *upcoming; // the thread's; NULL: its calls are not connected with causes
};
// A call of the thread begins. For programs whose calls are noted while they run: then what happens between two calls is
// not taken for the doing of the later one.
void observe_call_begins(observe_process_t *process, struct observe_upcoming *upcoming);
// The thread has waited before its next call. If another thread has woken it, what it does from now on would follow from
// the next call of that one, which may come later.
void observe_call_goes_on(observe_process_t *process, struct observe_upcoming *upcoming);
// It ends, and is not noted: a poll that found nothing. It is in the trace if something has followed from it.
void observe_call_found_nothing(observe_process_t *process, const char *thread, struct observe_upcoming *upcoming);
void observe_note(observe_process_t *process, const struct observe_call *call, const struct journal_record *record);
// The process is about to exit by itself; its memory can still be read.
void observe_process_exits(observe_process_t *process);
unsigned observe_findings(const observe_t *observe); // of checks

struct hca_loss; // models/hca/loss.h
// What an adapter of that name ("node0.hca") discarded without a packet that reports it. A line for the first loss of
// each kind and queue pair.
void observe_lost(observe_t *observe, const char *name, const struct hca_loss *loss);

// Empty polls, and how long a thread waited.
enum observe_wait { OBSERVE_POLLING, OBSERVE_WAITING, OBSERVE_WAITS };
bool observe_is_wait(unsigned call); // of enum journal_call: its time counts as waiting, not as time in calls
void observe_waited(observe_process_t *process, enum observe_wait kind, uint64_t count, uint64_t ps);

// With explain. A device wrote to memory of the process; a thread of it found data by polling a word, at at_ps.
void observe_written(observe_process_t *process, uint64_t address, uint32_t bytes);
void observe_found(observe_process_t *process, uint64_t address, uint32_t bytes, uint64_t at_ps);

// The state of its queues, a line each.
void observe_states_print(const observe_process_t *process, const struct journal_state *states, unsigned count,
                          FILE *out);

void observe_time_print(uint64_t ps, char *text, size_t room); // "12.3 us", for people

// Makes text from a program safe for a terminal: terminated, without control characters.
void observe_text_clean(char *text, size_t room);

void observe_bytes_print(uint64_t bytes, char *text, size_t room); // "64 B", "4 KiB"

// An operation that represents all of its kind.
struct observe_operation {
    const char *name;                                   // "SEND, node0 to node1 #12"
    const char *node;                                   // of the requester
    uint64_t posted_ps;                                 // when the call that posted it began
    uint64_t bytes, count, total_ps, least_ps, most_ps; // count: operations of the kind
};
typedef void (*observe_explained_fn)(void *ctx, const struct observe_operation *operation,
                                     const struct sim_piece *pieces, size_t count);
// The most frequent kinds first.
void observe_explained_visit(observe_t *observe, observe_explained_fn visit, void *ctx);

uint64_t observe_explained_missed(const observe_t *observe); // operations of kinds beyond the first 256
// All operations that occurred, also those not selected: "SEND, 64 B (100); RDMA_WRITE, 4 B to 4 KiB (20)".
void observe_explained_kinds(const observe_t *observe, char *text, size_t room);

// Writes the trace lines whose time has not come; at the end of the run.
void observe_trace_flush(observe_t *observe);
// As lines of text, or as YAML below a key with that indentation.
void observe_summary_print(const observe_t *observe, FILE *out);
void observe_summary_yaml(const observe_t *observe, FILE *out);
