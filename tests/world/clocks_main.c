// Sleeps, timers and clocks of a program that does not know the simulator. Prints how long each took, in microseconds.
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

static uint64_t now_ns(clockid_t clock)
{
    struct timespec now;
    (void)clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint64_t start_ns;

static void print_time(const char *what)
{
    printf("%s %llu\n", what, (unsigned long long)(now_ns(CLOCK_MONOTONIC) - start_ns) / 1000);
    start_ns = now_ns(CLOCK_MONOTONIC);
}

static volatile sig_atomic_t alarms;

static void on_alarm(int number)
{
    (void)number;
    alarms++;
}

static void timers(void)
{
    const struct itimerval once = {.it_value = {.tv_usec = 700}};
    const struct itimerspec twice = {.it_value = {.tv_nsec = 200000}, .it_interval = {.tv_nsec = 300000}};
    uint64_t times;
    (void)signal(SIGALRM, on_alarm);
    (void)alarm(3);
    (void)pause();
    print_time("alarm");
    (void)setitimer(ITIMER_REAL, &once, NULL);
    (void)pause();
    print_time("setitimer");
    int fd = timerfd_create(CLOCK_MONOTONIC, 0);
    (void)timerfd_settime(fd, 0, &twice, NULL);
    for (unsigned i = 0; i < 2; i++) {
        (void)!read(fd, &times, sizeof times);
        print_time("timerfd");
    }
    printf("alarms %d\n", (int)alarms);
}

// The counter and the clock advance at the same rate; the rate is that of /proc/cpuinfo in the end.
static void counter(void)
{
    uint64_t cycles = __rdtsc(), before_ns = now_ns(CLOCK_MONOTONIC);
    (void)usleep(100000);
    cycles = __rdtsc() - cycles;
    printf("cycles %llu\n", (unsigned long long)(cycles * 1000 / (now_ns(CLOCK_MONOTONIC) - before_ns)));
}

// Busy-waits between two readings of the counter. The wait is as long as the clock says, which is read at two places:
// before the loop and in it.
#define BUSY_WAIT(name, read)                                                                                          \
    do {                                                                                                               \
        uint64_t cycles = 0, passed_us = 0;                                                                            \
        for (long us = 10; us < 2000; us += 100) {                                                                     \
            struct timeval begin, now;                                                                                 \
            uint64_t first = __rdtsc();                                                                                \
            (void)read(&begin);                                                                                        \
            do {                                                                                                       \
                (void)read(&now);                                                                                      \
            } while ((now.tv_sec - begin.tv_sec) * 1000000 + now.tv_usec - begin.tv_usec < us);                        \
            cycles += __rdtsc() - first;                                                                               \
            passed_us += (uint64_t)((now.tv_sec - begin.tv_sec) * 1000000 + now.tv_usec - begin.tv_usec);              \
        }                                                                                                              \
        printf("%s %llu\n", name, (unsigned long long)(cycles / passed_us));                                           \
    } while (false)

static inline __attribute__((always_inline)) long in_machine_code(struct timeval *now_out)
{
    long result = SYS_gettimeofday;
    __asm__ volatile("syscall" : "+a"(result) : "D"(now_out), "S"(0L) : "rcx", "r11", "memory");
    return result;
}

#define BY_NAME(now_out)   gettimeofday(now_out, NULL)
#define BY_NUMBER(now_out) syscall(SYS_gettimeofday, now_out, NULL)

static void busy_waits(void)
{
    BUSY_WAIT("name", BY_NAME);
    BUSY_WAIT("number", BY_NUMBER);
    BUSY_WAIT("code", in_machine_code);
}

int main(void)
{
    const struct timespec delay = {.tv_sec = 2, .tv_nsec = 500};
    start_ns = now_ns(CLOCK_MONOTONIC);
    (void)nanosleep(&delay, NULL);
    print_time("nanosleep");
    (void)usleep(1500);
    print_time("usleep");
    timers();
    counter();
    busy_waits();
    time_t seconds = time(NULL);
    printf("time %d\n", (int)(seconds - (time_t)(now_ns(CLOCK_REALTIME) / 1000000000u)));
    return 0;
}
