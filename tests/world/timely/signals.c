// Handlers and masks: a handler runs when its signal comes, or when it is unblocked. Signals to threads, and their
// cancellation, end their waits.
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

#include "timely.h"

enum { ALARM_US = 100, UNBLOCK_US = 250 };

static volatile long handled_ns;

static void on_signal(int number)
{
    (void)number;
    handled_ns = timely_now_ns();
}

// In us since the episode began.
static long handled_us(const struct timely_scene *scene)
{
    return (handled_ns - scene->began_ns) / 1000;
}

static void signal_raise(void *scene)
{
    (void)tgkill(((struct timely_scene *)scene)->process, ((struct timely_scene *)scene)->thread, SIGUSR1);
}

// The handler of SIGUSR1 is set. The signal comes after ALARM_US.
static void sleep_and_be_signalled(struct timely_scene *scene)
{
    timely_later(scene, ALARM_US, signal_raise, scene);
    (void)pause();
    timely_later_end();
}

// The same by a signal to the process: the first thread handles it.
static void process_raise(void *scene)
{
    (void)kill(((struct timely_scene *)scene)->process, SIGUSR1);
}

static long by_sigaction_of_process(struct timely_scene *scene)
{
    const struct sigaction action = {.sa_handler = on_signal};
    (void)sigaction(SIGUSR1, &action, NULL);
    timely_later(scene, ALARM_US, process_raise, scene);
    (void)pause();
    timely_later_end();
    return handled_us(scene);
}

static long by_sigaction(struct timely_scene *scene)
{
    const struct sigaction action = {.sa_handler = on_signal};
    (void)sigaction(SIGUSR1, &action, NULL);
    sleep_and_be_signalled(scene);
    return handled_us(scene);
}

static long by_signal(struct timely_scene *scene)
{
    (void)signal(SIGUSR1, on_signal);
    sleep_and_be_signalled(scene);
    return handled_us(scene);
}

static long unblock_later(struct timely_scene *scene, int (*mask)(int, const sigset_t *, sigset_t *))
{
    sigset_t set;
    const struct sigaction action = {.sa_handler = on_signal};
    (void)sigaction(SIGUSR1, &action, NULL);
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGUSR1);
    (void)mask(SIG_BLOCK, &set, NULL);
    timely_later(scene, ALARM_US, signal_raise, scene);
    (void)usleep(UNBLOCK_US); // blocked: it does not end the sleep
    (void)mask(SIG_UNBLOCK, &set, NULL);
    timely_later_end();
    return handled_us(scene);
}

static long by_sigprocmask(struct timely_scene *scene)
{
    return unblock_later(scene, sigprocmask);
}

static long by_pthread_sigmask(struct timely_scene *scene)
{
    return unblock_later(scene, pthread_sigmask);
}

// sigsuspend(2): "If the signal terminates the process, then sigsuspend() does not return".
static int suspend_with_pending(void *unused)
{
    sigset_t set, none;
    (void)unused;
    (void)sigemptyset(&none);
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTERM);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    (void)raise(SIGTERM);
    (void)usleep(ALARM_US); // blocked: it does not end the process
    return sigsuspend(&none);
}

static long by_sigsuspend(struct timely_scene *scene)
{
    return timely_in_child(suspend_with_pending, scene);
}

// A thread that blocks every signal still reads clocks and the time stamp counter, and sleeps.
static int block_all(int (*mask)(int, const sigset_t *, sigset_t *), int how)
{
    sigset_t all, before;
    (void)sigfillset(&all);
    int error = mask(how, &all, &before);
    uint64_t first = __rdtsc();
    (void)usleep(ALARM_US);
    uint64_t second = __rdtsc();
    (void)mask(SIG_SETMASK, &before, NULL);
    return error == 0 && second > first;
}

static int block_all_by_thread(void *unused)
{
    (void)unused;
    return block_all(pthread_sigmask, SIG_BLOCK) == 1 && block_all(pthread_sigmask, SIG_SETMASK) == 1;
}

static int block_all_by_process(void *unused)
{
    (void)unused;
    return block_all(sigprocmask, SIG_BLOCK) == 1 && block_all(sigprocmask, SIG_SETMASK) == 1;
}

static long by_pthread_sigmask_of_all(struct timely_scene *scene)
{
    return timely_in_child(block_all_by_thread, scene);
}

static long by_sigprocmask_of_all(struct timely_scene *scene)
{
    return timely_in_child(block_all_by_process, scene);
}

// signal(2): "returns the previous value of the signal handler"; also of the signals that the simulator uses itself.
static long by_signal_before(struct timely_scene *scene)
{
    static const int numbers[] = {SIGUSR2, SIGSEGV, SIGTRAP, SIGSYS};
    (void)scene;
    for (unsigned i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        if (signal(numbers[i], on_signal) != SIG_DFL || signal(numbers[i], SIG_IGN) != on_signal ||
            signal(numbers[i], SIG_DFL) != SIG_IGN) {
            return -numbers[i];
        }
    }
    return 0;
}

// --- threads --------------------------------------------------------------------------------------------------------

static pthread_t waiter;

static void thread_kill(void *unused)
{
    (void)unused;
    (void)pthread_kill(waiter, SIGUSR1);
}

static void thread_queue(void *unused)
{
    (void)unused;
    (void)pthread_sigqueue(waiter, SIGUSR1, (union sigval){.sival_int = 1});
}

static long sleep_until_signal(struct timely_scene *scene, void (*action)(void *))
{
    const struct sigaction action_of_signal = {.sa_handler = on_signal};
    const struct timespec long_time = {.tv_sec = 100};
    (void)sigaction(SIGUSR1, &action_of_signal, NULL);
    waiter = pthread_self();
    timely_later(scene, ALARM_US, action, NULL);
    long result = timely_result(nanosleep(&long_time, NULL));
    timely_later_end();
    return result;
}

static long by_pthread_kill(struct timely_scene *scene)
{
    return sleep_until_signal(scene, thread_kill);
}

static long by_pthread_sigqueue(struct timely_scene *scene)
{
    return sleep_until_signal(scene, thread_queue);
}

static int ends[2];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;

static void *wait_in_read(void *unused)
{
    char byte;
    (void)!read(ends[0], &byte, 1);
    return unused;
}

static void *wait_in_poll(void *unused)
{
    struct pollfd one = {.fd = ends[0], .events = POLLIN};
    (void)poll(&one, 1, -1);
    return unused;
}

static void *wait_in_sleep(void *unused)
{
    (void)sleep(100);
    return unused;
}

static void unlock(void *unused)
{
    (void)unused;
    (void)pthread_mutex_unlock(&mutex);
}

static void *wait_in_condition(void *arg)
{
    (void)pthread_mutex_lock(&mutex);
    pthread_cleanup_push(unlock, NULL);
    (void)pthread_cond_wait(&condition, &mutex);
    pthread_cleanup_pop(1);
    return arg;
}

// 1 if it ended by that, and by nothing else. after_us: 0: before it waits.
static long cancelled(void *(*run)(void *), useconds_t after_us)
{
    void *result = NULL;
    pthread_t thread;
    (void)!pipe(ends);
    (void)pthread_create(&thread, NULL, run, NULL);
    if (after_us != 0) {
        (void)usleep(after_us);
    }
    int error = pthread_cancel(thread);
    (void)pthread_join(thread, &result);
    (void)close(ends[0]);
    (void)close(ends[1]);
    return error == 0 && result == PTHREAD_CANCELED;
}

static long by_cancel_of_read(struct timely_scene *scene)
{
    (void)scene;
    return cancelled(wait_in_read, ALARM_US);
}

static long by_early_cancel_of_read(struct timely_scene *scene)
{
    (void)scene;
    return cancelled(wait_in_read, 0);
}

static long by_cancel_of_poll(struct timely_scene *scene)
{
    (void)scene;
    return cancelled(wait_in_poll, ALARM_US);
}

static long by_cancel_of_sleep(struct timely_scene *scene)
{
    (void)scene;
    return cancelled(wait_in_sleep, ALARM_US);
}

// The mutex is free again.
static long by_cancel_of_condition(struct timely_scene *scene)
{
    (void)scene;
    long result = cancelled(wait_in_condition, ALARM_US);
    return result == 1 && pthread_mutex_trylock(&mutex) == 0 && pthread_mutex_unlock(&mutex) == 0;
}

enum { READ_NS = 100 }; // of the clock, in the handler
// Two sleeps, and reads of the counter.
#define BLOCKED_ALL .at_us = 2 * ALARM_US + TIMELY_END_US, .late_ns = 4 * READ_NS

static const struct timely_row rows[] = {
    TIMELY_ROW(FUNCTION, "sigaction", by_sigaction, ALARM_US, .at_us = ALARM_US, .late_ns = READ_NS),
    TIMELY_ROW(FUNCTION, "sigaction", by_sigaction_of_process, ALARM_US, .at_us = ALARM_US, .late_ns = READ_NS),
    TIMELY_ROW(FUNCTION, "signal", by_signal, ALARM_US, .at_us = ALARM_US, .late_ns = READ_NS),
    TIMELY_ROW(FUNCTION, "sigprocmask", by_sigprocmask, UNBLOCK_US, .at_us = UNBLOCK_US, .late_ns = READ_NS),
    TIMELY_ROW(FUNCTION, "pthread_sigmask", by_pthread_sigmask, UNBLOCK_US, .at_us = UNBLOCK_US, .late_ns = READ_NS),
    TIMELY_ROW(LIBRARY, "sigsuspend", by_sigsuspend, -SIGTERM, .at_us = ALARM_US, .late_ns = TIMELY_END_US * 1000),
    TIMELY_ROW(FUNCTION, "pthread_sigmask", by_pthread_sigmask_of_all, 1, BLOCKED_ALL),
    TIMELY_ROW(FUNCTION, "sigprocmask", by_sigprocmask_of_all, 1, BLOCKED_ALL),
    TIMELY_ROW(FUNCTION, "signal", by_signal_before, 0),
    TIMELY_ROW(FUNCTION, "pthread_kill", by_pthread_kill, -EINTR, .at_us = ALARM_US, .late_ns = READ_NS),
    TIMELY_ROW(FUNCTION, "pthread_sigqueue", by_pthread_sigqueue, -EINTR, .at_us = ALARM_US, .late_ns = READ_NS),
    TIMELY_ROW(FUNCTION, "pthread_cancel", by_cancel_of_read, 1, .at_us = ALARM_US),
    TIMELY_ROW(FUNCTION, "pthread_cancel", by_early_cancel_of_read, 1),
    TIMELY_ROW(FUNCTION, "pthread_cancel", by_cancel_of_poll, 1, .at_us = ALARM_US),
    TIMELY_ROW(FUNCTION, "pthread_cancel", by_cancel_of_sleep, 1, .at_us = ALARM_US),
    TIMELY_ROW(FUNCTION, "pthread_cancel", by_cancel_of_condition, 1, .at_us = ALARM_US),
};
TIMELY_THEME(signals, rows);
