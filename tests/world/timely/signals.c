// Handlers and masks: a handler runs when its signal comes, or when it is unblocked.
#include <signal.h>
#include <unistd.h>

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

enum { READ_NS = 100 }; // of the clock, in the handler

static const struct timely_row rows[] = {
    TIMELY_ROW(FUNCTION, "sigaction", by_sigaction, ALARM_US, .at_us = ALARM_US, .late_ns = READ_NS),
    TIMELY_ROW(FUNCTION, "signal", by_signal, ALARM_US, .at_us = ALARM_US, .late_ns = READ_NS),
    TIMELY_ROW(FUNCTION, "sigprocmask", by_sigprocmask, UNBLOCK_US, .at_us = UNBLOCK_US, .late_ns = READ_NS),
    TIMELY_ROW(FUNCTION, "pthread_sigmask", by_pthread_sigmask, UNBLOCK_US, .at_us = UNBLOCK_US, .late_ns = READ_NS),
};
TIMELY_THEME(signals, rows);
