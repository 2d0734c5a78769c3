// Starts the library, and finds the functions that it interposes.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "verbs-shim/world/environment.h"
#include "verbs-shim/world/world.h"

void *world_real_find(void **slot, const char *name)
{
    void *found = __atomic_load_n(slot, __ATOMIC_RELAXED);
    if (found == NULL) {
        found = dlsym(RTLD_NEXT, name); // in its default version (calls.def)
        if (found == NULL) {
            fprintf(stderr, "tcasim: the C library has no %s\n", name);
            abort();
        }
        __atomic_store_n(slot, found, __ATOMIC_RELAXED);
    }
    return found;
}

bool world_timed(void)
{
    return attach_mode() == ATTACH_TIMED;
}

// For a process that got the environment of another node from its launcher.
static void environment_mend(void)
{
    const struct attach_environment *environment = attach_environment();
    const char *node = getenv("TCASIM_NODE"), *sysfs = getenv("TCASIM_SYSFS");
    const char *last = sysfs != NULL ? strrchr(sysfs, '/') : NULL;
    char folder[WORLD_PATH_BYTES];
    if (last == NULL || (node != NULL && strcmp(node, environment->node) == 0)) {
        return;
    }
    (void)snprintf(folder, sizeof folder, "%.*s/%s", (int)(last - sysfs), sysfs, environment->node);
    (void)setenv("TCASIM_NODE", environment->node, 1);
    (void)setenv("TCASIM_SYSFS", folder, 1);
}

// The first constructor of the process (CMakeLists.txt): it runs before the C library's own, which sets `environ`.
__attribute__((constructor)) static void start(int count, char **arguments, char **environment)
{
    (void)count;
    (void)arguments;
    environ = environ != NULL ? environ : environment;
    if (attach_environment() != NULL) {
        environment_mend();
    }
    if (world_timed()) {
        world_environment_start();
        world_random_start();
        world_trap_start();
        world_clocks_start();
        world_tsc_start();
        world_spin_start();
        world_locks_start();
        world_shared_start();
        world_lookahead_start();
    }
}
