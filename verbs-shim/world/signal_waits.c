// Waits for signals in simulated time: sigsuspend, sigwait and its relatives. (pause is in sleep.c.)
//
// While a thread waits here, its signals stay blocked in the kernel and the pending ones are checked, so that no signal
// between a check and a wait is missed.
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "verbs-shim/attach/kernel_call.h"
#include "verbs-shim/world/calls.h"
#include "verbs-shim/world/interpret.h"
#include "verbs-shim/world/world.h"

static bool has_handler(int number)
{
    struct sigaction action;
    return WORLD_REAL(sigaction)(number, NULL, &action) == 0 && action.sa_handler != SIG_DFL &&
           action.sa_handler != SIG_IGN;
}

// Of the program. The shim's own look at processor time (spin.c) is pending for an instant when that time is up.
static sigset_t pending_now(void)
{
    sigset_t pending;
    (void)sigpending(&pending);
    (void)world_signal_mask(&pending, &pending);
    return pending;
}

// Is a signal with a handler pending that the mask would let through?
static bool handler_due(const sigset_t *mask)
{
    const sigset_t pending = pending_now();
    for (int number = 1; number < NSIG; number++) {
        if (sigismember(&pending, number) == 1 && sigismember(mask, number) == 0 && has_handler(number)) {
            return true;
        }
    }
    return false;
}

// Signals without a handler have their default effect: they stop the process, end it, or do nothing.
static void let_others_through(const sigset_t *mask)
{
    const sigset_t pending = pending_now();
    sigset_t others, blocked;
    bool any = false;
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
    (void)pthread_sigmask(SIG_BLOCK, &all, before); // except the shim's signals
}

// The kernel's sets are shorter than the C library's.
enum { SIGNAL_SET_BYTES = 8 };

static sigset_t set_of(long address)
{
    sigset_t set;
    (void)sigemptyset(&set);
    memcpy(&set, (const void *)address, SIGNAL_SET_BYTES);
    return set;
}

long world_call_sigsuspend(const long *a)
{
    sigset_t before, mask = set_of(a[0]);
    (void)world_signal_mask(&mask, &mask);
    block_all(&before);
    while (!handler_due(&mask)) {
        let_others_through(&mask);
        (void)attach_wait(ATTACH_WAIT_OUTSIDE | ATTACH_WAIT_ENDS, ATTACH_NEVER_PS);
    }
    // Such a signal is pending: the kernel calls its handler and returns.
    long status = kernel_call(SYS_rt_sigsuspend, (long)(uintptr_t)&mask, SIGNAL_SET_BYTES, 0, 0, 0, 0);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return status;
}

// --- signals that are taken without a handler -----------------------------------------------------------------------

// Returns the number, -EAGAIN if the deadline has passed, or -EINTR if another signal was handled.
long world_call_sigtimedwait(const long *a)
{
    const struct timespec *timeout = (const struct timespec *)a[2], now = {0};
    if (timeout != NULL && !world_time_valid(timeout)) {
        return -EINVAL;
    }
    bool at_once = timeout != NULL && timeout->tv_sec == 0 && timeout->tv_nsec == 0, in_time = true;
    uint64_t deadline_ps = world_deadline_after(timeout);
    unsigned interrupts = attach_interrupts();
    uint64_t bits;
    if (!interpret_peek((uint64_t)a[0], &bits)) {
        return -EFAULT;
    }
    sigset_t wanted = set_of((long)(uintptr_t)&bits);
    (void)world_signal_mask(&wanted, &wanted);
    long number;
    while ((number = kernel_call(SYS_rt_sigtimedwait, (long)(uintptr_t)&wanted, a[1], (long)(uintptr_t)&now, a[3], 0, 0)) == -EAGAIN &&
           in_time && !at_once) {
        if (attach_interrupts() != interrupts) {
            return -EINTR;
        }
        in_time = attach_wait(ATTACH_WAIT_OUTSIDE | ATTACH_WAIT_ENDS, deadline_ps) != ATTACH_WOKEN_DEADLINE;
    }
    if (number < 0 && at_once) {
        (void)attach_poll_call(ATTACH_WAIT_MEMORY | ATTACH_WAIT_OUTSIDE, SYS_rt_sigtimedwait);
    }
    return number;
}
