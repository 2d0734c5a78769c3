// tca0 moves every byte to its destination for each value of the low 4 bits of both addresses, between all kinds of
// memory, by copies through the rings and by the board itself.
#include <cuda_runtime.h>
#include <stdlib.h>
#include <string.h>

#include "verbs.h"

#define NEAR_AT 1000u
#define FAR_AT  50000u
#define BACK_AT 100000u
#define AROUND  16u

struct model {
    uint8_t near[VERBS_BYTES], far[VERBS_BYTES];
};

static void transfer(struct verbs_pair *pair, enum ibv_wr_opcode opcode, unsigned near_at, unsigned far_at,
                     unsigned bytes)
{
    struct verbs_end *end = &pair->ends[0][0], *far = &pair->ends[1][0];
    struct ibv_sge sge = {(uintptr_t)end->data + near_at, bytes, end->mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = opcode}, *bad;
    wr.wr.rdma.remote_addr = (uintptr_t)far->data + far_at;
    wr.wr.rdma.rkey = far->mr->rkey;
    EXPECT_EQ(ibv_post_send(end->qp, &wr, &bad), 0);
    EXPECT_EQ(verbs_wc(end).status, IBV_WC_SUCCESS);
}

static bool is_in_near(struct verbs_end *end, unsigned at, const uint8_t *data, unsigned bytes)
{
    if (end->memory != VERBS_GPU) {
        return memcmp(end->data + at, data, bytes) == 0;
    }
    EXPECT_EQ(cudaMemcpy(end->image, end->data + at, bytes, cudaMemcpyDeviceToHost), cudaSuccess);
    return memcmp(end->image, data, bytes) == 0;
}

// A write, and a read that returns it with the bytes around it, at other low bits.
static void pairing(struct verbs_pair *pair, struct model *model, unsigned source, unsigned destination, unsigned bytes)
{
    unsigned near_at = NEAR_AT + source, far_at = FAR_AT + destination,
             back_at = BACK_AT + (7 * source + destination) % 16;
    transfer(pair, IBV_WR_RDMA_WRITE, near_at, far_at, bytes);
    memcpy(model->far + far_at, model->near + near_at, bytes);
    transfer(pair, IBV_WR_RDMA_READ, back_at, far_at - AROUND, bytes + 2 * AROUND);
    memcpy(model->near + back_at, model->far + far_at - AROUND, bytes + 2 * AROUND);
    EXPECT_TRUE(is_in_near(&pair->ends[0][0], back_at - AROUND, model->near + back_at - AROUND, bytes + 4 * AROUND));
}

static void moves(void *arg, peach2_handle_t *board)
{
    struct verbs_pair *pair = arg;
    (void)verbs_enter(pair, peach2_node(board));
    struct model *model = malloc(sizeof *model);
    site_fill(model->near, VERBS_BYTES, 0);
    site_fill(model->far, VERBS_BYTES, 1);
    for (unsigned i = 0; i < 256; i++) {
        pairing(pair, model, i % 16, i / 16, (unsigned)pair->value[0]);
    }
    free(model);
    verbs_pair_meet(pair, 0);
}

static void is_moved_to(void *arg, peach2_handle_t *board)
{
    struct verbs_pair *pair = arg;
    (void)verbs_enter(pair, peach2_node(board));
    verbs_pair_meet(pair, 1);
}

static void expect_aligned(unsigned bytes)
{
    for (unsigned i = 0; i < VERBS_MEMORIES * VERBS_MEMORIES; i++) {
        struct verbs_pair pair;
        verbs_pair_init(&pair, SCN_FIDELITY_TWIN);
        pair.memory[0] = (enum verbs_memory)(i % VERBS_MEMORIES);
        pair.memory[1] = (enum verbs_memory)(i / VERBS_MEMORIES);
        pair.value[0] = bytes;
        verbs_pair_run(&pair, moves, is_moved_to);
        verbs_pair_fini(&pair);
    }
}

TEST(TcaAlignment, OfSmallMessagesDoesNotMatter)
{
    expect_aligned(37);
}

TEST(TcaAlignment, OfMessagesThatTheBoardMovesDoesNotMatter)
{
    expect_aligned(8201);
}
