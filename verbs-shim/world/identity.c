// Which machine this is, as far as the C library shows it; for files see paths.c.
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

// The name of the folder contains the run's random part.
uint32_t world_identity(void)
{
    return hash(getenv("TCASIM_SYSFS"));
}

long gethostid(void)
{
    const struct attach_environment *environment = attach_environment();
    return environment != NULL ? (long)(int32_t)hash(environment->node) : WORLD_REAL(gethostid)();
}
