// Two processes of a node of tests/cuda, each with a device in memory: the fixture of the libibverbs tests.
#pragma once

#include "tests/shim/test.h"
#include "tests/support/cuda_fixture.h"
#include "tests/support/memory_device.h"

#define PAIR_BYTES 4096
#define PAIR_DEPTH 16
#define PAIR_QKEY  0x1234u

struct pair_side {
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_comp_channel *channel;
    struct ibv_cq *cq; // 64 entries, on the channel
    struct ibv_qp *qp; // NULL: not created yet
    struct ibv_srq *srq;
    struct ibv_ah *ah; // to the peer; UD only
    uint8_t *buffer;   // PAIR_BYTES, page-aligned
    struct ibv_mr *mr; // all rights on the buffer
};

struct pair {
    struct cuda_fixture *fixture;
    struct memory_world *world;
    struct pair_side side[2];
};

void pair_init(struct pair *pair);
void pair_init_outside(struct pair *pair, const struct ibverbs_outside *outside); // processes of their own
// Destroys all objects and expects that none is left.
void pair_fini(struct pair *pair);
// Frees only the buffers, if the processes have ended by themselves.
void pair_free(struct pair *pair);

struct ibv_qp_init_attr pair_qp_attr(const struct pair_side *side, enum ibv_qp_type type);
// Queue pairs of PAIR_DEPTH requests and 4 segments on both sides, in RTS.
void pair_connect(struct pair *pair, enum ibv_qp_type type);
// The mask of a transition for a type, with values for all attributes.
struct ibv_qp_attr pair_attr(const struct pair_side *to, enum ibv_qp_state state);
int pair_mask(enum ibv_qp_type type, enum ibv_qp_state to);
int pair_step(struct ibv_qp *qp, const struct pair_side *to, enum ibv_qp_state state);

struct ibv_ah *pair_ah(const struct pair_side *side, const struct pair_side *to);

struct ibv_sge pair_sge(const struct pair_side *side, unsigned offset, unsigned bytes);
int pair_receive(struct pair_side *side, uint64_t wr_id, unsigned offset, unsigned bytes);
// One signalled request: bytes at offset of side 0's buffer, to the same offset of side 1's + PAIR_BYTES / 2.
struct ibv_send_wr pair_wr(const struct pair *pair, enum ibv_wr_opcode opcode, struct ibv_sge *sge);
// Posts it on side 0.
int pair_send(struct pair *pair, struct ibv_send_wr *wr);
// Expects exactly one completion, with this status.
struct ibv_wc pair_expect_wc(struct pair_side *side, uint64_t wr_id, enum ibv_wc_status status);
void pair_expect_none(struct pair_side *side);
// Expects an asynchronous event and acknowledges it.
void pair_expect_event(struct pair_side *side, enum ibv_event_type type);
void pair_expect_no_event(struct pair_side *side);
