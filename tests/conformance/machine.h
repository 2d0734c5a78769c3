// The hardware below the fixture: nodes without device, with boards in a line, or with HCAs on a cable or a switch.
#pragma once

#include "fixture.h"
#include "sim/platform/machine.h"

// loss_every: of the packets on InfiniBand cables one of so many is lost, and one of a few more is damaged; 0: none.
// cut_ps: the run ends then, wherever its programs are; 0: by itself.
struct machine *machine_create(enum device device, unsigned nodes, unsigned loss_every, uint64_t cut_ps);
void machine_destroy(struct machine *machine); // fails the test when a packet is left after a run to the end
// program(args[i]) as the process of node i, which has its device.
void machine_run(struct machine *machine, void (*program)(void *arg), void *const *args);
sim_t *machine_sim(const struct machine *machine);
struct backend_process *machine_process(const struct machine *machine, unsigned node);
// Objects that are left on the device in memory; 0 on the others.
unsigned machine_live(const struct machine *machine);

// --- faults ----------------------------------------------------------------------------------------------------------

// The next TLP from the device to its host (true), or the other way, is damaged on its way over the slot.
void machine_corrupt_slot(struct machine *machine, unsigned node, bool from_device);
// The next packet that the node sends on its cable is damaged (tca0: a TLP) or lost.
void machine_damage_cable(struct machine *machine, unsigned node, bool lost);
// TLPs on slots and boards' cables are damaged and lost at random from now on, until everything ended.
void machine_harass(struct machine *machine, uint64_t seed, uint64_t every_ps);
void machine_pull(struct machine *machine); // the cable of node 0
// How many TLPs were sent again on slots.
uint64_t machine_replays(const struct machine *machine);
