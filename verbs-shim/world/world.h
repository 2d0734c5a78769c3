// What the files of the shim share. Private to the folder.
//
// Every function of the C library that this library interposes does what the C library's does, unless the process runs
// in simulated time (`world_timed`). Then nothing blocks in the kernel: the call is tried without blocking. If it would
// block, the thread gives the run token back and tries again when something may have changed.
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>
#include <ucontext.h>

#include "verbs-shim/attach/attach.h"

// The C library's own function that ours interposes.
void *world_real_find(void **slot, const char *name);
#define WORLD_REAL(name)                                                                                               \
    __extension__({                                                                                                    \
        static void *slot;                                                                                             \
        (__typeof__(&name))world_real_find(&slot, #name);                                                              \
    })

// The process runs in simulated time, and the caller may make an attach call.
bool world_timed(void);

// --- time (clocks.c) ------------------------------------------------------------------------------------------------

#define WORLD_PS_PER_NS 1000u
#define WORLD_PS_PER_US 1000000u
#define WORLD_NS_PER_S  1000000000u

// The thread's time. Reading it costs the time of a clock read, and more in a long sequence of clock reads. site: the
// caller. clock, caller: what is read, and where that function was called; NULL: not known.
struct attach_caller;
struct attach_clock;
uint64_t world_clock_read_ps(uintptr_t site, const struct attach_clock *clock, struct attach_caller *caller);
#define WORLD_SITE ((uintptr_t)__builtin_return_address(0))
bool world_clock_is_simulated(clockid_t clock);
uint64_t world_tsc_of(uint64_t now_ps); // the time stamp counter at that time
// What CLOCK_REALTIME (or any other clock) shows at that simulated time.
struct timespec world_clock_at(clockid_t clock, uint64_t now_ps);
// The simulated time at which the clock shows `when`; NULL: ATTACH_NEVER_PS.
uint64_t world_clock_deadline(clockid_t clock, const struct timespec *when);
// Now plus a relative time; NULL or negative milliseconds: never.
uint64_t world_deadline_after(const struct timespec *delay);
uint64_t world_deadline_after_ms(int milliseconds);
bool world_time_valid(const struct timespec *time); // of a duration, or of a clock
void world_clocks_start(void);
void world_clocks_forked(void); // in the child

// --- signals (signals.c) --------------------------------------------------------------------------------------------

// From now on the shim handles this signal, whatever the program asks for. The handler is not stepped as a loop
// (spin.c).
void world_signal_take(int number, void (*handler)(int, siginfo_t *, void *), int flags);
// Calls the program's own handler: the signal was not for the shim.
void world_signal_pass(int number, siginfo_t *info, void *context);
// Copies the set without the shim's signals; NULL: NULL.
const sigset_t *world_signal_mask(const sigset_t *set, sigset_t *copy);
// Sends a signal to a thread of the process (the machine's number); 0: to the first one that takes it (signal(7)).
void world_signal_queue(pid_t thread, const siginfo_t *info);

// --- the time stamp counter (tsc.c) ---------------------------------------------------------------------------------

void world_tsc_start(void);
void world_tsc_trap(bool on);
bool world_tsc_breakpoint(greg_t *registers); // does what the instruction there does; false: none of tsc_scan.h

// --- system calls that wait (trap.c) --------------------------------------------------------------------------------

void world_trap_start(void);
// Counts signals with handlers in the calling thread. restarts: without those with SA_RESTART.
unsigned world_interrupts(bool restarts);
void world_trap_unblock(void); // the trap's signal, in the calling thread
// Carries out a CALL of calls.def in simulated time; false: it is not a CALL. The result is the kernel's. The arguments
// are six and, at WORLD_CALLER, the place in the program from which the call comes.
enum { WORLD_CALLER = 6, WORLD_CALL_WORDS };
bool world_call(long number, const long *arguments, long *result_out);

// --- asynchronous input and output (aio.c) ----------------------------------------------------------------------------

void world_aio_forked(void); // in the child, which has no requests

// --- numbers of processes and threads (ids.c, id_table.c) ------------------------------------------------------------

pid_t world_real_pid(void); // the machine's number
pid_t world_real_tid(void);
// The machine's number of a process or thread of the run, and the reverse; other numbers stay unchanged.
pid_t world_id_real(pid_t id);
pid_t world_id_of(pid_t real);
pid_t world_id_real_signed(pid_t id); // below -1: of a group
// Notes a new child of the calling process.
void world_id_known(pid_t id, pid_t real);
struct msghdr;
void world_id_credentials(struct msghdr *message, pid_t (*translate)(pid_t));

// --- paths (redirect.c) ---------------------------------------------------------------------------------------------

enum { WORLD_PATH_BYTES = 4096 };

// The path, or its redirection for this process, in the buffer; the same of a name of POSIX shared memory.
const char *world_path(const char *path, char buffer[WORLD_PATH_BYTES]);
const char *world_path_at(int folder, const char *path, char buffer[WORLD_PATH_BYTES]); // as openat takes it
const char *world_shared_name(const char *name, char buffer[WORLD_PATH_BYTES]);
bool world_path_ends(const char *path, const char *name); // is it that file of a node? path: redirected, or NULL

// --- what is opened in another way (fifos.c) ------------------------------------------------------------------------

// If opening the (redirected) path waits for the other end of a FIFO: waits in simulated time and opens it. If it is the
// device for management datagrams, or a file that has a random number: opens it. *fd_out: -1 with errno. false: it is another file.
bool world_special_open(int folder, const char *path, int flags, int *fd_out);

// --- management datagrams (umad.c) ----------------------------------------------------------------------------------

bool world_umad_open(const char *path, int flags, int *fd_out);
// write(2). false: the descriptor is another one.
bool world_umad_write(int fd, const void *data, size_t bytes, long *result_out);
// false: the descriptor is another one, or the request.
bool world_umad_ioctl(int fd, unsigned long request, void *argument, int *result_out);
int world_umad_end_from(unsigned first); // the first of the shim's own descriptors from this number on; -1: none
bool world_umad_end_move(int fd);        // the program wants the number; false: it is none of them

// --- random numbers of the kernel (random.c) ------------------------------------------------------------------------

struct stat;
struct iovec;
void world_random_fill(void *memory, size_t bytes);
bool world_random_is(const struct stat *about);                    // /dev/random or /dev/urandom
void world_random_read(const struct iovec *pieces, long bytes);     // it has read that much from there
bool world_uuid_open(const char *path, int flags, int *fd_out);     // as world_umad_open
void world_random_start(void);

// --- which machine this is (identity.c) -----------------------------------------------------------------------------

uint32_t world_identity(void); // of the node in this run

// --- what the node has not (asked.c) --------------------------------------------------------------------------------

// Notes that the program asked for it: "the name", "example.org".
void world_asked(const char *what, const char *which);

// --- packets in flight between programs (loopback.c) ----------------------------------------------------------------

bool world_loopback_uses(int fd);
// Returns when everything that the thread has sent has arrived, and the kernel's answers to it: `packets` packets in
// sequence.
void world_loopback_settle(unsigned packets);
#define WORLD_DATA_PACKETS    1
#define WORLD_CONNECT_PACKETS 3

// --- connections (descriptors.c) ------------------------------------------------------------------------------------

// Prepares a new connection.
void world_connected(int fd);

// --- memory that processes share (shared.c) -------------------------------------------------------------------------

// An access to shared memory while a window is open; the access may be repeated. false: no such access.
bool world_shared_fault(uintptr_t address, greg_t *registers);
void world_shared_page_close(void);      // the page that was opened for a single access
void world_shared_pages_restart(void);   // the loop does not read the pages noted so far
bool world_shared_has(uint64_t address); // perhaps
bool world_shared_busy(void);            // it is reading the mappings, or changing their protection
void world_shared_start(void);

// --- loops over shared memory (spin_shared.c) -----------------------------------------------------------------------

// From now on each access is checked. false: the process shares no memory.
bool world_spin_shared_begin(void);
void world_spin_shared_end(void); // no access is checked any more
// An access whose page is accessible now. true: only for this access, which is made by a single step.
bool world_spin_shared_access(greg_t *registers, const uint64_t *pages, unsigned page_count);
bool world_spin_shared_follows(void); // an access was checked since the last time
// A single step is done. true: it was for such an access.
bool world_spin_shared_stepped(greg_t *registers);

// --- what a program does next (lookahead.c) -------------------------------------------------------------------------

bool world_lookahead_runs(void); // what the thread does now is not the program's
void world_lookahead_start(void);
void world_lookahead_forked(void); // in the child

// --- timers (timers.c) ----------------------------------------------------------------------------------------------

void world_timers_closed(unsigned first, unsigned last); // some of the descriptors may be those of timers
void world_timers_forked(void);                          // in the child

// --- memory that is polled without a call (spin.c) ------------------------------------------------------------------

// Loops that write memory of their own (spin_loop.c). begin: the thread is in one that waits; it is to be stepped (TF) until
// `stepped`, after each instruction, is OVER: it has waited. NONE: it is not stepped for this.
bool world_spin_loop_begin(greg_t *registers);
enum world_spin_seek { WORLD_SPIN_NONE, WORLD_SPIN_ON, WORLD_SPIN_OVER };
enum world_spin_seek world_spin_loop_stepped(greg_t *registers);
bool world_spin_loop_busy(const greg_t *registers); // the thread is stepped there, or looked at
void world_spin_start(void);                        // for the calling thread
int world_spin_signal(void);
void world_spin_check_later(void);
void world_spin_end(void);

// --- locks (locks.c), processors (affinity.c) -----------------------------------------------------------------------

void world_locks_start(void);

// The processors of the calling thread; not given: all.
struct world_affinity {
    bool given;
    unsigned char processors[sizeof((struct attach_environment){0}.processors)];
};
struct world_affinity world_affinity_of_thread(void);
void world_affinity_inherit(const struct world_affinity *affinity); // from the thread that created this one
