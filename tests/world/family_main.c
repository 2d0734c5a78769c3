// fork, wait, exec, system and pipes. Prints what each child did, and when it was over, in microseconds.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static long now_us(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000L + now.tv_nsec / 1000;
}

static int child_status(pid_t child)
{
    int status = 0;
    return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int child_writes(void)
{
    int pipe_ends[2];
    char text[16] = "";
    if (pipe(pipe_ends) != 0) {
        return -1;
    }
    pid_t child = fork();
    if (child == 0) {
        (void)usleep(3000);
        _exit(write(pipe_ends[1], "told", 4) == 4 ? 7 : 8);
    }
    (void)!read(pipe_ends[0], text, sizeof text - 1);
    printf("%s\n", text);
    return child_status(child);
}

static int became(const char *self)
{
    pid_t child = fork();
    if (child == 0) {
        (void)execl(self, self, "sleep", (char *)NULL);
        _exit(9);
    }
    return child_status(child);
}

// A child that sends messages to itself, and a parent that waits for its end.
static int talks_alone(void)
{
    int pipe_ends[2];
    char byte = 0;
    pid_t child = pipe(pipe_ends) == 0 ? fork() : -1;
    for (int i = 0; child == 0 && i < 1000; i++) {
        (void)!write(pipe_ends[1], &byte, 1);
        (void)!read(pipe_ends[0], &byte, 1);
        (void)now_us();
    }
    if (child == 0) {
        _exit(0);
    }
    return child_status(child);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "alone") == 0) {
        return talks_alone();
    }
    if (argc > 1 && strcmp(argv[1], "sleep") == 0) {
        (void)sleep(2);
        return 5;
    }
    long start_us = now_us();
    int status = child_writes();
    printf("fork %d at %ld\n", status, now_us() - start_us);
    status = became(argv[0]);
    printf("exec %d at %ld\n", status, (now_us() - start_us) / 1000);
    status = WEXITSTATUS(system("sleep 1; exit 3"));
    printf("system %d at %ld\n", status, (now_us() - start_us) / 1000);
    return 0;
}
