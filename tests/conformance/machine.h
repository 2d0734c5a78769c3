// The hardware below the fixture: nodes without devices, with boards in a line, or with HCAs on a cable or a switch.
#pragma once

#include "fixture.h"
#include "sim/platform/machine.h"

// loss_every: one of this many packets on InfiniBand cables is lost, and one of a slightly larger number is damaged;
// 0: none. cut_ps: the run ends at this time, whatever its programs do; 0: it ends by itself.
struct machine *machine_create(enum device device, unsigned nodes, unsigned loss_every, uint64_t cut_ps);
void machine_destroy(struct machine *machine); // fails the test if a packet is left after a complete run
// Runs program(args[i]) as the process of node i, which has its device.
void machine_run(struct machine *machine, void (*program)(void *arg), void *const *args);
sim_t *machine_sim(const struct machine *machine);
struct backend_process *machine_process(const struct machine *machine, unsigned node);
// Objects that are left on the device in memory; 0 for the others.
unsigned machine_live(const struct machine *machine);

// --- faults ----------------------------------------------------------------------------------------------------------

// The next TLP from the device to its host (true), or the other way, is damaged on the slot.
void machine_corrupt_slot(struct machine *machine, unsigned node, bool from_device);
// The next packet that the node sends on its cable is damaged (tca0: a TLP) or lost.
void machine_damage_cable(struct machine *machine, unsigned node, bool lost);
// From now on TLPs on slots and boards' cables are damaged and lost at random, until all programs have ended.
void machine_harass(struct machine *machine, uint64_t seed, uint64_t every_ps);
void machine_pull(struct machine *machine); // the cable of node 0
// The number of TLPs that were replayed on slots.
uint64_t machine_replays(const struct machine *machine);
