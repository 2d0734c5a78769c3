// What threads wait for, and who tells them: devices, descriptors, words of memory (futexes), the outside; and loops of
// empty polls. Part of internal.h, for the files of the room. Times are simulated, in picoseconds.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sim/attach/poll_policy.h"
#include "verbs-shim/attach/attach.h"
#include "verbs-shim/attach/protocol.h"

struct attach_process;
struct attach_request;
struct attach_server;
struct attach_thread;

// Of a process; what it says beyond that is not heard.
#define ATTACH_RANGES 32

// Parts of pinned memory.
struct attach_ranges {
    struct {
        uint64_t bus_address, bytes;
    } list[ATTACH_RANGES];
    unsigned count;
};

// Something that a device has written.
struct attach_written {
    bool pinned, quiet;
    uint64_t address; // of the bus, where it is pinned; else the program's
    uint32_t bytes;
    struct attach_object *region; // in which it lies; NULL: none
};

// Pages of memory that processes share, which the thread reads while it polls.
struct attach_shared {
    uint64_t pages[ATTACH_PAGES_MAX];
    uint8_t polls[ATTACH_PAGES_MAX]; // of the iteration: behind which it is read; ATTACH_POLLS_MAX: not known
    unsigned count;
    bool known;            // that these are all
    unsigned char *copies; // as they were; NULL: none yet
    unsigned pending;      // a bit for each poll: changed before the thread was scheduled, and not told yet
    uint64_t seen_scheduled;   // of all that share memory, when they were
};

// The word that a thread sleeps on.
enum attach_futex_state { ATTACH_FUTEX_NONE, ATTACH_FUTEX_WAITS, ATTACH_FUTEX_WOKEN, ATTACH_FUTEX_INTERRUPTED };
struct attach_futex {
    enum attach_futex_state state;
    bool shared; // with other processes, perhaps
    uint32_t bitset;
    uint64_t address, order;
};

// --- written.c -------------------------------------------------------------------------------------------------------

// A device has written to pinned memory of the process; to what is not pinned memory.
void attach_memory_written(void *process, uint64_t bus_address, uint32_t bytes);
void attach_own_memory_written(void *process, uint64_t va, uint32_t bytes);
// -EINVAL: it is no pinned memory of the process. -ENOSPC: it has said so too often.
int attach_ranges_add(struct attach_process *process, struct attach_ranges *ranges, uint64_t bus_address,
                      uint64_t bytes);
void attach_ranges_remove(struct attach_ranges *ranges, uint64_t bus_address, uint64_t bytes); // what lies there

// --- wait.c ---------------------------------------------------------------------------------------------------------

// What a wait is for, as the user reads it; SIM_NEVER_PS: without a deadline.
const char *attach_wait_reason(unsigned flags, uint64_t deadline_ps);
enum attach_woken attach_thread_wait(struct attach_thread *thread, unsigned flags, uint64_t deadline_ps);
// The thread was scheduled. looked: it polled and found nothing, and may have done nothing else.
void attach_scheduled_note(const struct attach_thread *thread, bool polled_empty);
// Until the thread's condition is signalled, its process's alarm, or the deadline. blocked_outside: on an external event,
// and does not poll it.
void attach_sleep(struct attach_thread *thread, unsigned flags, uint64_t deadline_ps, bool blocked_outside);
// The earlier of the two.
uint64_t attach_alarm_before(const struct attach_process *process, uint64_t deadline_ps);
// The process may have set another alarm.
void attach_alarm_note(struct attach_process *process);

// --- poll.c ---------------------------------------------------------------------------------------------------------

// POLL: before its costs are paid.
void attach_loop_begin(struct attach_thread *thread, const struct attach_request *request);
void attach_loop_left(struct attach_thread *thread); // it has done something else
// Is the write one that the thread's loop sees?
bool attach_loop_written(struct attach_thread *thread, const struct attach_written *written);
// Another thread was scheduled: shall this one poll?
bool attach_loop_others(struct attach_thread *thread, bool polled_empty, bool same_process);

// --- shared.c -------------------------------------------------------------------------------------------------------

// POLL: which pages the thread reads. STORED: one of them has changed since it polled before. OTHER_PAGES: not the same
// as then, so that it has to look at them once more by itself.
enum attach_shared_news { ATTACH_SHARED_SAME, ATTACH_SHARED_STORED, ATTACH_SHARED_OTHER_PAGES };
enum attach_shared_news attach_shared_begin(struct attach_thread *thread, const struct attach_request *request);
// Before the thread is scheduled: what has changed since it was looked at last is told with its next poll.
void attach_shared_check(struct attach_thread *thread);
// Another process was scheduled: has it changed one of the thread's pages?
bool attach_shared_changed(struct attach_thread *thread);
void attach_shared_destroy(struct attach_thread *thread);

// --- watch.c --------------------------------------------------------------------------------------------------------

bool attach_watches_init(struct attach_server *server);
// WAIT for descriptors: before anything of the call is carried out; and when it is over.
void attach_watch_begin(struct attach_thread *thread, const struct attach_request *request);
void attach_watch_end(struct attach_thread *thread);
// Which are ready now, or within so much real time: their threads go on. false: none.
bool attach_watches_poll(struct attach_server *server, int wait_ms);
bool attach_watches_of_others(const struct attach_server *server); // may somebody outside the run write to one?
bool attach_watches_of_others_poll(struct attach_server *server);  // has one of those become ready?

// --- futex.c --------------------------------------------------------------------------------------------------------

// FUTEX_WAIT: before anything of the call is carried out.
void attach_futex_begin(struct attach_thread *thread, const struct attach_request *request);
// A thread or the process has ended, whose words the kernel may have changed, and all that share memory with it look
// again; NULL: everybody, as there may be a signal.
void attach_futex_recheck(const struct attach_server *server, const struct attach_process *process);
