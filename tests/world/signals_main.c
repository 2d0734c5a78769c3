// Waits for signals: of a timer with sigsuspend, of a child with sigwait, and one with sigtimedwait that never comes;
// prints how many microseconds each took. Then a handler with every signal blocked reads the time stamp counter.
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

static volatile sig_atomic_t calls;
static volatile unsigned long long counter;

static void on_signal(int number)
{
    (void)number;
    counter = __rdtsc();
    calls++;
}

static long now_us(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void suspend(void)
{
    const struct itimerval soon = {.it_value.tv_usec = 400};
    sigset_t none;
    (void)sigemptyset(&none);
    long begin_us = now_us();
    (void)setitimer(ITIMER_REAL, &soon, NULL);
    while (calls == 0) {
        (void)sigsuspend(&none);
    }
    printf("suspended %ld\n", now_us() - begin_us);
}

int main(void)
{
    struct sigaction action = {.sa_handler = on_signal};
    sigset_t both;
    (void)sigfillset(&action.sa_mask);
    (void)sigaction(SIGALRM, &action, NULL);
    (void)sigaction(SIGUSR1, &action, NULL);
    (void)sigemptyset(&both);
    (void)sigaddset(&both, SIGALRM);
    (void)sigaddset(&both, SIGCHLD);
    (void)sigprocmask(SIG_BLOCK, &both, NULL);
    suspend();
    long begin_us = now_us();
    if (fork() == 0) {
        (void)usleep(2000);
        _exit(0);
    }
    int number = 0;
    (void)sigwait(&both, &number);
    printf("child %ld\n", number == SIGCHLD ? now_us() - begin_us : -1);
    begin_us = now_us();
    const struct timespec limit = {.tv_nsec = 300000};
    printf("status %d\n", sigtimedwait(&both, NULL, &limit));
    printf("limit %ld\n", now_us() - begin_us);
    (void)raise(SIGUSR1);
    printf("handled %d\n", (int)calls);
    return wait(NULL) > 0 ? 0 : 1;
}
