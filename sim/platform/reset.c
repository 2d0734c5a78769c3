// Resets of boards and HCAs. The links of the device go down with it. After the time of the fault the slot of a board
// comes up; the driver of the node then programs the routes again, in a thread of its own, and opens the ports of the
// cables. What the programs of the node had prepared on the board is lost.
#include <stdio.h>

#include "sim/platform/device.h"
#include "sim/platform/internal.h"

static struct plat_node *node_of(const struct plat_fault_entry *entry)
{
    return &entry->machine->nodes[entry->fault->node];
}

// Whether the same device of the other node was reset and is not back. Then that opens what lies between them.
static bool is_away(const struct plat_fault_entry *entry, uint32_t other)
{
    const plat_machine_t *machine = entry->machine;
    for (uint32_t i = 0; i < machine->scenario->fault_count; i++) {
        const struct scn_fault *fault = &machine->scenario->faults[i];
        const struct plat_fault_entry *reset = &machine->faults[i];
        if (fault->kind == SCN_FAULT_RESET && fault->device == entry->fault->device && fault->node == other &&
            reset->happened && reset->back_ps == 0) {
            return true;
        }
    }
    return false;
}

// --- a board ---------------------------------------------------------------------------------------------------------

static pcie_link_t *slot_of(const struct plat_fault_entry *entry)
{
    return node_of(entry)->devices[0].slot; // the board is the first device
}

static void cable_open(const struct plat_fault_entry *entry, uint32_t cable, uint32_t other)
{
    if (!is_away(entry, other)) {
        pcie_link_set_up(entry->machine->cables[cable]);
    }
}

// Also a cable that was going to be opened stays closed.
static void cable_close(const struct plat_fault_entry *entry, uint32_t cable, uint32_t other)
{
    (void)other;
    pcie_link_set_outage(entry->machine->cables[cable], SIM_NEVER_PS);
    pcie_link_set_down(entry->machine->cables[cable]);
}

static void cable_leave(const struct plat_fault_entry *entry, uint32_t cable, uint32_t other)
{
    (void)other;
    pcie_link_set_outage(entry->machine->cables[cable], SIM_NEVER_PS);
}

static void cables_visit(const struct plat_fault_entry *entry,
                         void (*fn)(const struct plat_fault_entry *entry, uint32_t cable, uint32_t other))
{
    for (uint32_t i = 0; i < entry->machine->scenario->cable_count; i++) {
        const struct scn_cable *cable = &entry->machine->scenario->cables[i];
        if (cable->from_node == entry->fault->node) {
            fn(entry, i, cable->to_node);
        } else if (cable->to_node == entry->fault->node) {
            fn(entry, i, cable->from_node);
        }
    }
}

struct driver_name {
    char text[SCN_NAME_MAX + 16];
};

static struct driver_name driver_name(const struct plat_fault_entry *entry)
{
    struct driver_name name;
    snprintf(name.text, sizeof name.text, "%s.driver", node_of(entry)->config->name);
    return name;
}

static void restore_thread(void *arg)
{
    struct plat_fault_entry *entry = arg;
    if (peach2_restore(entry->handle) == 0) {
        entry->back_ps = sim_now_ps(entry->sim);
        cables_visit(entry, cable_open);
    }
}

static void slot_is_up(void *ctx)
{
    struct plat_fault_entry *entry = ctx;
    const struct driver_name name = driver_name(entry);
    if (sim_thread_spawn(entry->sim, name.text, restore_thread, entry) != SIM_OK) {
        plat_machine_fail(entry->machine, "%s: no memory for a thread", name.text);
    }
}

// The driver that programs the board again has a core of its own.
static bool driver_prepare(struct plat_fault_entry *entry)
{
    struct plat_node *node = node_of(entry);
    if (plat_machine_core_create(entry->machine, entry->fault->node, driver_name(entry).text, &entry->core) != SIM_OK) {
        return false;
    }
    entry->backend = node->backend;
    entry->backend.core = entry->core;
    const struct backend backend = plat_backend_inproc(&entry->backend);
    return peach2_open_shared(node->handle, &backend, &entry->handle) == 0;
}

static void board_begin(struct plat_fault_entry *entry)
{
    uint64_t for_ps = entry->fault->for_ps;
    pcie_link_set_outage(slot_of(entry), for_ps != SCN_NOT_GIVEN ? for_ps : SIM_NEVER_PS);
    pcie_link_set_down(slot_of(entry));
    cables_visit(entry, cable_close);
    peach2_board_reset(node_of(entry)->board);
    if (for_ps == SCN_NOT_GIVEN) {
        return;
    }
    if (driver_prepare(entry)) {
        pcie_link_set_up_hook(slot_of(entry), slot_is_up, entry);
    } else {
        plat_machine_fail(entry->machine, "%s: no memory for a driver", node_of(entry)->config->name);
    }
}

// --- an HCA ----------------------------------------------------------------------------------------------------------

static void hca_links_set(const struct plat_fault_entry *entry, bool up)
{
    uint32_t node = entry->fault->node;
    for (uint32_t i = 0; i < entry->machine->scenario->ib_cable_count; i++) {
        const struct scn_ib_cable *cable = &entry->machine->scenario->ib_cables[i];
        if (cable->from_node != node && cable->to_node != node) {
            continue;
        }
        if (!up || !is_away(entry, cable->from_node == node ? cable->to_node : cable->from_node)) {
            ib_link_set_up(entry->machine->ib_cables[i], up);
        }
    }
}

// --- both ------------------------------------------------------------------------------------------------------------

void plat_reset_begin(struct plat_fault_entry *entry)
{
    if (entry->fault->device == SCN_FAULT_BOARD) {
        board_begin(entry);
    } else {
        hca_reset(node_of(entry)->hca);
        hca_links_set(entry, false);
    }
}

void plat_reset_end(struct plat_fault_entry *entry)
{
    entry->back_ps = sim_now_ps(entry->sim);
    hca_links_set(entry, true);
}

void plat_reset_disarm(struct plat_fault_entry *entry)
{
    if (entry->fault->device == SCN_FAULT_BOARD) {
        pcie_link_set_outage(slot_of(entry), SIM_NEVER_PS);
        cables_visit(entry, cable_leave);
        pcie_link_set_up_hook(slot_of(entry), NULL, NULL);
    }
}

void plat_reset_fini(struct plat_fault_entry *entry)
{
    peach2_close(entry->handle);
    host_core_destroy(entry->core);
    entry->handle = NULL;
    entry->core = NULL;
}
