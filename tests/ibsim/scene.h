// Two programs on two nodes, each with ibsim0 on its node's HCA, that know nothing but libibverbs.
#pragma once

#include "../hca/rig.h"
#include "verbs-shim/ibverbs/device.h"

#define SCENE_DEPTH   16
#define SCENE_QKEY    0x1234u
#define SCENE_TIMEOUT 100000000u // ns

struct scene;

struct scene_side {
    struct scene *scene;
    unsigned index;
    void (*program)(struct scene_side *side);
    struct rig_process *process;
    struct scene_side *peer;
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_comp_channel *channel;
    struct ibv_cq *cq;
    struct ibv_srq *srq; // NULL: none
    struct ibv_qp *qp;   // in RTS when the program runs
    struct ibv_ah *ah;   // to the other side; with UD
    struct ibv_mr *mr;   // all rights on the memory
    uint8_t *memory;     // REGION_BYTES; side 0's holds a pattern, side 1's zeros
    uint16_t lid;
};

struct scene {
    struct rig rig;
    enum ibv_qp_type type;
    bool shared_receives;  // of side 1
    uint8_t rnr_retry;     // 7 unless a test says otherwise
    enum ibv_mtu path_mtu; // 1024
    struct scene_side sides[2];
    unsigned at_barrier, barriers;
    sim_condition_t barrier;
};

struct scene *scene_new(enum ibv_qp_type type);
// Connects the two and runs them to their ends; expects that nothing is left of their objects. NULL: does nothing.
void scene_run(struct scene *scene, void (*near)(struct scene_side *), void (*far)(struct scene_side *));
// After the checks of memory.
void scene_end(struct scene *scene);
// Both are here.
void scene_meet(struct scene_side *side);

struct ibv_sge scene_sge(const struct scene_side *side, uint32_t offset, uint32_t bytes);
int scene_receive(struct scene_side *side, uint64_t wr_id, uint32_t offset, uint32_t bytes);
// A signaled request of one segment to remote_offset of the other side's memory.
struct ibv_send_wr scene_wr(struct scene_side *side, enum ibv_wr_opcode opcode, struct ibv_sge *sge,
                            uint32_t remote_offset);
int scene_post(struct scene_side *side, struct ibv_send_wr *wr);
// The next completion, which has this status.
struct ibv_wc scene_completion(struct scene_side *side, uint64_t wr_id, enum ibv_wc_status status);
enum ibv_qp_state scene_state(struct scene_side *side);
