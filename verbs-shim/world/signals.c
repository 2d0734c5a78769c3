// Signals that the shim uses itself: the program's own handlers of them are kept, and get the signals that are not the
// shim's.
#include <signal.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "verbs-shim/attach/kernel_call.h"
#include "verbs-shim/world/world.h"

static struct {
    bool taken;
    struct sigaction of_program;
} signals[NSIG];

static bool is_taken(int number)
{
    return number > 0 && number < NSIG && signals[number].taken;
}

void world_signal_take(int number, void (*handler)(int, siginfo_t *, void *), int flags)
{
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | flags}, before;
    (void)sigaddset(&action.sa_mask, world_spin_signal());
    (void)WORLD_REAL(sigaction)(number, &action, &before);
    if (!signals[number].taken) { // unless the handler is ours already, in a child
        signals[number].of_program = before;
        signals[number].taken = true;
    }
}

void world_signal_pass(int number, siginfo_t *info, void *context)
{
    const struct sigaction *of_program = &signals[number].of_program;
    if ((of_program->sa_flags & SA_SIGINFO) != 0) {
        of_program->sa_sigaction(number, info, context);
    } else if (of_program->sa_handler != SIG_DFL && of_program->sa_handler != SIG_IGN) {
        of_program->sa_handler(number);
    } else if (of_program->sa_handler == SIG_DFL || info->si_code > 0) { // a fault cannot be ignored
        const struct sigaction fatal = {.sa_handler = SIG_DFL};
        (void)WORLD_REAL(sigaction)(number, &fatal, NULL);
        (void)WORLD_REAL(tgkill)(world_real_pid(), world_real_tid(), number);
    }
}

// A fault whose signal is blocked would end the process.
const sigset_t *world_signal_mask(const sigset_t *set, sigset_t *copy)
{
    if (set == NULL) {
        return set;
    }
    *copy = *set;
    for (int number = 1; number < NSIG; number++) {
        if (signals[number].taken) {
            (void)sigdelset(copy, number);
        }
    }
    return copy;
}

// The kernel would give a signal of the process to the calling thread, as all others block their signals while they wait.
void world_signal_queue(pid_t thread, const siginfo_t *info)
{
    long number = info->si_signo, to = thread != 0 ? thread : (pid_t)attach_first_thread_taking(info->si_signo);
    (void)(to != 0
               ? kernel_call(SYS_rt_tgsigqueueinfo, world_real_pid(), to, number, (long)(uintptr_t)info, 0, 0)
               : kernel_call(SYS_rt_sigqueueinfo, world_real_pid(), number, (long)(uintptr_t)info, 0, 0, 0));
}

// --- the program's own handlers -------------------------------------------------------------------------------------

int sigaction(int number, const struct sigaction *restrict action, struct sigaction *restrict before)
{
    if (!is_taken(number)) {
        struct sigaction own;
        if (action != NULL) {
            own = *action;
            (void)world_signal_mask(&action->sa_mask, &own.sa_mask);
        }
        return WORLD_REAL(sigaction)(number, action != NULL ? &own : NULL, before);
    }
    const struct sigaction was = signals[number].of_program;
    if (action != NULL) {
        signals[number].of_program = *action;
    }
    if (before != NULL) {
        *before = was;
    }
    return 0;
}

__sighandler_t signal(int number, __sighandler_t handler)
{
    if (!is_taken(number)) {
        return WORLD_REAL(signal)(number, handler);
    }
    __sighandler_t was = signals[number].of_program.sa_handler;
    signals[number].of_program = (struct sigaction){.sa_handler = handler, .sa_flags = SA_RESTART};
    return was;
}

int sigprocmask(int how, const sigset_t *restrict set, sigset_t *restrict before)
{
    sigset_t copy;
    return WORLD_REAL(sigprocmask)(how, how == SIG_UNBLOCK ? set : world_signal_mask(set, &copy), before);
}

int pthread_sigmask(int how, const sigset_t *restrict set, sigset_t *restrict before)
{
    sigset_t copy;
    return WORLD_REAL(pthread_sigmask)(how, how == SIG_UNBLOCK ? set : world_signal_mask(set, &copy), before);
}
