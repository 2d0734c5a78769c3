// Sets up nodes in a line with twin boards and programs on the operations of tca0. Each node has a context, memory of
// two kinds, and queue pairs to the others; programs exchange their parameters without the fabric.
#pragma once

#include "tests/support/cluster.h"
#include "verbs-shim/tca-verbs/tca_verbs.h"

#define FIXTURE_BYTES (1u << 20)
#define FIXTURE_ALL                                                                                                    \
    (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

struct memory {
    uint8_t *data; // FIXTURE_BYTES
    void *mr;
    uint32_t key;
};

struct fixture_qp {
    void *qp;
    uint32_t number;
};

struct end {
    struct tca_verbs_device device;
    void *context, *pd, *cq, *srq;
    struct memory near, far;     // near: boards can reach it; far: they cannot
    struct memory device_memory; // of a GPU, by fixture_gpu
    struct fixture_qp qps[SITE_NODES_MAX];
};

struct fixture {
    struct cluster cluster; // must be first: programs receive a pointer to it
    unsigned nodes;
    struct end ends[SITE_NODES_MAX];
    unsigned waiting, round; // for fixture_barrier
    // parameters of queue pairs; changed before the run
    struct ibv_qp_attr attr;
    struct ibv_qp_cap cap;
    int cq_entries;
    bool use_srq, gone, abandoned;
    uint64_t value[8];
    struct scn_scenario *published;
};

void fixture_init(struct fixture *fixture, unsigned nodes);
// The same with two nodes of HA-PACS/TCA with their GPUs, as in sato2015's measurements.
void fixture_init_published(struct fixture *fixture);
// Every node runs its program; NULL: it only boots.
void fixture_run(struct fixture *fixture, plat_program_fn first, plat_program_fn other);
void fixture_fini(struct fixture *fixture);

// --- for programs ---------------------------------------------------------------------------------------------------

// Opens the own end and connects it to every other node; all programs call it.
struct end *fixture_enter(struct fixture *fixture, peach2_handle_t *board);
// Closes everything and checks the results; all programs call it.
void fixture_leave(struct fixture *fixture, peach2_handle_t *board);
// A barrier of all programs, in which the library makes progress.
void fixture_barrier(struct fixture *fixture, struct end *end);
void fixture_qp_make(struct fixture *fixture, struct end *end, struct fixture_qp *qp);
int fixture_qp_connect(struct fixture *fixture, struct end *end, struct fixture_qp *qp, uint32_t node, uint32_t number);
enum ibv_qp_state fixture_qp_state(const struct fixture_qp *qp);

// Memory of the first GPU, registered; fixture_leave releases it. data is a device pointer.
void fixture_gpu(struct end *end);

struct ibv_sge fixture_sge(const struct memory *memory, size_t offset, uint32_t bytes);
// Posts a request with a list of at most one element; returns the device's result.
int fixture_post(const struct fixture_qp *qp, const struct ibv_send_wr *wr, const struct ibv_sge *sge);
int fixture_receive(const struct fixture_qp *qp, uint64_t id, const struct ibv_sge *sge);
// Waits for the next completion; fails the test after a simulated second.
struct ibv_wc fixture_wc(struct end *end);
// Expects this completion.
void fixture_expect(struct end *end, uint64_t id, enum ibv_wc_status status);
