// Processors that a thread may use: it reads what it has set, and a call is refused if the kernel refuses it. Ends with
// the number of the first check that fails; 0: none.
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int checks;

static void check(bool holds)
{
    checks++;
    if (!holds) {
        _exit(checks);
    }
}

static void *other(void *arg)
{
    cpu_set_t now;
    (void)sched_getaffinity(0, sizeof now, &now);
    return CPU_EQUAL(&now, (cpu_set_t *)arg) ? arg : NULL;
}

int main(void)
{
    cpu_set_t all, one, now;
    pthread_t thread;
    void *same = NULL;
    check(sched_getaffinity(0, sizeof all, &all) == 0 && CPU_COUNT(&all) > 0);
    CPU_ZERO(&one);
    check(sched_setaffinity(0, sizeof one, &one) == -1 && errno == EINVAL);
    for (size_t i = 0; CPU_COUNT(&one) == 0; i++) {
        CPU_ZERO(&one);
        if (CPU_ISSET(i, &all)) {
            CPU_SET(i, &one);
        }
    }
    check(sched_setaffinity(0, sizeof one, &one) == 0);
    check(pthread_getaffinity_np(pthread_self(), sizeof now, &now) == 0 && CPU_EQUAL(&now, &one));
    check(sched_getaffinity(gettid(), sizeof now, &now) == 0 && CPU_EQUAL(&now, &one));
    check(sched_getaffinity(0, 12, &now) == -1 && errno == EINVAL);
    check(sched_getaffinity(0, sizeof now, NULL) == -1 && errno == EFAULT);
    check(sched_getaffinity(12345678, sizeof now, &now) == -1 && errno == ESRCH);
    check(syscall(SYS_sched_getaffinity, 0, sizeof now, &now) > 0 && CPU_EQUAL(&now, &one));
    check(pthread_create(&thread, NULL, other, &one) == 0 && pthread_join(thread, &same) == 0 && same != NULL);
    return 0;
}
