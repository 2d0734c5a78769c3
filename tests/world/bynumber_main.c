// System calls by their numbers do what the functions of the same names do: by syscall(2), and for the clocks also in
// machine code of the program's own. Prints what differs.
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/times.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static bool good = true;

static void check(bool holds, const char *what)
{
    if (!holds) {
        printf("wrong: %s\n", what);
        good = false;
    }
}

static long in_machine_code(long number, long a, long b)
{
    long result = number;
    __asm__ volatile("syscall" : "+a"(result) : "D"(a), "S"(b) : "rcx", "r11", "memory");
    return result;
}

static int64_t ns_of(const struct timespec *time)
{
    return time->tv_sec * INT64_C(1000000000) + time->tv_nsec;
}

// Reads cost a few nanoseconds each.
static bool close_to(int64_t a, int64_t b, int64_t most)
{
    return a >= b && a - b < most;
}

static void clocks(void)
{
    static const clockid_t kinds[] = {CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_PROCESS_CPUTIME_ID,
                                      CLOCK_THREAD_CPUTIME_ID};
    struct timespec first, second, third;
    for (unsigned i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        check(clock_gettime(kinds[i], &first) == 0 && syscall(SYS_clock_gettime, kinds[i], &second) == 0 &&
                  in_machine_code(SYS_clock_gettime, kinds[i], (long)(uintptr_t)&third) == 0,
              "a clock is refused");
        check(close_to(ns_of(&second), ns_of(&first), 1000), "syscall(SYS_clock_gettime) shows another time");
        check(close_to(ns_of(&third), ns_of(&second), 1000), "clock_gettime in machine code shows another time");
    }
    struct timeval now, again;
    (void)gettimeofday(&now, NULL);
    check(syscall(SYS_gettimeofday, &again, NULL) == 0 && close_to(again.tv_usec, now.tv_usec, 2), "gettimeofday");
    check(syscall(SYS_time, NULL) == time(NULL), "time");
    struct tms ticks;
    clock_t began = times(&ticks);
    check(close_to(syscall(SYS_times, &ticks), began, 2), "times");
    struct rusage by_name, by_number;
    (void)getrusage(RUSAGE_SELF, &by_name);
    check(syscall(SYS_getrusage, RUSAGE_SELF, &by_number) == 0 && by_number.ru_nvcsw == 0 &&
              close_to(by_number.ru_utime.tv_usec, by_name.ru_utime.tv_usec, 2),
          "getrusage");
}

static volatile sig_atomic_t signals_had;

static void on_signal(int number)
{
    (void)number;
    signals_had++;
}

// The kernel's layout, rt_sigaction(2).
struct kernel_action {
    void (*handler)(int);
    unsigned long flags;
    void (*restorer)(void);
    uint64_t mask;
};

static void signals(void)
{
    const struct kernel_action asked = {.handler = on_signal};
    struct kernel_action old = {0};
    struct sigaction action;
    check(syscall(SYS_rt_sigaction, SIGUSR1, &asked, NULL, 8) == 0, "rt_sigaction");
    (void)sigaction(SIGUSR1, NULL, &action);
    check(action.sa_handler == on_signal, "sigaction does not know the handler of rt_sigaction");
    check(syscall(SYS_rt_sigaction, SIGUSR1, NULL, &old, 8) == 0 && old.handler == on_signal, "rt_sigaction tells");
    check(syscall(SYS_tkill, gettid(), SIGUSR1) == 0 && signals_had == 1, "tkill");
    // The library handles the fault of a read of the time stamp counter: the program's handler is not called.
    check(syscall(SYS_rt_sigaction, SIGSEGV, &asked, NULL, 8) == 0, "rt_sigaction of SIGSEGV");
    (void)__builtin_ia32_rdtsc();
    check(signals_had == 1, "rt_sigaction takes a signal from the library");
    uint64_t all = UINT64_MAX, before = 1, own = 0;
    check(syscall(SYS_rt_sigprocmask, SIG_BLOCK, &all, &before, 8) == 0 && before == 0, "rt_sigprocmask");
    (void)__builtin_ia32_rdtsc(); // a blocked fault would end the process
    check(syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, &own, 8) == 0 && (own >> (SIGUSR2 - 1) & 1) != 0,
          "rt_sigprocmask tells");
}

static void timers(void)
{
    int timer = -1;
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
    const struct itimerspec once = {.it_value.tv_nsec = 5000000};
    struct timespec began, ended;
    check(syscall(SYS_timer_create, CLOCK_MONOTONIC, &event, &timer) == 0, "timer_create");
    (void)clock_gettime(CLOCK_MONOTONIC, &began);
    check(syscall(SYS_timer_settime, timer, 0, &once, NULL) == 0, "timer_settime");
    (void)pause();
    (void)clock_gettime(CLOCK_MONOTONIC, &ended);
    check(close_to(ns_of(&ended) - ns_of(&began), 5000000, 20000), "the timer goes off at another time");
    check(syscall(SYS_timer_delete, timer) == 0, "timer_delete");
    int fd = (int)syscall(SYS_timerfd_create, CLOCK_MONOTONIC, 0);
    uint64_t expirations = 0;
    check(syscall(SYS_timerfd_settime, fd, 0, &once, NULL) == 0 && read(fd, &expirations, 8) == 8 && expirations == 1,
          "timerfd");
    check(syscall(SYS_close, fd) == 0, "close");
}

static void numbers(void)
{
    check(syscall(SYS_getpid) == getpid() && syscall(SYS_getppid) == getppid() && syscall(SYS_gettid) == gettid(),
          "getpid, getppid or gettid");
    check(syscall(SYS_getpgid, 0) == getpgid(0) && syscall(SYS_getsid, 0) == getsid(0), "getpgid or getsid");
    check(syscall(SYS_getpriority, PRIO_PROCESS, getpid()) == 20 - getpriority(PRIO_PROCESS, getpid()), "getpriority");
    int status = 0;
    pid_t child = (pid_t)syscall(SYS_fork);
    if (child == 0) {
        _exit(3);
    }
    check(syscall(SYS_wait4, child, &status, 0, NULL) == child && WEXITSTATUS(status) == 3, "fork and wait4");
    cpu_set_t by_name, by_number;
    memset(&by_name, 0, sizeof by_name);
    memset(&by_number, 0, sizeof by_number);
    (void)sched_getaffinity(0, sizeof by_name, &by_name);
    check(syscall(SYS_sched_getaffinity, 0, sizeof by_number, &by_number) > 0 && CPU_EQUAL(&by_name, &by_number),
          "sched_getaffinity");
}

static void files(void)
{
    struct utsname by_name, by_number;
    struct stat about, about_number;
    check(uname(&by_name) == 0 && syscall(SYS_uname, &by_number) == 0 &&
              strcmp(by_name.nodename, by_number.nodename) == 0,
          "uname");
    check(stat("/dev/shm", &about) == 0 && syscall(SYS_stat, "/dev/shm", &about_number) == 0 &&
              about.st_ino == about_number.st_ino,
          "stat of /dev/shm");
    int fd = (int)syscall(SYS_openat, AT_FDCWD, "/dev/shm", O_RDONLY | O_DIRECTORY);
    check(fd >= 0 && fstat(fd, &about_number) == 0 && about.st_ino == about_number.st_ino, "openat of /dev/shm");
    check(syscall(SYS_close, fd) == 0, "close");
}

// As on a kernel without them: the calls of x32 and of i386 (which such a kernel ends with a signal).
static void other_numbers(void)
{
    struct timespec now;
    check(in_machine_code(SYS_clock_gettime | 0x40000000, CLOCK_MONOTONIC, (long)&now) == -ENOSYS, "a number of x32");
    pid_t child = fork();
    if (child == 0) {
        long result = 20; // getpid
        __asm__ volatile("int $0x80" : "+a"(result) : : "r8", "r9", "r10", "r11", "memory");
        _exit(result == -ENOSYS ? 0 : 1);
    }
    int status = -1;
    check(waitpid(child, &status, 0) == child && (status == 0 || WIFSIGNALED(status)), "a call of i386");
}

int main(void)
{
    clocks();
    other_numbers();
    signals();
    timers();
    numbers();
    files();
    return good ? 0 : 1;
}
