#include "sim/cli/bench_cost.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

// Adds up the numbers after `mark`, over all lines that contain it.
static bool numbers_add(const char *directory, const char *name, const char *mark, uint64_t *sum_inout)
{
    char path[PATH_MAX], line[1024];
    (void)snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        return false;
    }
    while (fgets(line, sizeof line, file) != NULL) {
        uint64_t value;
        const char *found = strstr(line, mark);
        if (found != NULL && sscanf(found + strlen(mark), "%" SCNu64, &value) == 1) {
            *sum_inout += value;
        }
    }
    fclose(file);
    return true;
}

bool cli_bench_cost_read(const char *directory, struct cli_bench_cost *cost_out)
{
    *cost_out = (struct cli_bench_cost){0};
    return numbers_add(directory, "manifest.yaml", " events: ", &cost_out->events) &&
           numbers_add(directory, "counters.csv", ",tlps_sent,TLPs,", &cost_out->tlps);
}
