// The library remains loaded after the last dlclose, as when a plug-in is unloaded. Exit status 0: it does.
#include <dlfcn.h>
#include <stdio.h>

int main(void)
{
    void *library = dlopen("libibverbs.so.1", RTLD_NOW);
    if (library == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    (void)dlclose(library);
    return dlopen("libibverbs.so.1", RTLD_NOW | RTLD_NOLOAD) != NULL ? 0 : 1;
}
