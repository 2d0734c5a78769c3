// Further processes of nodes: each a simulated thread on a core of its own.
#include <stdio.h>
#include <string.h>

#include "sim/platform/internal.h"
#include "verbs-shim/ibsim/ibsim.h"

enum sim_status plat_machine_add_process(plat_machine_t *machine, uint32_t node, plat_program_fn program, void *arg)
{
    struct plat_node *host = &machine->nodes[node];
    if (machine->process_count == PLAT_PROCESSES_MAX) {
        return SIM_ERR_NO_MEMORY;
    }
    uint32_t number = host->backend.number + 1;
    for (unsigned i = 0; i < machine->process_count; i++) {
        number += machine->processes[i].node == host;
    }
    struct plat_process *process = &machine->processes[machine->process_count];
    *process = (struct plat_process){.node = host, .backend = host->backend, .program = program, .arg = arg};
    char name[SCN_NAME_MAX + 16];
    snprintf(name, sizeof name, "%s.core%u", host->config->name, number);
    enum sim_status status = plat_machine_core_create(machine, node, name, &process->core);
    if (status != SIM_OK) {
        return status;
    }
    process->backend.core = process->core;
    process->backend.number = number;
    machine->process_count++;
    return SIM_OK;
}

static void process_thread(void *arg)
{
    struct plat_process *process = arg;
    struct plat_node *node = process->node;
    plat_machine_wait_booted(node->machine);
    plat_backend_enter(&process->backend, NULL);
    int error = node->hca != NULL ? ibsim_device_add(&process->backend.process) : 0;
    if (error != 0) {
        plat_machine_fail(node->machine, "%s: no HCA for its program: %s", node->config->name, strerror(-error));
        return;
    }
    process->program(process->arg, NULL);
    plat_backend_threads_stop(&process->backend);
    plat_backend_end(&process->backend);
    plat_machine_ended(node->machine);
}

bool plat_processes_spawn(plat_machine_t *machine)
{
    for (unsigned i = 0; i < machine->process_count; i++) {
        struct plat_process *process = &machine->processes[i];
        char name[SCN_NAME_MAX + 16];
        snprintf(name, sizeof name, "%s.process%u", process->node->config->name, process->backend.number);
        if (sim_thread_spawn(machine->sim, name, process_thread, process) != SIM_OK) {
            return false;
        }
    }
    return true;
}

void plat_processes_fini(plat_machine_t *machine)
{
    for (unsigned i = 0; i < machine->process_count; i++) {
        plat_backend_leave(&machine->processes[i].backend);
        host_core_destroy(machine->processes[i].core);
    }
    machine->process_count = 0;
}
