// Prints how much later than a library's constructor the program begins, in thousands of cycles.
#include <stdio.h>
#include <x86intrin.h>

extern unsigned long long early_cycles;

int main(void)
{
    printf("later %lld\n", (long long)(__rdtsc() - early_cycles) / 1000);
    return 0;
}
