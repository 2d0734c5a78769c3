// The program's side of simulated time: what the libraries of an attached program call.
//
// An attached process is an ordinary process whose threads run only while the simulator lets them: one thread of all
// attached processes at a time (the run token). What a thread does between two calls of this file takes no simulated time;
// costs that libraries declare are added up in the thread (`attach_spend`), and posted stores to devices are kept with
// their time in the thread's list. Both reach the simulator with the thread's next attach call: it lets the models run up
// to the thread's own time, carries out the stores at theirs, and then the request. So an attach call is needed only where
// a thread wants to know something (a clock after a store, a register, a word that is not there yet) or has nothing to
// do. Everything that the libraries above need of devices goes through backend.h, which attach_backend.c implements on
// these attach calls (docs/decisions/0011-attached-programs.md).
//
// One copy of this library (libtcasim-attach.so) is in a process, whatever else is preloaded or linked. All functions
// may be called from any thread; a thread that calls for the first time is made known to the simulator. Where the
// process is not attached (no TCASIM_ATTACH in its environment, or mode functional without time) they do what their
// comment says.
//
// Leaves out: intercepting anything of the C library (verbs-shim/world does).
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "verbs-shim/backend/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

enum attach_mode {
    ATTACH_NONE,       // not attached: backend_current gives NULL
    ATTACH_FUNCTIONAL, // devices, but real time: threads run freely, an attach call is an ordinary call
    ATTACH_TIMED       // lock step
};

// Connects the process when it is not yet. Cheap after that.
enum attach_mode attach_mode(void);

// What the process is told about its place; NULL: not attached.
struct attach_environment {
    const char *node;                         // its name in the scenario, also its host name
    uint32_t node_index, node_count, process; // process: number on its node
    uint32_t id;                              // what getpid says
    // Host i has the name hosts[i] and the IPv4 address address_base + i (host byte order, within 127.0.0.0/8).
    const char *const *hosts;
    uint32_t address_base;
    bool computes;                 // its threads' own processor time counts
    unsigned char processors[128]; // on which programs may run, as of sched_setaffinity
    uint64_t tsc_hz;               // of the simulated time stamp counter
    uint64_t clock_read_ps;        // what reading it costs
    uint64_t interrupt_ps;         // from a device's interrupt to the thread that waits for it
    uint64_t epoch_realtime_ns;    // what CLOCK_REALTIME shows at simulated time 0
    uint64_t epoch_monotonic_ns;
};
const struct attach_environment *attach_environment(void);

// Processes and threads have numbers of the run, which are the same in each: from here on, where no number of the
// machine lies (the kernel's PID_MAX_LIMIT). The simulator has the first.
#define ATTACH_ID_BASE (1u << 22)
// The calling thread's number of the run; 0 when not timed.
uint32_t attach_thread_id(void);
// The run's number of a process of the machine; 0: it is none of the run's.
uint32_t attach_id_of(uint32_t pid);
// The machine's number of a process or thread of the run; 0: there is none.
uint32_t attach_id_real(uint32_t id);

// The thread's own time. Crosses when stores are pending, as these may have stalled it. 0 when not timed.
uint64_t attach_now_ps(void);
// Adds to the thread's own time. Nothing when not timed.
void attach_spend_ps(uint64_t ps);

// What the thread computes between the two is the library's, whose costs are declared: it does not count where
// programs' own computing does (nodes.*.host.compute). May be nested. Only libibverbs calls them.
void attach_library_enter(void);
void attach_library_leave(void);

// The descriptor of the connection, which is not the program's to close; -1: none.
int attach_descriptor(void);

// --- waiting --------------------------------------------------------------------------------------------------------

enum attach_wait_flags {
    ATTACH_WAIT_MEMORY = 1, // until a device writes to memory of the process
    ATTACH_WAIT_EVENTS = 4, // until a device writes to an event queue of the process
    // Until something outside the devices may have changed: another attached thread made a call that may wake others
    // (attach_may_wake), a process ended, a real descriptor became ready.
    ATTACH_WAIT_OUTSIDE = 2,
    ATTACH_WAIT_ENDS = 8, // with OUTSIDE: of that only ends of processes, and signals (attach_may_interrupt)
    // Until another thread of the process was scheduled, or one of a process of the node that may share its memory.
    ATTACH_WAIT_OTHERS = 16,
    ATTACH_WAIT_FUTEX = 32,      // in descriptions only: another thread of the same word
    ATTACH_WAIT_DESCRIPTORS = 64, // of attach_wait_descriptors
    ATTACH_WAIT_PINNED = 128      // with MEMORY: only to pinned memory
};

enum attach_woken { ATTACH_WOKEN_DEADLINE, ATTACH_WOKEN_MEMORY, ATTACH_WOKEN_OUTSIDE };

#define ATTACH_NEVER_PS UINT64_MAX

// Gives the run token away until what the flags name, or until deadline_ps of simulated time (flags 0: a sleep). The caller
// tests its condition before and after: a wake-up says that something may have changed, not what. Writes between the
// thread's last wait for memory and this call count. A deadline that has passed: all threads that may go on now have
// their turn first. Not timed: MEMORY and OUTSIDE return after a short real sleep.
enum attach_woken attach_wait(unsigned flags, uint64_t deadline_ps);

// An empty poll: a library looked for something that a device writes and did not find it; what that cost is in the
// thread's time already. Returns at that time, unless the thread is in a loop of such polls, which is known from its
// repetitions (verbs-shim/attach/loop.h): then, at the latest after some iterations of it, at the time at which the
// loop sees what a device has written. site: a number for where the poll is made from and at what. place: the word of
// pinned memory that was polled; a write to it is seen by this poll, writes elsewhere by the whole iteration. NULL:
// none in particular. repeats: the library's stores since its last poll were none but of repetitions, and so will be
// what comes of them: nothing of it is progress of the program. true: something was written, so that the poll is worth
// repeating before the program polls elsewhere. Not timed: returns false at once.
bool attach_poll(uint64_t site, const volatile void *word, bool repeats);

// The same of a call, for what the flags name; it costs a call. attach_found says that a poll found something, which
// ends the streak.
enum attach_woken attach_poll_call(unsigned flags, uint64_t site);
void attach_found(void);

// The same of a clock read in a run of such, in a process that shares memory: what it waits for may be there. false:
// nothing was done, as it shares none.
bool attach_poll_clock(uint64_t site, uint64_t cost_ps);

// The same of a loop that is known to read nothing but these bytes: until a device writes some of them, or
// something happens outside; in a process whose library has to move on what others read and write
// (attach_progress_on_writes), also until a device writes to any pinned memory. None, or more than ATTACH_RANGES_MAX: what
// it reads is not known, and any write ends it.
#define ATTACH_RANGES_MAX 8u
struct attach_range {
    const volatile void *address;
    unsigned bytes;
};
enum attach_woken attach_poll_words(const struct attach_range *ranges, unsigned count);
// The same of a loop that reads these pages of shared memory, and any of the thread's own.
enum attach_woken attach_poll_pages(const uint64_t *pages, unsigned count);

// A descriptor and what of poll(2) a thread waits for.
struct attach_watch {
    int fd;
    short events;
};
#define ATTACH_WATCHES_MAX 64u

// The same until one of the descriptors is ready, as the kernel says, or a device raises an event for the process; of
// more than ATTACH_WATCHES_MAX, until anything outside the devices may have changed. Signals end it as well.
enum attach_woken attach_wait_descriptors(const struct attach_watch *watches, unsigned count, uint64_t deadline_ps);

// As of futex(2), whose word the caller has compared since it has the run token. shared: with other processes of the node.
// 0: woken. -ETIMEDOUT: the deadline. -EINTR: the caller is to look at the word again. Not timed: -EINTR after a short
// real sleep.
int attach_futex_wait(const void *word, bool shared, uint32_t bitset, uint64_t deadline_ps);
// Returns how many were woken.
int attach_futex_wake(const void *word, bool shared, uint32_t bitset, uint32_t most);
// The same, and moves up to most_moved of those that are left to another word.
int attach_futex_requeue(const void *word, bool shared, uint32_t most, uint32_t most_moved, const void *to,
                         uint32_t *moved_out);

// The process's next alarm: no wait of any of its threads goes beyond deadline_ps, and the first thread that has the
// baton at that time or later calls `due` before it returns from its attach call. ATTACH_NEVER_PS: none.
void attach_alarm(uint64_t deadline_ps, void (*due)(void));

// Signals are blocked while a thread is without the run token, and delivered when it has it again; one that is pending ends
// a wait as ATTACH_WOKEN_OUTSIDE. This counts those of the calling thread that the program handles.
unsigned attach_interrupts(void);
unsigned attach_interrupts_ending(void); // only those whose handler was set without SA_RESTART
// One that is not the program's: it does not count.
void attach_own_signal(int number);
// Attach calls of the calling thread so far.
unsigned attach_calls(void);

// A library of devices gives what is to be done for a thread that waits by itself, for a descriptor or for a word in
// memory: events go to their descriptors, work that needs the program's processor goes on. attach_progress does it; who
// waits in the thread's place (verbs-shim/world) calls it before each look at what the thread waits for. progresses:
// devices' writes may be work for it, not only events.
void attach_progress_set(void (*progress)(void), bool on_writes);
bool attach_progress_on_writes(void);
void attach_progress(void);

// What the calling thread has copied to device memory has left, and the time of that has passed, when it returns; for a
// library that then shows its state to other threads of the process.
void attach_settle(void);

// The thread did, or is about to do, something that may let another thread or process go on: wrote to a descriptor,
// closed one, released a lock, ended a child. Without it others that wait OUTSIDE are not asked again.
void attach_may_wake(void);
// The same of a signal, which also reaches who waits for ends of processes alone.
void attach_may_interrupt(void);

// How one learns which pages of shared memory a thread reads. any: has the process such memory, to which it may write?
// open: from now on they are noted; false: it is not possible. close: those since then, `most` at most.
struct attach_window {
    bool (*any)(void);
    bool (*open)(void);
    unsigned (*close)(uint64_t *pages_out, unsigned most); // how many there were; more than `most`: not all are known
    bool (*has)(uint64_t address);                         // is the memory there shared?
};
void attach_window_by(const struct attach_window *how);
// The process has memory to which other processes may write: who polls there looks again after their turns.
void attach_shares(void);
// Until the calling thread's next attach call. false: it is not possible, or the process shares none.
bool attach_window_open(void);
bool attach_window_learns(void); // one is open, by which a loop of polls is learned
// Before a call that the kernel is to carry out on the thread's memory.
void attach_window_close(void);

// --- checks ---------------------------------------------------------------------------------------------------------

// For libtcasim-check.so. Has the process registered memory that is to be checked?
bool attach_checks_memory(void);
// This memory is given back. unmapped: by munmap.
void attach_check_freed(const void *memory, size_t bytes, bool unmapped);

// --- life -----------------------------------------------------------------------------------------------------------

// Between fork and its return in the parent: the child is known to the simulator when this returns, and runs at the
// same simulated time after the parent has given the run token back. Returns its number of the run; the machine's where it
// has none.
int attach_fork_parent(int child); // also after vfork and posix_spawn: then the child's new program is known
// The same for a thread that the caller has created: `began` by the thread itself before anything else, which returns
// when it has the run token; `started` by its creator.
void attach_thread_began(void);
void attach_thread_started(void);
// The last thing that the calling thread does before it gives the run token back for good.
void attach_thread_at_end(void (*last)(void *), void *arg);
// The process is about to become another program (execve), which connects anew and is the same process.
void attach_before_exec(void);

// In the child after fork: it is a process of its own, connects anew and has nothing of its parent's devices.
void attach_forked(void);
// The calling thread ends; the process ends (also called at exit). A process that is killed needs neither.
void attach_thread_exit(void);
void attach_process_exit(void);

#ifdef __cplusplus
}
#endif
