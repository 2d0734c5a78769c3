// A machine that runs the programs that a test gives to its nodes.
#pragma once

#include "platform_fixture.h"
#include "sim/platform/machine.h"
#include "tests/shim/test.h"

#define NS             1000ull
#define SITE_NODES_MAX 4

struct site {
    struct scn_scenario *scenario;
    plat_machine_t *machine;
    // values that programs set for the test and for each other
    uint64_t bus_address[SITE_NODES_MAX];
    uint64_t value[8];
};

// A line of nodes; the scenario may be changed before site_build.
void site_init(struct site *site, unsigned nodes);
void site_build(struct site *site);
void site_fini(struct site *site);

// Runs program on node 0 to its end, and checks that nothing failed and no TLP is left.
void site_run(struct site *site, plat_program_fn program);
uint64_t site_counter(const struct site *site, const char *component, const char *name);
uint8_t *site_memory(const struct site *site, uint32_t node, uint64_t bus_address);

// --- for programs ----------------------------------------------------------------------------------------------------

struct backend_buffer site_pinned(peach2_handle_t *board, size_t bytes);
// Executes a DMA in register mode and waits for its end; returns the board's error.
unsigned site_dma(peach2_handle_t *board, unsigned channel, uint64_t source, uint64_t destination, uint32_t bytes);
void site_fill(uint8_t *data, size_t bytes, uint32_t seed);
bool site_is_filled(const uint8_t *data, size_t bytes, uint32_t seed);
bool site_is_value(const uint8_t *data, size_t bytes, uint8_t value);
