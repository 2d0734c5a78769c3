// Waits for signals, in simulated time: sigsuspend, sigwait and its relatives. (pause is in sleep.c.)
//
// While a thread waits here its signals stay blocked in the kernel, and those that are pending are looked for, so that
// none that comes between a look and a wait is missed.
//
// Leaves out: sigpause.
#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "verbs-shim/world/world.h"

static bool has_handler(int number)
{
    struct sigaction action;
    return WORLD_REAL(sigaction)(number, NULL, &action) == 0 && action.sa_handler != SIG_DFL &&
           action.sa_handler != SIG_IGN;
}

// Of those that the mask would let through: is there one with a handler?
static bool handler_due(const sigset_t *mask)
{
    sigset_t pending;
    (void)sigpending(&pending);
    for (int number = 1; number < NSIG; number++) {
        if (sigismember(&pending, number) == 1 && sigismember(mask, number) == 0 && has_handler(number)) {
            return true;
        }
    }
    return false;
}

// What has no handler does what it does: it stops the process, ends it, or nothing.
static void let_others_through(const sigset_t *mask)
{
    sigset_t pending, others, blocked;
    bool any = false;
    (void)sigpending(&pending);
    (void)sigfillset(&others);
    for (int number = 1; number < NSIG; number++) {
        if (sigismember(&pending, number) == 1 && sigismember(mask, number) == 0 && !has_handler(number)) {
            (void)sigdelset(&others, number);
            any = true;
        }
    }
    if (any) {
        (void)pthread_sigmask(SIG_SETMASK, &others, &blocked);
        (void)pthread_sigmask(SIG_SETMASK, &blocked, NULL);
    }
}

static void block_all(sigset_t *before)
{
    sigset_t all;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_BLOCK, &all, before); // but for the shim's
}

int sigsuspend(const sigset_t *asked)
{
    if (!world_timed()) {
        return WORLD_REAL(sigsuspend)(asked);
    }
    sigset_t copy, before;
    const sigset_t *mask = world_signal_mask(asked, &copy);
    block_all(&before);
    while (!handler_due(mask)) {
        let_others_through(mask);
        (void)attach_wait(ATTACH_WAIT_OUTSIDE | ATTACH_WAIT_ENDS, ATTACH_NEVER_PS);
    }
    int status = WORLD_REAL(sigsuspend)(mask); // they are there: it calls their handlers and returns
    int saved = errno;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = saved;
    return status;
}

// --- for one that is taken without a handler ------------------------------------------------------------------------

// The number, or -1: EAGAIN when the deadline has come, EINTR when another was handled.
static int wait_until(const sigset_t *set, siginfo_t *info, uint64_t deadline_ps, bool at_once)
{
    const struct timespec now = {0};
    unsigned interrupts = attach_interrupts();
    bool in_time = true;
    int number;
    while ((number = WORLD_REAL(sigtimedwait)(set, info, &now)) < 0 && errno == EAGAIN && in_time && !at_once) {
        if (attach_interrupts() != interrupts) {
            errno = EINTR;
            return -1;
        }
        in_time = attach_wait(ATTACH_WAIT_OUTSIDE | ATTACH_WAIT_ENDS, deadline_ps) != ATTACH_WOKEN_DEADLINE;
    }
    if (number < 0 && at_once) {
        int saved = errno;
        (void)attach_vain(ATTACH_WAIT_MEMORY | ATTACH_WAIT_OUTSIDE);
        errno = saved;
    }
    return number;
}

int sigtimedwait(const sigset_t *restrict set, siginfo_t *restrict info, const struct timespec *restrict timeout)
{
    if (!world_timed()) {
        return WORLD_REAL(sigtimedwait)(set, info, timeout);
    }
    bool at_once = timeout != NULL && timeout->tv_sec == 0 && timeout->tv_nsec == 0;
    if (timeout != NULL && (timeout->tv_sec < 0 || timeout->tv_nsec < 0 || timeout->tv_nsec >= (long)WORLD_NS_PER_S)) {
        errno = EINVAL;
        return -1;
    }
    return wait_until(set, info, world_deadline_after(timeout), at_once);
}

int sigwaitinfo(const sigset_t *restrict set, siginfo_t *restrict info)
{
    return world_timed() ? wait_until(set, info, ATTACH_NEVER_PS, false) : WORLD_REAL(sigwaitinfo)(set, info);
}

int sigwait(const sigset_t *restrict set, int *restrict number_out)
{
    if (!world_timed()) {
        return WORLD_REAL(sigwait)(set, number_out);
    }
    int number;
    while ((number = wait_until(set, NULL, ATTACH_NEVER_PS, false)) < 0 && errno == EINTR) {
    }
    if (number < 0) {
        return errno;
    }
    *number_out = number;
    return 0;
}
