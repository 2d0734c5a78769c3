// Faults of the scenario: cables that are pulled while programs run.
//
// Time and TLPs count from the instant at which all boards are booted. A fault whose time is after the end of the last
// program does not happen: the run would only last until then.
#include <stdio.h>

#include "sim/kernel/counter.h"
#include "sim/platform/internal.h"

static void pull(void *ctx)
{
    const struct plat_pull *pull = ctx;
    pcie_link_set_down(pull->cable);
}

static void fault_arm(plat_machine_t *machine, const struct scn_fault *fault, struct plat_pull *entry)
{
    entry->cable = machine->cables[fault->cable];
    sim_event_init(&entry->event, pull, entry);
    if (fault->after_tlps != SCN_NOT_GIVEN) {
        pcie_link_set_down_after(entry->cable, fault->after_tlps);
    } else if (fault->at_ps == 0) {
        pcie_link_set_down(entry->cable); // an event would be later than the start of the program
    } else {
        sim_event_schedule(machine->sim, &entry->event, fault->at_ps);
    }
}

void plat_faults_arm(plat_machine_t *machine)
{
    for (uint32_t i = 0; i < machine->scenario->fault_count; i++) {
        fault_arm(machine, &machine->scenario->faults[i], &machine->pulls[i]);
    }
}

void plat_faults_disarm(plat_machine_t *machine)
{
    for (uint32_t i = 0; i < machine->scenario->fault_count; i++) {
        sim_event_cancel(machine->sim, &machine->pulls[i].event);
    }
}

// --- their results -------------------------------------------------------------------------------------------------

static struct plat_fault_end end_of(const plat_machine_t *machine, const pcie_end_t *end, uint32_t node,
                                    enum scn_port port)
{
    const char *component = pcie_end_name(end);
    uint64_t dropped = sim_counter_value(machine->sim, component, "tlps_dropped", NULL);
    struct plat_fault_end result = {
        .sent_tlps = sim_counter_value(machine->sim, component, "tlps_sent", NULL),
        .lost_tlps = sim_counter_value(machine->sim, component, "tlps_lost", NULL),
    };
    result.dropped_tlps = dropped - result.lost_tlps;
    snprintf(result.name, sizeof result.name, "%s.%s", machine->scenario->nodes[node].name, scn_port_name(port));
    return result;
}

struct plat_fault plat_machine_fault(const plat_machine_t *machine, uint32_t index)
{
    uint32_t cable_index = machine->scenario->faults[index].cable;
    const struct scn_cable *cable = &machine->scenario->cables[cable_index];
    pcie_link_t *link = machine->cables[cable_index];
    uint64_t down_ps = pcie_link_down_ps(link);
    struct plat_fault fault = {
        .happened = down_ps != SIM_NEVER_PS,
        .ends = {end_of(machine, pcie_link_end(link, 0), cable->from_node, cable->from_port),
                 end_of(machine, pcie_link_end(link, 1), cable->to_node, cable->to_port)},
    };
    if (fault.happened) {
        fault.at_ps = down_ps;
        fault.after_start_ps = down_ps - machine->started_ps;
    }
    snprintf(fault.cable, sizeof fault.cable, "%s-%s", fault.ends[0].name, fault.ends[1].name);
    return fault;
}
