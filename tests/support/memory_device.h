// A verbs device in memory: the reference for the behaviour of a real one, and the device below the tests of
// libibverbs.
//
// Processes join a world; each gets a device "memory0" with one port, whose LIDs count from 1. A request is executed
// while it is posted, so there is no time and nothing is ever in flight. Results that a timed device reaches by waiting
// are decided at once: a receiver without buffers uses up all retries, unless they are endless (rnr_retry 7: the
// request waits for a buffer); a peer that does not answer exceeds them.
//
// Errors, their completions, states and events follow IBA 1.2.1, chapters 9 to 11.
//
// Not modelled: packets, MTUs of connected queue pairs, service levels, resizing of SRQs, P_Keys.
#pragma once

#include "verbs-shim/ibverbs/device.h"

#define MEMORY_PORTS_MAX   4
#define MEMORY_CQE_MAX     8192
#define MEMORY_WR_MAX      4096
#define MEMORY_SGE_MAX     8
#define MEMORY_INLINE_MAX  128
#define MEMORY_MESSAGE_MAX (1u << 20)
#define MEMORY_RD_ATOMIC   16
#define MEMORY_MTU_BYTES   2048u
#define MEMORY_PKEY        0xffff
#define MEMORY_VECTORS     2

struct memory_world;

struct memory_world *memory_world_create(void);
// The devices' objects have been destroyed: the processes have ended.
void memory_world_destroy(struct memory_world *world);

// Gives the process its device.
void memory_world_join(struct memory_world *world, struct backend_process *process);
// The number of objects of processes on their devices.
unsigned memory_world_live(const struct memory_world *world);
// The number of contexts whose process ended before it closed them.
unsigned memory_world_abandoned(const struct memory_world *world);
// Sets the memory of a bus address, for regions of GPU memory.
void memory_world_set_bus(struct memory_world *world, uint8_t *(*at)(void *arg, uint64_t bus_address), void *arg);
// Called when a process waits for an event and there is none: `wait` does the work of other processes. If there is
// still no event afterwards, the wait ends with -EINTR. NULL: nothing happens.
void memory_world_set_wait(struct memory_world *world, void (*wait)(void *arg), void *arg);
void memory_world_cable(struct memory_world *world, unsigned lid, bool connected);
// The creation of the next object fails with -ENOMEM.
void memory_world_exhaust(struct memory_world *world);
