// What calls on streams return when something else happens meanwhile: the other end goes away, a signal comes, a time is
// over. The rows make their own pair of sockets; another thread acts on the second one.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "timely.h"

enum { PIECE_BYTES = 4, ALL_BYTES = 10, TRUE = 1 };

struct pair {
    const struct timely_scene *scene;
    int waits, acts;
};

static struct pair pair_make(const struct timely_scene *scene, int type)
{
    int fds[2] = {-1, -1};
    (void)socketpair(AF_UNIX, type, 0, fds);
    return (struct pair){scene, fds[0], fds[1]};
}

// acts: is it still open?
static void pair_close(const struct pair *pair, bool acts)
{
    (void)close(pair->waits);
    if (acts) {
        (void)close(pair->acts);
    }
}

static void on_signal(int number)
{
    (void)number;
}

static void handle(int flags)
{
    const struct sigaction action = {.sa_handler = on_signal, .sa_flags = flags};
    (void)sigaction(SIGUSR1, &action, NULL);
}

static void signal_waiter(const struct timely_scene *scene)
{
    (void)tgkill(scene->process, scene->thread, SIGUSR1);
}

// --- the other end goes away ----------------------------------------------------------------------------------------

static void send_piece_and_close(void *arg)
{
    const struct pair *pair = arg;
    (void)send(pair->acts, "four", PIECE_BYTES, 0);
    (void)close(pair->acts);
}

// recv(2), MSG_WAITALL: "the call may still return less data than requested if (...) an error or disconnect occurs".
static long by_recv_of_all(struct timely_scene *scene)
{
    char all[ALL_BYTES];
    struct pair pair = pair_make(scene, SOCK_STREAM);
    timely_later(scene, TIMELY_WOKEN_US, send_piece_and_close, &pair);
    long got = timely_result(recv(pair.waits, all, sizeof all, MSG_WAITALL));
    timely_later_end();
    pair_close(&pair, false);
    return got;
}

static void close_it(void *arg)
{
    (void)close(((struct pair *)arg)->acts);
}

// More than there is room for, and nobody who will take the rest: what had room counts (write(2), "partial write").
static char many[1 << 22];

static long part_of_many(long put)
{
    return put > 0 && put < (long)sizeof many ? TRUE : put;
}

static long by_send_of_many(struct timely_scene *scene)
{
    struct pair pair = pair_make(scene, SOCK_STREAM);
    timely_later(scene, TIMELY_WOKEN_US, close_it, &pair);
    long put = timely_result(send(pair.waits, many, sizeof many, MSG_NOSIGNAL));
    timely_later_end();
    pair_close(&pair, false);
    return part_of_many(put);
}

// By the number of pieces: 0: write.
static long write_to_pipe(struct timely_scene *scene, unsigned pieces)
{
    struct iovec both[2] = {{many, sizeof many / 2}, {many, sizeof many / 2}};
    int ends[2];
    (void)!pipe(ends);
    struct pair pair = {scene, ends[1], ends[0]};
    (void)signal(SIGPIPE, SIG_IGN);
    timely_later(scene, TIMELY_WOKEN_US, close_it, &pair);
    long put = pieces == 0 ? write(pair.waits, many, sizeof many) : writev(pair.waits, both, (int)pieces);
    put = timely_result(put);
    timely_later_end();
    (void)signal(SIGPIPE, SIG_DFL);
    pair_close(&pair, false);
    return part_of_many(put);
}

static long by_write_of_many(struct timely_scene *scene)
{
    return write_to_pipe(scene, 0);
}

static long by_writev_of_many(struct timely_scene *scene)
{
    return write_to_pipe(scene, 2);
}

// --- calls that do not wait on a descriptor that does ---------------------------------------------------------------

static long by_recv_at_once(struct timely_scene *scene)
{
    char byte;
    const struct pair pair = pair_make(scene, SOCK_STREAM);
    long got = timely_result(recv(pair.waits, &byte, 1, MSG_DONTWAIT));
    pair_close(&pair, true);
    return got;
}

static long by_recvfrom_at_once(struct timely_scene *scene)
{
    char byte;
    const struct pair pair = pair_make(scene, SOCK_DGRAM);
    long got = timely_result(recvfrom(pair.waits, &byte, 1, MSG_DONTWAIT, NULL, NULL));
    pair_close(&pair, true);
    return got;
}

// --- a signal ends no call whose handler has SA_RESTART (signal(7)) -------------------------------------------------

static void signal_and_send(void *arg)
{
    const struct pair *pair = arg;
    signal_waiter(pair->scene);
    (void)usleep(TIMELY_AGAIN_US - TIMELY_WOKEN_US);
    (void)send(pair->acts, "x", 1, 0);
}

static long read_and_be_signalled(struct timely_scene *scene, int flags)
{
    char byte;
    struct pair pair = pair_make(scene, SOCK_STREAM);
    handle(flags);
    timely_later(scene, TIMELY_WOKEN_US, signal_and_send, &pair);
    long got = timely_result(read(pair.waits, &byte, 1));
    timely_later_end();
    pair_close(&pair, true);
    return got;
}

static long by_read_restarted(struct timely_scene *scene)
{
    return read_and_be_signalled(scene, SA_RESTART);
}

// Ended by the signal; the other thread ends later.
static long by_read_ended(struct timely_scene *scene)
{
    return read_and_be_signalled(scene, 0);
}

static void signal_and_unlock(void *arg)
{
    const struct pair *pair = arg;
    signal_waiter(pair->scene);
    (void)usleep(TIMELY_AGAIN_US - TIMELY_WOKEN_US);
    (void)flock(pair->acts, LOCK_UN);
}

// Two opens of one file; the other one is locked.
static long lock_and_be_signalled(struct timely_scene *scene, int flags)
{
    char name[] = "/dev/shm/timely-streams-XXXXXX";
    struct pair pair = {.scene = scene, .waits = mkstemp(name)};
    pair.acts = open(name, O_RDWR);
    (void)unlink(name);
    (void)flock(pair.acts, LOCK_EX);
    handle(flags);
    timely_later(scene, TIMELY_WOKEN_US, signal_and_unlock, &pair);
    long result = timely_result(flock(pair.waits, LOCK_EX));
    timely_later_end();
    pair_close(&pair, true);
    return result;
}

static long by_flock_restarted(struct timely_scene *scene)
{
    return lock_and_be_signalled(scene, SA_RESTART);
}

static long by_flock_ended(struct timely_scene *scene)
{
    return lock_and_be_signalled(scene, 0);
}

// --- poll and its relatives -----------------------------------------------------------------------------------------

// Who is signalled when there is data is told of the data.
static void send_and_signal(void *arg)
{
    const struct pair *pair = arg;
    (void)send(pair->acts, "x", 1, 0);
    signal_waiter(pair->scene);
}

static long by_poll_of_data(struct timely_scene *scene)
{
    struct pair pair = pair_make(scene, SOCK_STREAM);
    struct pollfd one = {.fd = pair.waits, .events = POLLIN};
    handle(0);
    timely_later(scene, TIMELY_WOKEN_US, send_and_signal, &pair);
    long ready = timely_result(poll(&one, 1, -1));
    timely_later_end();
    pair_close(&pair, true);
    return ready;
}

// select(2): "If the timeout expires before any file descriptors become ready, then all the sets are returned empty".
static long by_select_of_nothing(struct timely_scene *scene)
{
    struct pair pair = pair_make(scene, SOCK_STREAM);
    struct timeval limit = {.tv_usec = TIMELY_WOKEN_US};
    fd_set in, except;
    FD_ZERO(&in);
    FD_ZERO(&except);
    FD_SET(pair.waits, &in);
    FD_SET(pair.acts, &in);
    FD_SET(pair.waits, &except);
    int ready = select((pair.waits > pair.acts ? pair.waits : pair.acts) + 1, &in, NULL, &except, &limit);
    bool empty = !FD_ISSET(pair.waits, &in) && !FD_ISSET(pair.acts, &in) && !FD_ISSET(pair.waits, &except);
    pair_close(&pair, true);
    return ready == 0 ? empty : timely_result(ready);
}

static sigset_t set_of(int number)
{
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, number);
    return set;
}

// 1 if the thread blocks SIGUSR1 and not SIGUSR2.
static long first_is_blocked(void)
{
    sigset_t now;
    (void)pthread_sigmask(SIG_SETMASK, NULL, &now);
    return sigismember(&now, SIGUSR1) == 1 && sigismember(&now, SIGUSR2) == 0;
}

// The mask of a call is the thread's while it lasts, and no longer.
static long masked(long (*wait_with)(const sigset_t *mask))
{
    const sigset_t first = set_of(SIGUSR1), second = set_of(SIGUSR2);
    (void)pthread_sigmask(SIG_BLOCK, &first, NULL);
    long result = wait_with(&second);
    long restored = first_is_blocked();
    (void)pthread_sigmask(SIG_UNBLOCK, &first, NULL);
    (void)pthread_sigmask(SIG_UNBLOCK, &second, NULL);
    return result == 0 ? restored : result;
}

static long ppoll_with(const sigset_t *mask)
{
    const struct timespec limit = {.tv_nsec = TIMELY_WOKEN_US * 1000};
    return timely_result(ppoll(NULL, 0, &limit, mask));
}

static long pselect_with(const sigset_t *mask)
{
    const struct timespec limit = {.tv_nsec = TIMELY_WOKEN_US * 1000};
    return timely_result(pselect(0, NULL, NULL, NULL, &limit, mask));
}

static long by_ppoll_masked(struct timely_scene *scene)
{
    (void)scene;
    return masked(ppoll_with);
}

static long by_pselect_masked(struct timely_scene *scene)
{
    (void)scene;
    return masked(pselect_with);
}

#define WOKEN .at_us = TIMELY_WOKEN_US
#define LATER .at_us = TIMELY_AGAIN_US
enum { POLL_NS = 200 /* a call that finds nothing is an iteration of a loop */ };

static const struct timely_row rows[] = {
    TIMELY_ROW(FUNCTION, "recv", by_recv_of_all, PIECE_BYTES, WOKEN),
    TIMELY_ROW(FUNCTION, "send", by_send_of_many, TRUE, WOKEN),
    TIMELY_ROW(FUNCTION, "write", by_write_of_many, TRUE, WOKEN),
    TIMELY_ROW(FUNCTION, "writev", by_writev_of_many, TRUE, WOKEN),
    TIMELY_ROW(FUNCTION, "recv", by_recv_at_once, -EAGAIN, .late_ns = POLL_NS),
    TIMELY_ROW(FUNCTION, "recvfrom", by_recvfrom_at_once, -EAGAIN, .late_ns = POLL_NS),
    TIMELY_ROW(FUNCTION, "read", by_read_restarted, 1, LATER),
    TIMELY_ROW(FUNCTION, "read", by_read_ended, -EINTR, LATER),
    TIMELY_ROW(LIBRARY, "flock", by_flock_restarted, 0, LATER),
    TIMELY_ROW(LIBRARY, "flock", by_flock_ended, -EINTR, LATER),
    TIMELY_ROW(FUNCTION, "poll", by_poll_of_data, 1, WOKEN),
    TIMELY_ROW(FUNCTION, "select", by_select_of_nothing, TRUE, WOKEN),
    TIMELY_ROW(FUNCTION, "ppoll", by_ppoll_masked, TRUE, WOKEN),
    TIMELY_ROW(LIBRARY, "pselect", by_pselect_masked, TRUE, WOKEN),
};
TIMELY_THEME(streams, rows);
