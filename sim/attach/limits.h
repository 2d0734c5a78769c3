// Runs that make no progress, how programs ended, and the messages about both. Part of internal.h, for the files of the
// room.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct attach_reach;

struct attach_process;
struct attach_request;
struct attach_server;
struct attach_thread;

// What a thread has asked for since its last call.
struct attach_asks {
    const char *what; // NULL: it has made no call yet
    uint64_t since_ps;
    bool repeats; // its library only retransmits requests that a peer is not ready for, or refuses such requests
    bool endless; // only a device or another program can end it
    bool polls;   // it has polled repeatedly since since_ps
    bool polled;  // its last call was a poll, perhaps with stores before it
};

// The real time in which somebody looked (attach_silence_of).
struct attach_silence {
    uint64_t looked_ms, passed_ms;
};

// Calls of programs that only wait, poll, sleep and read clocks.
struct attach_still {
    struct attach_silence clock;
    uint64_t calls, sleeps, since_ps; // since anything else happened; sleeps: waits with a deadline
    // silent: also since a program last notified another one. since_ms: real time of the first few such calls.
    uint64_t silent, since_ms;
    // used_ms: processor time of the run after half of --wall-limit. used_since_ms: `since_ms` then; looked_ms: how long the
    // run was still when that time was last read.
    uint64_t used_ms, used_since_ms, looked_ms;
    // The last simulated time at which a call came, how many have come since, and the real time of one of the first.
    uint64_t moved_ps, moved_calls, moved_ms;
    uint64_t strangers_ms; // real time of waits for threads that were announced and did not come
};

// How a process ended that was killed, that left queue pairs, or that is a program with another status than 0.
struct attach_end {
    char name[48];
    uint32_t node;
    pid_t pid;
    int program, status; // as of wait(2); -1: its parent read it first
    bool left_pairs;
    uint64_t at_ps;
};
#define ATTACH_ENDS 16 // only the first ones are kept
struct attach_ends {
    struct attach_end list[ATTACH_ENDS];
    unsigned count;
    bool badly; // one of them ended badly
};

// --- ends.c ---------------------------------------------------------------------------------------------------------

// Reads a file of /proc/<pid> as text. Returns its length; -1: it does not exist.
ssize_t attach_proc_read(pid_t pid, const char *name, char *text_out, size_t bytes);
// Reads so many numbers of /proc/<pid>/stat, from that field of proc(5) on (4: the first one behind the name and the
// state). false: it is gone, or has fewer.
bool attach_stat_read(pid_t pid, unsigned field, unsigned count, unsigned long long *values_out);
unsigned long attach_processor_ticks(pid_t pid); // processor time of a process, in ticks of _SC_CLK_TCK; 0: it is gone
char attach_state(pid_t pid, pid_t tid);         // proc(5), /proc/<pid>/stat; 'X': the thread does not exist
// Does the thread compute, wait for a disk, or was it stopped by a tracer? false: it sleeps, or does not exist.
bool attach_state_runs(char state);
bool attach_runs(pid_t pid, pid_t tid);
void attach_name_read(struct attach_process *process);
// A wait of the thread was fast-forwarded by this time, because its polls were learned to repeat; 0: it was not.
void attach_late_note(struct attach_thread *thread, uint64_t skipped_ps);
void attach_late_tell(struct attach_thread *thread); // at the thread's end, in the result
// The process has ended, and was not reaped yet.
void attach_end_note(struct attach_process *process);
void attach_start_failed(struct attach_server *server, uint32_t program, pid_t pid);
void attach_ends_report(struct attach_server *server, bool all); // into the result
// A run that got stuck: adds to the text what helps if those that wait are servers.
void attach_servers_hint(const struct attach_server *server, char *text, size_t room);
// Prints for the user what all threads wait for, where they are, and how their queues stand. Call it before
// attach_fail, which ends everything.
void attach_waiters_print(struct attach_server *server, char *text, size_t room);
void attach_thread_title(const struct attach_thread *thread, char *text, size_t room);

// --- limits.c -------------------------------------------------------------------------------------------------------

// Notes what a thread asks for, and ends a run that makes no progress.
void attach_call_note(struct attach_thread *thread, const struct attach_request *request);
bool attach_programs_over(const struct attach_server *server); // are all programs of the options over?
// A program did something, or something came from a device; a program notified another one, or found something.
void attach_progress_note(struct attach_server *server);
// A thread that was announced has not come for that long.
void attach_stranger_note(struct attach_thread *creator, uint64_t ms);
void attach_notified_note(struct attach_server *server);
// Called while devices move and no program has the run token.
void attach_devices_check(void *server);
// How long all may wait for the outside while no event is due.
uint64_t attach_idle_limit_ms(struct attach_server *server);
// --- where.c --------------------------------------------------------------------------------------------------------

// The functions in which the thread is: "spin (a.out), called by main (a.out)". false: not found.
bool attach_where(struct attach_reach *reach, pid_t tid, char *text, size_t room);
// The same for addresses in a process, from the innermost call outwards; for observe.
bool attach_symbols(void *ctx, void *process, const uint64_t *addresses, unsigned count, char *text, size_t room);
