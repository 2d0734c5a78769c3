#include "machine.h"

#include <stdio.h>
#include <stdlib.h>

#include "models/hca/ib_switch.h"
#include "sim/kernel/random.h"
#include "sim/platform/internal.h"
#include "tests/support/memory_device.h"
#include "tests/support/platform_fixture.h"

enum { CABLE_NS = 75, SWITCH_NS = 100 };

struct vandal {
    sim_event_t event;
    struct sim_random random;
    uint64_t every_ps;
};

struct machine {
    enum device device;
    unsigned nodes, loss_every;
    bool cut;
    struct scn_scenario *scenario;
    plat_machine_t *platform;
    struct memory_world *world;
    ib_link_t *cables[FIXTURE_NODES_MAX]; // ibsim0: a cable for each node, which is its side 0; two nodes share one
    ib_switch_t *ib_switch;
    struct vandal vandal;
    void (*program)(void *arg);
    void *const *args;
};

sim_t *machine_sim(const struct machine *machine)
{
    return plat_machine_sim(machine->platform);
}

struct backend_process *machine_process(const struct machine *machine, unsigned node)
{
    return &machine->platform->nodes[node].backend.process;
}

unsigned machine_live(const struct machine *machine)
{
    return machine->world != NULL ? memory_world_live(machine->world) : 0;
}

// --- hardware of the nodes -------------------------------------------------------------------------------------------

// From configs/: the fastest HCA and its host.
static void hcas_give(struct scn_scenario *scenario, unsigned nodes)
{
    const struct scn_load_options options = {.configs_dir = TCASIM_SOURCE_DIR "/configs"};
    struct scn_scenario *pair = NULL;
    struct scn_messages messages = {0};
    ASSERT_EQ(scn_load(TCASIM_SOURCE_DIR "/tests/support/hca-pair.yaml", &options, &pair, &messages), SIM_OK);
    for (unsigned i = 0; i < nodes; i++) {
        scenario->nodes[i].host = pair->nodes[0].host;
        scenario->nodes[i].host.memory_bytes = 256 * MIB;
        scenario->nodes[i].hca = pair->nodes[0].hca;
    }
    scn_free(pair);
}

static ib_link_t *cable_make(const struct machine *machine, const char *name)
{
    const struct scn_hca *hca = &machine->scenario->nodes[0].hca;
    const uint32_t blocks = hca->port_buffer_bytes / IB_BLOCK_BYTES;
    const struct ib_link_config config = {.ps_per_byte = (uint32_t)(SIM_PS_PER_US / hca->port_bytes_per_us),
                                          .flight_ps = CABLE_NS * NS,
                                          .buffer_blocks = {blocks, blocks},
                                          .mtu_bytes = hca->active_mtu_bytes,
                                          .gap_bytes = hca->port_gap_bytes,
                                          .drop_every = machine->loss_every,
                                          .damage_every = machine->loss_every == 0 ? 0 : machine->loss_every + 6};
    ib_link_t *cable = NULL;
    EXPECT_EQ(ib_link_create(machine_sim(machine), machine->platform->packets, name, &config, &cable), SIM_OK);
    return cable;
}

static void cable_make_direct(struct machine *machine)
{
    machine->cables[0] = machine->cables[1] = cable_make(machine, "cable0");
    for (unsigned i = 0; i < 2; i++) {
        hca_connect_port(machine->platform->nodes[i].hca, ib_link_end(machine->cables[0], i), (uint16_t)(i + 1));
    }
}

static void switch_make(struct machine *machine)
{
    EXPECT_EQ(ib_switch_create(machine_sim(machine), machine->platform->packets, "switch", SWITCH_NS * NS,
                               &machine->ib_switch),
              SIM_OK);
    for (unsigned i = 0; i < machine->nodes; i++) {
        char name[16];
        snprintf(name, sizeof name, "cable%u", i);
        machine->cables[i] = cable_make(machine, name);
        hca_connect_port(machine->platform->nodes[i].hca, ib_link_end(machine->cables[i], 0), (uint16_t)(i + 1));
        unsigned port = ib_switch_add_port(machine->ib_switch, ib_link_end(machine->cables[i], 1));
        EXPECT_EQ(ib_switch_set_route(machine->ib_switch, (uint16_t)(i + 1), port), SIM_OK);
    }
}

// What a process does while it waits for an event.
static void memory_wait(void *sim)
{
    sim_thread_sleep(sim, US);
}

static void scenario_make(struct machine *machine)
{
    machine->scenario = platform_fixture_line(machine->nodes);
    for (unsigned i = 0; i < machine->nodes; i++) {
        struct scn_node *node = &machine->scenario->nodes[i];
        node->board.fidelity = SCN_FIDELITY_TWIN;
        node->board.given = machine->device == ON_TCA0;
    }
    if (machine->device != ON_TCA0) {
        machine->scenario->cable_count = 0;
    }
    if (machine->device == ON_IBSIM0) {
        hcas_give(machine->scenario, machine->nodes);
    }
}

struct machine *machine_create(enum device device, unsigned nodes, unsigned loss_every, uint64_t cut_ps)
{
    char error[256] = "";
    struct machine *machine = calloc(1, sizeof *machine);
    machine->device = device;
    machine->nodes = nodes;
    machine->loss_every = loss_every;
    machine->cut = cut_ps != 0;
    scenario_make(machine);
    machine->scenario->time_limit_ps = cut_ps != 0 ? cut_ps : machine->scenario->time_limit_ps;
    if (plat_machine_create(machine->scenario, NULL, error, sizeof error, &machine->platform) != SIM_OK) {
        sim_panic("machine", "%s", error);
    }
    if (device == ON_IBSIM0 && nodes == 2) {
        cable_make_direct(machine);
    } else if (device == ON_IBSIM0) {
        switch_make(machine);
    } else if (device == IN_MEMORY) {
        machine->world = memory_world_create();
        memory_world_set_wait(machine->world, memory_wait, machine_sim(machine));
    }
    return machine;
}

// --- running ---------------------------------------------------------------------------------------------------------

struct start {
    struct machine *machine;
    unsigned node;
};

static void node_program(void *arg, peach2_handle_t *board)
{
    const struct start *start = arg;
    struct machine *machine = start->machine;
    (void)board;
    if (machine->world != NULL) { // before the first instruction of the process; other nodes already have their device
        memory_world_join(machine->world, machine_process(machine, start->node));
    }
    machine->program(machine->args[start->node]);
}

void machine_run(struct machine *machine, void (*program)(void *arg), void *const *args)
{
    struct start starts[FIXTURE_NODES_MAX];
    machine->program = program;
    machine->args = args;
    for (unsigned i = 0; i < machine->nodes; i++) {
        starts[i] = (struct start){machine, i};
        plat_machine_set_program(machine->platform, i, node_program, &starts[i]);
    }
    enum sim_run_outcome outcome = plat_machine_run(machine->platform);
    if (machine->cut) {
        EXPECT_EQ(outcome, SIM_RUN_TIME_LIMIT);
        return;
    }
    if (outcome != SIM_RUN_DONE) {
        char waiters[1024];
        (void)sim_describe_waiters(machine_sim(machine), waiters, sizeof waiters);
        FAIL("the run ended with %d: %s", (int)outcome, waiters);
    }
    if (plat_machine_failure(machine->platform) != NULL) {
        FAIL("%s", plat_machine_failure(machine->platform));
    }
    EXPECT_EQ(plat_machine_live_packets(machine->platform), 0);
}

void machine_destroy(struct machine *machine)
{
    for (unsigned i = 0; i < machine->nodes && machine->cables[i] != NULL; i++) {
        if (i == 0 || machine->cables[i] != machine->cables[0]) {
            ib_link_destroy(machine->cables[i]);
        }
    }
    if (machine->ib_switch != NULL) {
        ib_switch_destroy(machine->ib_switch);
    }
    plat_machine_destroy(machine->platform);
    if (machine->world != NULL) {
        EXPECT_EQ(memory_world_live(machine->world), 0);
        memory_world_destroy(machine->world);
    }
    platform_fixture_free(machine->scenario);
    free(machine);
}

// --- faults ----------------------------------------------------------------------------------------------------------

static pcie_link_t *slot_of(const struct machine *machine, unsigned node)
{
    struct plat_node *plat_node = &machine->platform->nodes[node];
    return machine->device == ON_TCA0 ? plat_node->devices[0].slot
                                      : plat_device_find(plat_node, SCN_DEVICE_ID_HCA)->slot;
}

void machine_corrupt_slot(struct machine *machine, unsigned node, bool from_device)
{
    pcie_link_corrupt_next(slot_of(machine, node), from_device ? 1 : 0);
}

void machine_damage_cable(struct machine *machine, unsigned node, bool lost)
{
    if (machine->device == ON_TCA0) {
        bool last = node == machine->nodes - 1;
        pcie_link_t *cable = machine->platform->cables[last ? node - 1 : node];
        lost ? pcie_link_drop_next(cable, last) : pcie_link_corrupt_next(cable, last);
        return;
    }
    unsigned side = machine->nodes == 2 ? node : 0;
    if (lost) {
        ib_link_drop_next(machine->cables[node], side, 1);
    } else {
        ib_link_damage_next(machine->cables[node], side, 1);
    }
}

static void vandal_run(void *ctx)
{
    struct machine *machine = ctx;
    struct vandal *vandal = &machine->vandal;
    unsigned node = (unsigned)sim_random_below(&vandal->random, machine->nodes);
    unsigned what = (unsigned)sim_random_below(&vandal->random, machine->device == ON_TCA0 ? 4 : 2);
    if (what < 2) {
        machine_corrupt_slot(machine, node, what == 0);
    } else {
        machine_damage_cable(machine, node, what == 2);
    }
    if (machine->platform->ended < machine->nodes) {
        sim_event_schedule(machine_sim(machine), &vandal->event,
                           1 + sim_random_below(&vandal->random, 2 * vandal->every_ps));
    }
}

void machine_harass(struct machine *machine, uint64_t seed, uint64_t every_ps)
{
    struct vandal *vandal = &machine->vandal;
    vandal->every_ps = every_ps;
    sim_random_init(&vandal->random, seed, "vandal");
    sim_event_init(&vandal->event, vandal_run, machine);
    sim_event_schedule(machine_sim(machine), &vandal->event, every_ps);
}

void machine_pull(struct machine *machine)
{
    if (machine->device == ON_TCA0) {
        pcie_link_set_down(machine->platform->cables[0]);
    } else {
        ib_link_set_up(machine->cables[0], false);
    }
}

// --- statistics ------------------------------------------------------------------------------------------------------

static uint64_t replays_of(const struct machine *machine, const char *link)
{
    uint64_t sum = 0;
    for (unsigned end = 0; end < 2; end++) {
        char name[80];
        bool found;
        snprintf(name, sizeof name, "%s.%u", link, end);
        sum += sim_counter_value(machine_sim(machine), name, "replays", &found);
        EXPECT_TRUE(found);
    }
    return sum;
}

uint64_t machine_replays(const struct machine *machine)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < machine->nodes; i++) {
        char name[64];
        snprintf(name, sizeof name, "node%u.%sslot", i, machine->device == ON_TCA0 ? "" : "hca.");
        sum += replays_of(machine, name);
    }
    return sum;
}
