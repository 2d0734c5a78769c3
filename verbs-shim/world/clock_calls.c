// The functions by which programs read clocks: of the C library, of the vdso, and by system call. Where a program called one of
// the first six is known to the look ahead (attach/ahead.h), which carries them out at these addresses by itself.
#include <errno.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>

#include "verbs-shim/attach/ahead.h"
#include "verbs-shim/attach/kernel_call.h"
#include "verbs-shim/world/calls.h"
#include "verbs-shim/world/clock_calls.h"
#include "verbs-shim/world/world.h"

#define A(i) ((void *)a[i]) // NOLINT(performance-no-int-to-ptr)

// Other clocks belong to a device, or do not exist. Clocks of a process or a thread: linux/posix-timers.h.
bool world_clock_is_simulated(clockid_t clock)
{
    enum { OF_DESCRIPTOR = 3 };
    return clock < 0 ? ((unsigned)clock & 3) != OF_DESCRIPTOR : clock <= CLOCK_TAI;
}

// The caller of an interposed function or of a system call is the site of the read. It is taken where the program
// enters, because a compiler may inline what follows or not.
static int clock_gettime_simulated(clockid_t clock, struct timespec *time_out, uintptr_t site,
                                   struct attach_caller *caller)
{
    const struct attach_clock reading = {WORLD_CLOCK_TIMESPEC, clock, (uintptr_t)time_out};
    if (!world_timed() || !world_clock_is_simulated(clock)) {
        return (int)kernel_call(SYS_clock_gettime, clock, (long)(uintptr_t)time_out, 0, 0, 0, 0);
    }
    *time_out = world_clock_at(clock, world_clock_read_ps(site, &reading, caller));
    return 0;
}

static int gettimeofday_simulated(struct timeval *time_out, void *zone, uintptr_t site, struct attach_caller *caller)
{
    const struct attach_clock reading = {WORLD_CLOCK_TIMEVAL, CLOCK_REALTIME, (uintptr_t)time_out};
    if (!world_timed()) {
        return (int)kernel_call(SYS_gettimeofday, (long)(uintptr_t)time_out, (long)(uintptr_t)zone, 0, 0, 0, 0);
    }
    if (time_out != NULL) {
        const struct timespec now = world_clock_at(CLOCK_REALTIME, world_clock_read_ps(site, &reading, caller));
        *time_out = (struct timeval){.tv_sec = now.tv_sec, .tv_usec = now.tv_nsec / 1000};
    }
    return 0;
}

static time_t time_simulated(time_t *time_out, uintptr_t site, struct attach_caller *caller)
{
    const struct attach_clock reading = {WORLD_CLOCK_SECONDS, CLOCK_REALTIME, (uintptr_t)time_out};
    struct timespec now = {0};
    if (world_timed()) {
        now = world_clock_at(CLOCK_REALTIME, world_clock_read_ps(site, &reading, caller));
    } else {
        (void)kernel_call(SYS_clock_gettime, CLOCK_REALTIME, (long)(uintptr_t)&now, 0, 0, 0, 0);
    }
    if (time_out != NULL) {
        *time_out = now.tv_sec;
    }
    return now.tv_sec;
}

static int with_errno(int status)
{
    errno = status < 0 ? -status : errno;
    return status < 0 ? -1 : 0;
}

// --- functions, with where they were called -----------------------------------------------------------------------------

__attribute__((used)) int clock_gettime_from(clockid_t clock, struct timespec *time_out, struct attach_caller *caller);
__attribute__((used)) int vdso_clock_gettime_from(clockid_t clock, struct timespec *time_out,
                                                  struct attach_caller *caller);
__attribute__((used)) int gettimeofday_from(struct timeval *time_out, void *zone, struct attach_caller *caller);
__attribute__((used)) int vdso_gettimeofday_from(struct timeval *time_out, void *zone, struct attach_caller *caller);
__attribute__((used)) time_t time_from(time_t *time_out, struct attach_caller *caller);

int clock_gettime_from(clockid_t clock, struct timespec *time_out, struct attach_caller *caller)
{
    return with_errno(clock_gettime_simulated(clock, time_out, caller->rip, caller));
}

int vdso_clock_gettime_from(clockid_t clock, struct timespec *time_out, struct attach_caller *caller)
{
    return clock_gettime_simulated(clock, time_out, caller->rip, caller);
}

int gettimeofday_from(struct timeval *time_out, void *zone, struct attach_caller *caller)
{
    return with_errno(gettimeofday_simulated(time_out, zone, caller->rip, caller));
}

int vdso_gettimeofday_from(struct timeval *time_out, void *zone, struct attach_caller *caller)
{
    return gettimeofday_simulated(time_out, zone, caller->rip, caller);
}

time_t time_from(time_t *time_out, struct attach_caller *caller)
{
    return time_simulated(time_out, caller->rip, caller);
}

ATTACH_CALLER_ENTRY(clock_gettime, "rdx", clock_gettime_from);
ATTACH_CALLER_ENTRY(world_vdso_clock_gettime, "rdx", vdso_clock_gettime_from);
ATTACH_CALLER_ENTRY(gettimeofday, "rdx", gettimeofday_from);
ATTACH_CALLER_ENTRY(world_vdso_gettimeofday, "rdx", vdso_gettimeofday_from);
ATTACH_CALLER_ENTRY(time, "rsi", time_from);
ATTACH_CALLER_ENTRY(world_vdso_time, "rsi", time_from);

const struct world_clock_entry world_clock_entries[WORLD_CLOCK_ENTRIES] = {
    {(uintptr_t)clock_gettime, WORLD_CLOCK_TIMESPEC},
    {(uintptr_t)world_vdso_clock_gettime, WORLD_CLOCK_TIMESPEC},
    {(uintptr_t)gettimeofday, WORLD_CLOCK_TIMEVAL},
    {(uintptr_t)world_vdso_gettimeofday, WORLD_CLOCK_TIMEVAL},
    {(uintptr_t)time, WORLD_CLOCK_SECONDS},
    {(uintptr_t)world_vdso_time, WORLD_CLOCK_SECONDS},
};

// --- by system call number ------------------------------------------------------------------------------------------

long world_call_clock_gettime(const long *a)
{
    return clock_gettime_simulated((clockid_t)a[0], A(1), (uintptr_t)a[WORLD_CALLER], NULL);
}

long world_call_gettimeofday(const long *a)
{
    return gettimeofday_simulated(A(0), A(1), (uintptr_t)a[WORLD_CALLER], NULL);
}

long world_call_time(const long *a)
{
    return time_simulated(A(0), (uintptr_t)a[WORLD_CALLER], NULL);
}
