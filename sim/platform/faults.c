// Faults of the scenario: cables that are pulled while programs run, and put back; devices that fail.
//
// Time and TLPs count from the instant at which all boards are booted. A fault whose time is after the end of the last
// program does not happen: the run would only last until then. The same applies to its end.
#include <stdio.h>

#include "sim/kernel/counter.h"
#include "sim/platform/internal.h"
#include "sim/scenario/ib_fabric.h"

static void device_begin(struct plat_fault_entry *entry)
{
    const struct scn_fault *fault = entry->fault;
    if (fault->kind == SCN_FAULT_RESET) {
        plat_reset_begin(entry);
    } else {
        gpu_window_end(entry->machine->nodes[fault->node].gpus.list[fault->device - SCN_FAULT_GPU0]->gpu);
    }
}

static void begin(void *ctx)
{
    struct plat_fault_entry *entry = ctx;
    if (entry->cable != NULL) {
        pcie_link_set_down(entry->cable);
    } else if (entry->ib_cable != NULL) {
        ib_link_set_up(entry->ib_cable, false);
    } else {
        entry->happened = true;
        entry->happened_ps = sim_now_ps(entry->sim);
        device_begin(entry);
    }
}

static void end(void *ctx)
{
    struct plat_fault_entry *entry = ctx;
    if (entry->ib_cable != NULL) {
        ib_link_set_up(entry->ib_cable, true);
    } else {
        plat_reset_end(entry);
    }
}

// The link itself knows when it has carried so many TLPs, and when it is quiet.
static void cable_arm(struct plat_fault_entry *entry, const struct scn_fault *fault)
{
    pcie_link_set_outage(entry->cable, fault->for_ps != SCN_NOT_GIVEN ? fault->for_ps : SIM_NEVER_PS);
    if (fault->after_tlps != SCN_NOT_GIVEN) {
        pcie_link_set_down_after(entry->cable, fault->after_tlps);
    }
}

// A board is reset between two edges of its clock, the first of which is not before the time of the fault.
static uint64_t offset_ps(const plat_machine_t *machine, const struct scn_fault *fault)
{
    if (fault->kind != SCN_FAULT_RESET || fault->device != SCN_FAULT_BOARD) {
        return 0;
    }
    uint64_t period_ps = plat_clock_period_ps(machine->nodes[fault->node].config->board.clock_mhz);
    uint64_t at_ps = sim_now_ps(machine->sim) + fault->at_ps;
    return (at_ps + period_ps - 1) / period_ps * period_ps + period_ps / 2 - at_ps;
}

static void fault_arm(plat_machine_t *machine, const struct scn_fault *fault, struct plat_fault_entry *entry)
{
    *entry = (struct plat_fault_entry){.sim = machine->sim, .machine = machine, .fault = fault};
    entry->cable = fault->ends.given ? machine->cables[fault->cable] : NULL;
    entry->ib_cable = fault->ib_ends.given ? machine->ib_cables[fault->cable] : NULL;
    sim_event_init(&entry->begin, begin, entry);
    sim_event_init(&entry->end, end, entry);
    if (entry->cable != NULL) {
        cable_arm(entry, fault);
    }
    if (fault->at_ps == SCN_NOT_GIVEN) {
        return;
    }
    uint64_t at_ps = fault->at_ps + offset_ps(machine, fault);
    if (at_ps == 0) {
        begin(entry); // an event would be later than the start of the program
    } else {
        sim_event_schedule(machine->sim, &entry->begin, at_ps);
    }
    bool is_hca = fault->kind == SCN_FAULT_RESET && fault->device == SCN_FAULT_HCA;
    if ((entry->ib_cable != NULL || is_hca) && fault->for_ps != SCN_NOT_GIVEN) {
        sim_event_schedule(machine->sim, &entry->end, fault->at_ps + fault->for_ps);
    }
}

void plat_faults_arm(plat_machine_t *machine)
{
    for (uint32_t i = 0; i < machine->scenario->fault_count; i++) {
        fault_arm(machine, &machine->scenario->faults[i], &machine->faults[i]);
    }
}

void plat_faults_disarm(plat_machine_t *machine)
{
    for (uint32_t i = 0; i < machine->scenario->fault_count; i++) {
        struct plat_fault_entry *entry = &machine->faults[i];
        sim_event_cancel(machine->sim, &entry->begin);
        sim_event_cancel(machine->sim, &entry->end);
        if (entry->cable != NULL) {
            pcie_link_set_outage(entry->cable, SIM_NEVER_PS);
        }
        if (entry->fault != NULL && entry->fault->kind == SCN_FAULT_RESET) {
            plat_reset_disarm(entry);
        }
    }
}

void plat_faults_fini(plat_machine_t *machine)
{
    for (uint32_t i = 0; i < machine->scenario->fault_count; i++) {
        plat_reset_fini(&machine->faults[i]);
    }
}

// --- their results -------------------------------------------------------------------------------------------------

static uint64_t counted(const plat_machine_t *machine, const char *component, const char *counter)
{
    return sim_counter_value(machine->sim, component, counter, NULL);
}

static struct plat_fault_end end_of(const plat_machine_t *machine, const pcie_end_t *end, uint32_t node,
                                    enum scn_port port)
{
    const char *component = pcie_end_name(end);
    struct plat_fault_end result = {
        .sent = counted(machine, component, "tlps_sent"),
        .lost = counted(machine, component, "tlps_lost"),
    };
    result.dropped = counted(machine, component, "tlps_dropped") - result.lost;
    snprintf(result.name, sizeof result.name, "%s.%s", machine->scenario->nodes[node].name, scn_port_name(port));
    return result;
}

static struct plat_fault_end ib_end_of(const plat_machine_t *machine, const char *component, uint32_t vertex)
{
    struct plat_fault_end result = {
        .sent = counted(machine, component, "packets"),
        .lost = counted(machine, component, "lost_packets"),
    };
    result.dropped = counted(machine, component, "dropped_while_down");
    result.lost -= result.dropped;
    snprintf(result.name, sizeof result.name, "%s", scn_ib_vertex_name(machine->scenario, vertex));
    return result;
}

// The times of a link are those of its first end.
static void times_fill(const plat_machine_t *machine, const char *component, struct plat_fault *fault)
{
    bool down = fault->happened;
    fault->at_ps = down ? counted(machine, component, "down_at") : 0;
    fault->after_start_ps = down ? fault->at_ps - machine->started_ps : 0;
    fault->back_ps = down ? counted(machine, component, "up_at") : 0;
}

static struct plat_fault ib_fault(const plat_machine_t *machine, uint32_t index)
{
    const struct scn_ib_cable *cable = &machine->scenario->ib_cables[index];
    const char *names[] = {ib_end_name(ib_link_end(machine->ib_cables[index], 0)),
                           ib_end_name(ib_link_end(machine->ib_cables[index], 1))};
    struct plat_fault fault = {
        .ends = {ib_end_of(machine, names[0], cable->from_node), ib_end_of(machine, names[1], cable->to_node)},
    };
    fault.happened = counted(machine, names[0], "downs") > 0;
    times_fill(machine, names[0], &fault);
    return fault;
}

// A device has no ends: what it refused is in its counters.
static struct plat_fault device_fault(const plat_machine_t *machine, uint32_t index)
{
    const struct plat_fault_entry *entry = &machine->faults[index];
    const struct scn_fault *asked = &machine->scenario->faults[index];
    struct plat_fault fault = {.happened = entry->happened};
    if (fault.happened) {
        fault.at_ps = entry->happened_ps;
        fault.after_start_ps = entry->happened_ps - machine->started_ps;
    }
    const char *node = machine->scenario->nodes[asked->node].name;
    fault.back_ps = entry->back_ps;
    if (asked->kind == SCN_FAULT_RESET) {
        snprintf(fault.what, sizeof fault.what, "%s.%s reset", node, asked->device == SCN_FAULT_HCA ? "hca" : "board");
    } else {
        snprintf(fault.what, sizeof fault.what, "%s.gpu%u unpinned", node, (unsigned)(asked->device - SCN_FAULT_GPU0));
    }
    return fault;
}

struct plat_fault plat_machine_fault(const plat_machine_t *machine, uint32_t index)
{
    const struct scn_fault *asked = &machine->scenario->faults[index];
    struct plat_fault fault;
    if (asked->kind != SCN_FAULT_PULL) {
        return device_fault(machine, index);
    }
    if (asked->ib_ends.given) {
        fault = ib_fault(machine, asked->cable);
    } else {
        const struct scn_cable *cable = &machine->scenario->cables[asked->cable];
        pcie_link_t *link = machine->cables[asked->cable];
        fault = (struct plat_fault){
            .happened = pcie_link_down_ps(link) != SIM_NEVER_PS,
            .ends = {end_of(machine, pcie_link_end(link, 0), cable->from_node, cable->from_port),
                     end_of(machine, pcie_link_end(link, 1), cable->to_node, cable->to_port)},
        };
        times_fill(machine, pcie_end_name(pcie_link_end(link, 0)), &fault);
    }
    snprintf(fault.what, sizeof fault.what, "%s-%s pulled", fault.ends[0].name, fault.ends[1].name);
    return fault;
}
