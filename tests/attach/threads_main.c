// Threads that pass a number around; each spends its own time, and prints when it had the number.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "verbs-shim/attach/attach.h"

enum { THREADS = 5, TURNS = 40 };
static _Atomic unsigned number;

static void *thread_main(void *arg)
{
    unsigned mine = (unsigned)(size_t)arg;
    attach_thread_began();
    while (number < TURNS) {
        if (number % THREADS != mine) {
            (void)attach_wait(ATTACH_WAIT_OUTSIDE, ATTACH_NEVER_PS);
            continue;
        }
        attach_spend_ps(1000 * (mine + 1));
        printf("%u at %llu\n", number, (unsigned long long)attach_now_ps());
        number++;
        attach_may_wake();
    }
    attach_may_wake();
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++) {
        if (pthread_create(&threads[i], NULL, thread_main, (void *)i) != 0) {
            return 1;
        }
        attach_thread_started();
    }
    while (number < TURNS) {
        (void)attach_wait(ATTACH_WAIT_OUTSIDE, ATTACH_NEVER_PS);
    }
    for (size_t i = 0; i < THREADS; i++) {
        while (pthread_tryjoin_np(threads[i], NULL) != 0) {
            (void)attach_wait(ATTACH_WAIT_OUTSIDE, ATTACH_NEVER_PS);
        }
    }
    return 0;
}
