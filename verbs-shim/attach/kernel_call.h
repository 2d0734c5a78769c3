// A system call that does not use the C library's functions: the world shim interposes those and would call in here
// again. For x86-64 Linux. Private to the code inside attached programs: verbs-shim/attach and verbs-shim/world.
//
// The single instruction of the call has the same address in every attached process (KERNEL_GATE). The system call
// filter makes the program's own blocking calls fault (verbs-shim/world/trap.c), and every program that this one starts
// inherits it; by this address it lets the shim's calls pass.
#pragma once

#define KERNEL_GATE       0x200000000000 // far from the addresses that Linux, ASan and TSan use
#define KERNEL_GATE_BYTES 3              // syscall; ret

// Takes all six arguments, used or not. Returns -errno on failure.
long tcasim_kernel_call(long number, long a, long b, long c, long d, long e, long f);
#define kernel_call tcasim_kernel_call

// Moves a descriptor of the shim's, which a new program does not get, to a number that programs do not close, if the limit of
// descriptors allows it. Returns its number.
int tcasim_descriptor_hide(int fd);
#define descriptor_hide tcasim_descriptor_hide

// Call it before any call that the filter stops elsewhere. false: something else is mapped at the gate's address.
_Bool kernel_gate_open(void);
