// Descriptors that programs send: copies of theirs, which the simulator holds and closes (reach.h).
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "sim/attach/internal.h"

enum { MESSAGE_MAX = 253 }; // descriptors of a message (SCM_MAX_FD of Linux)
enum { CLOSERS_MAX = 64 };  // threads that close

static _Atomic unsigned closers; // of all servers: threads that wait in close()

static void *close_run(void *fd)
{
    (void)close((int)(intptr_t)fd);
    (void)atomic_fetch_sub(&closers, 1);
    return NULL;
}

// false: there are enough such threads.
static bool closed_aside(int fd)
{
    pthread_t thread;
    bool aside =
        atomic_fetch_add(&closers, 1) < CLOSERS_MAX && attach_aside_thread(&thread, close_run, (void *)(intptr_t)fd);
    if (aside) {
        (void)pthread_detach(thread);
    } else {
        (void)atomic_fetch_sub(&closers, 1);
    }
    return aside;
}

void attach_copy_close(const struct attach_server *server, int pidfd, const char *name, int fd)
{
    struct linger linger = {0};
    socklen_t bytes = sizeof linger;
    bool waits = getsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, &bytes) == 0 && linger.l_onoff != 0;
    if (waits && closed_aside(fd)) {
        return;
    }
    if (waits) { // too many of them: the program loses the option
        linger.l_onoff = 0;
        (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
    }
    attach_watchdog_enter(server, pidfd, name); // a file of FUSE
    (void)close(fd);
    attach_watchdog_leave(server);
}

ssize_t attach_message_receive(const struct attach_server *server, const struct attach_reach *reach, int socket,
                               struct iovec data, int *fds, unsigned *count)
{
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int) * MESSAGE_MAX)];
    } control;
    int sent[MESSAGE_MAX];
    unsigned sent_count = 0, room = *count;
    struct msghdr header = {
        .msg_iov = &data, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    ssize_t got = recvmsg(socket, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    const struct cmsghdr *part = got >= 0 ? CMSG_FIRSTHDR(&header) : NULL;
    *count = 0;
    if (part != NULL && part->cmsg_level == SOL_SOCKET && part->cmsg_type == SCM_RIGHTS) {
        sent_count = (unsigned)((part->cmsg_len - CMSG_LEN(0)) / sizeof *sent);
        memcpy(sent, CMSG_DATA(part), sent_count * sizeof *sent);
    }
    for (unsigned i = 0; i < sent_count; i++) {
        if (i < room) {
            fds[(*count)++] = sent[i];
        } else {
            attach_copy_close(server, reach->pidfd, ATTACH_NAME_UNKNOWN, sent[i]);
        }
    }
    return got;
}

void attach_connection_close(const struct attach_server *server, const struct attach_reach *reach, int socket)
{
    char byte;
    ssize_t got;
    (void)shutdown(socket, SHUT_RDWR);
    do {
        unsigned none = 0;
        got = attach_message_receive(server, reach, socket, (struct iovec){&byte, 1}, NULL, &none);
    } while (got > 0);
    (void)close(socket);
}
