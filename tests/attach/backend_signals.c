// Signals that come while the thread waits: prints, for each case, how many interrupts of the wait count, and how many of
// them without SA_RESTART.
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "backend.h"

static pid_t waiting;
static const uint32_t word;

static void handle(int number)
{
    (void)number;
}

static void *signal_later(void *arg)
{
    attach_thread_began();
    (void)attach_wait(0, attach_now_ps() + 5 * (uint64_t)BACKEND_US_PS);
    (void)syscall(SYS_tgkill, getpid(), waiting, SIGUSR1);
    return arg;
}

static void wait_signalled(const char *what, bool futex)
{
    pthread_t thread;
    unsigned before = attach_interrupts(), ending = attach_interrupts_ending();
    waiting = (pid_t)syscall(SYS_gettid);
    if (pthread_create(&thread, NULL, signal_later, NULL) != 0) {
        return;
    }
    attach_thread_started();
    uint64_t deadline_ps = attach_now_ps() + 10 * (uint64_t)BACKEND_US_PS;
    if (futex) {
        (void)attach_futex_wait(&word, false, UINT32_MAX, deadline_ps);
    } else {
        (void)attach_wait(0, deadline_ps);
    }
    printf("%s: %u %u\n", what, attach_interrupts() - before, attach_interrupts_ending() - ending);
    while (pthread_tryjoin_np(thread, NULL) != 0) {
        (void)attach_wait(ATTACH_WAIT_OUTSIDE, ATTACH_NEVER_PS);
    }
}

static void act(void (*handler)(int), int flags)
{
    const struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    (void)sigaction(SIGUSR1, &action, NULL);
}

int backend_signals(const struct backend *backend)
{
    sigset_t set;
    (void)backend;
    act(handle, 0);
    wait_signalled("handled in a sleep", false);
    wait_signalled("handled in a wait for a word", true);
    act(handle, SA_RESTART);
    wait_signalled("handled, to go on", true);
    act(SIG_IGN, 0);
    wait_signalled("ignored", true);
    act(handle, 0);
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGUSR1);
    (void)pthread_sigmask(SIG_BLOCK, &set, NULL);
    wait_signalled("blocked", true);
    return 0;
}
