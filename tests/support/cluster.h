// Programs on libtca for tests: a line of nodes. Each test gives every node a program, and handles that the programs
// exchange outside the fabric.
#pragma once

#include "site.h"
#include "verbs-shim/libtca/tca.h"

#define CLUSTER_BYTES 65536u

struct cluster {
    struct site site;
    // set for each node by cluster_memory
    bool ready[SITE_NODES_MAX];
    uint8_t *memory[SITE_NODES_MAX];
    tcaHandle handles[SITE_NODES_MAX];
    unsigned done; // programs that have called cluster_done
    bool flag;
};

void cluster_init(struct cluster *cluster, unsigned nodes);
void cluster_fini(struct cluster *cluster);
// Runs first on node 0 and other on the rest (NULL: they do nothing).
void cluster_run(struct cluster *cluster, plat_program_fn first, plat_program_fn other);

// --- for programs ----------------------------------------------------------------------------------------------------

// tcaInit, CLUSTER_BYTES of memory and its handle; then waits until the other nodes with a program have done the same.
void cluster_memory(struct cluster *cluster, peach2_handle_t *board, unsigned nodes);
// Passes simulated time until *flag is set.
void cluster_await(peach2_handle_t *board, const bool *flag);
// A program that only provides memory, for a node that is a target.
void cluster_target(void *arg, peach2_handle_t *board);
// One copy, set and started on channel 0 and waited for; returns the first error code.
int cluster_copy(const tcaHandle *to, size_t to_offset, const tcaHandle *from, size_t from_offset, size_t size,
                 int flags);
