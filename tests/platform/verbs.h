// Programs on the public API of libibverbs on the two nodes of a scenario: ends of connections over devices that they
// find by name, with memory of any kind. They exchange their addresses outside the fabric.
#pragma once

#include <infiniband/verbs.h>

#include "tests/support/site.h"

#define VERBS_BYTES   200000u // of each end's memory
#define VERBS_DEVICES 2
#define VERBS_RIGHTS                                                                                                   \
    (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

enum verbs_memory { VERBS_PINNED, VERBS_PLAIN, VERBS_GPU, VERBS_MEMORIES };

struct verbs_end {
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_cq *cq, *idle; // idle: of no queue pair, to wait for a time
    struct ibv_qp *qp;
    struct ibv_mr *mr;
    enum verbs_memory memory;
    uint8_t *data, *image; // image: in pinned host memory
};

struct verbs_pair {
    plat_machine_t *machine;
    struct scn_scenario *scenario;
    bool generated; // made by platform_fixture.h
    const char *devices[VERBS_DEVICES];
    unsigned device_count;
    enum verbs_memory memory[2];    // of each node
    struct ibv_qp_attr attr;        // tests change it before the run
    struct ibv_qp_init_attr create; // the same; its CQs are set later
    struct verbs_end ends[2][VERBS_DEVICES];
    unsigned waiting, turn; // of verbs_pair_meet
    bool silent[2];         // the node's program sleeps in verbs_pair_meet, and does not call its library
    uint64_t value[4];
};

// Two boards of that fidelity with a cable between them, a GPU on each node, and tca0.
void verbs_pair_init(struct verbs_pair *pair, enum scn_fidelity fidelity);
// The same with an HCA on each node, tca0 and ibsim0.
void verbs_pair_init_both(struct verbs_pair *pair, enum scn_fidelity fidelity);
enum sim_run_outcome verbs_pair_try(struct verbs_pair *pair, plat_program_fn first, plat_program_fn second);
// Checks that the run ended by itself, and left no packet.
void verbs_pair_run(struct verbs_pair *pair, plat_program_fn first, plat_program_fn second);
void verbs_pair_fini(struct verbs_pair *pair);

// --- for programs ---------------------------------------------------------------------------------------------------

// NULL: the process has no device of that name.
struct ibv_context *verbs_open(const char *name);
// Opens the node's ends and connects them; both programs call it. The memory contains the pattern of site_fill with the
// node as its seed.
struct verbs_end *verbs_enter(struct verbs_pair *pair, unsigned node);
// Copies data to image.
void verbs_look(struct verbs_end *end);
// Waits until both programs have called it. Meanwhile the libraries make progress.
void verbs_pair_meet(struct verbs_pair *pair, unsigned node);
// Waits for the next completion; fails the test after a simulated second.
struct ibv_wc verbs_wc(struct verbs_end *end);
