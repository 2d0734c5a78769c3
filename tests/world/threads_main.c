// Two threads that pass a number to each other under a lock and a condition variable, with a sleep each time; and a
// wait for a condition that no thread signals. Prints when the last pass was, in microseconds.
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define TURNS 20

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int turn;

static void *play(void *arg)
{
    int parity = arg != NULL;
    for (int i = 0; i < TURNS / 2; i++) {
        (void)pthread_mutex_lock(&mutex);
        while (turn % 2 != parity) {
            (void)pthread_cond_wait(&changed, &mutex);
        }
        (void)usleep(100);
        turn++;
        (void)pthread_cond_signal(&changed);
        (void)pthread_mutex_unlock(&mutex);
    }
    return NULL;
}

static long now_us(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec * 1000000L + now.tv_nsec / 1000;
}

// Wakes the waiting thread, and takes some time after that before it ends.
static void *wake(void *unused)
{
    (void)pthread_cond_signal(&changed);
    (void)now_us();
    return unused;
}

static int join_many(void)
{
    for (int i = 0; i < 200; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, wake, NULL) != 0 || pthread_join(thread, NULL) != 0) {
            return 2;
        }
    }
    return 0;
}

// Takes time without a call before it ends.
static void *read_clock(void *sum)
{
    for (int i = 0; i < 200; i++) {
        *(long *)sum += now_us();
    }
    return NULL;
}

static void sleep_shortly(int number)
{
    (void)number;
    (void)usleep(1);
}

// The thread is there until it has paid for what it did, also if it has really ended. Every other one gets a signal
// meanwhile.
static int end_in_time(void)
{
    const struct sigaction action = {.sa_handler = sleep_shortly};
    (void)sigaction(SIGUSR1, &action, NULL);
    for (int i = 0; i < 50; i++) {
        long sum = 0;
        pthread_t thread;
        if (pthread_create(&thread, NULL, read_clock, &sum) != 0) {
            return 2;
        }
        (void)usleep(1);
        int early = pthread_tryjoin_np(thread, NULL);
        early = i % 2 != 0 && pthread_kill(thread, SIGUSR1) != 0 ? ESRCH : early;
        (void)usleep(1000);
        int late = pthread_tryjoin_np(thread, NULL);
        if (early != EBUSY || late != 0) {
            printf("thread %d: %s, %s\n", i, strerror(early), strerror(late));
            return 1;
        }
    }
    return 0;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    if (argc > 1) {
        return strcmp(argv[1], "join") == 0 ? join_many() : strcmp(argv[1], "end") == 0 ? end_in_time() : 2;
    }
    long start_us = now_us();
    if (pthread_create(&thread, NULL, play, &turn) != 0) {
        return 2;
    }
    (void)play(NULL);
    (void)pthread_join(thread, NULL);
    printf("turns %d in %ld\n", turn, now_us() - start_us);
    struct timespec until;
    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 5;
    start_us = now_us();
    (void)pthread_mutex_lock(&mutex);
    int error = pthread_cond_timedwait(&changed, &mutex, &until);
    (void)pthread_mutex_unlock(&mutex);
    printf("timeout %d in %ld\n", error == ETIMEDOUT, now_us() - start_us);
    return 0;
}
