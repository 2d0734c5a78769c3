// Children that keep the run token for longer than the interval at which a waiting process checks whether the simulator
// still exists.
#include <stdbool.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

int main(void)
{
    bool good = true;
    for (unsigned i = 0; i < 3; i++) {
        if (fork() == 0) {
            const struct timespec longer = {.tv_sec = 1, .tv_nsec = 100000000};
            // The machine's sleep: the function's would take simulated time.
            _exit(syscall(SYS_nanosleep, &longer, NULL) == 0 ? 0 : 1);
        }
    }
    for (unsigned i = 0; i < 3; i++) {
        int status;
        good = wait(&status) > 0 && status == 0 && good;
    }
    return good ? 0 : 1;
}
