// A system call without the C library's function, in front of which the world shim stands and would call in. For x86-64
// Linux. Private to who lives inside attached programs: verbs-shim/attach and verbs-shim/world.
//
// The call's one instruction lies at the same address in every attached process (KERNEL_GATE), so that the filter which
// makes the program's own waits fault (verbs-shim/world/trap.c), and which every program inherits that it starts, lets
// the shim's calls pass.
#pragma once

#define KERNEL_GATE       0x200000000000 // far from where Linux, ASan and TSan put things
#define KERNEL_GATE_BYTES 3              // syscall; ret

// All six arguments, used or not. -errno where it fails.
long tcasim_kernel_call(long number, long a, long b, long c, long d, long e, long f);
#define kernel_call tcasim_kernel_call

// Before anything that the filter does not let pass elsewhere. false: something else lies there.
_Bool kernel_gate_open(void);
