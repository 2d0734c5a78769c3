// A system call without the C library's function, in front of which the world shim stands and would call in. For x86-64
// Linux. Private to who lives inside attached programs: verbs-shim/attach and verbs-shim/world.
#pragma once

// All six arguments, used or not. -errno where it fails.
static inline long kernel_call(long number, long a, long b, long c, long d, long e, long f)
{
    register long fourth __asm__("r10") = d;
    register long fifth __asm__("r8") = e;
    register long sixth __asm__("r9") = f;
    __asm__ volatile("syscall"
                     : "+a"(number)
                     : "D"(a), "S"(b), "d"(c), "r"(fourth), "r"(fifth), "r"(sixth)
                     : "rcx", "r11", "memory");
    return number;
}
