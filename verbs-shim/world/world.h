// What the files of the shim share. Private to the folder.
//
// Every function of the C library that this library replaces does what the C library's does, unless the process runs in
// simulated time (`world_timed`). Then nothing blocks in the kernel: the call is tried without blocking, and where it
// would block, the thread gives the run token back and tries again when something may have changed.
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>
#include <ucontext.h>

#include "verbs-shim/attach/attach.h"

// The C library's own function behind one of ours.
void *world_real_find(void **slot, const char *name);
#define WORLD_REAL(name)                                                                                               \
    __extension__({                                                                                                    \
        static void *slot;                                                                                             \
        (__typeof__(&name))world_real_find(&slot, #name);                                                              \
    })

// The process is in lock step, and the caller may cross.
bool world_timed(void);

// --- time (clocks.c) ------------------------------------------------------------------------------------------------

#define WORLD_PS_PER_NS 1000u
#define WORLD_PS_PER_US 1000000u
#define WORLD_NS_PER_S  1000000000u

// The thread's time; reading it costs what a clock read costs, more in a long run of nothing else. site: from where.
uint64_t world_clock_read_ps(uintptr_t site);
#define WORLD_SITE ((uintptr_t)__builtin_return_address(0))
// What CLOCK_REALTIME (or any other clock) shows at that time.
struct timespec world_clock_at(clockid_t clock, uint64_t now_ps);
// The simulated time at which the clock shows `when`; ATTACH_NEVER_PS: never.
uint64_t world_clock_deadline(clockid_t clock, const struct timespec *when);
// now + a relative time; NULL or negative milliseconds: never.
uint64_t world_deadline_after(const struct timespec *delay);
uint64_t world_deadline_after_ms(int milliseconds);
bool world_time_valid(const struct timespec *time); // of a length, or in a clock
void world_clocks_start(void);

// --- signals (signals.c) --------------------------------------------------------------------------------------------

// From now on the handler is the shim's, whatever the program asks for. It is no loop to be looked at (spin.c).
void world_signal_take(int number, void (*handler)(int, siginfo_t *, void *), int flags);
// To the program's own handler: it was none of the shim's.
void world_signal_pass(int number, siginfo_t *info, void *context);
// The set without the shim's signals, in the copy; NULL: NULL.
const sigset_t *world_signal_mask(const sigset_t *set, sigset_t *copy);

// --- the time stamp counter (tsc.c) ---------------------------------------------------------------------------------

void world_tsc_start(void);
void world_tsc_trap(bool on);

// --- system calls that wait (trap.c) --------------------------------------------------------------------------------

void world_trap_start(void);
// Signals with handlers that the calling thread has had. restarts: but for those with SA_RESTART.
unsigned world_interrupts(bool restarts);
void world_trap_unblock(void); // its signal, in the calling thread
// In simulated time, where it is a CALL of calls.def; false: it is none. The result is the kernel's.
bool world_call(long number, const long *arguments, long *result_out);

// --- numbers of processes and threads (ids.c) -----------------------------------------------------------------------

pid_t world_real_pid(void); // the machine's
pid_t world_real_tid(void);
// The machine's number of who has the run's, and the other way; what is none of the run's stays what it is.
pid_t world_id_real(pid_t id);
pid_t world_id_of(pid_t real);
pid_t world_id_real_signed(pid_t id); // below -1: of a group
// The calling process's new child.
void world_id_known(pid_t id, pid_t real);
struct msghdr;
void world_id_credentials(struct msghdr *message, pid_t (*translate)(pid_t));

// --- paths (paths.c) ------------------------------------------------------------------------------------------------

enum { WORLD_PATH_BYTES = 4096 };

// The path, or where it lies for this process: in the buffer.
const char *world_path(const char *path, char buffer[WORLD_PATH_BYTES]);

// --- which machine this is (identity.c) -----------------------------------------------------------------------------

uint32_t world_identity(void); // of the node in this run

// --- what is on its way between programs (loopback.c) ---------------------------------------------------------------

bool world_loopback_uses(int fd);
// What the thread has sent is where it goes, and the answers of the kernel to it, `packets` of them one after the
// other.
void world_loopback_settle(unsigned packets);
#define WORLD_DATA_PACKETS    1
#define WORLD_CONNECT_PACKETS 3

// --- connections (descriptors.c) ------------------------------------------------------------------------------------

// A connection begins.
void world_connected(int fd);

// --- memory that processes share (shared.c) -------------------------------------------------------------------------

// An access to it while one notes where the thread reads; it may be repeated. false: it was none.
bool world_shared_fault(uintptr_t address, greg_t *registers);
void world_shared_page_close(void);    // the one that was opened for an access
void world_shared_pages_restart(void); // those so far are not read by the loop
bool world_shared_busy(void);          // it is looking for mappings, or changing their rights
void world_shared_start(void);

// --- loops over it (spin_shared.c) ----------------------------------------------------------------------------------

// From now on accesses are looked at one by one. false: the process shares no memory.
bool world_spin_shared_begin(void);
void world_spin_shared_end(void); // not at all
// An access, whose page is accessible now. true: for this one alone, which a step makes.
bool world_spin_shared_access(greg_t *registers, const uint64_t *pages, unsigned page_count);
// A step is done: of such an access?
bool world_spin_shared_stepped(greg_t *registers);

// --- timers (timers.c) ----------------------------------------------------------------------------------------------

void world_timer_closed(int fd); // the descriptor of a timer, perhaps

// --- memory that is polled without a call (spin.c) ------------------------------------------------------------------

void world_spin_start(void); // of the calling thread
int world_spin_signal(void);
void world_spin_check_later(void);
void world_spin_end(void);

// --- locks (locks.c), processors (affinity.c) -----------------------------------------------------------------------

void world_locks_start(void);

// Of the calling thread; not given: all processors.
struct world_affinity {
    bool given;
    unsigned char processors[sizeof((struct attach_environment){0}.processors)];
};
struct world_affinity world_affinity_of_thread(void);
void world_affinity_inherit(const struct world_affinity *affinity); // of the thread that created this one
