#include "sim/attach/aside.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LIMIT_S = 10, END_MS = 1000 };
#define MEMORY_BYTES (UINT64_C(2) << 30) // more than it has at its beginning

static void limits_set(void)
{
    FILE *sizes = fopen("/proc/self/statm", "re");
    unsigned long pages = 0;
    if (sizes != NULL && fscanf(sizes, "%lu", &pages) == 1) {
        rlim_t most = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + MEMORY_BYTES;
        (void)setrlimit(RLIMIT_AS, &(struct rlimit){most, most});
    }
    (void)setrlimit(RLIMIT_CPU, &(struct rlimit){LIMIT_S, LIMIT_S});
    (void)setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
}

static void child_run(attach_aside_fn work, void *ctx, size_t room, int to)
{
    char *text = calloc(1, room);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)prctl(PR_SET_TSC, PR_TSC_ENABLE); // timestamps.c
    (void)signal(SIGSEGV, SIG_DFL);
    (void)signal(SIGINT, SIG_IGN); // the simulator decides
    limits_set();
    if (text != NULL) {
        work(ctx, text, room);
        _exit(write(to, text, room) == (ssize_t)room ? EXIT_SUCCESS : EXIT_FAILURE);
    }
    _exit(EXIT_FAILURE);
}

// Reads the whole text before the time is over.
static bool text_read(int from, char *text, size_t room)
{
    size_t got = 0;
    struct pollfd more = {.fd = from, .events = POLLIN};
    while (got < room && poll(&more, 1, LIMIT_S * 1000) == 1) {
        ssize_t part = read(from, text + got, room - got);
        if (part <= 0) {
            break;
        }
        got += (size_t)part;
    }
    return got == room;
}

// A child that waits in the kernel for a file of FUSE cannot be killed; it is left behind.
static void child_await(pid_t child)
{
    const struct timespec look = {.tv_nsec = 1000000};
    for (unsigned i = 0; i < END_MS && waitpid(child, NULL, WNOHANG) == 0; i++) {
        (void)nanosleep(&look, NULL);
    }
}

bool attach_aside(attach_aside_fn work, void *ctx, char *text, size_t room)
{
    int ends[2];
    text[0] = '\0';
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return false;
    }
    pid_t child = fork();
    if (child == 0) {
        child_run(work, ctx, room, ends[1]);
    }
    close(ends[1]);
    bool good = child > 0 && text_read(ends[0], text, room);
    close(ends[0]);
    if (child > 0) {
        (void)kill(child, SIGKILL);
        child_await(child);
    }
    text[good ? room - 1 : 0] = '\0';
    return good;
}

struct beginning {
    void *(*run)(void *arg);
    void *arg;
    sem_t runs;
};

static void *thread_main(void *arg)
{
    struct beginning *beginning = arg;
    void *(*run)(void *) = beginning->run;
    void *run_arg = beginning->arg;
    (void)sem_post(&beginning->runs); // after this the other one's memory is gone
    return run(run_arg);
}

bool attach_aside_thread(pthread_t *thread, void *(*run)(void *arg), void *arg)
{
    struct beginning beginning = {.run = run, .arg = arg};
    sigset_t all, before;
    int counter = PR_TSC_ENABLE;
    (void)sem_init(&beginning.runs, 0, 0);
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    (void)prctl(PR_GET_TSC, &counter); // a thread begins with its creator's
    (void)prctl(PR_SET_TSC, PR_TSC_ENABLE);
    bool started = pthread_create(thread, NULL, thread_main, &beginning) == 0;
    (void)prctl(PR_SET_TSC, counter);
    while (started && sem_wait(&beginning.runs) != 0) {
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)sem_destroy(&beginning.runs);
    return started;
}
