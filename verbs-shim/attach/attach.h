// The program's side of simulated time: the functions that the libraries of an attached program call.
//
// An attached process is an ordinary process whose threads run only while the simulator lets them: of all attached
// processes, one thread at a time has the run token. What a thread does between two calls of this file takes no
// simulated time. Costs that libraries declare are added up in the thread (`attach_spend_ps`), and posted stores to
// devices are kept with their times in the thread's list. Both reach the simulator with the thread's next attach call:
// it lets the models run up to the thread's own time, carries out the stores at their times, and then the request. So a
// thread makes an attach call only if it needs to know something (a clock after a store, a register, a word that is not
// there yet) or has nothing to do. Whatever the libraries above need of devices goes through backend.h, which
// attach_backend.c implements with these attach calls (docs/decisions/0011-attached-programs.md).
//
// A process has one copy of this library (libtcasim-attach.so), whatever else is preloaded or linked. All functions may
// be called from any thread; the first call of a thread makes it known to the simulator. In a process that is not
// attached (no TCASIM_ATTACH in its environment), or that runs without simulated time (functional), they do what their
// comments say.
//
// Leaves out: interposing functions of the C library (verbs-shim/world does this).
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "verbs-shim/backend/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

enum attach_mode {
    ATTACH_NONE,       // not attached: backend_current returns NULL
    ATTACH_FUNCTIONAL, // devices, but real time: threads run freely, and an attach call is an ordinary call
    ATTACH_TIMED       // simulated time: one thread at a time
};

// Connects the process if it is not connected yet. Cheap after that.
enum attach_mode attach_mode(void);

// A file of this machine.
struct attach_file {
    uint64_t device, number; // as of fstat
};
#define ATTACH_STANDARD_FILES  3
#define ATTACH_PROCESSOR_BYTES 48 // what CPUID has room for, with the zero at the end

// What the process knows of its node and run; NULL: not attached.
struct attach_environment {
    const char *node;                         // its name in the scenario, which is also its host name
    uint32_t node_index, node_count, process; // process: number on its node
    uint32_t id;                              // the result of getpid
    uint64_t random_seed;                     // of what the kernel's random numbers are for the process
    // Host i has the name hosts[i] and the IPv4 address address_base + i (host byte order, within 127.0.0.0/8).
    const char *const *hosts;
    uint32_t address_base;
    bool every_poll;                        // no empty poll or clock reading stands for more than itself
    bool computes;                          // processor time of its threads costs simulated time
    unsigned char processors[128];          // of the node, as of sched_setaffinity
    char processor[ATTACH_PROCESSOR_BYTES]; // its name, as in /proc/cpuinfo
    uint32_t processor_signature;           // family, model and stepping, as CPUID has them
    struct attach_file standard_files[ATTACH_STANDARD_FILES]; // the simulator's own input, output and errors
    uint64_t memory_bytes, memory_free_bytes, cache_bytes;    // cache: the last level
    uint32_t verbs_chain, verbs_completion;                   // how TCA Verbs works (struct tca_verbs_form)
    uint64_t tsc_hz;                                          // of the simulated time stamp counter
    uint64_t clock_read_ps;                                   // the cost of reading it
    uint64_t interrupt_ps;      // from an interrupt of a device to the thread that waits for it
    uint64_t epoch_realtime_ns; // what CLOCK_REALTIME shows at simulated time 0
    uint64_t epoch_monotonic_ns;
    uint32_t real_percent; // of each constant of real_time.h
};
const struct attach_environment *attach_environment(void);

// Processes and threads have numbers of the run, which are the same in each run. They begin here, above all numbers of
// the machine (the kernel's PID_MAX_LIMIT). The simulator has the first one.
#define ATTACH_ID_BASE (1u << 22)
// The calling thread's number in the run; 0 when not timed.
uint32_t attach_thread_id(void);
// The number in the run of a process of the machine; 0: it is not a process of the run.
uint32_t attach_id_of(uint32_t pid);
// The machine's number of a process or thread of the run; 0: no such process or thread.
uint32_t attach_id_real(uint32_t id);

// The thread's own time. Makes an attach call if stores are pending, as these may have stalled the thread. 0 when not
// timed.
uint64_t attach_now_ps(void);
// Adds to the thread's own time. Does nothing when not timed.
void attach_spend_ps(uint64_t ps);

// What the thread computes between these two calls belongs to the library, whose costs are declared, so it does not
// count as the program's own computing (nodes.*.host.compute). May be nested. Only libibverbs calls them.
void attach_library_enter(void);
void attach_library_leave(void);

// Real time may have decided something in the process, and the run says that another one may differ: a limit of
// real_time.h has passed, or the program has set a timer of processor time.
enum attach_outside { ATTACH_OUTSIDE_LATE = 1, ATTACH_OUTSIDE_TIMER = 2 };
void attach_outside(enum attach_outside what);

// The thread was fast-forwarded by this time without knowing that it waits so long: the run says it.
void attach_late(uint64_t ps);

// The descriptor of the connection, which the program must not close; -1: none.
int attach_descriptor(void);
// Gives the connection another descriptor; the old one, which stays open, is the program's.
void attach_descriptor_move(void);

// --- waiting --------------------------------------------------------------------------------------------------------

enum attach_wait_flags {
    ATTACH_WAIT_MEMORY = 1, // until a device writes to memory of the process
    ATTACH_WAIT_EVENTS = 4, // until a device writes to an event queue of the process
    // Until something outside the devices may have changed: another attached thread made a call that may wake others
    // (attach_may_wake), a process ended, or a real descriptor became ready.
    ATTACH_WAIT_OUTSIDE = 2,
    // With OUTSIDE: only ends of processes, and signals (attach_may_interrupt). Alone: a sleep that these end, and for
    // which real time does not pass.
    ATTACH_WAIT_ENDS = 8,
    // Until another thread of the process was scheduled, or one of a process of the node that may share its memory.
    ATTACH_WAIT_OTHERS = 16,
    ATTACH_WAIT_FUTEX = 32,       // only in descriptions: another thread that uses the same word
    ATTACH_WAIT_DESCRIPTORS = 64, // of attach_wait_descriptors
    ATTACH_WAIT_PINNED = 128,     // with MEMORY: only pinned memory
    ATTACH_WAIT_WORK = 256        // EVENTS, for the library: the program waits for something else
};

enum attach_woken { ATTACH_WOKEN_DEADLINE, ATTACH_WOKEN_MEMORY, ATTACH_WOKEN_OUTSIDE };

#define ATTACH_NEVER_PS UINT64_MAX

// Gives the run token away until one of the events of the flags, or until deadline_ps of simulated time (flags 0: a
// sleep). The caller tests its condition before and after: a wake-up means that something may have changed, not what.
// Writes between the thread's last wait for memory and this call count. If the deadline has passed, all threads that
// may run now are scheduled first. Not timed: MEMORY and OUTSIDE return after a short real sleep.
enum attach_woken attach_wait(unsigned flags, uint64_t deadline_ps);

// Reports an empty poll: a library polled for something that a device writes, and did not find it; the cost of the poll
// is already in the thread's time. Returns at that time, unless the thread is in a loop of such polls, which is
// recognised by its repetition (verbs-shim/attach/loop.h). Then it returns at the time at which the loop sees a
// device's write, and at the latest after some iterations. site: a number for the caller and what it polls. word: the
// word of pinned memory that was polled; this poll sees a write to it, and the whole iteration sees a write elsewhere.
// NULL: no single word. repeats: since its last poll the library has only repeated stores, so that nothing that comes
// of them is progress of the program. Returns true if something was written, so that the poll is worth repeating before
// the program polls elsewhere. Not timed: returns false at once.
bool attach_poll(uint64_t site, const volatile void *word, bool repeats);

// The same for a call that polls, for the events of the flags; it costs a call. attach_found reports that a poll found
// something, which ends the streak.
enum attach_woken attach_poll_call(unsigned flags, uint64_t site);
void attach_found(void);

// The same for a clock read in a sequence of clock reads, of which is known where it was called (ahead.h), or in a process
// that shares memory: the thread may wait for a store there. With --every-poll also in a process with several threads.
// false: nothing was done, as it is none of them. caller: NULL if that is not known. *now_ps_out: what the clock shows; what
// has come for the library is served afterwards.
struct attach_caller;
struct attach_clock;
bool attach_poll_clock(uint64_t site, uint64_t cost_ps, const struct attach_clock *clock, struct attach_caller *caller,
                       uint64_t *now_ps_out);

// The same for a loop that only reads these bytes: until a device writes some of them, or something happens outside. If
// device writes may be work for the library (attach_progress_on_writes), also until a device writes to any pinned
// memory. With no range, or more than ATTACH_RANGES_MAX, it is not known what the loop reads, and any write ends the
// wait.
#define ATTACH_RANGES_MAX 8u
struct attach_range {
    const volatile void *address;
    unsigned bytes;
};
enum attach_woken attach_poll_words(const struct attach_range *ranges, unsigned count);
// The same for a loop that reads these pages of shared memory, and any memory of the thread's own.
enum attach_woken attach_poll_pages(const uint64_t *pages, unsigned count);

// A descriptor, and the events of poll(2) that a thread waits for.
struct attach_watch {
    int fd;
    short events;
};
#define ATTACH_WATCHES_MAX 64u

// The same until the kernel reports one of the descriptors as ready, or a device raises an event for the process. With
// more than ATTACH_WATCHES_MAX descriptors: until anything outside the devices may have changed. Signals end it as
// well.
enum attach_woken attach_wait_descriptors(const struct attach_watch *watches, unsigned count, uint64_t deadline_ps);

// As futex(2); the caller has compared the word since it has the run token. shared: with other processes of the node.
// 0: woken. -ETIMEDOUT: the deadline. -EINTR: the caller must check the word again. Not timed: -EINTR after a short
// real sleep.
int attach_futex_wait(const void *word, bool shared, uint32_t bitset, uint64_t deadline_ps);
// Returns how many were woken.
int attach_futex_wake(const void *word, bool shared, uint32_t bitset, uint32_t most);
// The same, and moves up to most_moved of the remaining threads to another word.
int attach_futex_requeue(const void *word, bool shared, uint32_t most, uint32_t most_moved, const void *to,
                         uint32_t *moved_out);

// Sets the process's next alarm: no wait of any of its threads goes beyond deadline_ps, and the first thread that has
// the run token at that time or later calls `due` before it returns from its attach call. ATTACH_NEVER_PS: none.
void attach_alarm(uint64_t deadline_ps, void (*due)(void));

// Signals are blocked while a thread is without the run token, and delivered when it has the token again; a pending
// signal ends a wait as ATTACH_WOKEN_OUTSIDE. This counts the signals of the calling thread that the program handles.
unsigned attach_interrupts(void);
unsigned attach_interrupts_ending(void); // only those whose handler was set without SA_RESTART
// The machine's number of the process's first thread, if it is in an attach call and the program has not blocked the
// signal in it; 0 otherwise. It takes a signal to the process (signal(7)); the kernel would give it to the calling thread,
// as all others block their signals while they are in a call.
uint32_t attach_first_thread_taking(int number);
// Declares a signal that is not the program's: it is not counted.
void attach_own_signal(int number);
// Attach calls of the calling thread so far.
unsigned attach_calls(void);

// A device library's work that needs the program's processor: it passes events to their descriptors, and continues what
// posts, devices' writes and times let go on. Threads of the program do it whenever they call the library, and while they
// wait for anything else in simulated time, as a thread of its own would on the machine.
struct attach_progress {
    void (*pass)(void);
    void (*look)(void); // the part of a pass that takes no time if it finds nothing
    // When there is work for a pass; 0: now; ATTACH_NEVER_PS: none, or the calling thread must not do it now. written: a
    // device has written since the last pass what may be work (event_writes of backend.h). events: the thread waits for
    // events, so that there is work if one can be passed on.
    uint64_t (*due_ps)(bool written, bool events);
    bool (*repeats)(void); // all that passes have done since the last wait is to repeat what they did before
    bool on_writes;        // writes to any pinned memory may be work, not only events
};
void attach_progress_set(const struct attach_progress *progress); // must exist longer than the process
bool attach_progress_on_writes(void);
void attach_progress(void); // a pass, whether or not there is work

// When it returns, everything that the calling thread has copied to device memory has been sent, and the time for that
// has passed. For a library that then shows its state to other threads of the process.
void attach_settle(void);

// The thread did, or is about to do, something that may let another thread or process go on: it wrote to a descriptor,
// closed one, released a lock, ended a child. Without this call, threads that wait OUTSIDE do not check again.
void attach_may_wake(void);
// The program is about to look at a port's files in /sys: they are written anew.
void attach_port_files(void);
// Sends a management datagram of 256 bytes to that LID. The answer takes its place; -ETIMEDOUT: nobody answers; -ENODEV.
int attach_mad(uint16_t lid, void *mad);
// The same for a signal, which also wakes threads that wait only for ends of processes.
void attach_may_interrupt(void);

// How to find out which pages of shared memory a thread reads. any: does the process have such memory that it may write
// to? open: the pages are noted from now on; false: not possible. close: returns the pages noted since then, at most
// `most`.
struct attach_window {
    bool (*any)(void);
    bool (*open)(void);
    unsigned (*close)(uint64_t *pages_out, unsigned most); // their number; more than `most`: not all are known
    bool (*has)(uint64_t address);                         // is the memory there shared?
};
void attach_window_by(const struct attach_window *how);
// The process has memory to which other processes may write: threads that poll there check again after those processes
// ran.
void attach_shares(void);
// Until the calling thread's next attach call. false: not possible, or the process shares no memory.
bool attach_window_open(void);
bool attach_window_learns(void); // a window is open, and its pages are those of a loop of polls
// Call this before the kernel carries out a call on the thread's memory.
void attach_window_close(void);

// --- checks ---------------------------------------------------------------------------------------------------------

// For libtcasim-check.so. Has the process registered memory that must be checked?
bool attach_checks_memory(void);
// This memory is freed. unmapped: by munmap.
void attach_check_freed(const void *memory, size_t bytes, bool unmapped);

// --- life -----------------------------------------------------------------------------------------------------------

// For the parent, between fork and its return: when this returns, the simulator knows the child, and the child runs at
// the same simulated time once the parent has given the run token back. Returns the child's number in the run, or the
// machine's number if it has none.
int attach_fork_parent(int child); // also after vfork and posix_spawn: then the new program is known
// The same for a thread that the caller has created. The thread itself calls `began` before anything else; it returns
// when the thread has the run token. The creator calls `started`.
void attach_thread_began(void);
void attach_thread_started(void);
// `last` is the last thing that the calling thread does before it gives the run token back for good.
void attach_thread_at_end(void (*last)(void *), void *arg);
// The process is about to become another program (execve). That program connects again and is the same process.
void attach_before_exec(void);

// In the child after fork: it is a process of its own, connects again, and has none of its parent's devices.
void attach_forked(void);
// The calling thread ends; the process ends (also called at exit). A process that is killed calls neither.
void attach_thread_exit(void);
void attach_process_exit(void);

#ifdef __cplusplus
}
#endif
