// Sleeps, in simulated time.
#include <errno.h>
#include <sched.h>
#include <unistd.h>

#include "verbs-shim/world/world.h"

// Returns 0, or EINTR with what is left: a signal was handled.
static int sleep_until(uint64_t deadline_ps, struct timespec *left_out)
{
    unsigned interrupts = attach_interrupts();
    do { // the process's timers wake who sleeps
        if (attach_wait(0, deadline_ps) == ATTACH_WOKEN_DEADLINE) {
            return 0;
        }
    } while (attach_interrupts() == interrupts);
    if (left_out != NULL) {
        uint64_t now_ps = attach_now_ps();
        uint64_t ns = deadline_ps > now_ps ? (deadline_ps - now_ps) / WORLD_PS_PER_NS : 0;
        *left_out = (struct timespec){.tv_sec = (time_t)(ns / WORLD_NS_PER_S), .tv_nsec = (long)(ns % WORLD_NS_PER_S)};
    }
    return EINTR;
}

static bool valid(const struct timespec *time)
{
    return time->tv_sec >= 0 && time->tv_nsec >= 0 && time->tv_nsec < (long)WORLD_NS_PER_S;
}

int clock_nanosleep(clockid_t clock, int flags, const struct timespec *when, struct timespec *left)
{
    if (!world_timed()) {
        return WORLD_REAL(clock_nanosleep)(clock, flags, when, left);
    }
    if (!valid(when)) {
        return EINVAL;
    }
    bool absolute = (flags & TIMER_ABSTIME) != 0;
    return sleep_until(absolute ? world_clock_deadline(clock, when) : world_deadline_after(when),
                       absolute ? NULL : left);
}

int nanosleep(const struct timespec *delay, struct timespec *left)
{
    if (!world_timed()) {
        return WORLD_REAL(nanosleep)(delay, left);
    }
    int error = clock_nanosleep(CLOCK_MONOTONIC, 0, delay, left);
    errno = error != 0 ? error : errno;
    return error != 0 ? -1 : 0;
}

int usleep(useconds_t microseconds)
{
    const struct timespec delay = {.tv_sec = microseconds / 1000000, .tv_nsec = (long)(microseconds % 1000000) * 1000};
    return world_timed() ? nanosleep(&delay, NULL) : WORLD_REAL(usleep)(microseconds);
}

unsigned sleep(unsigned seconds)
{
    if (!world_timed()) {
        return WORLD_REAL(sleep)(seconds);
    }
    const struct timespec delay = {.tv_sec = seconds};
    struct timespec left = {0};
    return nanosleep(&delay, &left) == 0 ? 0 : (unsigned)left.tv_sec + (left.tv_nsec != 0);
}

int pause(void)
{
    if (!world_timed()) {
        return WORLD_REAL(pause)();
    }
    unsigned interrupts = attach_interrupts();
    while (attach_interrupts() == interrupts) {
        (void)attach_wait(0, ATTACH_NEVER_PS);
    }
    errno = EINTR;
    return -1;
}

// A turn of a loop that waits for something.
int sched_yield(void)
{
    if (!world_timed()) {
        return WORLD_REAL(sched_yield)();
    }
    (void)attach_vain(ATTACH_WAIT_MEMORY | ATTACH_WAIT_OUTSIDE);
    return 0;
}
