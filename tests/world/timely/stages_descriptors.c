// Sockets and pipes that have nothing to read or no room, and sockets to which nobody has connected.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "stages.h"

static char bytes[65536];

void timely_ends_close(struct timely_scene *scene)
{
    for (unsigned i = 0; i < TIMELY_LIST_FDS; i++) {
        if (scene->fds[i] > 0) {
            (void)close(scene->fds[i]);
        }
    }
}

static void limit_set(const struct timely_scene *scene, int option)
{
    const struct timeval limit = {.tv_usec = scene->limit_us};
    (void)setsockopt(scene->fds[0], SOL_SOCKET, option, &limit, sizeof limit);
}

static void drain(int fd, bool is_socket)
{
    int flags = fcntl(fd, F_GETFL);
    (void)fcntl(fd, F_SETFL, flags | O_NONBLOCK);
    while ((is_socket ? recv(fd, bytes, sizeof bytes, 0) : read(fd, bytes, sizeof bytes)) > 0) {
    }
    (void)fcntl(fd, F_SETFL, flags);
}

static void byte_send(struct timely_scene *scene)
{
    (void)!write(scene->fds[1], "x", 1);
}

// --- something to read ----------------------------------------------------------------------------------------------

static void socket_open(struct timely_scene *scene)
{
    (void)socketpair(AF_UNIX, SOCK_STREAM, 0, scene->fds);
}

static void socket_arm(struct timely_scene *scene)
{
    drain(scene->fds[0], true); // what an earlier episode has only polled
    limit_set(scene, SO_RCVTIMEO);
}

static void pipe_open(struct timely_scene *scene)
{
    (void)!pipe(scene->fds);
}

static void pipe_arm(struct timely_scene *scene)
{
    drain(scene->fds[0], false);
}

static int listen_on(struct sockaddr_in *address)
{
    socklen_t room = sizeof *address;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    *address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    (void)bind(fd, (struct sockaddr *)address, sizeof *address);
    (void)listen(fd, 4);
    (void)getsockname(fd, (struct sockaddr *)address, &room);
    return fd;
}

static void tcp_open(struct timely_scene *scene)
{
    struct sockaddr_in address;
    int listener = listen_on(&address);
    scene->fds[1] = socket(AF_INET, SOCK_STREAM, 0);
    (void)connect(scene->fds[1], (struct sockaddr *)&address, sizeof address);
    scene->fds[0] = accept(listener, NULL, NULL);
    (void)close(listener);
}

void timely_epoll_open(struct timely_scene *scene)
{
    socket_open(scene);
    struct epoll_event event = {.events = EPOLLIN};
    scene->fds[2] = epoll_create1(0);
    (void)epoll_ctl(scene->fds[2], EPOLL_CTL_ADD, scene->fds[0], &event);
}

const struct timely_stage timely_socket = {"a socket", .open = socket_open, .arm = socket_arm, .wake = byte_send,
                                           .close = timely_ends_close};
const struct timely_stage timely_pipe = {"a pipe", .open = pipe_open, .arm = pipe_arm, .wake = byte_send,
                                         .close = timely_ends_close};
const struct timely_stage timely_tcp = {"TCP", .open = tcp_open, .arm = socket_arm, .wake = byte_send,
                                        .close = timely_ends_close};
const struct timely_stage timely_epoll = {"epoll", .open = timely_epoll_open, .arm = socket_arm, .wake = byte_send,
                                          .close = timely_ends_close};

// --- room -----------------------------------------------------------------------------------------------------------

static void full_socket_arm(struct timely_scene *scene)
{
    while (send(scene->fds[0], bytes, 4096, MSG_DONTWAIT) > 0) {
    }
    limit_set(scene, SO_SNDTIMEO);
}

static void full_socket_wake(struct timely_scene *scene)
{
    drain(scene->fds[1], true);
}

static void full_pipe_open(struct timely_scene *scene)
{
    int ends[2];
    (void)!pipe(ends);
    scene->fds[0] = ends[1];
    scene->fds[1] = ends[0];
}

static void full_pipe_arm(struct timely_scene *scene)
{
    int flags = fcntl(scene->fds[0], F_GETFL);
    (void)fcntl(scene->fds[0], F_SETFL, flags | O_NONBLOCK);
    while (write(scene->fds[0], bytes, 4096) > 0 || write(scene->fds[0], bytes, 1) > 0) {
    }
    (void)fcntl(scene->fds[0], F_SETFL, flags);
}

static void full_pipe_wake(struct timely_scene *scene)
{
    drain(scene->fds[1], false);
}

const struct timely_stage timely_full_socket = {"a full socket", .open = socket_open, .arm = full_socket_arm,
                                                .wake = full_socket_wake, .close = timely_ends_close};
const struct timely_stage timely_full_pipe = {"a full pipe", .open = full_pipe_open, .arm = full_pipe_arm,
                                              .wake = full_pipe_wake, .close = timely_ends_close};

// More than a socket or a pipe holds: the waker takes all of it, which takes no simulated time.
static void all_take(struct timely_scene *scene)
{
    static char taken[65536];
    for (long left = TIMELY_MANY_BYTES; left > 0;) {
        ssize_t got = read(scene->fds[1], taken, left < (long)sizeof taken ? (size_t)left : sizeof taken);
        left = got > 0 ? left - got : 0;
    }
}

const struct timely_stage timely_reader = {"a reader", .open = socket_open, .wake = all_take,
                                           .close = timely_ends_close, .never_ended = true};
const struct timely_stage timely_pipe_reader = {"a reader of a pipe", .open = full_pipe_open, .wake = all_take,
                                                .close = timely_ends_close, .never_ended = true};

// Two bytes, in two pieces.
static void pieces_send(struct timely_scene *scene)
{
    byte_send(scene);
    (void)usleep(TIMELY_PIECE_US);
    byte_send(scene);
}

static void datagrams_open(struct timely_scene *scene)
{
    (void)socketpair(AF_UNIX, SOCK_DGRAM, 0, scene->fds);
}

const struct timely_stage timely_pieces = {"two pieces",        .open = socket_open,
                                           .wake = pieces_send, .close = timely_ends_close,
                                           .never_early = true, .after_us = TIMELY_PIECE_US};
const struct timely_stage timely_datagrams = {"two datagrams",     .open = datagrams_open,
                                              .wake = pieces_send, .close = timely_ends_close,
                                              .never_early = true, .after_us = TIMELY_PIECE_US};

// --- connections ----------------------------------------------------------------------------------------------------

static void listener_open(struct timely_scene *scene)
{
    struct sockaddr_in address;
    scene->fds[0] = listen_on(&address);
}

static void listener_arm(struct timely_scene *scene)
{
    limit_set(scene, SO_RCVTIMEO);
}

static void listener_wake(struct timely_scene *scene)
{
    struct sockaddr_storage address;
    socklen_t room = sizeof address;
    (void)getsockname(scene->fds[0], (struct sockaddr *)&address, &room);
    int fd = socket(address.ss_family, SOCK_STREAM, 0);
    (void)connect(fd, (struct sockaddr *)&address, room);
    (void)close(fd);
}

// The kernel chooses the name.
static void local_listener_open(struct timely_scene *scene)
{
    const struct sockaddr_un address = {.sun_family = AF_UNIX};
    scene->fds[0] = socket(AF_UNIX, SOCK_STREAM, 0);
    (void)bind(scene->fds[0], (const struct sockaddr *)&address, sizeof address.sun_family);
    (void)listen(scene->fds[0], 4);
}

const struct timely_stage timely_listener = {"TCP", .open = listener_open, .arm = listener_arm, .wake = listener_wake,
                                             .close = timely_ends_close};
const struct timely_stage timely_local_listener = {"a local socket", .open = local_listener_open, .arm = listener_arm,
                                                   .wake = listener_wake, .close = timely_ends_close};
