// pair.c without end; this process is killed after a given number of microseconds of real time.
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "pair.h"
#include "verbs-shim/attach/attach.h"

static void killer_start(long us)
{
    pid_t victim = getpid();
    if (fork() == 0) {
        const struct timespec time = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};
        (void)nanosleep(&time, NULL);
        (void)kill(victim, SIGKILL);
        _exit(0);
    }
}

int main(int argc, char **argv)
{
    static struct pair pair;
    killer_start(argc > 1 ? atol(argv[1]) : 0);
    for (;;) {
        pair_run(backend_current(), attach_environment()->node_index, 100, &pair);
    }
}
