// Kills a child that has 200 MiB of memory, for whose end the kernel needs some milliseconds, and prints how often it
// looked until the child was gone, and how the child ended.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { BYTES = 200 << 20 };

// Says that it has its memory, and sleeps.
static void victim(int to_parent)
{
    char *memory = malloc(BYTES);
    if (memory != NULL) {
        memset(memory, 1, BYTES);
        (void)!write(to_parent, memory, 1);
    }
    (void)sleep(1000);
    _exit(1);
}

static long long now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (long long)now.tv_sec * 1000000000 + now.tv_nsec;
}

int main(void)
{
    int pipe_ends[2], status = 0;
    char byte;
    if (pipe(pipe_ends) != 0) {
        return 1;
    }
    pid_t child = fork();
    if (child == 0) {
        victim(pipe_ends[1]);
    }
    if (read(pipe_ends[0], &byte, 1) != 1 || kill(child, SIGKILL) != 0) {
        return 2;
    }
    long long killed_ns = now_ns();
    unsigned looks = 1;
    while (waitpid(child, &status, WNOHANG) == 0) {
        looks++;
    }
    printf("looks %u after_ns %lld signal %d\n", looks, now_ns() - killed_ns, WTERMSIG(status));
    return 0;
}
