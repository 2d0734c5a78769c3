// CPUID as a program sees it: that of the node's processor where a library decides by it how it does things, and the
// machine's for features, because a program chooses its instructions by them. Vendor, family, model and name are the node's
// (UCX and OpenBLAS have tables of them); its time stamp counter is invariant, and CPUID does not tell its frequency; there is
// no hypervisor.
//
// Where the processor can be made to fault at the instruction (arch_prctl ARCH_SET_CPUID), it does; elsewhere, if the
// machine's processor is another one, breakpoints replace it (tsc_scan.h). Private to the folder.
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
// The instruction does not fault, and the machine's answer is another one.
bool world_cpuid_needs_breakpoints(void);
// The thread is at this instruction: does what it does. Also at a breakpoint that replaces its first byte.
void world_cpuid_replace(greg_t *registers, uintptr_t at);
// The thread has faulted: true if it did so at this instruction, which is carried out.
bool world_cpuid_fault(greg_t *registers);
