// The simulator's own time stamp counter, while programs run.
//
// Programs fault where they look at theirs, which is a flag of the processor's control registers. Where the machine is
// a virtual one, each change of that flag is a call of the hypervisor, 20 us for every turn of a program. So the
// simulator has the flag as well; for the few looks of its own (the C library's clocks) the handler lifts it.
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <ucontext.h>

#include "sim/attach/internal.h"
#include "verbs-shim/attach/rdtsc.h"

static struct sigaction before; // the signal's handler is the process's

static void on_fault(int signal_number, siginfo_t *info, void *context)
{
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    // A fault without an address: the instruction itself can be read.
    unsigned bytes =
        info->si_code == SI_KERNEL ? rdtsc_instruction_bytes((const unsigned char *)registers[REG_RIP]) : 0;
    if (bytes == 0) {
        (void)sigaction(signal_number, &before, NULL); // it faults again, for who was there before
        return;
    }
    uint32_t low, high, processor;
    attach_timestamps_trap(false);
    __asm__ volatile("rdtscp" : "=a"(low), "=d"(high), "=c"(processor));
    attach_timestamps_trap(true);
    registers[REG_RAX] = low;
    registers[REG_RDX] = high;
    registers[REG_RCX] = bytes == RDTSCP_BYTES ? (greg_t)processor : registers[REG_RCX];
    registers[REG_RIP] += bytes;
}

void attach_timestamps_trap(bool on)
{
    (void)prctl(PR_SET_TSC, on ? PR_TSC_SIGSEGV : PR_TSC_ENABLE, 0, 0, 0);
}

void attach_timestamps_begin(void)
{
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_NODEFER};
    sigemptyset(&action.sa_mask);
    (void)sigaction(SIGSEGV, &action, &before);
    attach_timestamps_trap(true);
}

void attach_timestamps_end(void)
{
    attach_timestamps_trap(false);
    (void)sigaction(SIGSEGV, &before, NULL);
}
