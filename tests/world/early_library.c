// A library that reads the time stamp counter in its constructor, as UCX's does.
#include <x86intrin.h>

unsigned long long early_cycles;

__attribute__((constructor)) static void start(void)
{
    early_cycles = __rdtsc();
}
