// Sets up GPUs for programs on libtca, with pinned host memory as device memory: data that a board writes to a GPU
// through the window arrive there over the simulated fabric. Work of the GPU itself takes no time, but a fill is seen
// only when the program has waited for it or has given the GPU more work.
#pragma once

#include "cluster.h"

#define TCA_FIXTURE_GPUS      3
#define TCA_FIXTURE_GPU_BYTES (1u << 20)

// Gives the calling program's node GPUs and a driver for them, which tca calls use from then on.
void tca_fixture_install(struct cluster *cluster, peach2_handle_t *board);
// Called before the program ends.
void tca_fixture_remove(struct cluster *cluster, peach2_handle_t *board);
// The memory of a device pointer of the node.
uint8_t *tca_fixture_memory(uint32_t node, const void *pointer);
unsigned tca_fixture_allocations(uint32_t node); // existing allocations
unsigned tca_fixture_pins(uint32_t node);        // open windows
