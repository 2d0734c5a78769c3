// Calls that let a waiter at the other end go on, and reads and writes of files, which wait for nothing.
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "timely.h"

enum { HIGH_FD = 1000 }; // above every descriptor that the program has

struct ends {
    int waits, acts;
    FILE *stream;
    struct sockaddr_in address;
};

// --- the end of a descriptor: the other end reads 0 bytes -----------------------------------------------------------

static long end_of(const struct timely_scene *scene, void (*action)(void *), bool as_stream, int high_fd)
{
    int fds[2];
    char byte;
    (void)!pipe(fds);
    struct ends ends = {.waits = fds[0], .acts = high_fd != 0 ? dup2(fds[1], high_fd) : fds[1]};
    if (high_fd != 0) {
        (void)close(fds[1]);
    }
    ends.stream = as_stream ? fdopen(ends.acts, "w") : NULL;
    timely_later(scene, TIMELY_WOKEN_US, action, &ends);
    long got = timely_result(read(ends.waits, &byte, 1));
    timely_later_end();
    (void)close(ends.waits);
    return got;
}

// The same. The other thread goes on for as long again, so that its end wakes nobody. Returns when the end is seen, in us.
static long end_seen_of(const struct timely_scene *scene, void (*action)(void *))
{
    int fds[2];
    char byte;
    (void)!pipe(fds);
    struct ends ends = {.waits = fds[0], .acts = fds[1], .stream = fdopen(fds[1], "w")};
    timely_later(scene, TIMELY_WOKEN_US, action, &ends);
    long got = timely_result(read(ends.waits, &byte, 1));
    long us = (timely_now_ns() - scene->began_ns) / 1000;
    timely_later_end();
    (void)close(ends.waits);
    return got == 0 ? us : got;
}

static void close_it(void *arg)
{
    (void)close(((struct ends *)arg)->acts);
}

static void close_range_of_it(void *arg)
{
    const struct ends *ends = arg;
    (void)close_range((unsigned)ends->acts, (unsigned)ends->acts, 0);
}

static void close_from_it(void *arg)
{
    closefrom(((struct ends *)arg)->acts);
}

static void close_stream(void *arg)
{
    (void)fclose(((struct ends *)arg)->stream);
}

static void replace_it(void *arg)
{
    const struct ends *ends = arg;
    (void)dup2(ends->waits, ends->acts);
}

static void replace_it_closing_on_exec(void *arg)
{
    const struct ends *ends = arg;
    (void)dup3(ends->waits, ends->acts, O_CLOEXEC);
}

static long by_close(struct timely_scene *scene)
{
    return end_of(scene, close_it, false, 0);
}

static long by_close_range(struct timely_scene *scene)
{
    return end_of(scene, close_range_of_it, false, 0);
}

static long by_closefrom(struct timely_scene *scene)
{
    return end_of(scene, close_from_it, false, HIGH_FD);
}

static long by_fclose(struct timely_scene *scene)
{
    return end_of(scene, close_stream, true, 0);
}

static void go_on(void)
{
    const long until_ns = timely_now_ns() + TIMELY_WOKEN_US * 1000;
    while (timely_now_ns() < until_ns) {
    }
}

static void close_stream_and_go_on(void *arg)
{
    close_stream(arg);
    go_on();
}

static void replace_and_go_on(void *arg)
{
    replace_it(arg);
    go_on();
}

static long by_dup2_seen(struct timely_scene *scene)
{
    return end_seen_of(scene, replace_and_go_on);
}

static long by_fclose_seen(struct timely_scene *scene)
{
    return end_seen_of(scene, close_stream_and_go_on);
}

// What is still in the stream's buffer arrives then: one byte.
static void write_and_close_stream(void *arg)
{
    (void)fputc('x', ((struct ends *)arg)->stream);
    close_stream(arg);
}

static long by_fclose_written(struct timely_scene *scene)
{
    return end_of(scene, write_and_close_stream, true, 0);
}

// A process that closes every descriptor one by one keeps the connection to the simulator, which is the only one left.
static int close_each(void *unused)
{
    int left = 0;
    (void)unused;
    for (unsigned fd = 0; fd < HIGH_FD; fd++) {
        (void)close_range(fd, fd, 0);
        left += fcntl((int)fd, F_GETFD) >= 0;
    }
    (void)usleep(TIMELY_WOKEN_US);
    return left;
}

static long by_close_range_of_each(struct timely_scene *scene)
{
    return timely_in_child(close_each, scene);
}

static long by_dup2(struct timely_scene *scene)
{
    return end_of(scene, replace_it, false, 0);
}

static long by_dup3(struct timely_scene *scene)
{
    return end_of(scene, replace_it_closing_on_exec, false, 0);
}

// A process that wants every number for itself gets it, also that of the connection, which goes on.
static int replace_each(void *unused)
{
    unsigned refused = 0;
    (void)unused;
    int first = open("/dev/null", O_RDWR);
    for (int fd = first + 1; fd < HIGH_FD; fd++) {
        refused += (fd % 2 == 0 ? dup2(first, fd) : dup3(first, fd, 0)) != fd;
    }
    (void)usleep(TIMELY_WOKEN_US);
    return refused != 0;
}

static long by_dup2_of_each(struct timely_scene *scene)
{
    return timely_in_child(replace_each, scene);
}

static void shut_down(void *arg)
{
    (void)shutdown(((struct ends *)arg)->acts, SHUT_WR);
}

static long by_shutdown(struct timely_scene *scene)
{
    int fds[2];
    char byte;
    (void)socketpair(AF_UNIX, SOCK_STREAM, 0, fds);
    struct ends ends = {.waits = fds[0], .acts = fds[1]};
    timely_later(scene, TIMELY_WOKEN_US, shut_down, &ends);
    long got = timely_result(read(ends.waits, &byte, 1));
    timely_later_end();
    (void)close(fds[0]);
    (void)close(fds[1]);
    return got;
}

// --- addresses ------------------------------------------------------------------------------------------------------

static int bound(int type, struct sockaddr_in *address)
{
    socklen_t room = sizeof *address;
    int fd = socket(AF_INET, type, 0);
    *address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_ANY)};
    int status = bind(fd, (const struct sockaddr *)address, sizeof *address);
    (void)getsockname(fd, (struct sockaddr *)address, &room);
    return status == 0 ? fd : -1;
}

static void datagram_send(void *arg)
{
    const struct ends *ends = arg;
    (void)sendto(ends->acts, "x", 1, 0, (const struct sockaddr *)&ends->address, sizeof ends->address);
}

// A datagram to the address that was bound. Returns 1, its size, if the address is that of the node and not "any".
static long by_bind(struct timely_scene *scene)
{
    char byte;
    struct ends ends;
    ends.waits = bound(SOCK_DGRAM, &ends.address);
    ends.acts = socket(AF_INET, SOCK_DGRAM, 0);
    timely_later(scene, TIMELY_WOKEN_US, datagram_send, &ends);
    long got = timely_result(read(ends.waits, &byte, 1));
    timely_later_end();
    (void)close(ends.waits);
    (void)close(ends.acts);
    return ends.address.sin_addr.s_addr != htonl(INADDR_ANY) ? got : -1;
}

static void connect_to_it(void *arg)
{
    struct ends *ends = arg;
    (void)connect(ends->acts, (const struct sockaddr *)&ends->address, sizeof ends->address);
}

static long by_connect(struct timely_scene *scene)
{
    struct ends ends;
    ends.waits = bound(SOCK_STREAM, &ends.address);
    (void)listen(ends.waits, 1);
    ends.acts = socket(AF_INET, SOCK_STREAM, 0);
    timely_later(scene, TIMELY_WOKEN_US, connect_to_it, &ends);
    int connection = accept(ends.waits, NULL, NULL);
    timely_later_end();
    (void)close(ends.waits);
    (void)close(ends.acts);
    return connection >= 0 ? close(connection) : timely_result(-1);
}

static void accept_one(void *arg)
{
    (void)close(accept(((struct ends *)arg)->waits, NULL, NULL));
}

// The queue of a local socket has room for one connection; the second one waits until the first is accepted.
static long by_connect_to_full(struct timely_scene *scene)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    socklen_t bytes = sizeof address;
    struct ends ends = {.waits = socket(AF_UNIX, SOCK_STREAM, 0)};
    int first = socket(AF_UNIX, SOCK_STREAM, 0), second = socket(AF_UNIX, SOCK_STREAM, 0);
    (void)bind(ends.waits, (const struct sockaddr *)&address, sizeof address.sun_family); // the kernel chooses a name
    (void)listen(ends.waits, 0);
    (void)getsockname(ends.waits, (struct sockaddr *)&address, &bytes);
    timely_later(scene, TIMELY_WOKEN_US, accept_one, &ends);
    (void)connect(first, (const struct sockaddr *)&address, bytes);
    long result = timely_result(connect(second, (const struct sockaddr *)&address, bytes));
    timely_later_end();
    (void)close(ends.waits);
    (void)close(first);
    (void)close(second);
    return result;
}

// --- files ----------------------------------------------------------------------------------------------------------

static int file_make(void)
{
    int fd = memfd_create("text", 0);
    (void)!write(fd, "text", 4);
    return fd;
}

#define FILE_ROW(function, call)                                                                                       \
    static long function(struct timely_scene *scene)                                                                   \
    {                                                                                                                  \
        char text[4] = "TEXT";                                                                                         \
        (void)scene;                                                                                                   \
        int fd = file_make();                                                                                          \
        long bytes = timely_result(call(fd, text, sizeof text, 1));                                                    \
        (void)close(fd);                                                                                               \
        return bytes;                                                                                                  \
    }

FILE_ROW(by_pread, pread)
FILE_ROW(by_pread64, pread64)
FILE_ROW(by_pwrite, pwrite)
FILE_ROW(by_pwrite64, pwrite64)

#define WAKES .at_us = TIMELY_WOKEN_US
enum { LOOP_NS = 2000 }; // a loop of clock reads may be late by a hundredth

static const struct timely_row rows[] = {
    TIMELY_ROW(FUNCTION, "bind", by_bind, 1, WAKES),
    TIMELY_ROW(FUNCTION, "close", by_close, 0, WAKES),
    TIMELY_ROW(FUNCTION, "close_range", by_close_range, 0, WAKES),
    TIMELY_ROW(FUNCTION, "close_range", by_close_range_of_each, 1, .at_us = TIMELY_WOKEN_US + TIMELY_END_US),
    TIMELY_ROW(FUNCTION, "dup2", by_dup2, 0, WAKES),
    TIMELY_ROW(FUNCTION, "dup2", by_dup2_seen, TIMELY_WOKEN_US, .at_us = 2 * TIMELY_WOKEN_US, .late_ns = LOOP_NS),
    TIMELY_ROW(FUNCTION, "dup2", by_dup2_of_each, 0, .at_us = TIMELY_WOKEN_US + TIMELY_END_US),
    TIMELY_ROW(FUNCTION, "dup3", by_dup3, 0, WAKES),
    TIMELY_ROW(FUNCTION, "closefrom", by_closefrom, 0, WAKES),
    TIMELY_ROW(FUNCTION, "connect", by_connect, 0, WAKES),
    TIMELY_ROW(FUNCTION, "connect", by_connect_to_full, 0, WAKES),
    TIMELY_ROW(FUNCTION, "fclose", by_fclose, 0, WAKES),
    TIMELY_ROW(FUNCTION, "fclose", by_fclose_seen, TIMELY_WOKEN_US, .at_us = 2 * TIMELY_WOKEN_US, .late_ns = LOOP_NS),
    TIMELY_ROW(FUNCTION, "fclose", by_fclose_written, 1, WAKES),
    TIMELY_ROW(FUNCTION, "shutdown", by_shutdown, 0, WAKES),
    TIMELY_ROW(FUNCTION, "pread", by_pread, 3),
    TIMELY_ROW(FUNCTION, "pread64", by_pread64, 3),
    TIMELY_ROW(FUNCTION, "pwrite", by_pwrite, 4),
    TIMELY_ROW(FUNCTION, "pwrite64", by_pwrite64, 4),
};
TIMELY_THEME(descriptors, rows);
