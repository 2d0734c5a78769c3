// The time stamp counter: rdtsc and rdtscp fault (prctl PR_SET_TSC), and the handler returns simulated time at the
// frequency of /proc/cpuinfo. The program's own handler of SIGSEGV gets every other fault. Where the machine lets them
// not fault, breakpoints replace them (tsc_scan.c).
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "verbs-shim/attach/rdtsc.h"
#include "verbs-shim/world/cpuid.h"
#include "verbs-shim/world/interpret_internal.h"
#include "verbs-shim/world/tsc_jump.h"
#include "verbs-shim/world/tsc_scan.h"
#include "verbs-shim/world/world.h"

static bool trapping;
static volatile sig_atomic_t probing;

uint64_t world_tsc_of(uint64_t now_ps)
{
    return (uint64_t)((unsigned __int128)now_ps * attach_environment()->tsc_hz / 1000000000000u);
}

uint64_t world_tsc_now(uintptr_t at)
{
    int saved = errno;
    uint64_t tsc = attach_environment() != NULL ? world_tsc_of(world_clock_read_ps(at, NULL, NULL)) : 0;
    errno = saved;
    return tsc;
}

// Does what the instruction at this address does.
static void read_replace(greg_t *registers, uintptr_t at, unsigned bytes)
{
    uint64_t tsc = world_tsc_now(at);
    registers[REG_RAX] = (greg_t)(tsc & UINT32_MAX);
    registers[REG_RDX] = (greg_t)(tsc >> 32);
    registers[REG_RCX] = bytes == RDTSCP_BYTES ? 0 : registers[REG_RCX];
    registers[REG_RIP] = (greg_t)(bytes == RDTSC_BYTES ? world_tsc_jump_note(at) : at + bytes);
}

static void on_fault(int signal_number, siginfo_t *info, void *context)
{
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    int saved = errno;
    bool noted = info->si_code == SEGV_ACCERR && world_shared_fault((uintptr_t)info->si_addr, registers);
    errno = saved;
    if (noted || interpret_fault(registers)) {
        return;
    }
    // A fault without an address is a general protection fault, so the instruction itself is readable.
    unsigned length =
        info->si_code == SI_KERNEL && trapping ? rdtsc_instruction_bytes((const unsigned char *)registers[REG_RIP]) : 0;
    if (length == 0 && info->si_code == SI_KERNEL && world_cpuid_fault(registers)) {
        errno = saved;
        return;
    }
    if (length == 0) {
        world_signal_pass(signal_number, info, context);
        return;
    }
    if (probing) {
        probing = false;
        registers[REG_RIP] += length;
        return;
    }
    read_replace(registers, (uintptr_t)registers[REG_RIP], length);
}

bool world_tsc_breakpoint(greg_t *registers)
{
    uintptr_t at = (uintptr_t)registers[REG_RIP] - 1;
    unsigned length = world_tsc_scan_bytes(at);
    if (length != 0 && world_tsc_scan_is_cpuid(at)) {
        world_cpuid_replace(registers, at);
    } else if (length != 0) {
        read_replace(registers, at, length);
    }
    return length != 0;
}

void world_tsc_trap(bool on)
{
    if (trapping) {
        (void)prctl(PR_SET_TSC, on ? PR_TSC_SIGSEGV : PR_TSC_ENABLE);
    }
}

// Does the instruction fault? Some hypervisors let it read the machine's counter all the same.
static bool faults(void)
{
    uint32_t low, high;
    probing = true;
    __asm__ volatile("rdtsc" : "=a"(low), "=d"(high)::"memory");
    bool faulted = !probing;
    probing = false;
    return faulted;
}

void world_tsc_start(void)
{
    world_signal_take(SIGSEGV, on_fault, SA_NODEFER | SA_ONSTACK);
    const char *how = getenv("TCASIM_TSC"); // for tests: "breakpoints"
    trapping = how == NULL || strcmp(how, "breakpoints") != 0;
    world_tsc_trap(true);
    trapping = trapping && faults();
    world_cpuid_start();
    if (!trapping || world_cpuid_needs_breakpoints()) {
        world_tsc_scan_start(!trapping);
    }
}
