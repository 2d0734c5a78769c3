// Names that live as long as a simulation.
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "sim/kernel/internal.h"

static int compare(const void *a, const void *b)
{
    return strcmp(a, b);
}

const char *sim_name_keep(sim_t *sim, const char *name)
{
    char *const *found = tfind(name, &sim->names, compare);
    if (found != NULL) {
        return *found;
    }
    char *copy = strdup(name);
    if (copy != NULL && tsearch(copy, &sim->names, compare) == NULL) {
        free(copy);
        copy = NULL;
    }
    return copy;
}

void sim_names_fini(sim_t *sim)
{
    tdestroy(sim->names, free);
    sim->names = NULL;
}
