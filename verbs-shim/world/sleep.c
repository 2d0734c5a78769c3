// Sleeps, in simulated time.
#include <errno.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "verbs-shim/world/calls.h"
#include "verbs-shim/world/world.h"

// Returns 0, or -EINTR and the remaining time: a signal was handled.
static long sleep_until(uint64_t deadline_ps, struct timespec *left_out)
{
    unsigned interrupts = attach_interrupts();
    do { // the process's timers wake sleeping threads, and so do signals
        if (attach_wait(ATTACH_WAIT_ENDS, deadline_ps) == ATTACH_WOKEN_DEADLINE) {
            return 0;
        }
    } while (attach_interrupts() == interrupts);
    if (left_out != NULL) {
        uint64_t now_ps = attach_now_ps();
        uint64_t ns = deadline_ps > now_ps ? (deadline_ps - now_ps) / WORLD_PS_PER_NS : 0;
        *left_out = (struct timespec){.tv_sec = (time_t)(ns / WORLD_NS_PER_S), .tv_nsec = (long)(ns % WORLD_NS_PER_S)};
    }
    return -EINTR;
}

long world_call_clock_nanosleep(const long *a)
{
    const struct timespec *when = (const struct timespec *)a[2];
    bool absolute = (a[1] & TIMER_ABSTIME) != 0;
    if (when == NULL || !world_time_valid(when)) {
        return when == NULL ? -EFAULT : -EINVAL;
    }
    return sleep_until(absolute ? world_clock_deadline((clockid_t)a[0], when) : world_deadline_after(when),
                       absolute ? NULL : (struct timespec *)a[3]);
}

long world_call_nanosleep(const long *a)
{
    return world_call_clock_nanosleep((const long[]){CLOCK_MONOTONIC, 0, a[0], a[1]});
}

long world_call_pause(const long *a)
{
    (void)a;
    unsigned interrupts = attach_interrupts();
    while (attach_interrupts() == interrupts) {
        (void)attach_wait(0, ATTACH_NEVER_PS);
    }
    return -EINTR;
}

// An iteration of a loop that waits for something.
int sched_yield(void)
{
    if (!world_timed()) {
        return WORLD_REAL(sched_yield)();
    }
    (void)attach_poll_call(ATTACH_WAIT_MEMORY | ATTACH_WAIT_OUTSIDE, SYS_sched_yield);
    return 0;
}
