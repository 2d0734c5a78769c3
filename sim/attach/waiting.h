// What threads wait for, and what wakes them: devices, descriptors, words of memory (futexes), the outside; and loops
// of empty polls. Part of internal.h, for the files of the room. Times are simulated, in picoseconds.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sim/attach/known_loop.h"
#include "sim/attach/poll_policy.h"
#include "verbs-shim/attach/attach.h"
#include "verbs-shim/attach/protocol.h"

struct attach_process;
struct attach_request;
struct attach_server;
struct attach_thread;

// The most ranges of a process; further ones are ignored.
#define ATTACH_RANGES 32

// Ranges of pinned memory.
struct attach_ranges {
    struct {
        uint64_t bus_address, bytes;
    } list[ATTACH_RANGES];
    unsigned count;
};

// Pages of memory that processes share, which the thread reads while it polls.
struct attach_shared {
    uint64_t pages[ATTACH_PAGES_MAX];
    uint8_t polls[ATTACH_PAGES_MAX]; // the poll of the iteration after which it is read; ATTACH_POLLS_MAX: unknown
    unsigned count;
    bool known;              // these are all such pages
    unsigned char *copies;   // their earlier contents; NULL: none yet
    unsigned pending;        // a bit for each poll: changed before the thread was scheduled, and not reported yet
    uint64_t seen_scheduled; // scheduling slots of all that share memory, at the time of the copies
};

// The word that a thread sleeps on.
enum attach_futex_state { ATTACH_FUTEX_NONE, ATTACH_FUTEX_WAITS, ATTACH_FUTEX_WOKEN, ATTACH_FUTEX_INTERRUPTED };
struct attach_futex {
    enum attach_futex_state state;
    bool shared; // perhaps with other processes
    bool moved;  // to another word than that of the call
    uint32_t bitset;
    uint64_t address, order;
};

// --- written.c -------------------------------------------------------------------------------------------------------

// A device has written to pinned memory of the process; to other memory of it.
void attach_memory_written(void *process, uint64_t bus_address, uint32_t bytes);
void attach_own_memory_written(void *process, uint64_t va, uint32_t bytes);
// -EINVAL: not pinned memory of the process. -ENOSPC: the process has too many ranges.
int attach_ranges_add(struct attach_process *process, struct attach_ranges *ranges, uint64_t bus_address,
                      uint64_t bytes);
void attach_ranges_remove(struct attach_ranges *ranges, uint64_t bus_address, uint64_t bytes); // those in this memory

// --- wait.c ---------------------------------------------------------------------------------------------------------

// What a wait is for, as the user reads it. SIM_NEVER_PS: it has no deadline.
const char *attach_wait_reason(unsigned flags, uint64_t deadline_ps);
enum attach_woken attach_thread_wait(struct attach_thread *thread, unsigned flags, uint64_t deadline_ps);
// The thread was scheduled. polled_empty: it polled and found nothing, and may have done nothing else.
void attach_scheduled_note(const struct attach_thread *thread, bool polled_empty);
// It was scheduled and did nothing but store, perhaps: only threads whose loop is known need to see that.
void attach_stored_note(const struct attach_thread *thread);
// It was scheduled, and calls that it has made may have let others go on: they find it from now on, although the thread may
// pay only later for what it did before these calls.
void attach_wakes_note(const struct attach_thread *thread, const struct attach_request *request);
// Sleeps until the thread's condition is signalled, until its process's alarm, or until the deadline. blocked_outside:
// the thread waits for an external event, and does not poll for it.
void attach_sleep(struct attach_thread *thread, unsigned flags, uint64_t deadline_ps, bool blocked_outside);
// The earlier of the process's alarm and the deadline.
uint64_t attach_alarm_before(const struct attach_process *process, uint64_t deadline_ps);
// The process may have set a new alarm.
void attach_alarm_note(struct attach_process *process);

// --- poll.c ---------------------------------------------------------------------------------------------------------

// For POLL, before its costs are paid.
void attach_loop_begin(struct attach_thread *thread, const struct attach_request *request);
void attach_loop_left(struct attach_thread *thread); // the thread has done something else
// A device writes: must the thread poll?
bool attach_loop_written(struct attach_thread *thread, const struct poll_write *write);
// Before the thread is scheduled: the loops of other threads of its process have changed what it may read.
void attach_loops_catch_up(struct attach_thread *thread);
// The thread's own time has come to this instant without a wait: it goes on in its turn.
void attach_turn_await(struct attach_thread *thread);
void attach_loop_caught_up(struct attach_thread *thread); // the thread has called, or is gone
// The time from which on a poll of the thread's known loop sees what happens now: not at this instant, if its turn is over.
uint64_t attach_known_now_ps(const struct attach_thread *thread);
bool attach_loop_woken(struct attach_thread *thread); // another program has done something
// Another thread was scheduled: must this one poll?
bool attach_loop_others(struct attach_thread *thread, bool polled_empty, bool same_process);

// --- shared.c -------------------------------------------------------------------------------------------------------

// For POLL: takes the pages that the thread reads. STORED: one of them has changed since the thread's last poll.
// OTHER_PAGES: the pages differ from those of the last poll, so the thread has to read them once more by itself.
enum attach_shared_change { ATTACH_SHARED_SAME, ATTACH_SHARED_STORED, ATTACH_SHARED_OTHER_PAGES };
enum attach_shared_change attach_shared_begin(struct attach_thread *thread, const struct attach_request *request);
// Before the thread is scheduled: changes since the last comparison are reported with its next poll.
void attach_shared_check(struct attach_thread *thread);
// Another process was scheduled: has it changed one of the thread's pages?
bool attach_shared_changed(struct attach_thread *thread);
// The same of the words of a known loop. same_process: a thread of its process was scheduled, which has compared them.
bool attach_known_changed(struct attach_thread *thread, bool same_process);
void attach_shared_destroy(struct attach_thread *thread);

// --- watch.c --------------------------------------------------------------------------------------------------------

bool attach_watches_init(struct attach_server *server);
// WAIT for descriptors: before the call's work is replayed; and when the call is over.
void attach_watch_begin(struct attach_thread *thread, const struct attach_request *request);
void attach_watch_end(struct attach_thread *thread);
// Polls which descriptors are ready now, and wakes their threads. false: none.
bool attach_watches_poll(struct attach_server *server);
bool attach_watches_of_others(const struct attach_server *server); // may someone outside the run write to one?
bool attach_watches_of_others_poll(struct attach_server *server);  // has one of those become ready?

// --- futex.c --------------------------------------------------------------------------------------------------------

// For FUTEX_WAIT, before the call's work is replayed.
void attach_futex_begin(struct attach_thread *thread, const struct attach_request *request);
// A thread or the process has ended, and the kernel may have changed its words: all threads that share memory with the
// process check their words again, after a spurious wake-up. NULL: all threads, as there may be a signal.
void attach_futex_recheck(const struct attach_server *server, const struct attach_process *process);
