// Signals that the shim needs for itself (SIGSEGV for the time stamp counter, SIGTRAP for loops that poll memory): the
// program may have handlers of its own for them, which get what is not the shim's.
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "verbs-shim/world/world.h"

struct taken {
    int number;
    bool ours;
    struct sigaction of_program; // what the program has asked for
};

static struct taken all_taken[] = {{.number = SIGSEGV}, {.number = SIGTRAP}};
enum { TAKEN = sizeof all_taken / sizeof all_taken[0] };

// NULL: the signal is the program's.
static struct taken *taken_find(int number)
{
    for (unsigned i = 0; i < TAKEN; i++) {
        if (all_taken[i].number == number && all_taken[i].ours) {
            return &all_taken[i];
        }
    }
    return NULL;
}

void world_signal_take(int number, const struct sigaction *action)
{
    for (unsigned i = 0; i < TAKEN; i++) {
        struct taken *taken = &all_taken[i];
        if (taken->number == number) {
            (void)WORLD_REAL(sigaction)(number, action, taken->ours ? NULL : &taken->of_program);
            taken->ours = true;
        }
    }
}

void world_signal_pass(int number, siginfo_t *info, void *context)
{
    const struct taken *taken = taken_find(number);
    if (taken == NULL) {
        return;
    }
    const struct sigaction *of_program = &taken->of_program;
    if ((of_program->sa_flags & SA_SIGINFO) != 0) {
        of_program->sa_sigaction(number, info, context);
    } else if (of_program->sa_handler != SIG_DFL && of_program->sa_handler != SIG_IGN) {
        of_program->sa_handler(number);
    } else {
        const struct sigaction fatal = {.sa_handler = SIG_DFL};
        (void)WORLD_REAL(sigaction)(number, &fatal, NULL);
        if (number != SIGSEGV) { // there the instruction faults again
            (void)syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), number);
        }
    }
}

// --- in the C library's place ---------------------------------------------------------------------------------------

int sigaction(int number, const struct sigaction *restrict action, struct sigaction *restrict before)
{
    struct taken *taken = taken_find(number);
    if (taken == NULL) {
        return WORLD_REAL(sigaction)(number, action, before);
    }
    const struct sigaction was = taken->of_program;
    if (action != NULL) {
        taken->of_program = *action;
    }
    if (before != NULL) {
        *before = was;
    }
    return 0;
}

__sighandler_t signal(int number, __sighandler_t handler)
{
    struct taken *taken = taken_find(number);
    if (taken == NULL) {
        return WORLD_REAL(signal)(number, handler);
    }
    __sighandler_t was = taken->of_program.sa_handler;
    taken->of_program = (struct sigaction){.sa_handler = handler, .sa_flags = SA_RESTART};
    return was;
}

// Blocked, they would end the process at the shim's next use of them.
static const sigset_t *without_taken(const sigset_t *set, sigset_t *copy)
{
    if (set == NULL) {
        return set;
    }
    *copy = *set;
    for (unsigned i = 0; i < TAKEN; i++) {
        if (all_taken[i].ours) {
            (void)sigdelset(copy, all_taken[i].number);
        }
    }
    return copy;
}

int sigprocmask(int how, const sigset_t *restrict set, sigset_t *restrict before)
{
    sigset_t copy;
    return WORLD_REAL(sigprocmask)(how, how == SIG_UNBLOCK ? set : without_taken(set, &copy), before);
}

int pthread_sigmask(int how, const sigset_t *restrict set, sigset_t *restrict before)
{
    sigset_t copy;
    return WORLD_REAL(pthread_sigmask)(how, how == SIG_UNBLOCK ? set : without_taken(set, &copy), before);
}
