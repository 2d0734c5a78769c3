// The files of the double of the kernel; private to kernel_double*.c.
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/un.h>

#include "fuzz.h"

// FD_FIRST: above those of the process, and below those that an rsocket may have.
enum { FD_FIRST = 512, FILES = 256, WATCHED = 64 };
#define NAME_BYTES sizeof(((struct sockaddr_un *)NULL)->sun_path)

enum kind { FREE, SOCKET, EPOLL, COUNTER, TIMER, LOCK };

struct message {
    struct message *next;
    size_t bytes;
    uint8_t data[];
};

struct watched {
    struct file *file;
    struct epoll_event interest;
};

struct file {
    enum kind kind;
    int flags;             // O_NONBLOCK
    char name[NAME_BYTES]; // of a socket that is bound, of a lock's file
    // sockets
    int type;
    bool listens, connected, reset;
    unsigned backlog, waiting;
    struct file *peer;     // NULL: closed
    struct file *listener; // of a connection that was not accepted yet; then NULL
    struct message *first, **end;
    unsigned messages;
    // event counters; timers: when, 0: not armed; locks: held
    uint64_t value;
    bool one_by_one;
    // epoll
    struct watched watched[WATCHED];
    unsigned watched_count, turn;
};

static inline int kernel_double_fail(int error)
{
    errno = error;
    return -1;
}

// NULL: not one of the double's.
struct file *kernel_double_file(int fd);
struct file *kernel_double_new(enum kind kind, int flags);
int kernel_double_fd(const struct file *file);
// The first file, or the one behind it, that is open and of the kind; NULL: there is none.
struct file *kernel_double_next(const struct file *behind, enum kind kind);

// kernel_double_socket.c: what poll tells about a socket; its end; the names of sockets.
short kernel_double_socket_events(const struct file *file);
void kernel_double_socket_close(struct file *file);
void kernel_double_names_forget(void);
