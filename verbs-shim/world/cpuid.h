// CPUID as a program sees it: that of the node's processor where a library may measure time by it, and the machine's for
// all else, because a program chooses its instructions by it. The node's processor has an invariant time stamp counter,
// whose frequency CPUID does not tell, and no hypervisor; its name is that of /proc/cpuinfo.
//
// Where the processor can be made to fault at the instruction (arch_prctl ARCH_SET_CPUID), it does; elsewhere breakpoints
// replace it (tsc_scan.h), where the time stamp counter needs those as well, or where the machine's counter is not
// invariant. Otherwise the name and the hypervisor are the machine's. Private to the folder.
//
// Leaves out: caches, topology and features, and what programs read before the shim starts.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <ucontext.h>

enum { WORLD_CPUID_BYTES = 2 };

static inline bool world_cpuid_is(const unsigned char *code)
{
    return code[0] == 0x0f && code[1] == 0xa2;
}

void world_cpuid_start(void);
// The instruction does not fault, and the machine's answer would show in results.
bool world_cpuid_needs_breakpoints(void);
// The thread is at this instruction: does what it does. Also at a breakpoint that replaces its first byte.
void world_cpuid_replace(greg_t *registers, uintptr_t at);
// The thread has faulted: true if it did so at this instruction, which is carried out.
bool world_cpuid_fault(greg_t *registers);
