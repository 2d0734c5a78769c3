// The time stamp counter: rdtsc and rdtscp fault (prctl PR_SET_TSC), and the handler answers with simulated time at the
// frequency that /proc/cpuinfo states. The program's own handler of SIGSEGV gets every other fault.
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "verbs-shim/world/world.h"

static struct sigaction of_program; // what the program has asked for SIGSEGV
static bool trapping;

static uint64_t tsc_of(uint64_t now_ps)
{
    return (uint64_t)((unsigned __int128)now_ps * attach_place()->tsc_hz / 1000000000000u);
}

// The length of the instruction; 0: it is something else.
static unsigned tsc_instruction(const unsigned char *code, bool *with_processor_out)
{
    *with_processor_out = false;
    if (code[0] == 0x0f && code[1] == 0x31) {
        return 2;
    }
    if (code[0] == 0x0f && code[1] == 0x01 && code[2] == 0xf9) {
        *with_processor_out = true;
        return 3;
    }
    return 0;
}

static void pass_on(int signal_number, siginfo_t *info, void *context)
{
    if ((of_program.sa_flags & SA_SIGINFO) != 0) {
        of_program.sa_sigaction(signal_number, info, context);
    } else if (of_program.sa_handler != SIG_DFL && of_program.sa_handler != SIG_IGN) {
        of_program.sa_handler(signal_number);
    } else {
        struct sigaction fatal = {.sa_handler = SIG_DFL};
        (void)WORLD_REAL(sigaction)(SIGSEGV, &fatal, NULL); // the instruction faults again
    }
}

static void on_fault(int signal_number, siginfo_t *info, void *context)
{
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    bool with_processor;
    // A fault without an address: a general protection fault, so that the instruction itself can be read.
    unsigned length = info->si_code == SI_KERNEL && trapping
                          ? tsc_instruction((const unsigned char *)registers[REG_RIP], &with_processor)
                          : 0;
    if (length == 0) {
        pass_on(signal_number, info, context);
        return;
    }
    int saved = errno;
    uint64_t tsc = tsc_of(world_clock_read_ps(WORLD_COUNTER));
    registers[REG_RAX] = (greg_t)(tsc & UINT32_MAX);
    registers[REG_RDX] = (greg_t)(tsc >> 32);
    registers[REG_RCX] = with_processor ? 0 : registers[REG_RCX];
    registers[REG_RIP] += length;
    errno = saved;
}

void world_tsc_trap(bool on)
{
    if (trapping) {
        (void)prctl(PR_SET_TSC, on ? PR_TSC_SIGSEGV : PR_TSC_ENABLE);
    }
}

void world_tsc_start(void)
{
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK};
    (void)WORLD_REAL(sigaction)(SIGSEGV, &action, &of_program);
    trapping = true;
    world_tsc_trap(true);
}

// --- the program's own handler
// ----------------------------------------------------------------------------------------

int sigaction(int number, const struct sigaction *restrict action, struct sigaction *restrict before)
{
    if (number != SIGSEGV || !trapping) {
        return WORLD_REAL(sigaction)(number, action, before);
    }
    const struct sigaction was = of_program;
    if (action != NULL) {
        of_program = *action;
    }
    if (before != NULL) {
        *before = was;
    }
    return 0;
}

__sighandler_t signal(int number, __sighandler_t handler)
{
    if (number != SIGSEGV || !trapping) {
        return WORLD_REAL(signal)(number, handler);
    }
    __sighandler_t was = of_program.sa_handler;
    of_program = (struct sigaction){.sa_handler = handler, .sa_flags = SA_RESTART};
    return was;
}

// A blocked SIGSEGV would end the process at its next look at the counter.
static const sigset_t *without_segv(const sigset_t *set, sigset_t *copy)
{
    if (set == NULL || !trapping) {
        return set;
    }
    *copy = *set;
    (void)sigdelset(copy, SIGSEGV);
    return copy;
}

int sigprocmask(int how, const sigset_t *restrict set, sigset_t *restrict before)
{
    sigset_t copy;
    return WORLD_REAL(sigprocmask)(how, how == SIG_UNBLOCK ? set : without_segv(set, &copy), before);
}

int pthread_sigmask(int how, const sigset_t *restrict set, sigset_t *restrict before)
{
    sigset_t copy;
    return WORLD_REAL(pthread_sigmask)(how, how == SIG_UNBLOCK ? set : without_segv(set, &copy), before);
}
