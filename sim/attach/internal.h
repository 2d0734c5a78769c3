// What the files of the room share.
#pragma once

#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "models/host/core.h"
#include "sim/adversary/adversary.h"
#include "sim/attach/attach_run.h"
#include "sim/attach/limits.h"
#include "sim/attach/request.h"
#include "sim/attach/run_token.h"
#include "sim/attach/settle.h"
#include "sim/attach/startup.h"
#include "sim/attach/waiting.h"
#include "sim/observe/observe.h"
#include "sim/platform/backend_inproc.h"
#include "sim/platform/machine.h"
#include "verbs-shim/attach/attach.h"
#include "verbs-shim/attach/protocol.h"

struct attach_memory;

// --- a thread -------------------------------------------------------------------------------------------------------

// What there was when the thread was last scheduled, to tell what has come since.
struct attach_seen {
    uint64_t writes, scheduled, wakes, ends, events;
    uint64_t waited_writes, waited_pinned; // when it was, after a wait for memory
};

// What it waits for.
struct attach_waiting {
    sim_condition_t woken;
    unsigned flags; // enum attach_wait_flags while it waits
    uint64_t until_ps;
    bool blocked_outside; // on an external event, without polling
};

// Descriptors that it waits for.
struct attach_watching {
    int fds[ATTACH_WATCHES_MAX]; // copies
    uint16_t events[ATTACH_WATCHES_MAX];
    unsigned count;
    bool ready; // one of them is
    bool blind; // not all could be watched: it is asked whenever anything may have changed
};

// Not told to the observer yet, by enum observe_wait.
struct attach_waits {
    uint64_t count[OBSERVE_WAITS], ps[OBSERVE_WAITS];
};

struct attach_thread {
    struct attach_process *process;
    uint32_t index, id; // id: the run's number of it
    struct attach_slot *slot;
    char name[96];
    host_core_t *core;
    struct plat_backend_inproc backend;
    struct attach_token token;
    struct attach_seen seen;
    struct attach_waiting wait;
    struct attach_watching watch;
    struct attach_futex futex;
    struct poll_loop loop;
    bool fast_forwarded; // over iterations of it
    struct attach_shared shared;
    uint64_t ahead_ps; // its own time is so much before the simulated one
    struct attach_asks asks;
    struct attach_waits waits;
    uint64_t announces; // the child that it is about to tell of; 0: none
    bool exits;         // it has said so, and waits for nothing
};

// --- a process ------------------------------------------------------------------------------------------------------

// What devices have written to its memory.
struct attach_writes {
    uint64_t all;    // but for quiet ones
    uint64_t pinned; // of these the ones to pinned memory
    uint64_t events; // to between the first and the last of its event queues, or where they are news
    uint64_t events_from, events_to;
    struct attach_ranges quiet; // where writes wake nobody, but for who polls the very word
    struct attach_ranges news;  // and where they are events
};

// What it has in kernel drivers.
struct attach_owned {
    struct attach_object *list;
    size_t count, room;
};

struct attach_process {
    struct attach_server *server;
    struct attach_process *next;
    uint32_t node, number;
    uint32_t id;    // the run's number of it
    uint32_t image; // of the programs that the process has been: the first one is 1
    pid_t pid;
    char name[48]; // of what it runs
    int pidfd, socket;
    int program; // of the options; -1: a child of one
    struct attach_segment *segment;
    struct attach_thread *threads[ATTACH_SLOTS];
    unsigned thread_count;
    unsigned slots; // in use so far
    uint32_t first_bell;
    unsigned announced; // threads that begin when the time of who created them has come there
    bool expected;      // its parent said that it comes, or the run started it
    bool leaving;       // it said that it ends, or becomes another program
    bool ended;
    uint64_t alarm_ps; // no wait goes beyond
    uint64_t scheduled; // scheduling slots of its threads, and of processes that share memory with it
    struct attach_owned owns;
    struct host_watch watch;
    struct host_owner owner;      // of memory that is not pinned
    unsigned open_regions;        // objects that are
    size_t region_last;           // of the objects: the region that was written last
    struct attach_memory *memory; // pages that are kept; NULL: none yet
    struct attach_writes writes;
    observe_process_t *observed;
};

// --- the run --------------------------------------------------------------------------------------------------------

// Later than this is never.
#define ATTACH_LAST_PS (UINT64_C(1) << 62)

// The run without simulated time (functional.c).
struct attach_functional {
    sim_event_t pace;  // simulated time is at the real one
    uint64_t last_calls;   // calls, when they last were other than before,
    uint64_t last_call_ms; // and when that was, in real time
};

struct attach_server {
    const struct scn_scenario *scenario;
    const struct attach_run_options *options;
    struct attach_run_result *result;
    plat_machine_t *machine;
    adversary_t *adversary; // NULL: none
    sim_t *sim;
    struct attach_scratch scratch;
    struct attach_listener listener;
    struct attach_network network;
    struct attach_tokens tokens;
    struct attach_launch launch;
    struct attach_ids ids;
    struct attach_process *processes;
    const struct attach_process *board_owners[SCN_NODES_MAX]; // NULL: it is nobody's
    int watches;                                              // all descriptors that threads wait for (epoll)
    uint64_t futex_order;                                     // of the waiter that came last
    struct attach_settling settling;
    struct attach_functional functional;
    struct attach_still still;
    struct attach_ends ends;
    bool left; // attach_leave was called
    bool stopped;
    observe_t *observe;
    bool notes_all;  // somebody wants to know of every call
    FILE *ipc_trace; // attach calls, one a line; NULL: nobody asked
};

uint64_t attach_real_ms(void);
// Ends the run: the text is what the user reads. The first one stays.
__attribute__((format(printf, 2, 3))) void attach_fail(struct attach_server *server, const char *format, ...);
bool attach_stopped(struct attach_server *server);
// Notes what another run may do otherwise; bits of enum attach_run_outside.
void attach_outside_note(struct attach_server *server, unsigned what);
void attach_leave(struct attach_server *server); // ends the run well: what is left are daemons

// --- process.c ------------------------------------------------------------------------------------------------------

// NULL: no memory. Takes socket and pidfd.
struct attach_process *attach_process_create(struct attach_server *server, uint32_t node, pid_t pid, int pidfd,
                                             int socket);
// The descriptor of its segment, to be sent and closed; -1.
int attach_process_segment(struct attach_process *process);
// It is gone: its threads are told, and the last of them destroys what it had.
void attach_process_ended(struct attach_process *process);
// It has ended, its last thread has, and nothing is left of what it had: as of a real kernel, others learn it now.
void attach_process_forget(struct attach_process *process);
void attach_process_destroy(struct attach_process *process);
void attach_processes_check(struct attach_server *server); // has one ended?

int attach_object_add(struct attach_process *process, const struct attach_object *object);
// NULL: it has no such.
struct attach_object *attach_object_find(const struct attach_process *process, enum attach_object_kind kind,
                                         uint32_t gpu, uint64_t number);
void attach_object_remove(struct attach_process *process, struct attach_object *object);
// Is all of the range memory of the process that devices may reach?
bool attach_memory_owned(const struct attach_process *process, uint64_t bus_address, uint64_t bytes);
bool attach_pinned_owned(const struct attach_process *process, uint64_t bus_address, uint64_t bytes); // not a GPU's

// --- thread.c -------------------------------------------------------------------------------------------------------

// Starts a simulated thread for a slot. false: no memory.
bool attach_thread_start(struct attach_process *process, uint32_t index);
void attach_thread_destroy(struct attach_thread *thread);
void attach_preempt(struct attach_thread *thread, enum adversary_purpose purpose); // perhaps, for a while
// Those that have taken a slot. announced: by their creator, who waits for them.
void attach_threads_find(struct attach_server *server, bool announced);
// The next of all, in their order. Begins with NULL and 0; NULL: none is left.
struct attach_thread *attach_thread_next(const struct attach_server *server, struct attach_process **process,
                                         unsigned *index);
void attach_hash(struct attach_server *server, uint64_t value);

// --- notes.c --------------------------------------------------------------------------------------------------------

// The records of a scheduling slot, and how many of them were taken. entries_ps: when the work before each entry of the list
// began.
struct attach_notes {
    uint32_t count, taken;
    uint64_t entries_ps[ATTACH_ENTRIES + 1];
};
// false: there are none.
bool attach_notes_begin(const struct attach_thread *thread, struct attach_notes *notes);
// The thread is where the work before that entry begins.
void attach_notes_entry(const struct attach_thread *thread, struct attach_notes *notes, uint32_t entry);
// The next of those that were written before that entry of the list.
bool attach_notes_next(struct attach_thread *thread, struct attach_notes *notes, uint32_t entry,
                       struct attach_note *note_out);
// left_ps: own work up to the note for which the thread has not paid yet.
void attach_note_take(struct attach_thread *thread, const struct attach_notes *notes, const struct attach_note *note,
                      uint64_t left_ps);
void attach_notes_end(struct attach_thread *thread);
// What the thread waited for the answer to a request.
void attach_notes_waited(struct attach_thread *thread, const struct attach_request *request, uint64_t ps);
void attach_notes_over(struct attach_thread *thread); // the thread ends

// --- ask.c ----------------------------------------------------------------------------------------------------------

// How the queues of a process stand; the caller frees them. NULL: it cannot be asked now.
struct journal_state *attach_ask(struct attach_process *process, unsigned *count_out);
bool attach_receives(void *server, void *process, uint32_t qp, struct observe_receives *receives_out); // for observe

// --- memory.c --------------------------------------------------------------------------------------------------------

extern const struct host_owner_ops attach_memory_ops; // of a process: its memory, by process_vm_readv and writev
// Before a program of the node runs, or the simulator writes to one's memory itself: what devices wrote is there.
void attach_memory_settle(const struct attach_server *server, uint32_t node);
void attach_memory_destroy(struct attach_memory *memory);

// --- functional.c ---------------------------------------------------------------------------------------------------

// The run without simulated time: programs run freely, and simulated time follows the real one.
enum sim_run_outcome attach_functional_run(struct attach_server *server);
// The thread's program has the run token until it asks for something. false: it has ended.
bool attach_functional_await(struct attach_thread *thread);
