// The nodes of a scenario as simulated hardware that runs programs: memories, root complexes, cores, boards, links, and
// a thread on every node that boots the drivers of its devices and then runs its program.
//
// Used by the series of scenarios and by tests that need hardware but bring their own programs. Private to the room and
// its tests.
#pragma once

#include "models/host/core.h"
#include "sim/observe/observe.h"
#include "sim/platform/platform.h"
#include "sim/scenario/routes.h"
#include "verbs-shim/peach2/peach2_driver.h"

typedef struct plat_machine plat_machine_t;
struct plat_backend_inproc;

// Address map of every node: host memory from 0, GPUs and other devices above it (gpus.h, internal.h), BAR 0 of the
// board here, and the window at the scenario's window_base.
#define PLAT_BAR0_BASE 0x4000000000ull

// Builds everything in a simulation of its own. On failure the reason is in error.
enum sim_status plat_machine_create(const struct scn_scenario *scenario, const struct plat_options *options,
                                    char *error, size_t error_size, plat_machine_t **machine_out);
// Frees everything, including what abandoned programs held.
void plat_machine_destroy(plat_machine_t *machine);

// The program that a node runs when all boards of the machine are ready; a node without one only boots its driver.
typedef void (*plat_program_fn)(void *arg, peach2_handle_t *board);
void plat_machine_set_program(plat_machine_t *machine, uint32_t node, plat_program_fn program, void *arg);

// Adds a process to the node, on a core of its own, with the node's memory, GPUs and HCA. The board belongs to the
// first process; the program receives none. Call before the run. SIM_ERR_NO_MEMORY: also if there are
// PLAT_PROCESSES_MAX.
#define PLAT_PROCESSES_MAX 255
enum sim_status plat_machine_add_process(plat_machine_t *machine, uint32_t node, plat_program_fn program, void *arg);

// Calls of programs are noted there: of all nodes, and of processes that are added later. The machine destroys it. Call
// before the run.
void plat_machine_observe(plat_machine_t *machine, observe_t *observe);

// Boots, and runs until nothing is left to do. Call once for each machine.
enum sim_run_outcome plat_machine_run(plat_machine_t *machine);

// Called by a program: ends the run as failed. Only the first message is kept.
void plat_machine_fail(plat_machine_t *machine, const char *format, ...) __attribute__((format(printf, 2, 3)));
// NULL: nothing failed.
const char *plat_machine_failure(const plat_machine_t *machine);

// The handle of the device's driver, once programs run; NULL: the node has no such device, or programs open it.
void *plat_machine_driver(plat_machine_t *machine, uint32_t node, enum scn_device_id id);

// The backend of the node's program; copy it for further processes and their cores.
const struct plat_backend_inproc *plat_machine_backend(const plat_machine_t *machine, uint32_t node);
// Creates a further core of the node, which the caller owns.
enum sim_status plat_machine_core_create(plat_machine_t *machine, uint32_t node, const char *name,
                                         host_core_t **core_out);

// The result of the scenario's fault.
struct plat_fault plat_machine_fault(const plat_machine_t *machine, uint32_t index);

// The routes through the cables of boards; live as long as the machine.
const struct scn_routes *plat_machine_routes(const plat_machine_t *machine);

sim_t *plat_machine_sim(const plat_machine_t *machine);
host_memory_t *plat_machine_memory(const plat_machine_t *machine, uint32_t node);
uint64_t plat_machine_rtl_cycles(const plat_machine_t *machine);
// The number of TLPs and InfiniBand packets in the machine. After a run that ended by itself, a number other than 0
// means that a component has lost a packet.
unsigned plat_machine_live_packets(const plat_machine_t *machine);
// Updates the counters of the chips; call after the run, before they are read.
void plat_chip_counters_read(plat_machine_t *machine);
