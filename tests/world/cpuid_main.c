// Prints what CPUID says of the processor's name, its hypervisor and its counter.
#include <cpuid.h>
#include <stdio.h>
#include <string.h>

int main(void)
{
    unsigned words[13] = {0}, a, b, c, d;
    for (unsigned i = 0; i < 3; i++) {
        __cpuid(0x80000002 + i, words[4 * i], words[4 * i + 1], words[4 * i + 2], words[4 * i + 3]);
    }
    printf("name %s\n", (const char *)words);
    __cpuid(1, a, b, c, d);
    printf("hypervisor %u\n", c >> 31);
    __cpuid(0x80000007, a, b, c, d);
    printf("invariant %u\n", d >> 8 & 1);
    __cpuid(0x15, a, b, c, d);
    printf("frequency %u\n", a + b + c + d);
    __cpuid(0x40000000, a, b, c, d);
    printf("leaves %u\n", a + b + c + d);
    return 0;
}
