// The state of an attached process, for client.c, api.c and attach_backend.c.
#pragma once

#include <pthread.h>
#include <stdbool.h>

#include "verbs-shim/attach/ahead.h"
#include "verbs-shim/attach/attach.h"
#include "verbs-shim/attach/loop.h"
#include "verbs-shim/attach/protocol.h"

// A process has one simulator, and a thread one slot: only these two are global here.
enum attach_link { ATTACH_LINK_UNKNOWN, ATTACH_LINK_BUSY, ATTACH_LINK_NONE, ATTACH_LINK_UP };
extern struct attach_client {
    _Atomic uint32_t link;
    int socket;
    struct attach_segment *segment;
    struct attach_bells *bells;
    struct attach_environment environment;
    const char *hosts[ATTACH_HOSTS];
    void (*_Atomic alarm)(void);
    _Atomic uint64_t scheduled_ps; // when a thread last got the run token
    uint64_t own_signals;          // a bit for each signal, from 1 on
    uint64_t first_blocked;        // by the first thread when it made its last call
    uint32_t shares;               // the process, or its parent, shared memory with other processes
    pthread_key_t thread_end;
    bool prepared; // thread_end and the handlers of fork exist
} attach_client;

// A known loop that a thread has left (ahead.c).
struct attach_left_loop {
    struct attach_caller *caller; // where it looked ahead; NULL: it has gone on
    struct attach_known *known;
    struct attach_clock clock; // of the poll where it looked ahead
    struct attach_left_at at;
    uint64_t tail_ps; // what the thread had spent then
    enum attach_woken woken;
    bool resumed;           // a library's function begins with its poll carried out
    bool early;             // but for its rest
    enum attach_left_by by; // if it went on elsewhere
};

// The poll at which the thread has left a known loop ends then. It has left it before, as another thread is to see what it
// writes until this poll.
struct attach_rest {
    uint64_t until_ps; // 0: there is none
    uint64_t bus_address;
    unsigned flags; // of the poll's wait
};

// Polls that a thread makes once more, the last of a known loop that it has left: without an attach call, and each finds nothing
// but the last one, which has this result. Then the thread's time is this again.
struct attach_once_more {
    unsigned polls, made;
    struct attach_left_makes makes;
    uint64_t now_ps, tail_ps;
    enum attach_woken woken;
};

// Where nothing more was known of a wait (attach_ahead.unknown_at). All places: the wait is no loop that may be learned.
enum { UNKNOWN_STOPS = 4 };
struct unknown_stops {
    uint64_t at[UNKNOWN_STOPS];
    unsigned count;
};

extern _Thread_local struct attach_own {
    struct attach_slot *slot;
    uint64_t tail_ps;
    uint64_t listed_ps; // own work before the last entry of the list
    struct {
        uint64_t now_ps, after_ps;
        uint32_t entry;
        unsigned calls;
    } began;              // when the journal last asked for the time
    uint64_t computed_ns; // processor time that is paid for, if it costs anything
    unsigned libraries;   // attach_library_enter without attach_library_leave
    uint32_t data_bytes;
    unsigned calls, interrupts, interrupts_ending;
    bool found;                   // a poll has found something since the last empty poll
    bool did;                     // the thread has done something else than poll since then
    struct attach_caller *caller; // of attach_poll_within
    struct attach_left_loop left;
    struct attach_once_more once_more;
    struct attach_rest rest;
    struct attach_clock clock; // of the poll that is carried out
    uint64_t resumed_ps;       // of attach_resumed_ps
    bool repeats;              // the last poll was one of a loop that is known to repeat
    unsigned unknown_polls;    // polls of this wait of which nothing could be told
    struct unknown_stops unknown_stops;
    uint64_t wait_polls; // polls of this wait so far
    unsigned
        look_effort; // polls that were interpreted for this wait; half of the last one's if it was brief (wait_begin)
    bool only_if_known;      // the poll is a reading of a clock, and one only if its loop is known
    uint64_t readings;       // of clocks that are no attach calls
    unsigned readings_calls; // of `calls`, when that was known
    unsigned polls_ahead;    // polls of which it is known that they are made, before it does something else
    unsigned quiet_polls;    // empty polls since something was written, or another thread did something
    struct loop loop;        // of empty polls
    struct loop_pages pages; // the pages that are being learned
    bool stored;             // others have written to these pages at least once
    unsigned polls_alone;    // polls while it was not known that the process shares memory
    bool window, learns;     // window: one is open; learns: its pages are those of a loop of polls
    uint64_t poll;           // the last poll before the window
    bool in_call;            // a signal handler that calls in meanwhile is refused
    bool ended;              // the thread will not be attached again
    void (*last)(void *);    // of attach_thread_at_end; NULL: none
    void *last_arg;
} attach_own __attribute__((tls_model("initial-exec")));

// Polls that are made once more (ahead.c): the next of them, and the end of all, whatever the program does.
enum attach_woken attach_poll_once_more(void);
void attach_once_more_end(void);
// Carries out the rest of a poll, which is what the thread is about to spend. woken: by what came before it left the loop.
enum attach_woken attach_poll_rest(enum attach_woken woken); // empty_polls.c
// The thread of this slot waits in a known loop.
void attach_loop_begins(struct attach_slot *slot);
void attach_loop_ends(struct attach_slot *slot);
void attach_loops_look(const struct attach_slot *own); // the thread calls in: has it changed what others' loops read?
void attach_loops_forked(void);                        // in the child

// Pays for what the thread has computed since the last payment, if that costs anything.
void attach_compute_pay(void);
enum attach_link attach_link_of_process(void); // connects it if needed
void attach_link_forget(void);                 // in a child: it is not attached until its first call

void attach_gpu_forked(void);
void attach_gpu_effect(uint32_t gpu, uint64_t number); // attach_gpu.c: what a kernel of the process computes

void attach_journal_describe(struct attach_slot *slot); // attach_journal.c: how queues stand
void attach_journal_forked(void);

// --- window.c -------------------------------------------------------------------------------------------------------

bool attach_window_possible(void);
void attach_window_shares(void);         // checks whether the process shares memory
void attach_window_forget(void);         // the pages that the thread reads are learned again
void attach_window_learn(uint64_t poll); // opens a window
void attach_window_pages(struct loop_pages *pages, uint64_t address, unsigned bytes);
void attach_pages_add(struct loop_pages *pages, uint64_t page, uint64_t poll);
void attach_pages_describe(struct attach_polled *polled, const struct loop_pages *pages,
                           const struct loop_poll *iteration, unsigned period);

// --- run_token.c ----------------------------------------------------------------------------------------------------

void attach_word_wake(_Atomic uint32_t *word);
void attach_word_wait(_Atomic uint32_t *word, uint32_t value); // for a second at most
void attach_token_give(struct attach_slot *slot);
void attach_token_await(struct attach_slot *slot); // with signals blocked

// --- progress.c: the work of the process's library --------------------------------------------------------------------

unsigned attach_progress_flags(void); // of waits that end when there may be work
bool attach_progress_repeats(void);   // as of struct attach_progress; false: there is no library
void attach_progress_seen(void *ctx); // event_writes_seen of backend.h
// A device has written for the library since its last pass began: during it, if that took time.
bool attach_progress_is_behind(void);
// Around a wait. own: the thread waits for what the library raises (events). Before: true, there was work, and the caller
// looks again; *work_ps_out: when there will be some, 0: that is not known.
bool attach_work_before(bool own, uint64_t *work_ps_out);
void attach_work_after(bool own);
