// Takes a lock around one of the polls of a loop, beside a thread that sleeps until somebody wakes it (libfabric's rxd with its
// progress thread). The loop ends when another process, which sleeps first, writes into a pipe: the polls until then are
// not carried out one by one.
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "loop.h"

enum { SLEEP_US = 300000, LATE_US = 20, BYTES = 64 };

static int to_thread[2], to_loop[2];
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;

static long now_us(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void *sleeper(void *arg)
{
    char byte;
    CHECK(read(to_thread[0], &byte, 1) == 1);
    return arg;
}

int main(void)
{
    struct loop loop;
    struct ibv_wc wc;
    pthread_t thread;
    char byte = 0;
    CHECK(pipe(to_thread) == 0 && pipe2(to_loop, O_NONBLOCK) == 0);
    loop_open(&loop, BYTES);
    CHECK(pthread_create(&thread, NULL, sleeper, NULL) == 0);
    long began_us = now_us();
    pid_t child = fork();
    if (child == 0) {
        (void)usleep(SLEEP_US);
        _exit(write(to_loop[1], &byte, 1) != 1);
    }
    while (read(to_loop[0], &byte, 1) != 1) {
        CHECK(errno == EAGAIN);
        CHECK(pthread_mutex_lock(&guard) == 0);
        CHECK(ibv_poll_cq(loop.cq, 1, &wc) == 0);
        CHECK(pthread_mutex_unlock(&guard) == 0);
    }
    long passed_us = now_us() - began_us;
    CHECK(passed_us >= SLEEP_US && passed_us < SLEEP_US + LATE_US);
    CHECK(write(to_thread[1], &byte, 1) == 1 && pthread_join(thread, NULL) == 0);
    CHECK(waitpid(child, NULL, 0) == child);
    loop_close(&loop);
    return 0;
}
