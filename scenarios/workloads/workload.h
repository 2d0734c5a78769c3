// What a workload program gets: its rank, its parameters, its board, and where to report. Workloads are ordinary C
// programs on verbs-shim; nothing in them knows that the devices are simulated.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "verbs-shim/backend/backend.h"
#include "verbs-shim/peach2/peach2_driver.h"
#include "verbs-shim/peach2/peach2_proxy.h"

#define WORKLOAD_RANKS_MAX  256
#define WORKLOAD_HOPS_MAX   16
#define WORKLOAD_LETTER_MAX 256
#define WORKLOAD_NEAR_MAX   16 // ranks of a sub-cluster

enum workload_method {
    WORKLOAD_PIO,
    WORKLOAD_REGISTER,
    WORKLOAD_CHAIN_HOST,
    WORKLOAD_CHAIN_BOARD,
    WORKLOAD_UVA, // copies between GPUs with peer access, and without
    WORKLOAD_NO_UVA,
    WORKLOAD_DIRECT, // an FPGA's DMA, directly to the other device
    WORKLOAD_VIA_CPU // or to host memory, with a copy to or from the GPU
};

// The operation of a program on libibverbs or ACP.
enum workload_operation {
#define VERBS_OPERATION(ID, name, verb) WORKLOAD_##ID,
#define ACP_OPERATION(ID, name)         WORKLOAD_##ID,
#include "sim/scenario/operations.def"
};
enum workload_transport { WORKLOAD_RC, WORKLOAD_UC, WORKLOAD_UD };
struct workload_verbs {
    const char *device; // "ibsim0"
    enum workload_operation operation;
    enum workload_transport transport;
    uint32_t queue_pairs, depth, receive_depth, cq_mod;
    uint32_t inline_bytes;
    bool inline_or_less; // inline data: as much as possible up to the given number
    bool bidirectional;
    uint64_t volume_bytes; // limits the repetitions of large messages; 0: no limit
    uint64_t beside_bytes; // of the flow beside the measured one; 0: there is none
    uint8_t qp_timeout, retry_count;
};

#define WORKLOAD_HOST (-1)
#define WORKLOAD_FPGA (-2)

// The devices whose drivers are opened before workloads start.
enum workload_device {
#define DEVICE(id, ID, name, kind_doc, key_doc) WORKLOAD_DEVICE_##ID,
#include "sim/scenario/devices.def"
    WORKLOAD_DEVICES
};

struct workload_point {
    uint64_t bytes, descriptors, operations;
    uint64_t total_ps, min_ps, max_ps;
    uint64_t memory_bytes; // 0: not measured
};

// What programs count.
enum workload_count {
#define COUNT(ID, name, unit, doc) WORKLOAD_COUNT_##ID,
#include "scenarios/workloads/counts.def"
    WORKLOAD_COUNTS
};

struct workload_shared {
    volatile bool over;         // the measured flow has ended
    volatile uint32_t arrivals; // at barriers where a rank must not block
};

// An all-reduce: around all ranks; by recursive doubling; by the latter in each sub-cluster, then between them.
enum workload_algorithm { WORKLOAD_RING, WORKLOAD_DOUBLING, WORKLOAD_HIERARCHICAL };

// Where the ranks of a program on several sub-clusters are. A rank's number is that of its node in the window.
struct workload_places {
    uint32_t sub_clusters;
    const uint32_t *sub_cluster_of, *number_of; // of each rank
    const uint32_t *rank_at;                    // [sub-cluster * WORKLOAD_NEAR_MAX + number]
};

struct workload {
    void *ctx;
    uint32_t rank, ranks;             // rank 0 reports
    uint32_t node, peer_node;         // their numbers in the window of their boards
    uint32_t hops[WORKLOAD_HOPS_MAX]; // cables between rank 0 and each rank
    peach2_handle_t *board;           // NULL: the node has none, or the program needs none
    void *drivers[WORKLOAD_DEVICES];  // the handle of each device's driver; NULL: the node has none
    enum workload_method method;
    unsigned channel;
    const uint64_t *bytes;
    uint32_t bytes_count;
    const uint64_t *descriptors;
    uint32_t descriptors_count;
    uint32_t iterations, warmup;
    int source_gpu, destination_gpu; // the memory of the data and of its destination; or HOST, FPGA
    bool notify_board;               // libtca's notifications go to the board's memory
    uint32_t columns;                // of a grid
    uint32_t block_columns;          // of the part of it that a sub-cluster has
    enum workload_algorithm algorithm;
    uint32_t near_ranks;                  // of the own sub-cluster, and its places with all others
    const struct workload_places *places; // NULL: the program does not run on several sub-clusters
    uint64_t *counts;                     // of the node, WORKLOAD_COUNTS of them; its programs add to them
    struct workload_verbs verbs;
    // Visible to all ranks at once, outside the fabric.
    struct workload_shared *shared;
    const struct peach2_proxy_address *proxy; // of the own node's service for remote reads; NULL: it has none
    // Set-up exchange between the ranks, outside the fabric and outside measured time: gives `mine` to the other rank
    // and returns when `theirs` has arrived. Also a barrier.
    void (*exchange)(void *ctx, const void *mine, void *theirs, size_t bytes);
    // The same between all ranks: `all` receives everyone's, in rank order. At most WORKLOAD_LETTER_MAX bytes.
    void (*gather)(void *ctx, const void *mine, void *all, size_t bytes);
    // The same between the ranks of the own sub-cluster, in the order of their numbers.
    void (*gather_near)(void *ctx, const void *mine, void *all, size_t bytes);
    // gather without the copies: sends to all, and returns when all have sent. letter: what rank `from` sent; valid
    // until the next exchange between all.
    void (*post)(void *ctx, const void *mine, size_t bytes);
    const void *(*letter)(void *ctx, uint32_t from);
    // The pinned memory that the calling process has from its drivers.
    uint64_t (*pinned_bytes)(void *ctx);
    void (*report)(void *ctx, const struct workload_point *point);
    // Ends the series as failed with a message.
    void (*fail)(void *ctx, const char *format, ...) __attribute__((format(printf, 2, 3)));
    void (*give_up)(void *ctx, const char *text); // the same with a library's whole message
};

// Return 0, or a negative errno after fail().
#define WORKLOAD(id, function, name, nodes, method, keys) int workload_##function(struct workload *workload);
#include "sim/scenario/workloads.def"
#undef WORKLOAD
int workload_verbs_beside(struct workload *workload); // ranks 2 and 3 of both
