// How the simulator reaches a process of the machine: who it is, and its memory. Part of internal.h, for the files of
// the room.
//
// - A process is known by a descriptor that the kernel gave when it connected, never by its number alone: the machine
//   may give the number to a process outside of the run. Whoever reads or writes memory by the number, or decides by it
//   what a process may do, asks attach_reach_lives: a number is not given again before the kernel has gone through all
//   others, which takes longer than the interval of that check. States and names that messages show are read without.
// - A program can make some calls of the kernel last: its memory may come from a FUSE file or userfaultfd. Such a call
//   is made between attach_watchdog_enter and attach_watchdog_leave. If a thread that watches the simulator finds it in
//   such calls at each look for longer than the wall limit, it kills the process whose call it is, and the run ends.
// - Nor does the simulator call fstat or poll for a descriptor that may be a file of FUSE (watch.c).
// Leaves out: Linux before 6.5 tells the number only (no SO_PEERPIDFD). There, a number that is given again between
// connect() and the accept of the simulator is noticed if the process is another user's.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

struct attach_process;
struct attach_server;

struct attach_reach {
    pid_t pid;
    int pidfd;
    uint64_t started;   // time of its start, in ticks since boot; with `pid` it is unique
    uint64_t looked_ms; // when attach_reach_lives asked the kernel last
    bool gone;
};

// The process at the other end of a socket. false: it has gone, or is another user's. The caller closes pidfd.
bool attach_reach_take(int socket, struct attach_reach *reach_out);
// Fills in `started` of a process whose pid and pidfd are known.
void attach_reach_note(struct attach_reach *reach);
// Has the process with this number not ended? Asks the kernel once in some milliseconds.
bool attach_reach_lives(struct attach_reach *reach);

// Do they belong to one process, before and after an exec?
bool attach_reach_same(const struct attach_reach *a, const struct attach_reach *b);

// As process_vm_readv and process_vm_writev; `own` in the simulator, `pieces` of the process. Return the bytes, -1: not
// even the first.
ssize_t attach_reach_read(struct attach_process *process, const struct iovec *own, const struct iovec *pieces,
                          unsigned count);
ssize_t attach_reach_write(struct attach_process *process, const struct iovec *own, unsigned own_count,
                           const struct iovec *pieces, unsigned count);

// Does the process have all of this memory? With `writable`: may it write there?
bool attach_reach_has(struct attach_process *process, uint64_t address, uint64_t bytes, bool writable);

// --- the watch ------------------------------------------------------------------------------------------------------

struct attach_watchdog;

// Starts the thread that watches. false: there is none; calls may last.
bool attach_watchdog_start(struct attach_server *server);
void attach_watchdog_stop(struct attach_server *server);
// Around a call of the simulator's thread that the process of this pidfd can make last. The name is for the message.
void attach_watchdog_enter(const struct attach_server *server, int pidfd, const char *name);
void attach_watchdog_leave(const struct attach_server *server);
// The same for a process of the run.
void attach_reach_begin(const struct attach_process *process);
void attach_reach_end(const struct attach_process *process);

// --- descriptors ----------------------------------------------------------------------------------------------------
// The last close of a socket waits for its peer (SO_LINGER), which may not want to read; that of a file of FUSE waits for
// its server. The kernel closes also what a message brings that nobody takes, and what is queued at a socket that is
// closed, in the call of whoever does that. So the simulator takes each descriptor, and closes it by itself.

#define ATTACH_NAME_UNKNOWN "a program that connects"

// Closes a copy of a descriptor of the process with this pidfd and name.
void attach_copy_close(const struct attach_server *server, int pidfd, const char *name, int fd);
// As recv without waiting; *count: the room of fds, then how many descriptors came. Those without room are closed.
ssize_t attach_message_receive(const struct attach_server *server, const struct attach_reach *reach, int socket,
                               struct iovec data, int *fds, unsigned *count);
// Closes the connection of a process, with what is queued there.
void attach_connection_close(const struct attach_server *server, const struct attach_reach *reach, int socket);
