// What the files of the room share.
#pragma once

#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "models/host/core.h"
#include "sim/adversary/adversary.h"
#include "sim/attach/aside.h"
#include "sim/attach/attach_run.h"
#include "sim/attach/limits.h"
#include "sim/attach/reach.h"
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
#include "verbs-shim/attach/real_time.h"

struct attach_memory;

// --- a thread -------------------------------------------------------------------------------------------------------

// The counts at the time when the thread was last scheduled. They show what has happened since.
struct attach_seen {
    uint64_t writes, scheduled, wakes, ends, events, works;
    uint64_t waited_writes, waited_pinned; // when it was last scheduled after a wait for memory
};

// What the thread waits for.
struct attach_waiting {
    sim_condition_t woken;
    unsigned flags; // enum attach_wait_flags while it waits
    uint64_t until_ps;
    bool blocked_outside; // on an external event, without polling
};

// Descriptors that the thread waits for.
struct attach_watching {
    int fds[ATTACH_WATCHES_MAX]; // copies
    uint16_t events[ATTACH_WATCHES_MAX];
    unsigned count;
    unsigned copies;    // count, and the terminals in sets that the thread waits for
    unsigned terminals; // how many of them may be terminals
    bool terminal[ATTACH_WATCHES_MAX];
    bool of_others[ATTACH_WATCHES_MAX]; // someone outside of the run may make it ready
    unsigned others;                    // how many of those there are
    bool ready;                         // one of them is ready
    bool blind; // not all could be watched: the thread is woken whenever anything may have changed
};

// Waits that the observer does not know of yet, by enum observe_wait.
struct attach_waits {
    uint64_t count[OBSERVE_WAITS], ps[OBSERVE_WAITS];
};

struct attach_thread {
    struct attach_process *process;
    uint32_t index, id; // id: its number in the run
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
    struct known_loop *known; // NULL: it had none yet
    bool flushes;             // its last call only emptied a full list
    bool fast_forwarded;      // over iterations of its loop
    bool catches_up; // it goes on at an earlier poll of it, or before the end of a later one (known_loop.h, early)
    struct attach_shared shared;
    uint32_t number; // of sim_thread_take_turns
    struct attach_late {
        uint64_t waits, longest_ps;
    } late;            // what was skipped of loops that were learned
    uint64_t ahead_ps; // how far simulated time is ahead of the thread's own time
    struct attach_asks asks;
    struct attach_waits waits;
    struct observe_upcoming upcoming;
    uint64_t announces; // the child that it is about to announce; 0: none
    bool exits;         // it has requested its end, and waits for nothing
    bool stays;         // it requested its end, and is still there
};

// What threads of a process have left in words of its memory, and nobody has found yet, with the cause: a thread that
// makes progress for the library takes a message, and another one polls its completion.
enum { ATTACH_LEFT_MAX = 64 };
struct attach_left {
    struct {
        uint64_t word;
        const struct attach_thread *by; // NULL: unused; only compared
        sim_cause_t cause;
    } list[ATTACH_LEFT_MAX];
    unsigned next; // the place that is used next
};

// --- a process ------------------------------------------------------------------------------------------------------

// Counts of what devices have written to the memory of the process.
struct attach_writes {
    uint64_t all;    // except writes to ranges in `ignored`
    uint64_t pinned; // of `all`, those to pinned memory
    uint64_t works;  // to ranges in `event_ranges`
    uint64_t events; // those, and from the first to the last of its event queues
    uint64_t events_from, events_to;
    struct attach_ranges ignored;      // where a write wakes only threads that poll the very word
    struct attach_ranges event_ranges; // where a write counts as an event
};

struct attach_process {
    struct attach_server *server;
    struct attach_process *next;
    uint32_t node, number;
    uint32_t id;    // its number in the run
    uint32_t image; // which program the process runs now: the first one is 1
    struct attach_reach reach;
    char name[48]; // of its program
    int socket;
    int program; // index in the options; -1: a child of one of these programs
    struct attach_segment *segment;
    struct attach_thread *threads[ATTACH_SLOTS];
    unsigned thread_count;
    unsigned slots; // highest slot used so far, plus 1
    uint32_t first_bell;
    unsigned catching_up;      // threads with `catches_up`
    sim_condition_t caught_up; // one of them has
    unsigned announced;        // threads that begin once simulated time has reached their creator's time
    bool expected;             // its parent has announced it, or the run started it
    unsigned strangers;        // announced children that have not attached themselves
    bool leaving;              // it has announced its end or an exec
    bool ended;
    uint64_t signals_seen; // that end it and were pending at the last look (settle.c)
    uint64_t alarm_ps;     // no wait goes beyond this time
    uint64_t scheduled;    // scheduling slots of its threads, and of processes that share memory with it
    struct attach_owned owns;
    unsigned copies;      // of its descriptors that the simulator has
    unsigned draining;    // threads that wait for stores of its cores, which stay meanwhile
    uint64_t stored_bars; // one bit for each BAR that it has stored to
    struct host_watch watch;
    struct host_owner owner;      // owner of memory that is not pinned
    unsigned open_regions;        // number of objects with `open` set
    size_t region_last;           // index of the region that was written last
    struct attach_memory *memory; // cached pages; NULL: none yet
    struct attach_writes writes;
    struct attach_left left;
    observe_process_t *observed;
};

// --- the run --------------------------------------------------------------------------------------------------------

// Times later than this count as never.
#define ATTACH_LAST_PS (UINT64_C(1) << 62)

// The run without simulated time (functional.c).
struct attach_functional {
    sim_event_t pace;      // keeps simulated time at the real time
    uint64_t last_calls;   // the number of calls at the last change,
    uint64_t last_call_ms; // and the real time of that change
};

struct attach_server {
    const struct scn_scenario *scenario;
    const struct attach_run_options *options;
    struct attach_run_result *result;
    plat_machine_t *machine;
    adversary_t *adversary; // NULL: none
    sim_t *sim;
    uint32_t real_percent; // of each constant of real_time.h
    struct attach_scratch scratch;
    struct attach_listener listener;
    struct attach_network network;
    struct attach_tokens tokens;
    struct attach_launch launch;
    struct attach_ids ids;
    struct attach_loaded_files loaded;
    struct attach_process *processes;
    const struct attach_process *board_owners[SCN_NODES_MAX]; // NULL: the board is free
    int watches;                                              // all descriptors that threads wait for (epoll)
    unsigned terminals;                                       // how many of those may be terminals
    unsigned others_watches;                                  // how many of them someone outside may make ready
    unsigned terminal_devices[2];                             // file systems of masters and slaves; 0: there is none
    uint64_t futex_order;                                     // of the waiter that came last
    struct attach_settling settling;
    struct attach_functional functional;
    struct attach_silence clock; // attach_silence_ms
    struct attach_still still;
    struct attach_watchdog *watchdog; // NULL: nobody watches
    struct attach_ends ends;
    bool left; // attach_leave was called
    bool stopped;
    observe_t *observe;
    bool notes_all;  // an option needs a note of every call
    FILE *ipc_trace; // the IPC trace; NULL: not wanted
};

uint64_t attach_real_ms(void);
// The clock of everything that may keep silent for some time: the real time in which the simulator looks. A step that is
// longer counts as a step: the machine was suspended, or had no processor for the simulator, and maybe none for the
// programs.
uint64_t attach_silence_ms(struct attach_server *server);
uint64_t attach_silence_of(struct attach_silence *clock, uint64_t step_ms);
// Ends the run; the user reads the text. Only the first text is kept.
__attribute__((format(printf, 2, 3))) void attach_fail(struct attach_server *server, const char *format, ...);
bool attach_stopped(struct attach_server *server);
// Notes a reason why another run may differ; bits of enum attach_run_outside.
void attach_outside_note(struct attach_server *server, unsigned what);
void attach_leave(struct attach_server *server); // ends the run well: only daemons are left

// --- process.c ------------------------------------------------------------------------------------------------------

// NULL: no memory. Else takes ownership of socket and the descriptor in reach.
struct attach_process *attach_process_create(struct attach_server *server, uint32_t node,
                                             const struct attach_reach *reach, int socket);
// Returns the descriptor of its segment, which the caller sends and closes; -1 on failure.
int attach_process_segment(struct attach_process *process);
// The process has ended: its threads are signalled, and the last of them destroys what the process had.
void attach_process_ended(struct attach_process *process);
// The process and its last thread have ended, and all its objects are destroyed: other processes notice it now, as
// under a real kernel.
void attach_process_forget(struct attach_process *process);
void attach_process_destroy(struct attach_process *process);
// Has it ended? It had the run token, has requested its end, or was killed by a program.
bool attach_process_check(struct attach_process *process);
// Has any process ended? One that ends for no such reason was killed from outside of the run, which is noted.
void attach_processes_check(struct attach_server *server);

// --- thread.c -------------------------------------------------------------------------------------------------------

// Starts a simulated thread for a slot. body: attach_thread_main, which serves the program's requests; tests make
// requests of their own. It ends with attach_thread_leave. false: no memory.
bool attach_thread_start(struct attach_process *process, uint32_t index, void (*body)(void *thread));
void attach_thread_main(void *thread);
// The thread's program has ended, or the whole process. The last thread destroys what the process had.
void attach_thread_leave(struct attach_thread *thread);
void attach_thread_destroy(struct attach_thread *thread);
void attach_preempt(struct attach_thread *thread, enum adversary_purpose purpose); // if the adversary decides so
// Starts threads for slots that were taken. announced: their creator announced them and waits for them.
void attach_threads_find(struct attach_server *server, bool announced);
// The next of all threads, in their order. Start with NULL and 0; NULL: no more.
struct attach_thread *attach_thread_next(const struct attach_server *server, struct attach_process **process,
                                         unsigned *index);
void attach_hash(struct attach_server *server, uint64_t value);

// --- notes.c --------------------------------------------------------------------------------------------------------

// The notes of a scheduling slot, and how many of them were taken. entries_ps: when the work before each entry of the
// list began.
struct attach_notes {
    uint32_t count, taken;
    uint64_t entries_ps[ATTACH_ENTRIES + 1];
};
// false: there are no notes.
bool attach_notes_begin(struct attach_thread *thread, struct attach_notes *notes);
// What the call that the note describes is in a breakdown; NULL: it describes no call.
const struct sim_work *attach_call_work(const struct attach_note *note);
// The thread has reached the work before that entry.
void attach_notes_entry(const struct attach_thread *thread, struct attach_notes *notes, uint32_t entry);
// The next note written before that entry of the list.
bool attach_notes_next(struct attach_thread *thread, struct attach_notes *notes, uint32_t entry,
                       struct attach_note *note_out);
// left_ps: own work up to the note that the thread has not paid for yet.
void attach_note_take(struct attach_thread *thread, const struct attach_notes *notes, const struct attach_note *note,
                      uint64_t left_ps);
void attach_notes_end(struct attach_thread *thread);
// How long the thread waited for the reply to a request.
void attach_notes_waited(struct attach_thread *thread, const struct attach_request *request, uint64_t ps);
void attach_notes_over(struct attach_thread *thread); // the thread ends

// --- ask.c ----------------------------------------------------------------------------------------------------------

// How the queues of a process stand; the caller frees the result. NULL: the process cannot be asked now.
struct journal_state *attach_ask(struct attach_process *process, unsigned *count_out);
// For observe.
bool attach_receives(void *server, void *process, uint32_t context, uint32_t qp, struct observe_receives *receives_out);

// --- memory.c --------------------------------------------------------------------------------------------------------

extern const struct host_owner_ops attach_memory_ops; // of a process: its memory, through process_vm_readv and writev
// Call before a program of the node runs, or before the simulator writes to a program's memory itself: all device
// writes reach the process.
void attach_memory_settle(const struct attach_server *server, uint32_t node);
void attach_memory_destroy(struct attach_memory *memory);

// --- functional.c ---------------------------------------------------------------------------------------------------

// Runs without simulated time: programs run freely, and simulated time follows real time.
enum sim_run_outcome attach_functional_run(struct attach_server *server);
// The thread's program runs until it makes a request. false: it has ended.
bool attach_functional_await(struct attach_thread *thread);
