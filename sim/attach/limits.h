// Runs that lead nowhere, how programs ended, and what is said of both. Part of internal.h, for the files of the room.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct attach_process;
struct attach_request;
struct attach_server;
struct attach_thread;

// What a thread asks for since its last call.
struct attach_asks {
    const char *what; // NULL: it made none yet
    uint64_t since_ps;
    bool repeats; // its library only sends again what a peer is not ready for, or refuses that
    bool endless; // nothing but a device or another program ends it
    bool polls;   // again and again, since since_ps
};

// Calls of programs that only wait, poll, sleep and read clocks.
struct attach_still {
    uint64_t calls, sleeps, since_ps; // since anything else happened; sleeps: waits that end at a time
    uint64_t silent, since_ms;        // since a program told another one something as well; real time, of the first few
};

// How a process ended that was killed, that left queue pairs, or a program with another status than 0.
struct attach_end {
    char name[48];
    uint32_t node;
    pid_t pid;
    int program, status; // as of wait(2); -1: its parent was faster
    bool left_pairs;
    uint64_t at_ps;
};
#define ATTACH_ENDS 16 // the first ones
struct attach_ends {
    struct attach_end list[ATTACH_ENDS];
    unsigned count;
    bool badly; // one has ended badly
};

// --- ends.c ---------------------------------------------------------------------------------------------------------

// A file of /proc/<pid>, as text. Returns how much of it; -1: there is none.
ssize_t attach_proc_read(pid_t pid, const char *name, char *text_out, size_t bytes);
char attach_state(pid_t pid, pid_t tid); // proc(5), /proc/<pid>/stat; 'X': it is gone
// Does the thread compute, or wait for a disk? Not where it sleeps, or is gone.
bool attach_runs(pid_t pid, pid_t tid);
void attach_name_read(struct attach_process *process);
// It is over, and not reaped.
void attach_end_note(struct attach_process *process);
void attach_start_failed(struct attach_server *server, uint32_t program, pid_t pid);
void attach_ends_report(struct attach_server *server, bool all); // into the result
// What all wait for, where they are, how their queues stand: for the user. Before attach_fail, which ends everything.
void attach_waiters_print(struct attach_server *server, char *text, size_t room);
void attach_thread_title(const struct attach_thread *thread, char *text, size_t room);

// --- limits.c -------------------------------------------------------------------------------------------------------

// What a thread asks for is noted, and whether the run leads nowhere.
void attach_call_note(struct attach_thread *thread, const struct attach_request *request);
bool attach_programs_over(const struct attach_server *server); // those of the options
// Something was done, or came from a device; a program was told something by another one, or found it.
void attach_progress_note(struct attach_server *server);
void attach_notified_note(struct attach_server *server);
// While devices move and no program has the run token.
void attach_devices_check(void *server);
// How long all may wait for the outside, with nothing due.
uint64_t attach_idle_limit_ms(const struct attach_server *server);
// --- where.c --------------------------------------------------------------------------------------------------------

// The functions in which the thread is: "spin (a.out), called by main (a.out)". false: it is not to be found.
bool attach_where(pid_t pid, pid_t tid, char *text, size_t room);
// The same of addresses in its process, from a call inwards out; for observe.
bool attach_symbols(void *ctx, void *process, const uint64_t *addresses, unsigned count, char *text, size_t room);
