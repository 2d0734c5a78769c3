// Shared by the files of the platform. Private to the room.
#pragma once

#include "models/hca/ib_switch.h"
#include "models/host/core.h"
#include "models/peach2/board.h"
#include "models/peach2/twin.h"
#include "sim/cosim/cosim.h"
#include "sim/platform/backend_inproc.h"
#include "sim/platform/device.h"
#include "sim/platform/machine.h"
#include "sim/scenario/ib_fabric.h"
#include "sim/scenario/links.h"
#include "sim/scenario/routes.h"
#include "verbs-shim/tca-verbs/tca_verbs.h"

#define PLAT_FAILURE_MAX 1024

// Address map of every node: the BARs of devices.def begin here in the order of the rows, between GPUs and board.
#define PLAT_DEVICE_BAR_BASE  0x3000000000ull
#define PLAT_DEVICE_BAR_BYTES 0x100000000ull

struct plat_node {
    plat_machine_t *machine;
    const struct scn_node *config;
    uint32_t index;
    host_memory_t *memory;
    pcie_rc_t *rc;
    host_core_t *core;
    peach2_board_t *board;
    cosim_peach2_t *chip; // one of these two exists, by the board's fidelity
    peach2_twin_t *twin;
    uint64_t chip_counters[PEACH2_COUNTER_REGISTERS]; // values of the last plat_chip_counters_read
    struct plat_gpus gpus;
    hca_t *hca;
    struct plat_device devices[PLAT_DEVICES_MAX]; // board, GPUs, then those of devices.def; some also above
    struct plat_backend_inproc backend;
    struct tca_verbs_device tca_verbs; // tca0 of the node's process
    peach2_handle_t *handle;           // when the driver is booted
    plat_program_fn program; // may be NULL
    void *program_arg;
};

// A further process on a node (process.c).
struct plat_process {
    struct plat_node *node;
    host_core_t *core;
    struct plat_backend_inproc backend;
    plat_program_fn program;
    void *arg;
};

// A clock, which drives all boards of its frequency.
struct plat_clock {
    uint32_t mhz;
    cosim_clock_t *clock;
};

// A fault that waits for its time, or for its end.
struct plat_fault_entry {
    sim_t *sim;
    const struct scn_fault *fault;
    pcie_link_t *cable; // one of these exists
    ib_link_t *ib_cable;
    plat_machine_t *machine;
    bool happened; // a fault of a device, at
    uint64_t happened_ps, back_ps; // back_ps 0: it has not ended
    sim_event_t begin, end;
    struct plat_backend_inproc backend; // of the driver that programs a board again
    host_core_t *core;
    peach2_handle_t *handle;
};

// reset.c: a board or an HCA begins anew.
void plat_reset_begin(struct plat_fault_entry *entry);
void plat_reset_end(struct plat_fault_entry *entry); // of an HCA
void plat_reset_disarm(struct plat_fault_entry *entry);
void plat_reset_fini(struct plat_fault_entry *entry);

struct plat_machine {
    const struct scn_scenario *scenario;
    struct adversary *adversary; // NULL: none
    sim_t *sim;
    observe_t *observe; // NULL: none
    pcie_pool_t *pool;
    flow_net_t *flows;
    ib_pool_t *packets;
    struct scn_routes *routes;       // through the cables of boards
    struct scn_ib_fabric *ib_fabric; // and those through InfiniBand
    struct plat_clock *clocks;       // room for as many as nodes
    unsigned clock_count;
    struct plat_node *nodes; // and the others: as many as the scenario has
    pcie_link_t **cables;
    ib_switch_t **ib_switches;
    ib_link_t **ib_cables;
    struct plat_fault_entry faults[SCN_FAULTS_MAX];
    struct plat_process processes[PLAT_PROCESSES_MAX];
    unsigned process_count;
    unsigned booted;     // nodes whose driver is booted
    unsigned ended;      // nodes and processes whose program has ended
    uint64_t started_ps; // time at which all boards are booted and programs start
    sim_condition_t all_booted;
    bool failed;
    char failure[PLAT_FAILURE_MAX];
};

// Receives the reason of a failure.
struct plat_error {
    char *text;
    size_t size;
};
__attribute__((format(printf, 3, 4))) enum sim_status plat_error_set(struct plat_error *error, enum sim_status status,
                                                                     const char *format, ...);

// node.c: a node without its links. fini also frees what a failed init left.
// Where its devices' streams go; NULL: all of its traffic is packets. Devices have the fidelity of their node's board.
flow_net_t *plat_node_flows(const struct plat_node *node);
enum sim_status plat_node_init(struct plat_node *node, const struct plat_options *options, struct plat_error *error);
void plat_node_fini(struct plat_node *node);

// chip_counters.c: the registers COUNTER.* of a node's chip as counters.
enum sim_status plat_chip_counters_register(struct plat_node *node, const char *name);

// devices/board.c: an end of the board, at its slot or a cable.
struct pcie_end_config plat_board_end(const struct scn_board *board);

// links.c: the slots of every node, and the cables.
enum sim_status plat_links_create(plat_machine_t *machine, struct plat_error *error);
void plat_links_destroy(plat_machine_t *machine);

// ib_fabric.c
enum sim_status plat_ib_fabric_create(plat_machine_t *machine); // switches, cables, routes
void plat_ib_fabric_destroy(plat_machine_t *machine);

// machine.c: reports that a node's program has ended; waits until all nodes are booted.
void plat_machine_ended(plat_machine_t *machine);
void plat_machine_wait_booted(plat_machine_t *machine);

// process.c
bool plat_processes_spawn(plat_machine_t *machine);
void plat_processes_fini(plat_machine_t *machine);

// faults.c: arm is called when programs start, disarm when the last one has ended or everything is freed.
void plat_faults_arm(plat_machine_t *machine);
void plat_faults_disarm(plat_machine_t *machine);
void plat_faults_fini(plat_machine_t *machine); // while the simulation and the nodes exist

uint64_t plat_clock_period_ps(uint32_t mhz);
// The clock of that frequency; the first call creates it.
enum sim_status plat_machine_clock(plat_machine_t *machine, uint32_t mhz, cosim_clock_t **clock_out);

// The largest payload that fits every link between nodes that are joined with this one.
uint32_t plat_machine_mps_bytes(const plat_machine_t *machine, uint32_t node);
