// poll, select and epoll: the kernel is asked without waiting; the waiting is in simulated time.
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/syscall.h>

#include "verbs-shim/attach/kernel_call.h"
#include "verbs-shim/world/calls.h"
#include "verbs-shim/world/world.h"

enum { SIGNAL_SET_BYTES = 8 }; // the kernel's
static const struct timespec at_once;

// A set of descriptors. `query` returns how many are ready now, or -errno, and writes which ones. If there are more
// descriptors than watches, the simulator gets none of them, and the thread checks again whenever anything may have
// changed.
struct ready_set {
    long (*query)(struct ready_set *set);
    const long *arguments;
    struct attach_watch watches[ATTACH_WATCHES_MAX];
    unsigned count; // number of watches; more than ATTACH_WATCHES_MAX: too many
    fd_set wanted[3];
    size_t set_bytes; // of each set: the kernel writes whole words only
};

static void watch_add(struct ready_set *set, int fd, short events)
{
    if (set->count < ATTACH_WATCHES_MAX) {
        set->watches[set->count] = (struct attach_watch){fd, events};
    }
    set->count++;
}

// A query without a timeout is an iteration of the program's own loop. -EINTR: a signal was handled meanwhile.
static long wait_ready(struct ready_set *set, uint64_t deadline_ps, bool never_waits)
{
    attach_progress();
    long found = set->query(set);
    if (found != 0) {
        attach_found();
        return found;
    }
    if (never_waits) {
        (void)attach_poll_call(ATTACH_WAIT_MEMORY | ATTACH_WAIT_OUTSIDE,
                               (uintptr_t)set->query + (uint64_t)set->arguments[0]);
        return 0;
    }
    unsigned interrupts = attach_interrupts();
    while (found == 0) {
        bool in_time = attach_wait_descriptors(set->watches, set->count, deadline_ps) != ATTACH_WOKEN_DEADLINE;
        found = set->query(set);
        if (found == 0 && attach_interrupts() != interrupts) {
            return -EINTR;
        }
        if (!in_time) {
            break;
        }
    }
    return found;
}

static bool is_zero(const struct timespec *time)
{
    return time != NULL && time->tv_sec == 0 && time->tv_nsec == 0;
}

// The call has a signal mask of its own while it lasts.
static long wait_masked(struct ready_set *set, uint64_t deadline_ps, bool never_waits, const sigset_t *mask)
{
    uint64_t before, own = 0;
    sigset_t copy;
    if (mask == NULL) {
        return wait_ready(set, deadline_ps, never_waits);
    }
    memcpy(&own, mask, SIGNAL_SET_BYTES);
    memset(&copy, 0, sizeof copy);
    memcpy(&copy, &own, SIGNAL_SET_BYTES);
    (void)world_signal_mask(&copy, &copy);
    (void)kernel_call(SYS_rt_sigprocmask, SIG_SETMASK, (long)(uintptr_t)&copy, (long)(uintptr_t)&before,
                      SIGNAL_SET_BYTES, 0, 0);
    long found = wait_ready(set, deadline_ps, never_waits);
    (void)kernel_call(SYS_rt_sigprocmask, SIG_SETMASK, (long)(uintptr_t)&before, 0, SIGNAL_SET_BYTES, 0, 0);
    return found;
}

static uint64_t deadline_ms(int timeout_ms)
{
    return timeout_ms > 0 ? world_deadline_after_ms(timeout_ms) : ATTACH_NEVER_PS;
}

// --- poll -----------------------------------------------------------------------------------------------------------

static long poll_query(struct ready_set *set)
{
    return kernel_call(SYS_ppoll, set->arguments[0], set->arguments[1], (long)(uintptr_t)&at_once, 0, 0, 0);
}

static long poll_with(const long *a, uint64_t deadline_ps, bool never_waits, const sigset_t *mask)
{
    struct ready_set set = {.query = poll_query, .arguments = a};
    const struct pollfd *fds = (const struct pollfd *)a[0];
    for (unsigned long i = 0; i < (unsigned long)a[1] && !never_waits && set.count <= ATTACH_WATCHES_MAX; i++) {
        if (fds[i].fd >= 0) {
            watch_add(&set, fds[i].fd, fds[i].events);
        }
    }
    return wait_masked(&set, deadline_ps, never_waits, mask);
}

long world_call_poll(const long *a)
{
    return poll_with(a, deadline_ms((int)a[2]), (int)a[2] == 0, NULL);
}

long world_call_ppoll(const long *a)
{
    const struct timespec *timeout = (const struct timespec *)a[2];
    return poll_with(a, world_deadline_after(timeout), is_zero(timeout), (const sigset_t *)a[3]);
}

int poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
    return world_timed() ? (int)WORLD_CALL(world_call_poll, fds, count, timeout_ms)
                         : WORLD_REAL(poll)(fds, count, timeout_ms);
}

int ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask)
{
    return world_timed() ? (int)WORLD_CALL(world_call_ppoll, fds, count, timeout, mask)
                         : WORLD_REAL(ppoll)(fds, count, timeout, mask);
}

int __poll_chk(struct pollfd *fds, nfds_t count, int timeout_ms, size_t room);
int __ppoll_chk(struct pollfd *fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask, size_t room);
void __chk_fail(void) __attribute__((noreturn));

int __poll_chk(struct pollfd *fds, nfds_t count, int timeout_ms, size_t room)
{
    if (room / sizeof *fds < count) {
        __chk_fail();
    }
    return poll(fds, count, timeout_ms);
}

int __ppoll_chk(struct pollfd *fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask, size_t room)
{
    if (room / sizeof *fds < count) {
        __chk_fail();
    }
    return ppoll(fds, count, timeout, mask);
}

// --- select ---------------------------------------------------------------------------------------------------------

// The kernel writes into the sets, so each query begins with a copy of the original ones. With more than FD_SETSIZE
// descriptors: EINVAL.
static long select_query(struct ready_set *set)
{
    const long *a = set->arguments;
    fd_set copies[3];
    memcpy(copies, set->wanted, sizeof copies);
    long found = kernel_call(SYS_pselect6, a[0], a[1] != 0 ? (long)(uintptr_t)&copies[0] : 0,
                             a[2] != 0 ? (long)(uintptr_t)&copies[1] : 0, a[3] != 0 ? (long)(uintptr_t)&copies[2] : 0,
                             (long)(uintptr_t)&at_once, 0);
    for (int i = 0; i < 3 && found >= 0; i++) {
        if (a[1 + i] != 0) {
            memcpy((void *)a[1 + i], &copies[i], set->set_bytes);
        }
    }
    return found;
}

static long select_with(const long *a, uint64_t deadline_ps, bool never_waits, const sigset_t *mask)
{
    static const short events[] = {POLLIN, POLLOUT, POLLPRI};
    if (a[0] < 0 || a[0] > FD_SETSIZE) {
        return -EINVAL;
    }
    struct ready_set set = {.query = select_query, .arguments = a, .set_bytes = ((size_t)a[0] + 63) / 64 * 8};
    for (int i = 0; i < 3; i++) {
        if (a[1 + i] != 0) {
            memcpy(&set.wanted[i], (const void *)a[1 + i], set.set_bytes);
        }
        for (int fd = 0; fd < (int)a[0] && a[1 + i] != 0 && !never_waits; fd++) {
            if (FD_ISSET(fd, &set.wanted[i])) {
                watch_add(&set, fd, events[i]);
            }
        }
    }
    return wait_masked(&set, deadline_ps, never_waits, mask);
}

// Leaves out: the remaining time, which Linux writes back.
long world_call_select(const long *a)
{
    const struct timeval *timeout = (const struct timeval *)a[4];
    struct timespec time = {0};
    if (timeout != NULL) {
        time = (struct timespec){.tv_sec = timeout->tv_sec, .tv_nsec = timeout->tv_usec * 1000};
    }
    const struct timespec *when = timeout != NULL ? &time : NULL;
    return select_with(a, world_deadline_after(when), is_zero(when), NULL);
}

// The sixth argument points to a pair: the mask's address and its size.
long world_call_pselect(const long *a)
{
    const struct timespec *timeout = (const struct timespec *)a[4];
    const uintptr_t *mask = (const uintptr_t *)a[5];
    return select_with(a, world_deadline_after(timeout), is_zero(timeout),
                       mask != NULL ? (const sigset_t *)mask[0] : NULL);
}

int select(int count, fd_set *restrict in, fd_set *restrict out, fd_set *restrict except,
           struct timeval *restrict timeout)
{
    return world_timed() ? (int)WORLD_CALL(world_call_select, count, in, out, except, timeout)
                         : WORLD_REAL(select)(count, in, out, except, timeout);
}

// --- epoll ----------------------------------------------------------------------------------------------------------

static long epoll_query(struct ready_set *set)
{
    const long *a = set->arguments;
    return kernel_call(SYS_epoll_pwait, a[0], a[1], a[2], 0, 0, SIGNAL_SET_BYTES);
}

static long epoll_with(const long *a, uint64_t deadline_ps, bool never_waits, const sigset_t *mask)
{
    struct ready_set set = {.query = epoll_query, .arguments = a};
    watch_add(&set, (int)a[0], POLLIN);
    return wait_masked(&set, deadline_ps, never_waits, mask);
}

long world_call_epoll_wait(const long *a)
{
    return epoll_with(a, deadline_ms((int)a[3]), (int)a[3] == 0, NULL);
}

long world_call_epoll_pwait(const long *a)
{
    return epoll_with(a, deadline_ms((int)a[3]), (int)a[3] == 0, (const sigset_t *)a[4]);
}

long world_call_epoll_pwait2(const long *a)
{
    const struct timespec *timeout = (const struct timespec *)a[3];
    return epoll_with(a, world_deadline_after(timeout), is_zero(timeout), (const sigset_t *)a[4]);
}

int epoll_wait(int fd, struct epoll_event *events, int room, int timeout_ms)
{
    return world_timed() ? (int)WORLD_CALL(world_call_epoll_wait, fd, events, room, timeout_ms)
                         : WORLD_REAL(epoll_wait)(fd, events, room, timeout_ms);
}

int epoll_pwait(int fd, struct epoll_event *events, int room, int timeout_ms, const sigset_t *mask)
{
    return world_timed() ? (int)WORLD_CALL(world_call_epoll_pwait, fd, events, room, timeout_ms, mask, SIGNAL_SET_BYTES)
                         : WORLD_REAL(epoll_pwait)(fd, events, room, timeout_ms, mask);
}
