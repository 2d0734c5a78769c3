// The simulator's own time stamp counter, while programs run.
//
// A program faults when it reads its counter, because of a flag in the processor's control registers. On a virtual
// machine each change of that flag is a call of the hypervisor, 20 us for every scheduling slot. So the simulator has
// the flag set as well. When it reads the counter itself (in the C library's clocks, rarely), the handler clears the
// flag.
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <ucontext.h>

#include "sim/attach/internal.h"
#include "verbs-shim/attach/rdtsc.h"

static struct sigaction before; // the handler of this signal belongs to the process

static void on_fault(int signal_number, siginfo_t *info, void *context)
{
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    // A fault without an address: the instruction itself is readable.
    unsigned bytes =
        info->si_code == SI_KERNEL ? rdtsc_instruction_bytes((const unsigned char *)registers[REG_RIP]) : 0;
    if (bytes == 0) {
        (void)sigaction(signal_number, &before, NULL); // the instruction faults again, for the earlier handler
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
