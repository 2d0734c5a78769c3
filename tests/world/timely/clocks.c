// Clocks: by how much they go on during a sleep.
#include <pthread.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/times.h>
#include <time.h>
#include <unistd.h>

#include "timely.h"

enum { SLEEP_US = 20000, SLEEP_S = 2 };

static long us_of_timespec(const struct timespec *time)
{
    return time->tv_sec * 1000000 + time->tv_nsec / 1000;
}

static long us_of_timeval(const struct timeval *time)
{
    return time->tv_sec * 1000000 + time->tv_usec;
}

// Rounded to 10 us: the reads themselves may take the clock to its next microsecond.
static long passed(long before_us, long after_us)
{
    return (after_us - before_us) / 10 * 10;
}

// --- functions ------------------------------------------------------------------------------------------------------

static long by_clock(struct timely_scene *scene)
{
    (void)scene;
    long before = clock();
    (void)usleep(SLEEP_US);
    return passed(before, clock()); // CLOCKS_PER_SEC is a million
}

static long by_clock_gettime(struct timely_scene *scene)
{
    static const clockid_t kinds[] = {CLOCK_REALTIME,         CLOCK_MONOTONIC, CLOCK_MONOTONIC_RAW,
                                      CLOCK_REALTIME_COARSE,  CLOCK_BOOTTIME,  CLOCK_PROCESS_CPUTIME_ID,
                                      CLOCK_THREAD_CPUTIME_ID};
    enum { KINDS = sizeof kinds / sizeof kinds[0] };
    struct timespec before[KINDS], after;
    (void)scene;
    for (unsigned i = 0; i < KINDS; i++) {
        (void)clock_gettime(kinds[i], &before[i]);
    }
    (void)usleep(SLEEP_US);
    for (unsigned i = 0; i < KINDS; i++) {
        (void)clock_gettime(kinds[i], &after);
        long us = passed(us_of_timespec(&before[i]), us_of_timespec(&after));
        if (us != SLEEP_US) {
            return -(long)i;
        }
    }
    return SLEEP_US;
}

static long by_getrusage(struct timely_scene *scene)
{
    struct rusage before, after;
    (void)scene;
    (void)getrusage(RUSAGE_SELF, &before);
    (void)usleep(SLEEP_US);
    (void)getrusage(RUSAGE_SELF, &after);
    return passed(us_of_timeval(&before.ru_utime), us_of_timeval(&after.ru_utime));
}

static long by_gettimeofday(struct timely_scene *scene)
{
    struct timeval before, after;
    (void)scene;
    (void)gettimeofday(&before, NULL);
    (void)usleep(SLEEP_US);
    (void)gettimeofday(&after, NULL);
    return passed(us_of_timeval(&before), us_of_timeval(&after));
}

static long by_time(struct timely_scene *scene)
{
    (void)scene;
    time_t before = time(NULL);
    (void)sleep(SLEEP_S);
    return time(NULL) - before;
}

// Ticks of 10 ms.
static long by_times(struct timely_scene *scene)
{
    struct tms ignored;
    (void)scene;
    clock_t before = times(&ignored);
    (void)usleep(SLEEP_US);
    return times(&ignored) - before;
}

static long us_of(clockid_t clock)
{
    struct timespec now = {.tv_sec = -1};
    (void)clock_gettime(clock, &now);
    return us_of_timespec(&now);
}

// fork(2): "Process resource utilizations (...) and CPU time counters are reset to zero in the child". All clocks of the
// child and of its thread show the time since then. The first one that does not, counted from 1; 0: none.
static int processor_time_is_wrong(void *unused)
{
    clockid_t of_process, of_thread;
    struct rusage usage;
    struct tms ticks;
    (void)unused;
    (void)clock_getcpuclockid(0, &of_process);
    (void)pthread_getcpuclockid(pthread_self(), &of_thread);
    (void)usleep(SLEEP_US);
    const long own = us_of(CLOCK_PROCESS_CPUTIME_ID), by_id = us_of(of_process), by_thread = us_of(of_thread);
    const long by_clock = clock();
    (void)getrusage(RUSAGE_SELF, &usage);
    (void)times(&ticks);
    const long shown[] = {own,
                          by_id,
                          by_thread,
                          us_of(CLOCK_THREAD_CPUTIME_ID),
                          us_of_timeval(&usage.ru_utime),
                          by_clock,
                          ticks.tms_utime * 10000};
    for (unsigned i = 0; i < sizeof shown / sizeof shown[0]; i++) {
        if (passed(0, shown[i]) != SLEEP_US) {
            return (int)i + 1;
        }
    }
    return 0;
}

static long by_fork(struct timely_scene *scene)
{
    return timely_in_child(processor_time_is_wrong, scene);
}

// RDTSC sets EAX and EDX, and no other register (Intel's manual, volume 2).
static long by_rdtsc(struct timely_scene *scene)
{
    const uint64_t pattern = UINT64_C(0x123456789abcdef) ^ (uint64_t)scene->process;
    uint64_t rcx = pattern, rbx = pattern, rsi = pattern, rdi = pattern, low, high;
    __asm__ volatile("rdtsc" : "=a"(low), "=d"(high), "+c"(rcx), "+b"(rbx), "+S"(rsi), "+D"(rdi));
    return low <= UINT32_MAX && high <= UINT32_MAX && rcx == pattern && rbx == pattern && rsi == pattern &&
           rdi == pattern;
}

// --- system calls ---------------------------------------------------------------------------------------------------

#define CALL(name, a, b) scene->call(SYS_##name, (long)(a), (long)(b), 0L, 0L, 0L, 0L)

static long by_call_clock_gettime(struct timely_scene *scene)
{
    struct timespec before, after;
    (void)CALL(clock_gettime, CLOCK_MONOTONIC, &before);
    (void)usleep(SLEEP_US);
    (void)CALL(clock_gettime, CLOCK_MONOTONIC, &after);
    return passed(us_of_timespec(&before), us_of_timespec(&after));
}

static long by_call_gettimeofday(struct timely_scene *scene)
{
    struct timeval before, after;
    (void)CALL(gettimeofday, &before, 0);
    (void)usleep(SLEEP_US);
    (void)CALL(gettimeofday, &after, 0);
    return passed(us_of_timeval(&before), us_of_timeval(&after));
}

static long by_call_time(struct timely_scene *scene)
{
    long before = CALL(time, 0, 0);
    (void)sleep(SLEEP_S);
    return CALL(time, 0, 0) - before;
}

static long by_call_times(struct timely_scene *scene)
{
    long before = CALL(times, 0, 0);
    (void)usleep(SLEEP_US);
    return CALL(times, 0, 0) - before;
}

static long by_call_getrusage(struct timely_scene *scene)
{
    struct rusage before, after;
    (void)CALL(getrusage, RUSAGE_SELF, &before);
    (void)usleep(SLEEP_US);
    (void)CALL(getrusage, RUSAGE_SELF, &after);
    return passed(us_of_timeval(&before.ru_utime), us_of_timeval(&after.ru_utime));
}

// Each read costs; the rows' own two are not those of the measurement.
enum { READS_NS = 1000 };
#define SLEPT   .at_us = SLEEP_US, .late_ns = READS_NS
#define SLEPT_S .at_us = SLEEP_S * 1000000, .late_ns = READS_NS

static const struct timely_row rows[] = {
    TIMELY_ROW(FUNCTION, "clock", by_clock, SLEEP_US, SLEPT),
    TIMELY_ROW(FUNCTION, "clock_gettime", by_clock_gettime, SLEEP_US, SLEPT),
    TIMELY_ROW(FUNCTION, "getrusage", by_getrusage, SLEEP_US, SLEPT),
    TIMELY_ROW(FUNCTION, "gettimeofday", by_gettimeofday, SLEEP_US, SLEPT),
    TIMELY_ROW(FUNCTION, "time", by_time, SLEEP_S, SLEPT_S),
    TIMELY_ROW(FUNCTION, "times", by_times, SLEEP_US / 10000, SLEPT),
    TIMELY_ROW(FUNCTION, "fork", by_fork, 0, .at_us = SLEEP_US + TIMELY_END_US, .late_ns = READS_NS),
    TIMELY_ROW(LIBRARY, "rdtsc", by_rdtsc, 1, .late_ns = READS_NS),
    TIMELY_ROW(CALL, "clock_gettime", by_call_clock_gettime, SLEEP_US, SLEPT),
    TIMELY_ROW(CALL, "gettimeofday", by_call_gettimeofday, SLEEP_US, SLEPT),
    TIMELY_ROW(CALL, "time", by_call_time, SLEEP_S, SLEPT_S),
    TIMELY_ROW(CALL, "times", by_call_times, SLEEP_US / 10000, SLEPT),
    TIMELY_ROW(CALL, "getrusage", by_call_getrusage, SLEEP_US, SLEPT),
};
TIMELY_THEME(clocks, rows);
