// Which machine this is, as far as the C library says so; files are in paths.c.
#include <stdlib.h>
#include <unistd.h>

#include "verbs-shim/world/world.h"

static uint32_t hash(const char *text)
{
    uint32_t value = 2166136261u; // FNV-1a
    while (text != NULL && *text != '\0') {
        value = (value ^ (unsigned char)*text++) * 16777619u;
    }
    return value;
}

// The folder's name has the run's random part in it.
uint32_t world_identity(void)
{
    return hash(getenv("TCASIM_SYSFS"));
}

long gethostid(void)
{
    const struct attach_environment *environment = attach_environment();
    return environment != NULL ? (long)(int32_t)hash(environment->node) : WORLD_REAL(gethostid)();
}
