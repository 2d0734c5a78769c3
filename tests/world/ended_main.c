// Threads that have ended leave no timer in the kernel. Prints how many timers the process has (proc(5),
// /proc/self/timers) with no other thread and after a hundred.
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static void *nothing(void *arg)
{
    return arg;
}

static int timers_count(void)
{
    char line[256];
    int count = 0;
    FILE *timers = fopen("/proc/self/timers", "r");
    while (timers != NULL && fgets(line, sizeof line, timers) != NULL) {
        count += strncmp(line, "ID:", 3) == 0;
    }
    return timers == NULL || fclose(timers) != 0 ? -1 : count;
}

int main(void)
{
    printf("before %d\n", timers_count());
    for (unsigned i = 0; i < 100; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, nothing, NULL) != 0 || pthread_join(thread, NULL) != 0) {
            return 1;
        }
    }
    printf("after %d\n", timers_count());
    return 0;
}
