// Lists the counters of a scenario's hardware before it runs.
#include "sim/platform/machine.h"

enum sim_status plat_counters_list(const struct scn_scenario *scenario, sim_counter_visit_fn visit, void *ctx)
{
    plat_machine_t *machine = NULL;
    char error[1024];
    enum sim_status status = plat_machine_create(scenario, NULL, error, sizeof error, &machine);
    if (status == SIM_OK) {
        sim_counters_visit(plat_machine_sim(machine), visit, ctx);
        plat_machine_destroy(machine);
    }
    return status;
}
