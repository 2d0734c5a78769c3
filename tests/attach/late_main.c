// Real time must not decide this: "late computes|sleeps MS" between a fork and its announcement, when the child has
// attached already; "late ends MS" has a child whose last thread takes so long to end, and counts its checks for the
// end in simulated time; "late orphan" leaves a child that waits for short times for ever; "late threads" creates
// threads after different numbers of attach calls.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "verbs-shim/attach/attach.h"

enum { THREADS = 260, STEPS = 7, SLOW_MS = 500 };

static int last_ms;

static long real_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void compute(int ms)
{
    for (long end_ms = real_ms() + ms; real_ms() < end_ms;) {
    }
}

static void compute_last(void)
{
    compute(last_ms);
}

static void child_run(const char *what)
{
    attach_forked();
    if (strcmp(what, "orphan") == 0) {
        for (;;) {
            (void)attach_wait(0, attach_now_ps() + 100000);
        }
    } else if (strcmp(what, "ends") == 0) {
        (void)atexit(compute_last);
        pthread_exit(NULL);
    }
    printf("child at %llu\n", (unsigned long long)attach_now_ps());
    exit(0);
}

static int family(const char *what, int ms)
{
    last_ms = ms;
    pid_t child = fork();
    if (child == 0) {
        child_run(what);
    }
    if (strcmp(what, "computes") == 0) {
        compute(ms);
    } else if (strcmp(what, "sleeps") == 0) {
        (void)usleep((unsigned)ms * 1000);
    }
    attach_spend_ps(5000000);
    attach_fork_parent(child);
    unsigned polls = 0;
    for (int status; strcmp(what, "orphan") != 0 && waitpid(child, &status, WNOHANG) == 0; polls++) {
        (void)attach_wait(ATTACH_WAIT_OUTSIDE, attach_now_ps() + 20000000000);
    }
    printf("%u looks until %llu\n", polls, (unsigned long long)attach_now_ps());
    return 0;
}

static void *thread_main(void *arg)
{
    (void)arg;
    attach_thread_began();
    return NULL;
}

static int threads(void)
{
    long longest_ms = 0;
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_t thread;
        for (unsigned step = 0; step < i % STEPS; step++) {
            (void)attach_wait(0, attach_now_ps() + 1000);
        }
        long since_ms = real_ms();
        if (pthread_create(&thread, NULL, thread_main, NULL) != 0) {
            return 1;
        }
        attach_thread_started();
        longest_ms = real_ms() - since_ms > longest_ms ? real_ms() - since_ms : longest_ms;
        while (pthread_tryjoin_np(thread, NULL) != 0) {
            (void)attach_wait(ATTACH_WAIT_OUTSIDE, ATTACH_NEVER_PS);
        }
    }
    return longest_ms < SLOW_MS ? 0 : 2;
}

int main(int argc, char **argv)
{
    if (argc < 2 || attach_mode() != ATTACH_TIMED) {
        return 1;
    }
    return strcmp(argv[1], "threads") == 0 ? threads() : family(argv[1], argc > 2 ? atoi(argv[2]) : 0);
}
