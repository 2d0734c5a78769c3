#include "sim/platform/machine.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/platform/internal.h"
#include "verbs-shim/ibsim/ibsim.h"
#include "verbs-shim/tca-verbs/tca_verbs.h"

enum sim_status plat_error_set(struct plat_error *error, enum sim_status status, const char *format, ...)
{
    if (error->size != 0 && error->text[0] == '\0') {
        va_list args;
        va_start(args, format);
        vsnprintf(error->text, error->size, format, args);
        va_end(args);
    }
    return status;
}

// --- shared by nodes -----------------------------------------------------------------------------------------------

// The nearest even number of picoseconds, because the clock needs an even one; exact for every divisor of 500 MHz.
uint64_t plat_clock_period_ps(uint32_t mhz)
{
    return (500000 + mhz / 2) / mhz * 2;
}

enum sim_status plat_machine_clock(plat_machine_t *machine, uint32_t mhz, cosim_clock_t **clock_out)
{
    for (unsigned i = 0; i < machine->clock_count; i++) {
        if (machine->clocks[i].mhz == mhz) {
            *clock_out = machine->clocks[i].clock;
            return SIM_OK;
        }
    }
    struct plat_clock *entry = &machine->clocks[machine->clock_count];
    enum sim_status status = cosim_clock_create(machine->sim, plat_clock_period_ps(mhz), &entry->clock);
    if (status == SIM_OK) {
        entry->mhz = mhz;
        machine->clock_count++;
        *clock_out = entry->clock;
    }
    return status;
}

uint32_t plat_machine_mps_bytes(const plat_machine_t *machine, uint32_t node)
{
    const struct scn_node *nodes = machine->scenario->nodes;
    const struct scn_sub_cluster *of = &machine->routes->sub_clusters[machine->routes->sub_cluster_of[node]];
    uint32_t mps_bytes = nodes[node].host.mps_bytes;
    for (uint32_t i = 0; of->joined && i < of->node_count && i < SCN_WINDOW_NODES_MAX; i++) {
        uint32_t other_bytes = nodes[of->nodes[i]].host.mps_bytes;
        mps_bytes = other_bytes < mps_bytes ? other_bytes : mps_bytes;
    }
    return mps_bytes;
}

// --- life ----------------------------------------------------------------------------------------------------------

static void *array(size_t count, size_t size)
{
    return calloc(count > 0 ? count : 1, size);
}

static enum sim_status arrays_create(plat_machine_t *machine)
{
    const struct scn_scenario *scenario = machine->scenario;
    machine->clocks = array(scenario->node_count, sizeof *machine->clocks);
    machine->nodes = array(scenario->node_count, sizeof *machine->nodes);
    machine->cables = array(scenario->cable_count, sizeof(pcie_link_t *));
    machine->ib_switches = array(scenario->ib_switch_count, sizeof(ib_switch_t *));
    machine->ib_cables = array(scenario->ib_cable_count, sizeof(ib_link_t *));
    if (machine->clocks == NULL || machine->nodes == NULL || machine->cables == NULL || machine->ib_switches == NULL ||
        machine->ib_cables == NULL) {
        return SIM_ERR_NO_MEMORY;
    }
    machine->routes = scn_routes_find(scenario);
    machine->ib_fabric = scn_ib_fabric_find(scenario);
    return SIM_OK;
}

static void arrays_free(plat_machine_t *machine)
{
    scn_routes_free(machine->routes);
    scn_ib_fabric_free(machine->ib_fabric);
    free(machine->clocks);
    free(machine->nodes);
    free(machine->cables);
    free(machine->ib_switches);
    free(machine->ib_cables);
    free(machine);
}

static enum sim_status machine_build(plat_machine_t *machine, const struct plat_options *options,
                                     struct plat_error *error)
{
    const struct scn_scenario *scenario = machine->scenario;
    const struct sim_config config = {
        .seed = scenario->seed,
        .time_limit_ps = scenario->time_limit_ps,
        .silence_limit_ps = scenario->silence_limit_ps,
    };
    enum sim_status status = sim_create(&config, &machine->sim);
    if (status == SIM_OK) {
        status = pcie_pool_create(&machine->pool);
    }
    if (status == SIM_OK) {
        status = flow_net_create(machine->sim, &machine->flows);
    }
    if (status == SIM_OK) {
        machine->packets = ib_pool_create();
        status = machine->packets == NULL ? SIM_ERR_NO_MEMORY : SIM_OK;
    }
    for (uint32_t i = 0; status == SIM_OK && i < scenario->node_count; i++) {
        struct plat_node *node = &machine->nodes[i];
        node->machine = machine;
        node->config = &scenario->nodes[i];
        node->index = i;
        status = plat_node_init(node, options, error);
    }
    if (status == SIM_OK) {
        status = plat_links_create(machine, error);
    }
    return plat_error_set(error, status, "%s", sim_status_text(status));
}

enum sim_status plat_machine_create(const struct scn_scenario *scenario, const struct plat_options *options,
                                    char *error, size_t error_size, plat_machine_t **machine_out)
{
    struct plat_error where = {error, error_size};
    if (error_size != 0) {
        error[0] = '\0';
    }
    plat_machine_t *machine = calloc(1, sizeof *machine);
    if (machine == NULL) {
        return plat_error_set(&where, SIM_ERR_NO_MEMORY, "%s", sim_status_text(SIM_ERR_NO_MEMORY));
    }
    machine->scenario = scenario;
    machine->adversary = options != NULL ? options->adversary : NULL;
    sim_condition_init(&machine->all_booted);
    enum sim_status status = arrays_create(machine);
    if (status != SIM_OK) {
        arrays_free(machine);
        return plat_error_set(&where, status, "%s", sim_status_text(status));
    }
    status = machine_build(machine, options, &where);
    if (status != SIM_OK) {
        plat_machine_destroy(machine);
        return status;
    }
    for (uint32_t i = 0; i < scenario->node_count && options != NULL && options->lost != NULL; i++) {
        if (machine->nodes[i].hca != NULL) {
            hca_set_lost(machine->nodes[i].hca, options->lost, options->lost_ctx);
        }
    }
    if (error_size != 0) {
        error[0] = '\0';
    }
    *machine_out = machine;
    return SIM_OK;
}

// Models are destroyed before the simulation, because they remove their events from its queue. Threads that still wait
// end with the simulation, and access nothing while they end.
void plat_machine_destroy(plat_machine_t *machine)
{
    if (machine == NULL) {
        return;
    }
    plat_processes_fini(machine);
    plat_faults_fini(machine);
    for (uint32_t i = 0; i < machine->scenario->node_count; i++) {
        plat_node_fini(&machine->nodes[i]);
    }
    if (machine->sim != NULL) {
        plat_faults_disarm(machine);
    }
    plat_links_destroy(machine);
    for (unsigned i = 0; i < machine->clock_count; i++) {
        cosim_clock_destroy(machine->clocks[i].clock);
    }
    if (machine->packets != NULL) {
        (void)ib_pool_destroy(machine->packets);
    }
    flow_net_destroy(machine->flows);
    if (machine->pool != NULL) {
        (void)pcie_pool_destroy(machine->pool);
    }
    observe_destroy(machine->observe);
    sim_destroy(machine->sim);
    arrays_free(machine);
}

void plat_machine_observe(plat_machine_t *machine, observe_t *observe)
{
    machine->observe = observe;
    for (uint32_t i = 0; i < machine->scenario->node_count; i++) {
        machine->nodes[i].backend.observe = observe;
    }
}

// --- running -------------------------------------------------------------------------------------------------------

void plat_machine_set_program(plat_machine_t *machine, uint32_t node, plat_program_fn program, void *arg)
{
    machine->nodes[node].program = program;
    machine->nodes[node].program_arg = arg;
}

// Nobody may send to a board before its routes are set.
void plat_machine_wait_booted(plat_machine_t *machine)
{
    const struct sim_wait_reason reason = {"platform", "all boards to be ready, %llu of %llu are", machine->booted,
                                           machine->scenario->node_count};
    while (machine->booted < machine->scenario->node_count) {
        (void)sim_condition_wait(machine->sim, &machine->all_booted, SIM_NEVER_PS, &reason);
    }
}

static void boot_wait(plat_machine_t *machine)
{
    if (++machine->booted == machine->scenario->node_count) {
        machine->started_ps = sim_now_ps(machine->sim);
        plat_faults_arm(machine);
        sim_condition_signal(machine->sim, &machine->all_booted);
    }
    plat_machine_wait_booted(machine);
}

void plat_machine_ended(plat_machine_t *machine)
{
    if (++machine->ended == machine->scenario->node_count + machine->process_count) {
        plat_faults_disarm(machine);
    }
}

_Static_assert((int)SCN_VERBS_CHAIN_WAITS == TCA_VERBS_CHAIN_WAITS &&
                   (int)SCN_VERBS_CHAIN_PIPELINED == TCA_VERBS_CHAIN_PIPELINED &&
                   (int)SCN_VERBS_LAZY == TCA_VERBS_LAZY && (int)SCN_VERBS_AT_ONCE == TCA_VERBS_AT_ONCE &&
                   (int)SCN_VERBS_HOST == TCA_VERBS_HOST,
               "a scenario's names are those of the library");

// Adds the devices that the program finds with ibv_get_device_list.
static int verbs_devices_add(struct plat_node *node)
{
    struct backend_process *process = &node->backend.process;
    int error = node->hca != NULL ? ibsim_device_add(process) : 0;
    if (error == 0 && node->board != NULL) {
        node->tca_verbs =
            (struct tca_verbs_device){.board = node->handle,
                                      .form = {node->config->board.verbs_chain, node->config->board.verbs_completion},
                                      .progress_thread = node->config->board.progress_thread};
        error = ibverbs_device_add(process, "tca0", &tca_verbs_ops, &node->tca_verbs);
    }
    return error;
}

static void node_thread(void *arg)
{
    struct plat_node *node = arg;
    const struct plat_device *device = NULL;
    int error = plat_devices_boot(node, &device);
    if (error != 0) {
        plat_machine_fail(node->machine, "%s: the %s's driver does not start: %s", node->config->name, device->title,
                          strerror(-error));
        return;
    }
    boot_wait(node->machine);
    if (node->program != NULL) {
        plat_backend_enter(&node->backend, node->handle);
        error = verbs_devices_add(node);
        if (error != 0) {
            plat_machine_fail(node->machine, "%s: no devices of verbs for its program: %s", node->config->name,
                              strerror(-error));
            return;
        }
        node->program(node->program_arg, node->handle);
        plat_backend_threads_stop(&node->backend);
        plat_backend_end(&node->backend);
    }
    plat_machine_ended(node->machine);
}

enum sim_run_outcome plat_machine_run(plat_machine_t *machine)
{
    for (uint32_t i = 0; i < machine->scenario->node_count; i++) {
        struct plat_node *node = &machine->nodes[i];
        if (sim_thread_spawn(machine->sim, node->config->name, node_thread, node) != SIM_OK) {
            plat_machine_fail(machine, "%s: no memory for a thread", node->config->name);
            return SIM_RUN_STOPPED;
        }
    }
    if (!plat_processes_spawn(machine)) {
        plat_machine_fail(machine, "no memory for a thread");
        return SIM_RUN_STOPPED;
    }
    return sim_run(machine->sim);
}

void plat_machine_fail(plat_machine_t *machine, const char *format, ...)
{
    if (!machine->failed) {
        va_list args;
        va_start(args, format);
        vsnprintf(machine->failure, sizeof machine->failure, format, args);
        va_end(args);
    }
    machine->failed = true;
    sim_stop(machine->sim);
}

// --- access --------------------------------------------------------------------------------------------------------

const char *plat_machine_failure(const plat_machine_t *machine)
{
    return machine->failed ? machine->failure : NULL;
}

const struct scn_routes *plat_machine_routes(const plat_machine_t *machine)
{
    return machine->routes;
}

sim_t *plat_machine_sim(const plat_machine_t *machine)
{
    return machine->sim;
}

host_memory_t *plat_machine_memory(const plat_machine_t *machine, uint32_t node)
{
    return machine->nodes[node].memory;
}

void *plat_machine_driver(plat_machine_t *machine, uint32_t node, enum scn_device_id id)
{
    const struct plat_device *device = plat_device_find(&machine->nodes[node], id);
    return device != NULL ? device->driver : NULL;
}

const struct plat_backend_inproc *plat_machine_backend(const plat_machine_t *machine, uint32_t node)
{
    return &machine->nodes[node].backend;
}

enum sim_status plat_machine_core_create(plat_machine_t *machine, uint32_t node, const char *name,
                                         host_core_t **core_out)
{
    const struct plat_node *host = &machine->nodes[node];
    return host_core_create(machine->sim, name, host_core_config(host->core), host->rc, host->memory, core_out);
}

uint64_t plat_machine_rtl_cycles(const plat_machine_t *machine)
{
    uint64_t cycles = 0;
    for (uint32_t i = 0; i < machine->scenario->node_count; i++) {
        const cosim_peach2_t *chip = machine->nodes[i].chip;
        cycles += chip != NULL ? cosim_peach2_cycles(chip) : 0;
    }
    return cycles;
}

unsigned plat_machine_live_packets(const plat_machine_t *machine)
{
    return pcie_pool_live(machine->pool) + (machine->packets != NULL ? ib_pool_live(machine->packets) : 0);
}
