// world_reads N: reads a file N times, writes N lines, and sleeps; a thread sleeps meanwhile and is woken. How often it
// reads and writes at one time is no one else's business.
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { ROUNDS = 3, SLEEP_US = 100 };

static void *sleep_in_rounds(void *unused)
{
    for (int round = 0; round < ROUNDS; round++) {
        (void)usleep(SLEEP_US);
    }
    return unused;
}

static int read_once(void)
{
    char text[64];
    int fd = open("/proc/cpuinfo", O_RDONLY);
    ssize_t bytes = read(fd, text, sizeof text);
    return close(fd) == 0 && bytes == sizeof text ? 0 : 1;
}

int main(int count, char **arguments)
{
    int times = count > 1 ? atoi(arguments[1]) : 0, failed = 0;
    pthread_t thread;
    (void)pthread_create(&thread, NULL, sleep_in_rounds, NULL);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < times; i++) {
            failed += read_once();
            failed += write(STDOUT_FILENO, ".\n", 2) != 2;
        }
        (void)usleep(SLEEP_US);
    }
    return pthread_join(thread, NULL) != 0 || failed != 0;
}
