// pair.c as a program: prints its times. TCASIM_ATTACH names the simulator. "pair ROUNDS [STOPS]": it is stopped this
// often for some milliseconds of real time, at any moment.
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "pair.h"
#include "verbs-shim/attach/attach.h"

static void wait_for_the_other(void)
{
    (void)usleep(300000);
}

static void sleep_ms(long ms)
{
    const struct timespec time = {.tv_nsec = ms * 1000000};
    (void)nanosleep(&time, NULL);
}

static void stops_begin(int stops)
{
    pid_t self = getpid();
    if (stops > 0 && fork() == 0) {
        for (int i = 0; i < stops; i++) {
            sleep_ms(1 + i % 3);
            (void)kill(self, SIGSTOP);
            sleep_ms(2);
            (void)kill(self, SIGCONT);
        }
        _exit(0);
    }
}

int main(int argc, char **argv)
{
    static struct pair pair;
    struct backend_process *process = backend_current();
    if (process == NULL) {
        return 3;
    }
    pair_ready = attach_mode() == ATTACH_FUNCTIONAL ? wait_for_the_other : NULL;
    stops_begin(argc > 2 ? atoi(argv[2]) : 0);
    pair_run(process, attach_environment()->node_index, argc > 1 ? (unsigned)atoi(argv[1]) : 10, &pair);
    for (unsigned i = 0; i < pair.count && i < PAIR_STAMPS_MAX; i++) {
        printf("%llu\n", (unsigned long long)pair.stamps[i]);
    }
    if (pair.error != 0) {
        fprintf(stderr, "pair: %d\n", pair.error);
    }
    return pair.error != 0;
}
