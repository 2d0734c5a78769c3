// The two instructions that read the time stamp counter, when they fault (prctl PR_SET_TSC): Intel SDM volume 2.
// Private to the code that handles the fault: programs (verbs-shim/world) and the simulator (sim/attach).
#pragma once

enum { RDTSC_BYTES = 2, RDTSCP_BYTES = 3 };

// The length of the instruction; 0: it is something else.
static inline unsigned rdtsc_instruction_bytes(const unsigned char *code)
{
    if (code[0] != 0x0f) {
        return 0;
    }
    return code[1] == 0x31 ? RDTSC_BYTES : code[1] == 0x01 && code[2] == 0xf9 ? RDTSCP_BYTES : 0;
}
