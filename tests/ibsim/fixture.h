// Sets up two programs on two nodes, each with ibsim0 on its node's HCA. The programs use libibverbs only.
#pragma once

#include "tests/support/hca_fixture.h"
#include "verbs-shim/ibverbs/device.h"

#define FIXTURE_DEPTH   16
#define FIXTURE_QKEY    0x1234u
#define FIXTURE_TIMEOUT 100000000u // ns

struct fixture;

struct fixture_side {
    struct fixture *fixture;
    unsigned index;
    void (*program)(struct fixture_side *side);
    struct hca_fixture_process *process;
    struct fixture_side *peer;
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_comp_channel *channel;
    struct ibv_cq *cq;
    struct ibv_srq *srq; // NULL: no shared queue
    struct ibv_qp *qp;   // in RTS when the program runs
    struct ibv_ah *ah;   // to the peer; UD only
    struct ibv_mr *mr;   // all rights on the memory
    uint8_t *memory;     // REGION_BYTES; side 0's holds a pattern, side 1's zeros
    uint16_t lid;
};

struct fixture {
    struct hca_fixture base;
    enum ibv_qp_type type;
    bool shared_receives;  // of side 1
    uint8_t rnr_retry;     // 7 unless a test sets it
    enum ibv_mtu path_mtu; // 1024
    enum ibv_mtu far_mtu;  // of side 1's path; 0: the same
    bool global;           // paths of connections have a global route
    struct fixture_side sides[2];
    unsigned at_barrier, barriers;
    sim_condition_t barrier;
};

struct fixture *fixture_new(enum ibv_qp_type type);
// Connects the two sides and runs both programs; expects that none of their objects is left. NULL: does nothing.
void fixture_run(struct fixture *fixture, void (*near)(struct fixture_side *), void (*far)(struct fixture_side *));
// Called after the checks of memory.
void fixture_end(struct fixture *fixture);
// A barrier of both programs.
void fixture_barrier(struct fixture_side *side);

struct ibv_sge fixture_sge(const struct fixture_side *side, uint32_t offset, uint32_t bytes);
int fixture_receive(struct fixture_side *side, uint64_t wr_id, uint32_t offset, uint32_t bytes);
// A signalled request of one segment to remote_offset of the peer's memory.
struct ibv_send_wr fixture_wr(struct fixture_side *side, enum ibv_wr_opcode opcode, struct ibv_sge *sge,
                              uint32_t remote_offset);
int fixture_post(struct fixture_side *side, struct ibv_send_wr *wr);
// Waits for the next completion, which must have this status.
struct ibv_wc fixture_completion(struct fixture_side *side, uint64_t wr_id, enum ibv_wc_status status);
enum ibv_qp_state fixture_state(struct fixture_side *side);
