// Programs on the operations of tca0: nodes in a line with twin boards, each with a context, memory of two kinds, and
// queue pairs to the others. What they tell each other goes outside the fabric.
#pragma once

#include "../tca/cluster.h"
#include "verbs-shim/tca-verbs/tca_verbs.h"

#define PARTY_BYTES (1u << 20)
#define PARTY_ALL   (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

struct memory {
    uint8_t *data; // PARTY_BYTES
    void *mr;
    uint32_t key;
};

struct party_qp {
    void *qp;
    uint32_t number;
};

struct end {
    struct tca_verbs_device device;
    void *context, *pd, *cq, *srq;
    struct memory near, far;     // that boards reach, and do not
    struct memory device_memory; // of a GPU, by party_gpu
    struct party_qp qps[SITE_NODES_MAX];
};

struct party {
    struct cluster cluster; // first: programs get it
    unsigned nodes;
    struct end ends[SITE_NODES_MAX];
    unsigned waiting, turn; // of party_meet
    // what queue pairs are made with; changed before the run
    struct ibv_qp_attr attr;
    struct ibv_qp_cap cap;
    int cq_entries;
    bool use_srq, gone, abandoned;
    uint64_t value[8];
    struct scn_scenario *published;
};

void party_init(struct party *party, unsigned nodes);
// Two nodes of HA-PACS/TCA with their GPUs instead, as sato2015 measured them.
void party_init_published(struct party *party);
// Every node runs its program; NULL: only boots.
void party_run(struct party *party, plat_program_fn first, plat_program_fn other);
void party_fini(struct party *party);

// --- for programs ---------------------------------------------------------------------------------------------------

// The own end, open and connected to every other node; all programs call it.
struct end *party_enter(struct party *party, peach2_handle_t *board);
// Closes everything and checks that it could; all programs call it.
void party_leave(struct party *party, peach2_handle_t *board);
// Until all programs are here. Meanwhile the library makes progress.
void party_meet(struct party *party, struct end *end);
void party_qp_make(struct party *party, struct end *end, struct party_qp *qp);
int party_qp_connect(struct party *party, struct end *end, struct party_qp *qp, uint32_t node, uint32_t number);
enum ibv_qp_state party_qp_state(const struct party_qp *qp);

// Memory of the first GPU, registered; party_leave ends it. data is a device pointer.
void party_gpu(struct end *end);

struct ibv_sge party_sge(const struct memory *memory, size_t offset, uint32_t bytes);
// Posts one of a list of at most one element; returns what the device does.
int party_post(const struct party_qp *qp, const struct ibv_send_wr *wr, const struct ibv_sge *sge);
int party_receive(const struct party_qp *qp, uint64_t id, const struct ibv_sge *sge);
// The next completion; fails the test after a simulated second.
struct ibv_wc party_wc(struct end *end);
// A completion that is this.
void party_expect(struct end *end, uint64_t id, enum ibv_wc_status status);
