// Prints how much later than a library's constructor the program begins, in thousands of cycles; and how long ago the
// constructor of a library ran that the program loads itself.
#include <dlfcn.h>
#include <stdio.h>
#include <x86intrin.h>

extern unsigned long long early_cycles;

int main(void)
{
    printf("later %lld\n", (long long)(__rdtsc() - early_cycles) / 1000);
    void *library = dlopen(LOADED_LIBRARY, RTLD_NOW);
    const unsigned long long *loaded = library != NULL ? dlsym(library, "early_cycles") : NULL;
    printf("loaded %lld\n", loaded != NULL ? (long long)(__rdtsc() - *loaded) / 1000 : -1);
    return 0;
}
