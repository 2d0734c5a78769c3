// "loads LIBRARY" prints how much later than the constructor of a library that it loads the program goes on, in
// thousands of cycles.
#include <dlfcn.h>
#include <stdio.h>
#include <x86intrin.h>

int main(int argc, char **argv)
{
    void *library = argc == 2 ? dlopen(argv[1], RTLD_NOW) : NULL;
    const unsigned long long *constructed = library != NULL ? dlsym(library, "early_cycles") : NULL;
    if (constructed == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    printf("later %lld\n", (long long)(__rdtsc() - *constructed) / 1000);
    return dlclose(library) != 0;
}
