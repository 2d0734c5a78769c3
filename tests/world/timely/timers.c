// Timers: the waiter goes on when its timer goes off.
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "timely.h"

enum { FIRST_US = 400, INTERVAL_US = 100, REST_US = 150 };

static volatile sig_atomic_t signals_had;

static void on_signal(int number)
{
    (void)number;
    signals_had++;
}

static void handle(int number)
{
    const struct sigaction action = {.sa_handler = on_signal};
    (void)sigaction(number, &action, NULL);
    signals_had = 0;
}

static struct itimerspec after(long first_us, long interval_us)
{
    return (struct itimerspec){.it_value = {.tv_nsec = first_us * 1000},
                               .it_interval = {.tv_nsec = interval_us * 1000}};
}

// --- alarm and setitimer --------------------------------------------------------------------------------------------

// What is left of an earlier alarm counts as seconds that have begun.
static long by_alarm(struct timely_scene *scene)
{
    (void)scene;
    handle(SIGALRM);
    (void)alarm(7);
    (void)usleep(REST_US);
    unsigned left = alarm(1);
    (void)pause();
    return (long)left + signals_had;
}

static long by_setitimer(struct timely_scene *scene)
{
    const struct itimerval twice = {.it_value.tv_usec = FIRST_US, .it_interval.tv_usec = INTERVAL_US}, off = {0};
    (void)scene;
    handle(SIGALRM);
    int status = setitimer(ITIMER_REAL, &twice, NULL);
    (void)pause();
    (void)pause();
    (void)setitimer(ITIMER_REAL, &off, NULL);
    return status == 0 ? signals_had : timely_result(status);
}

static void thread_end(void *unused)
{
    (void)unused;
}

// As on Linux, the first thread handles it, not one that is there as well.
static long by_setitimer_of_threads(struct timely_scene *scene)
{
    const struct itimerval once = {.it_value.tv_usec = FIRST_US};
    handle(SIGALRM);
    timely_later(scene, 2 * FIRST_US, thread_end, NULL);
    int status = setitimer(ITIMER_REAL, &once, NULL);
    (void)usleep(TIMELY_BEGIN_US); // the other thread waits first
    (void)pause();
    long us = (timely_now_ns() - scene->began_ns) / 1000;
    timely_later_end();
    return status == 0 ? us : timely_result(status);
}

static long by_getitimer(struct timely_scene *scene)
{
    const struct itimerval once = {.it_value.tv_usec = FIRST_US}, off = {0};
    struct itimerval left = {0};
    (void)scene;
    (void)setitimer(ITIMER_REAL, &once, NULL);
    (void)usleep(REST_US);
    (void)getitimer(ITIMER_REAL, &left);
    (void)setitimer(ITIMER_REAL, &off, NULL);
    return left.it_value.tv_usec;
}

// What is left is rounded up to microseconds: a second, of which half a microsecond is over.
static long by_getitimer_of_second(struct timely_scene *scene)
{
    const struct itimerval once = {.it_value.tv_sec = 1}, off = {0};
    const struct timespec half = {.tv_nsec = 500};
    struct itimerval left = {0};
    (void)scene;
    (void)setitimer(ITIMER_REAL, &once, NULL);
    (void)nanosleep(&half, NULL);
    (void)getitimer(ITIMER_REAL, &left);
    (void)setitimer(ITIMER_REAL, &off, NULL);
    return left.it_value.tv_sec * 1000000 + left.it_value.tv_usec;
}

// fork(2): "The child does not inherit timers from its parent (setitimer(2), alarm(2), timer_create(2))". 10 if the only
// signal is that of the child's own timer; 1 if it has its parent's alarm.
static int own_timer_alone(void *unused)
{
    (void)unused;
    const struct itimerval once = {.it_value.tv_usec = FIRST_US};
    struct itimerval left = {0};
    (void)getitimer(ITIMER_REAL, &left);
    if (left.it_value.tv_sec != 0 || left.it_value.tv_usec != 0) {
        return 1;
    }
    signals_had = 0;
    (void)setitimer(ITIMER_REAL, &once, NULL); // its own alone ends the pause
    (void)pause();
    return 10 * signals_had;
}

static long by_fork_with_timers(struct timely_scene *scene)
{
    const struct itimerval far = {.it_value.tv_sec = 100}, off = {0};
    const struct itimerspec often = after(INTERVAL_US, INTERVAL_US), never = {0};
    timer_t timer;
    int status = 0;
    handle(SIGALRM);
    (void)timer_create(CLOCK_MONOTONIC, NULL, &timer);
    (void)setitimer(ITIMER_REAL, &far, NULL);
    (void)timer_settime(timer, 0, &often, NULL);
    pid_t child = fork();
    if (child == 0) {
        _exit(own_timer_alone(scene));
    }
    (void)timer_settime(timer, 0, &never, NULL);
    (void)waitpid(child, &status, 0);
    (void)setitimer(ITIMER_REAL, &off, NULL);
    (void)timer_delete(timer);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

// --- timer_create ---------------------------------------------------------------------------------------------------

static timer_t timer_make(void)
{
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
    timer_t timer;
    handle(SIGUSR1);
    (void)timer_create(CLOCK_REALTIME, &event, &timer);
    return timer;
}

static long by_timer_create(struct timely_scene *scene)
{
    const struct itimerspec once = after(FIRST_US, 0);
    timer_t timer;
    (void)scene;
    handle(SIGALRM); // without a sigevent
    int status = timer_create(CLOCK_MONOTONIC, NULL, &timer);
    (void)timer_settime(timer, 0, &once, NULL);
    (void)pause();
    (void)timer_delete(timer);
    return status == 0 ? signals_had : timely_result(status);
}

static long by_timer_settime(struct timely_scene *scene)
{
    long ns = scene->began_ns + scene->realtime_ns + FIRST_US * 1000;
    const struct itimerspec until = {.it_value = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000}};
    timer_t timer = timer_make();
    int status = timer_settime(timer, TIMER_ABSTIME, &until, NULL);
    (void)pause();
    (void)timer_delete(timer);
    return status == 0 ? signals_had : timely_result(status);
}

// The time is one of the timer's clock.
static long by_timer_settime_monotonic(struct timely_scene *scene)
{
    long ns = scene->began_ns + FIRST_US * 1000;
    const struct itimerspec until = {.it_value = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000}};
    timer_t timer;
    handle(SIGALRM);
    (void)timer_create(CLOCK_MONOTONIC, NULL, &timer);
    int status = timer_settime(timer, TIMER_ABSTIME, &until, NULL);
    (void)pause();
    (void)timer_delete(timer);
    return status == 0 ? signals_had : timely_result(status);
}

// The same of a timer whose other thread goes on when it goes off.
static long by_timer_of_threads(struct timely_scene *scene)
{
    const struct itimerspec once = after(FIRST_US, 0);
    timer_t timer = timer_make();
    timely_later(scene, FIRST_US, thread_end, NULL);
    int status = timer_settime(timer, 0, &once, NULL);
    (void)usleep(TIMELY_BEGIN_US);
    (void)pause();
    timely_later_end();
    (void)timer_delete(timer);
    return status == 0 ? signals_had : timely_result(status);
}

static long by_timer_gettime(struct timely_scene *scene)
{
    const struct itimerspec once = after(FIRST_US, 0);
    struct itimerspec left = {0};
    timer_t timer = timer_make();
    (void)scene;
    (void)timer_settime(timer, 0, &once, NULL);
    (void)usleep(REST_US);
    (void)timer_gettime(timer, &left);
    (void)timer_delete(timer);
    return left.it_value.tv_nsec / 1000;
}

// The signal stays pending while the timer goes off four times more.
static long by_timer_getoverrun(struct timely_scene *scene)
{
    const struct itimerspec often = after(INTERVAL_US, INTERVAL_US);
    timer_t timer = timer_make();
    sigset_t set;
    (void)scene;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGUSR1);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    (void)timer_settime(timer, 0, &often, NULL);
    (void)usleep(5 * INTERVAL_US + INTERVAL_US / 2);
    (void)sigwaitinfo(&set, NULL);
    int overruns = timer_getoverrun(timer);
    (void)timer_delete(timer);
    (void)sigprocmask(SIG_UNBLOCK, &set, NULL);
    return overruns;
}

static long by_timer_delete(struct timely_scene *scene)
{
    const struct itimerspec once = after(INTERVAL_US, 0);
    timer_t timer = timer_make();
    (void)scene;
    (void)timer_settime(timer, 0, &once, NULL);
    int status = timer_delete(timer);
    (void)usleep(FIRST_US); // no signal ends it
    return status == 0 ? signals_had : timely_result(status);
}

// --- timerfd --------------------------------------------------------------------------------------------------------

static long expirations(int fd)
{
    uint64_t times = 0;
    return read(fd, &times, sizeof times) == (ssize_t)sizeof times ? (long)times : timely_result(-1);
}

static long by_timerfd_create(struct timely_scene *scene)
{
    const struct itimerspec once = after(FIRST_US, 0);
    (void)scene;
    int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    (void)timerfd_settime(fd, 0, &once, NULL);
    long times = expirations(fd);
    (void)close(fd);
    return times;
}

// Expirations that nobody has read are lost when the timer is set again.
static long by_timerfd_settime(struct timely_scene *scene)
{
    const struct itimerspec often = after(INTERVAL_US, INTERVAL_US), once = after(FIRST_US, 0);
    (void)scene;
    int fd = timerfd_create(CLOCK_MONOTONIC, 0);
    (void)timerfd_settime(fd, 0, &often, NULL);
    (void)usleep(2 * INTERVAL_US + INTERVAL_US / 2);
    int status = timerfd_settime(fd, 0, &once, NULL);
    long times = expirations(fd);
    (void)close(fd);
    return status == 0 ? times : timely_result(status);
}

// A setting for once ends an earlier one for ever.
static long by_timerfd_once_after_often(struct timely_scene *scene)
{
    const struct itimerspec often = after(INTERVAL_US, INTERVAL_US), once = after(INTERVAL_US, 0);
    struct itimerspec before = {0};
    (void)scene;
    int fd = timerfd_create(CLOCK_MONOTONIC, 0);
    (void)timerfd_settime(fd, 0, &often, NULL);
    (void)timerfd_settime(fd, 0, &once, &before);
    (void)usleep(FIRST_US + INTERVAL_US / 2);
    long times = expirations(fd);
    (void)close(fd);
    return 1000 * (before.it_interval.tv_nsec / 1000) + times;
}

static long by_timerfd_absolute(struct timely_scene *scene)
{
    long ns = scene->began_ns + FIRST_US * 1000;
    const struct itimerspec until = {.it_value = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000}};
    int fd = timerfd_create(CLOCK_MONOTONIC, 0);
    (void)timerfd_settime(fd, TFD_TIMER_ABSTIME, &until, NULL);
    long times = expirations(fd);
    (void)close(fd);
    return times;
}

// A thread that computes is late for its timer; the next expirations are at their times nevertheless.
static long by_timerfd_late(struct timely_scene *scene)
{
    const struct itimerspec often = after(INTERVAL_US, INTERVAL_US);
    long until_ns = scene->began_ns + 3 * INTERVAL_US * 1000 + INTERVAL_US * 500;
    int fd = timerfd_create(CLOCK_MONOTONIC, 0);
    (void)timerfd_settime(fd, 0, &often, NULL);
    while (timely_now_ns() < until_ns) {
    }
    long times = 10 * expirations(fd); // does not wait
    times += expirations(fd);          // for the fourth
    (void)close(fd);
    return times;
}

// The file that gets the number of a closed timer is not written to.
static long size_of_next(int (*end)(int))
{
    const struct itimerspec often = after(INTERVAL_US, INTERVAL_US);
    struct stat about = {.st_size = -1};
    int fd = timerfd_create(CLOCK_MONOTONIC, 0);
    (void)timerfd_settime(fd, 0, &often, NULL);
    int status = end(fd), file = memfd_create("text", 0);
    (void)usleep(FIRST_US);
    (void)fstat(file, &about);
    (void)close(file);
    return status == 0 && file == fd ? about.st_size : -1;
}

static int close_range_of(int fd)
{
    return close_range((unsigned)fd, (unsigned)fd, 0);
}

static long by_close_of_timer(struct timely_scene *scene)
{
    (void)scene;
    return size_of_next(close);
}

static long by_close_range_of_timer(struct timely_scene *scene)
{
    (void)scene;
    return size_of_next(close_range_of);
}

// Several expirations are read at once.
static long by_timerfd_often(struct timely_scene *scene)
{
    const struct itimerspec often = after(INTERVAL_US, INTERVAL_US);
    (void)scene;
    int fd = timerfd_create(CLOCK_MONOTONIC, 0);
    (void)timerfd_settime(fd, 0, &often, NULL);
    (void)usleep(3 * INTERVAL_US + INTERVAL_US / 2);
    long times = 10 * expirations(fd); // does not wait
    times += expirations(fd);          // for the fourth
    (void)close(fd);
    return times;
}

static long by_timerfd_gettime(struct timely_scene *scene)
{
    const struct itimerspec once = after(FIRST_US, 0);
    struct itimerspec left = {0};
    (void)scene;
    int fd = timerfd_create(CLOCK_MONOTONIC, 0);
    (void)timerfd_settime(fd, 0, &once, NULL);
    (void)usleep(REST_US);
    (void)timerfd_gettime(fd, &left);
    (void)close(fd);
    return left.it_value.tv_nsec / 1000;
}

enum { READ_NS = 100 }; // the row reads a clock itself

static const struct timely_row rows[] = {
    TIMELY_ROW(FUNCTION, "alarm", by_alarm, 7 + 1, .at_us = REST_US + 1000000),
    TIMELY_ROW(FUNCTION, "setitimer", by_setitimer, 2, .at_us = FIRST_US + INTERVAL_US),
    TIMELY_ROW(FUNCTION, "setitimer", by_setitimer_of_threads, FIRST_US, .at_us = 2 * FIRST_US, .late_ns = READ_NS),
    TIMELY_ROW(FUNCTION, "getitimer", by_getitimer, FIRST_US - REST_US, .at_us = REST_US),
    TIMELY_ROW(FUNCTION, "getitimer", by_getitimer_of_second, 1000000, .late_ns = 500),
    TIMELY_ROW(FUNCTION, "fork", by_fork_with_timers, 10, .at_us = FIRST_US, .late_ns = TIMELY_END_US * 1000),
    TIMELY_ROW(FUNCTION, "timer_create", by_timer_create, 1, .at_us = FIRST_US),
    TIMELY_ROW(FUNCTION, "timer_settime", by_timer_settime, 1, .at_us = FIRST_US),
    TIMELY_ROW(FUNCTION, "timer_settime", by_timer_settime_monotonic, 1, .at_us = FIRST_US),
    TIMELY_ROW(FUNCTION, "timer_settime", by_timer_of_threads, 1, .at_us = FIRST_US),
    TIMELY_ROW(FUNCTION, "timer_gettime", by_timer_gettime, FIRST_US - REST_US, .at_us = REST_US),
    TIMELY_ROW(FUNCTION, "timer_getoverrun", by_timer_getoverrun, 4, .at_us = 5 * INTERVAL_US + INTERVAL_US / 2),
    TIMELY_ROW(FUNCTION, "timer_delete", by_timer_delete, 0, .at_us = FIRST_US),
    TIMELY_ROW(FUNCTION, "timerfd_create", by_timerfd_create, 1, .at_us = FIRST_US),
    TIMELY_ROW(FUNCTION, "timerfd_settime", by_timerfd_settime, 1,
               .at_us = 2 * INTERVAL_US + INTERVAL_US / 2 + FIRST_US),
    TIMELY_ROW(FUNCTION, "timerfd_settime", by_timerfd_often, 30 + 1, .at_us = 4 * INTERVAL_US),
    TIMELY_ROW(FUNCTION, "timerfd_settime", by_timerfd_late, 30 + 1, .at_us = 4 * INTERVAL_US),
    TIMELY_ROW(FUNCTION, "timerfd_settime", by_timerfd_once_after_often, 1000 * INTERVAL_US + 1,
               .at_us = FIRST_US + INTERVAL_US / 2),
    TIMELY_ROW(FUNCTION, "timerfd_settime", by_timerfd_absolute, 1, .at_us = FIRST_US),
    TIMELY_ROW(FUNCTION, "close", by_close_of_timer, 0, .at_us = FIRST_US),
    TIMELY_ROW(FUNCTION, "close_range", by_close_range_of_timer, 0, .at_us = FIRST_US),
    TIMELY_ROW(FUNCTION, "timerfd_gettime", by_timerfd_gettime, FIRST_US - REST_US, .at_us = REST_US),
};
TIMELY_THEME(timers, rows);
