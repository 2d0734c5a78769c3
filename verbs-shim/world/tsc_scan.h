// Machines on which the time stamp counter cannot be made to fault: some hypervisors run the guest's kernel without the
// control register that prctl(PR_SET_TSC) sets, and the call succeeds without effect. There the instructions themselves
// are found and get a breakpoint: in the text of the program and of its libraries at the start, and in the text of each
// library that is loaded later, before its constructors run. Private to the folder.
//
// The bytes of an instruction also occur within others. So a function is decoded from its beginning, which the unwind
// table of the file names (.eh_frame_hdr: Linux Standard Base 5.0, 10.6), and only an instruction that begins there
// counts.
//
// Leaves out: code without unwind information, code that is made at run time, the dynamic linker's own statistics.
#pragma once

#include <stdbool.h>
#include <stdint.h>

// The same is done for CPUID (cpuid.h). counter: also for the time stamp counter.
void world_tsc_scan_start(bool counter);
// The length of the instruction that a breakpoint at this address replaces; 0: it is not one of these.
unsigned world_tsc_scan_bytes(uintptr_t at);
bool world_tsc_scan_is_cpuid(uintptr_t at); // the instruction that it replaces
