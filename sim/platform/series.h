// One run of a scenario as programs on a machine: assigns workloads to nodes and reports their points. Private to the
// room.
#pragma once

#include "scenarios/workloads/workload.h"
#include "sim/platform/machine.h"
#include "sim/platform/mailbox.h"
#include "sim/platform/places.h"
#include "sim/platform/service.h"

#define PLAT_RANKS_MAX PLAT_MAILBOX_RANKS_MAX

struct plat_series;

struct plat_rank {
    struct plat_series *series;
    uint32_t node; // index in the scenario
    struct workload workload;
    struct plat_service service; // for remote reads, if the workload uses it
    struct peach2_proxy_address address;
};

struct plat_series {
    const struct scn_scenario *scenario;
    const struct scn_run *run;
    const struct plat_hooks *hooks;
    plat_machine_t *machine;
    struct plat_mailbox mailbox;
    struct plat_rank *ranks;
    uint32_t rank_count, ranks_done;
    struct plat_places *places; // of a program on several sub-clusters; NULL: another program
    uint32_t ranks_index;       // of run->ranks
    struct workload_shared shared;
    uint64_t (*counts)[WORKLOAD_COUNTS]; // of the programs of each node
    uint64_t points, points_done;
};

// series_check.c: whether the run is possible in this scenario. If not, error is the reason.
enum sim_status plat_series_check(const struct scn_scenario *scenario, const struct scn_run *run, char *error,
                                  size_t error_size);

// Adds the programs to the machine. series must stay at its address until the machine has run.
void plat_series_init(struct plat_series *series, const struct scn_scenario *scenario, const struct scn_run *run,
                      uint32_t ranks_index, const struct plat_hooks *hooks, plat_machine_t *machine);
// Registers what the programs of each node count; the machine's simulation must end before the counts do.
void plat_series_counts_register(plat_machine_t *machine, const struct scn_scenario *scenario,
                                 uint64_t (*counts)[WORKLOAD_COUNTS]);
// Call after the machine has run, before it is destroyed.
void plat_series_fini(struct plat_series *series);
