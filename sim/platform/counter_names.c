// Lists the counters of a scenario's hardware, and those of its programs, before it runs.
#include "sim/platform/machine.h"

#include <stdlib.h>
#include "sim/platform/series.h"
#include "sim/scenario/workloads.h"

static bool any_counts(const struct scn_scenario *scenario)
{
    bool any = false;
    for (uint32_t i = 0; i < scenario->run_count; i++) {
        any = any || scn_workload_uses(scenario->runs[i].workload, SCN_USES_COUNTS);
    }
    return any;
}

enum sim_status plat_counters_list(const struct scn_scenario *scenario, sim_counter_visit_fn visit, void *ctx)
{
    plat_machine_t *machine = NULL;
    char error[1024];
    uint64_t(*counts)[WORKLOAD_COUNTS] = calloc(scenario->node_count, sizeof *counts);
    enum sim_status status = counts == NULL && scenario->node_count > 0
                                 ? SIM_ERR_NO_MEMORY
                                 : plat_machine_create(scenario, NULL, error, sizeof error, &machine);
    if (status == SIM_OK) {
        if (any_counts(scenario)) {
            plat_series_counts_register(machine, scenario, counts);
        }
        sim_counters_visit(plat_machine_sim(machine), visit, ctx);
        plat_machine_destroy(machine);
    }
    free(counts);
    return status;
}
