// GPUs for programs on libtca whose memory is pinned host memory: what a board writes through the window to a GPU
// arrives in it, over the simulated fabric. Work of the GPU itself is done at once and takes no time.
#pragma once

#include "cluster.h"

#define CARD_GPUS      3
#define CARD_GPU_BYTES (1u << 20)

// Gives the calling program's node GPUs, and a driver that knows them: tca calls find it from now on.
void card_install(struct cluster *cluster, peach2_handle_t *board);
// Before the program ends.
void card_remove(struct cluster *cluster, peach2_handle_t *board);
// The memory behind a device pointer of the node.
uint8_t *card_memory(uint32_t node, const void *pointer);
unsigned card_allocations(uint32_t node); // that exist
unsigned card_pins(uint32_t node);        // windows that are open
