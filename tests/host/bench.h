// A host for the tests of this folder: memory, root complex, core, and a device behind one link that records what it
// gets.
#pragma once

#include "models/host/core.h"
#include "models/host/memory.h"
#include "models/pcie/link.h"
#include "models/pcie/root_complex.h"
#include "sim/kernel/counter.h"
#include "tests/shim/test.h"

#define NS           1000ull
#define DEVICE_BASE  0x4000000000ull
#define DEVICE_BYTES 0x100000ull
#define HOLE         0x9000000000ull // no device claims it
#define NOTES_MAX    256

struct note {
    uint64_t time_ps, address;
    uint32_t bytes;
    uint8_t data[64];
};

struct bench {
    sim_t *sim;
    pcie_pool_t *pool;
    host_memory_t *memory;
    pcie_rc_t *rc;
    host_core_t *core;
    pcie_link_t *link;
    pcie_end_t *device;
    bool holds; // the device keeps TLPs in its receive buffer
    pcie_tlp_t *held[NOTES_MAX];
    unsigned held_count;
    struct note notes[NOTES_MAX];
    unsigned note_count;
    uint64_t answer; // to reads
};

// All costs are different, so that a wrong one is detected.
extern const struct host_core_config bench_costs;

void bench_init(struct bench *bench);
void bench_fini(struct bench *bench);
// The device releases the TLPs that it held, and holds no more.
void bench_release(struct bench *bench);
// Runs the program as a thread until no event is left.
enum sim_run_outcome bench_run(struct bench *bench, void (*program)(void *bench));
// A device's write, visible in memory after delay_ps.
void bench_write_later(struct bench *bench, uint64_t delay_ps, uint64_t address, uint64_t value);
uint64_t bench_counter(const struct bench *bench, const char *component, const char *name);
