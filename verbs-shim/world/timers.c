// Timers of the program in simulated time: alarm, setitimer, timer_create, timerfd. The process has one list of timers.
// Its earliest deadline is the process's alarm (attach_alarm), and the thread that has the run token then raises the
// signals.
//
// Leaves out: timers that start a thread (SIGEV_THREAD) and timers of processor time; both are refused with ENOTSUP.
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "verbs-shim/attach/kernel_call.h"
#include "verbs-shim/world/world.h"

enum kind { KIND_UNUSED, KIND_ITIMER, KIND_POSIX, KIND_DESCRIPTOR };

struct timer {
    enum kind kind;
    clockid_t clock;
    uint64_t deadline_ps; // ATTACH_NEVER_PS: not armed
    uint64_t interval_ps; // 0: once
    int signal_number;    // 0: none
    union sigval value;
    pid_t thread; // 0: the process
    int fd;       // KIND_DESCRIPTOR: an eventfd, which reads like a timerfd
    int overruns;
};

enum { TIMERS_MAX = 64, ITIMER_SLOT = 0 };

static struct timer timers[TIMERS_MAX] = {
    [ITIMER_SLOT] = {.kind = KIND_ITIMER, .deadline_ps = ATTACH_NEVER_PS, .signal_number = SIGALRM}};

// --- the list -------------------------------------------------------------------------------------------------------

// The program has blocked the signal since the timer last went off.
static bool is_pending(int number)
{
    uint64_t pending = 0;
    (void)kernel_call(SYS_rt_sigpending, (long)(uintptr_t)&pending, sizeof pending, 0, 0, 0, 0);
    return (pending >> (number - 1) & 1) != 0;
}

static void fire(struct timer *timer, uint64_t times)
{
    if (timer->kind == KIND_POSIX && timer->signal_number != 0 && is_pending(timer->signal_number)) {
        timer->overruns += (int)times; // the signal is there once
        return;
    }
    timer->overruns = (int)(times - 1);
    if (timer->kind == KIND_DESCRIPTOR) {
        (void)kernel_call(SYS_write, timer->fd, (long)(uintptr_t)&times, sizeof times, 0, 0, 0);
    } else if (timer->kind == KIND_ITIMER) {
        pid_t thread = (pid_t)attach_first_thread_taking(SIGALRM);
        (void)(thread != 0 ? kernel_call(SYS_tgkill, world_real_pid(), thread, SIGALRM, 0, 0, 0)
                           : kernel_call(SYS_kill, world_real_pid(), SIGALRM, 0, 0, 0, 0));
    } else if (timer->signal_number != 0) {
        siginfo_t info = {.si_signo = timer->signal_number, .si_code = SI_TIMER, .si_value = timer->value};
        world_signal_queue(timer->thread, &info);
    }
}

static void due(void);

static void arm(void)
{
    uint64_t next_ps = ATTACH_NEVER_PS;
    for (unsigned i = 0; i < TIMERS_MAX; i++) {
        if (timers[i].kind != KIND_UNUSED && timers[i].deadline_ps < next_ps) {
            next_ps = timers[i].deadline_ps;
        }
    }
    attach_alarm(next_ps, due);
}

static void due(void)
{
    uint64_t now_ps = attach_now_ps();
    for (unsigned i = 0; i < TIMERS_MAX; i++) {
        struct timer *timer = &timers[i];
        if (timer->kind == KIND_UNUSED || timer->deadline_ps > now_ps) {
            continue;
        }
        uint64_t times = 1;
        if (timer->interval_ps == 0) {
            timer->deadline_ps = ATTACH_NEVER_PS;
        } else {
            times += (now_ps - timer->deadline_ps) / timer->interval_ps;
            timer->deadline_ps += times * timer->interval_ps;
        }
        fire(timer, times);
    }
    attach_may_interrupt(); // also for threads that wait for a descriptor
    arm();
}

static uint64_t ps_of(const struct timespec *time)
{
    return ((uint64_t)time->tv_sec * WORLD_NS_PER_S + (uint64_t)time->tv_nsec) * WORLD_PS_PER_NS;
}

static struct timespec timespec_of(uint64_t ps)
{
    uint64_t ns = ps / WORLD_PS_PER_NS;
    return (struct timespec){.tv_sec = (time_t)(ns / WORLD_NS_PER_S), .tv_nsec = (long)(ns % WORLD_NS_PER_S)};
}

static bool valid(const struct timespec *time)
{
    return world_time_valid(time) && time->tv_sec < 10000000 * 365L;
}

static struct itimerspec left_of(const struct timer *timer)
{
    uint64_t now_ps = attach_now_ps();
    bool armed = timer->deadline_ps != ATTACH_NEVER_PS;
    uint64_t left_ps = !armed ? 0 : timer->deadline_ps > now_ps ? timer->deadline_ps - now_ps : WORLD_PS_PER_NS;
    return (struct itimerspec){.it_interval = timespec_of(timer->interval_ps), .it_value = timespec_of(left_ps)};
}

static int timer_set(struct timer *timer, bool absolute, const struct itimerspec *asked, struct itimerspec *before)
{
    if (!valid(&asked->it_value) || !valid(&asked->it_interval)) {
        errno = EINVAL;
        return -1;
    }
    if (before != NULL) {
        *before = left_of(timer);
    }
    bool off = asked->it_value.tv_sec == 0 && asked->it_value.tv_nsec == 0;
    timer->deadline_ps = off        ? ATTACH_NEVER_PS
                         : absolute ? world_clock_deadline(timer->clock, &asked->it_value)
                                    : world_deadline_after(&asked->it_value);
    timer->interval_ps = ps_of(&asked->it_interval);
    arm();
    return 0;
}

// NULL: all are in use.
static struct timer *timer_take(enum kind kind, clockid_t clock)
{
    for (unsigned i = 0; i < TIMERS_MAX; i++) {
        if (timers[i].kind == KIND_UNUSED) {
            timers[i] = (struct timer){.kind = kind, .clock = clock, .deadline_ps = ATTACH_NEVER_PS};
            return &timers[i];
        }
    }
    errno = EAGAIN;
    return NULL;
}

// --- alarm and setitimer --------------------------------------------------------------------------------------------

// Rounded up, as 0 means that the timer is off.
static struct timeval timeval_of(struct timespec time)
{
    long us = (time.tv_nsec + 999) / 1000;
    return (struct timeval){.tv_sec = time.tv_sec + us / 1000000, .tv_usec = us % 1000000};
}

int setitimer(__itimer_which_t which, const struct itimerval *restrict asked, struct itimerval *restrict before)
{
    if (!world_timed() || which != ITIMER_REAL) {
        attach_outside(ATTACH_OUTSIDE_TIMER); // the machine's processor time
        return WORLD_REAL(setitimer)(which, asked, before);
    }
    struct itimerspec was = left_of(&timers[ITIMER_SLOT]);
    const struct itimerspec spec = {
        .it_interval = {.tv_sec = asked->it_interval.tv_sec, .tv_nsec = asked->it_interval.tv_usec * 1000},
        .it_value = {.tv_sec = asked->it_value.tv_sec, .tv_nsec = asked->it_value.tv_usec * 1000},
    };
    int status = timer_set(&timers[ITIMER_SLOT], false, &spec, NULL);
    if (status == 0 && before != NULL) {
        *before = (struct itimerval){.it_interval = timeval_of(was.it_interval), .it_value = timeval_of(was.it_value)};
    }
    return status;
}

int getitimer(__itimer_which_t which, struct itimerval *now)
{
    if (!world_timed() || which != ITIMER_REAL) {
        return WORLD_REAL(getitimer)(which, now);
    }
    const struct itimerspec left = left_of(&timers[ITIMER_SLOT]);
    *now = (struct itimerval){.it_interval = timeval_of(left.it_interval), .it_value = timeval_of(left.it_value)};
    return 0;
}

unsigned alarm(unsigned seconds)
{
    if (!world_timed()) {
        return WORLD_REAL(alarm)(seconds);
    }
    const struct itimerval asked = {.it_value.tv_sec = seconds};
    struct itimerval before = {0};
    (void)setitimer(ITIMER_REAL, &asked, &before);
    return (unsigned)before.it_value.tv_sec + (before.it_value.tv_usec != 0);
}

// --- timer_create ---------------------------------------------------------------------------------------------------

// An identifier is the index in the list; 0 is never one, because that index belongs to setitimer.
static struct timer *timer_of(timer_t id)
{
    uintptr_t index = (uintptr_t)id;
    if (index >= TIMERS_MAX || timers[index].kind != KIND_POSIX) {
        errno = EINVAL;
        return NULL;
    }
    return &timers[index];
}

int timer_create(clockid_t clock, struct sigevent *restrict event, timer_t *restrict id_out)
{
    if (!world_timed()) {
        return WORLD_REAL(timer_create)(clock, event, id_out);
    }
    bool of_processor = clock < 0 || clock == CLOCK_PROCESS_CPUTIME_ID || clock == CLOCK_THREAD_CPUTIME_ID;
    if (of_processor || (event != NULL && event->sigev_notify == SIGEV_THREAD)) {
        errno = ENOTSUP;
        return -1;
    }
    struct timer *timer = timer_take(KIND_POSIX, clock);
    if (timer == NULL) {
        return -1;
    }
    *id_out = (timer_t)(uintptr_t)(timer - timers);
    timer->signal_number = SIGALRM;
    timer->value.sival_ptr = *id_out;
    if (event != NULL) {
        timer->signal_number = event->sigev_notify == SIGEV_NONE ? 0 : event->sigev_signo;
        timer->value = event->sigev_value;
        timer->thread = event->sigev_notify == SIGEV_THREAD_ID ? world_id_real(event->_sigev_un._tid) : 0;
    }
    return 0;
}

int timer_settime(timer_t id, int flags, const struct itimerspec *restrict asked, struct itimerspec *restrict before)
{
    if (!world_timed()) {
        return WORLD_REAL(timer_settime)(id, flags, asked, before);
    }
    struct timer *timer = timer_of(id);
    return timer != NULL ? timer_set(timer, (flags & TIMER_ABSTIME) != 0, asked, before) : -1;
}

int timer_gettime(timer_t id, struct itimerspec *now)
{
    if (!world_timed()) {
        return WORLD_REAL(timer_gettime)(id, now);
    }
    const struct timer *timer = timer_of(id);
    if (timer != NULL) {
        *now = left_of(timer);
    }
    return timer != NULL ? 0 : -1;
}

int timer_getoverrun(timer_t id)
{
    if (!world_timed()) {
        return WORLD_REAL(timer_getoverrun)(id);
    }
    const struct timer *timer = timer_of(id);
    return timer != NULL ? timer->overruns : -1;
}

int timer_delete(timer_t id)
{
    if (!world_timed()) {
        return WORLD_REAL(timer_delete)(id);
    }
    struct timer *timer = timer_of(id);
    if (timer != NULL) {
        timer->kind = KIND_UNUSED;
        arm();
    }
    return timer != NULL ? 0 : -1;
}

// --- timerfd --------------------------------------------------------------------------------------------------------

int timerfd_create(int clock, int flags)
{
    if (!world_timed()) {
        return WORLD_REAL(timerfd_create)(clock, flags);
    }
    int fd =
        eventfd(0, ((flags & TFD_NONBLOCK) != 0 ? EFD_NONBLOCK : 0) | ((flags & TFD_CLOEXEC) != 0 ? EFD_CLOEXEC : 0));
    struct timer *timer = fd >= 0 ? timer_take(KIND_DESCRIPTOR, clock) : NULL;
    if (fd >= 0 && timer == NULL) {
        (void)close(fd);
        errno = EMFILE;
        return -1;
    }
    if (timer != NULL) {
        timer->fd = fd;
    }
    return fd;
}

static struct timer *timer_of_descriptor(int fd)
{
    for (unsigned i = 0; i < TIMERS_MAX; i++) {
        if (timers[i].kind == KIND_DESCRIPTOR && timers[i].fd == fd) {
            return &timers[i];
        }
    }
    errno = EINVAL;
    return NULL;
}

// The descriptor may block.
static void expirations_forget(int fd)
{
    uint64_t times;
    struct pollfd one = {.fd = fd, .events = POLLIN};
    const struct timespec now = {0};
    if (kernel_call(SYS_ppoll, (long)(uintptr_t)&one, 1, (long)(uintptr_t)&now, 0, 0, 0) == 1) {
        (void)kernel_call(SYS_read, fd, (long)(uintptr_t)&times, sizeof times, 0, 0, 0);
    }
}

// Expirations that were not read are lost when the timer is set again.
int timerfd_settime(int fd, int flags, const struct itimerspec *asked, struct itimerspec *before)
{
    if (!world_timed()) {
        return WORLD_REAL(timerfd_settime)(fd, flags, asked, before);
    }
    struct timer *timer = timer_of_descriptor(fd);
    int status = timer != NULL ? timer_set(timer, (flags & TFD_TIMER_ABSTIME) != 0, asked, before) : -1;
    if (status == 0) {
        expirations_forget(fd);
    }
    return status;
}

int timerfd_gettime(int fd, struct itimerspec *now)
{
    if (!world_timed()) {
        return WORLD_REAL(timerfd_gettime)(fd, now);
    }
    const struct timer *timer = timer_of_descriptor(fd);
    if (timer != NULL) {
        *now = left_of(timer);
    }
    return timer != NULL ? 0 : -1;
}

void world_timers_closed(unsigned first, unsigned last)
{
    for (unsigned i = 0; i < TIMERS_MAX; i++) {
        if (timers[i].kind == KIND_DESCRIPTOR && (unsigned)timers[i].fd >= first && (unsigned)timers[i].fd <= last) {
            timers[i].kind = KIND_UNUSED;
        }
    }
}

// fork(2): a child has none of its parent's timers. What both know by a descriptor goes off in the parent.
void world_timers_forked(void)
{
    for (unsigned i = 0; i < TIMERS_MAX; i++) {
        timers[i].kind = timers[i].kind == KIND_POSIX ? KIND_UNUSED : timers[i].kind;
        timers[i].deadline_ps = ATTACH_NEVER_PS;
        timers[i].interval_ps = 0;
    }
}
