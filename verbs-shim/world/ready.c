// poll, select and epoll: asked of the kernel without waiting; the waiting is in simulated time.
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "verbs-shim/world/world.h"

// One look at a set of descriptors: how many are ready, or -1.
typedef int (*look_fn)(void *set);

// A look with no time to wait is a turn of the program's own loop. -1 EINTR: a signal was handled meanwhile.
static int wait_ready(look_fn look, void *set, uint64_t deadline_ps, bool at_once)
{
    attach_look();
    int found = look(set);
    if (found != 0) {
        attach_found();
        return found;
    }
    if (at_once) {
        (void)attach_vain(ATTACH_WAIT_MEMORY | ATTACH_WAIT_OUTSIDE);
        return 0;
    }
    unsigned interrupts = attach_interrupts();
    while (found == 0) {
        bool in_time = world_wait(deadline_ps);
        attach_look();
        found = look(set);
        if (found == 0 && attach_interrupts() != interrupts) {
            errno = EINTR;
            return -1;
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

// The signals of a call with a mask of its own, for as long as it lasts.
static void mask_enter(const sigset_t *mask, sigset_t *before)
{
    if (mask != NULL) {
        (void)pthread_sigmask(SIG_SETMASK, mask, before);
    }
}

static void mask_leave(const sigset_t *mask, const sigset_t *before)
{
    if (mask != NULL) {
        (void)pthread_sigmask(SIG_SETMASK, before, NULL);
    }
}

// --- poll
// -------------------------------------------------------------------------------------------------------------

struct poll_set {
    struct pollfd *fds;
    nfds_t count;
};

static int poll_look(void *set)
{
    const struct poll_set *poll_set = set;
    const struct timespec now = {0};
    return (int)syscall(SYS_ppoll, poll_set->fds, poll_set->count, &now, NULL, 0);
}

int poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
    if (!world_timed()) {
        return WORLD_REAL(poll)(fds, count, timeout_ms);
    }
    struct poll_set set = {fds, count};
    return wait_ready(poll_look, &set, timeout_ms > 0 ? world_deadline_after_ms(timeout_ms) : ATTACH_NEVER_PS,
                      timeout_ms == 0);
}

int ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask)
{
    if (!world_timed()) {
        return WORLD_REAL(ppoll)(fds, count, timeout, mask);
    }
    struct poll_set set = {fds, count};
    sigset_t before;
    mask_enter(mask, &before);
    int found = wait_ready(poll_look, &set, world_deadline_after(timeout), is_zero(timeout));
    mask_leave(mask, &before);
    return found;
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

// --- select
// -----------------------------------------------------------------------------------------------------------

struct select_set {
    int count;
    fd_set *asked[3]; // the program's
    fd_set wanted[3]; // what it asked
};

// The kernel writes into the sets, so that each look begins with what was asked. Sets may be larger than an fd_set.
static int select_look(void *set)
{
    struct select_set *select_set = set;
    const struct timespec now = {0};
    fd_set copies[3];
    for (int i = 0; i < 3; i++) {
        copies[i] = select_set->wanted[i];
    }
    int found =
        (int)syscall(SYS_pselect6, select_set->count, select_set->asked[0] ? &copies[0] : NULL,
                     select_set->asked[1] ? &copies[1] : NULL, select_set->asked[2] ? &copies[2] : NULL, &now, NULL);
    for (int i = 0; i < 3 && found >= 0; i++) {
        if (select_set->asked[i] != NULL) {
            *select_set->asked[i] = copies[i];
        }
    }
    return found;
}

int pselect(int count, fd_set *restrict in, fd_set *restrict out, fd_set *restrict except,
            const struct timespec *restrict timeout, const sigset_t *restrict mask)
{
    if (!world_timed() || count > FD_SETSIZE) {
        return WORLD_REAL(pselect)(count, in, out, except, timeout, mask);
    }
    struct select_set set = {.count = count, .asked = {in, out, except}};
    for (int i = 0; i < 3; i++) {
        if (set.asked[i] != NULL) {
            set.wanted[i] = *set.asked[i];
        }
    }
    sigset_t before;
    mask_enter(mask, &before);
    int found = wait_ready(select_look, &set, world_deadline_after(timeout), is_zero(timeout));
    mask_leave(mask, &before);
    return found;
}

int select(int count, fd_set *restrict in, fd_set *restrict out, fd_set *restrict except,
           struct timeval *restrict timeout)
{
    if (!world_timed() || count > FD_SETSIZE) {
        return WORLD_REAL(select)(count, in, out, except, timeout);
    }
    struct timespec time = {0};
    if (timeout != NULL) {
        time = (struct timespec){.tv_sec = timeout->tv_sec, .tv_nsec = timeout->tv_usec * 1000};
    }
    return pselect(count, in, out, except, timeout != NULL ? &time : NULL, NULL);
}

// --- epoll
// ------------------------------------------------------------------------------------------------------------

struct epoll_set {
    int fd, room;
    struct epoll_event *events;
};

static int epoll_look(void *set)
{
    const struct epoll_set *epoll_set = set;
    return (int)syscall(SYS_epoll_pwait, epoll_set->fd, epoll_set->events, epoll_set->room, 0, NULL, 0);
}

static int epoll_until(int fd, struct epoll_event *events, int room, uint64_t deadline_ps, bool at_once,
                       const sigset_t *mask)
{
    struct epoll_set set = {fd, room, events};
    sigset_t before;
    mask_enter(mask, &before);
    int found = wait_ready(epoll_look, &set, deadline_ps, at_once);
    mask_leave(mask, &before);
    return found;
}

int epoll_pwait(int fd, struct epoll_event *events, int room, int timeout_ms, const sigset_t *mask)
{
    if (!world_timed()) {
        return WORLD_REAL(epoll_pwait)(fd, events, room, timeout_ms, mask);
    }
    return epoll_until(fd, events, room, timeout_ms > 0 ? world_deadline_after_ms(timeout_ms) : ATTACH_NEVER_PS,
                       timeout_ms == 0, mask);
}

int epoll_wait(int fd, struct epoll_event *events, int room, int timeout_ms)
{
    return world_timed() ? epoll_pwait(fd, events, room, timeout_ms, NULL)
                         : WORLD_REAL(epoll_wait)(fd, events, room, timeout_ms);
}

int epoll_pwait2(int fd, struct epoll_event *events, int room, const struct timespec *timeout, const sigset_t *mask)
{
    if (!world_timed()) {
        return WORLD_REAL(epoll_pwait2)(fd, events, room, timeout, mask);
    }
    return epoll_until(fd, events, room, world_deadline_after(timeout), is_zero(timeout), mask);
}
