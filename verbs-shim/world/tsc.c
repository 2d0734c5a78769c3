// The time stamp counter: rdtsc and rdtscp fault (prctl PR_SET_TSC), and the handler returns simulated time at the
// frequency of /proc/cpuinfo. The program's own handler of SIGSEGV gets every other fault. Where they do not fault, the
// instructions are overwritten (tsc_rewrite.h).
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "verbs-shim/attach/rdtsc.h"
#include "verbs-shim/world/tsc_jump.h"
#include "verbs-shim/world/tsc_rewrite.h"
#include "verbs-shim/world/world.h"

static bool trapping;
static volatile sig_atomic_t probing;

static uint64_t tsc_of(uint64_t now_ps)
{
    return (uint64_t)((unsigned __int128)now_ps * attach_environment()->tsc_hz / 1000000000000u);
}

uint64_t world_tsc_now(uintptr_t at)
{
    int saved = errno;
    uint64_t tsc = attach_environment() != NULL ? tsc_of(world_clock_read_ps(at)) : 0;
    errno = saved;
    return tsc;
}

// The length of the instruction that reads the counter here, or did before it was overwritten; 0: there is none.
static unsigned read_bytes(uintptr_t at)
{
    unsigned bytes = rdtsc_instruction_bytes((const unsigned char *)at); // NOLINT(performance-no-int-to-ptr)
    return bytes != 0 ? bytes : world_tsc_rewritten_bytes(at);
}

static void on_fault(int signal_number, siginfo_t *info, void *context)
{
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    int saved = errno;
    bool noted = info->si_code == SEGV_ACCERR && world_shared_fault((uintptr_t)info->si_addr, registers);
    errno = saved;
    if (noted) {
        return;
    }
    if (probing) {
        probing = false;
        registers[REG_RIP] += RDTSC_BYTES;
        return;
    }
    // A fault without an address is a general protection fault, so the instruction itself is readable.
    bool readable = info->si_code == SI_KERNEL && trapping;
    if (readable && world_tsc_rewrite_mapped(registers)) {
        errno = saved;
        return;
    }
    unsigned length = readable ? read_bytes((uintptr_t)registers[REG_RIP]) : 0;
    if (length == 0) {
        world_signal_pass(signal_number, info, context);
        return;
    }
    uint64_t tsc = world_tsc_now((uintptr_t)registers[REG_RIP]);
    registers[REG_RAX] = (greg_t)(tsc & UINT32_MAX);
    registers[REG_RDX] = (greg_t)(tsc >> 32);
    registers[REG_RCX] = length == RDTSCP_BYTES ? 0 : registers[REG_RCX];
    uintptr_t at = (uintptr_t)registers[REG_RIP];
    registers[REG_RIP] = (greg_t)(length == RDTSC_BYTES ? world_tsc_jump_note(at) : at + length);
}

void world_tsc_trap(bool on)
{
    if (trapping) {
        (void)prctl(PR_SET_TSC, on ? PR_TSC_SIGSEGV : PR_TSC_ENABLE);
    }
}

// Does a read of the counter fault? Some hypervisors let programs read it whatever the flag is.
static bool traps(void)
{
    probing = true;
    __asm__ volatile("rdtsc" : : : "rax", "rdx", "memory");
    bool faulted = !probing;
    probing = false;
    return faulted;
}

void world_tsc_start(void)
{
    world_signal_take(SIGSEGV, on_fault, SA_NODEFER | SA_ONSTACK);
    trapping = true;
    world_tsc_trap(true);
    const char *forced = getenv("TCASIM_TSC_REWRITE"); // a test
    if (!traps() || (forced != NULL && forced[0] == '1')) {
        world_tsc_rewrite_start();
    }
}
