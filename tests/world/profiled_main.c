// Sets a timer of processor time, as programs do that were compiled with -pg.
#include <signal.h>
#include <sys/time.h>

int main(void)
{
    const struct itimerval never = {.it_value.tv_sec = 1000};
    return signal(SIGPROF, SIG_IGN) == SIG_ERR || setitimer(ITIMER_PROF, &never, 0) != 0;
}
