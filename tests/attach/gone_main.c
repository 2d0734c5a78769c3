// Partners: "gone naps" sleeps for a millisecond again and again, "gone sleep" for 200 s and then ends, "gone crash"
// dereferences a null pointer after 1.2 ms, "gone poll" polls for ever for something that no program sends, "gone wait"
// waits for ever for another program, "gone pause" for a signal, "gone event" for an event of a device. "gone parent"
// polls as well, after its child has ended with the status 1. "gone alarm" polls until its alarm comes, after 1100 s;
// "gone input" as long, while a thread of it waits for input. "gone call" waits for ever in a call that it makes last.
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "verbs-shim/attach/attach.h"

#define MS_PS   UINT64_C(1000000000)
#define LONG_PS (1100000 * MS_PS)

static volatile int over;

// Prints the line of the call, behind which nothing of this function is left: who called it waits for ever.
__attribute__((noipa, noreturn)) static void wait_for_ever(int line)
{
    printf("%d", line);
    (void)fflush(stdout);
    for (;;) {
        (void)attach_wait(ATTACH_WAIT_OUTSIDE, ATTACH_NEVER_PS);
    }
}

__attribute__((noipa)) static void call_last(void)
{
    wait_for_ever(__LINE__);
}

static void alarm_due(void)
{
    over = 1;
}

// Leaves it unattended, as a zombie.
static void child_end(void)
{
    pid_t child = fork();
    if (child == 0) {
        attach_forked();
        exit(1);
    }
    (void)attach_fork_parent(child);
}

static void *input_await(void *arg)
{
    const struct attach_watch input = {.fd = STDIN_FILENO, .events = POLLIN};
    attach_thread_began();
    (void)attach_wait_descriptors(&input, 1, ATTACH_NEVER_PS);
    return arg;
}

static int poll_for_long(bool input)
{
    pthread_t thread;
    if (input) {
        if (pthread_create(&thread, NULL, input_await, NULL) != 0) {
            return 3;
        }
        attach_thread_started();
    } else {
        attach_alarm(LONG_PS, alarm_due);
    }
    while (!over) {
        (void)attach_poll_call(ATTACH_WAIT_MEMORY, 1);
        over = over || (input && attach_now_ps() >= LONG_PS);
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc < 2 || attach_mode() != ATTACH_TIMED) {
        return 1;
    }
    if (strcmp(argv[1], "crash") == 0) {
        (void)attach_wait(0, attach_now_ps() + 1200000000);
        *(volatile int *)0 = 1;
    }
    if (strcmp(argv[1], "sleep") == 0) {
        return attach_wait(0, 200000 * MS_PS) != 0;
    }
    if (strcmp(argv[1], "alarm") == 0 || strcmp(argv[1], "input") == 0) {
        exit(poll_for_long(strcmp(argv[1], "input") == 0));
    }
    if (strcmp(argv[1], "parent") == 0) {
        child_end();
    } else if (strcmp(argv[1], "call") == 0) {
        call_last();
    }
    for (;;) {
        if (strcmp(argv[1], "poll") == 0 || strcmp(argv[1], "parent") == 0) {
            (void)attach_poll_call(ATTACH_WAIT_MEMORY, 1);
        } else if (strcmp(argv[1], "naps") == 0) {
            (void)attach_wait(0, attach_now_ps() + MS_PS);
        } else if (strcmp(argv[1], "pause") == 0) {
            (void)attach_wait(0, ATTACH_NEVER_PS);
        } else if (strcmp(argv[1], "event") == 0) {
            (void)attach_wait(ATTACH_WAIT_EVENTS, ATTACH_NEVER_PS);
        } else {
            (void)attach_wait(ATTACH_WAIT_OUTSIDE, ATTACH_NEVER_PS);
        }
    }
}
