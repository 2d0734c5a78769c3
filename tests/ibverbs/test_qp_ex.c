// The extended interface of queue pairs: batches of requests built call by call.
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "pair.h"
#include "verbs-shim/ibverbs/opcodes.h"

enum {
    OPS_UD = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM,
    OPS_UC = OPS_UD | IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM,
    OPS_RC =
        OPS_UC | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD,
    TO = PAIR_BYTES / 2
};

static struct ibv_qp *create_ex(struct pair_side *side, enum ibv_qp_type type, uint64_t ops, uint32_t more_mask)
{
    struct ibv_qp_init_attr base = pair_qp_attr(side, type);
    struct ibv_qp_init_attr_ex init = {.send_cq = base.send_cq,
                                       .recv_cq = base.recv_cq,
                                       .cap = base.cap,
                                       .qp_type = type,
                                       .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS | more_mask,
                                       .pd = side->pd,
                                       .create_flags = (more_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) != 0,
                                       .send_ops_flags = ops};
    errno = 0;
    return ibv_create_qp_ex(side->context, &init);
}

// Side 0's queue pair is an extended one.
static struct ibv_qp_ex *connect_ex(struct pair *pair, enum ibv_qp_type type, uint64_t ops)
{
    pair_init(pair);
    pair_connect(pair, type);
    EXPECT_EQ(ibv_destroy_qp(pair->side[0].qp), 0);
    pair->side[0].qp = create_ex(&pair->side[0], type, ops, 0);
    for (enum ibv_qp_state state = IBV_QPS_INIT; state <= IBV_QPS_RTS; state++) {
        EXPECT_EQ(pair_step(pair->side[0].qp, &pair->side[1], state), 0);
    }
    EXPECT_EQ(pair_step(pair->side[1].qp, &pair->side[0], IBV_QPS_RESET), 0);
    for (enum ibv_qp_state state = IBV_QPS_INIT; state <= IBV_QPS_RTS; state++) {
        EXPECT_EQ(pair_step(pair->side[1].qp, &pair->side[0], state), 0);
    }
    struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(pair->side[0].qp);
    ibv_wr_start(ex);
    ex->wr_flags = IBV_SEND_SIGNALED;
    return ex;
}

static void set_sge(struct pair *pair, struct ibv_qp_ex *ex, unsigned offset, unsigned bytes)
{
    ibv_wr_set_sge(ex, pair->side[0].mr->lkey, (uintptr_t)pair->side[0].buffer + offset, bytes);
}

TEST(ExtendedQueuePair, HasTheOperationsThatWereAskedFor)
{
    struct pair pair;
    struct ibv_qp_ex *ex = connect_ex(&pair, IBV_QPT_RC, IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_READ);
    EXPECT_NOT_NULL(ex->wr_send);
    EXPECT_NOT_NULL(ex->wr_rdma_read);
    EXPECT_NULL(ex->wr_send_imm);
    EXPECT_NULL(ex->wr_rdma_write);
    EXPECT_NULL(ex->wr_atomic_fetch_add);
    EXPECT_NULL(ex->wr_bind_mw);
    EXPECT_NULL(ex->wr_local_inv);
    EXPECT_NULL(ex->wr_send_tso);
    EXPECT_NULL(ibv_qp_to_qp_ex(pair.side[1].qp));
    pair_fini(&pair);
}

TEST(ExtendedQueuePair, IsRefusedWithWhatItsTypeHasNot)
{
    // Later operations than those of 10.2.4: what the table of opcodes says.
    const uint32_t ops[] = {[IBV_QPT_RC] = OPS_RC | (ibverbs_opcode_operations(HCA_ON_RC) & ~(uint32_t)OPS_RC),
                            [IBV_QPT_UC] = OPS_UC | (ibverbs_opcode_operations(HCA_ON_UC) & ~(uint32_t)OPS_RC),
                            [IBV_QPT_UD] = OPS_UD | (ibverbs_opcode_operations(HCA_ON_UD) & ~(uint32_t)OPS_RC)};
    struct pair pair;
    pair_init(&pair);
    for (enum ibv_qp_type type = IBV_QPT_RC; type <= IBV_QPT_UD; type++) {
        for (uint64_t op = 1; op <= IBV_QP_EX_WITH_ATOMIC_WRITE; op <<= 1) {
            struct ibv_qp *qp = create_ex(&pair.side[0], type, op, 0);
            EXPECT_EQ(qp == NULL ? errno : 0, (ops[type] & op) != 0 ? 0 : EOPNOTSUPP);
            EXPECT_EQ(qp != NULL ? ibv_destroy_qp(qp) : 0, 0);
        }
    }
    EXPECT_NULL(create_ex(&pair.side[0], IBV_QPT_RC, OPS_RC, IBV_QP_INIT_ATTR_XRCD));
    EXPECT_EQ(errno, EOPNOTSUPP);
    EXPECT_NULL(create_ex(&pair.side[0], IBV_QPT_RC, OPS_RC, IBV_QP_INIT_ATTR_CREATE_FLAGS));
    EXPECT_EQ(errno, EOPNOTSUPP);
    struct ibv_qp_init_attr_ex without_pd = {.comp_mask = 0, .qp_type = IBV_QPT_RC};
    EXPECT_NULL(ibv_create_qp_ex(pair.side[0].context, &without_pd));
    EXPECT_EQ(errno, EINVAL);
    pair_fini(&pair);
}

TEST(ExtendedQueuePair, PostsABatch)
{
    struct pair pair;
    struct ibv_qp_ex *ex = connect_ex(&pair, IBV_QPT_RC, OPS_RC);
    uint64_t to = (uintptr_t)pair.side[1].buffer + TO;
    uint32_t rkey = pair.side[1].mr->rkey;
    cuda_fixture_fill(pair.side[0].buffer, 64, 5);
    ex->wr_id = 1;
    ibv_wr_rdma_write(ex, rkey, to);
    set_sge(&pair, ex, 0, 64);
    ex->wr_id = 2;
    ibv_wr_atomic_fetch_add(ex, rkey, to + 64, 7);
    set_sge(&pair, ex, 128, 8);
    ex->wr_id = 3;
    ibv_wr_rdma_read(ex, rkey, to + 64);
    set_sge(&pair, ex, 256, 8);
    pair_expect_none(&pair.side[0]);
    EXPECT_EQ(ibv_wr_complete(ex), 0);
    for (unsigned i = 1; i <= 3; i++) {
        (void)pair_expect_wc(&pair.side[0], i, IBV_WC_SUCCESS);
    }
    EXPECT_MEMEQ(pair.side[1].buffer + TO, pair.side[0].buffer, 64);
    EXPECT_EQ(pair.side[0].buffer[256], 7);
    pair_fini(&pair);
}

TEST(ExtendedQueuePair, SendsWithImmediateDataAndSwaps)
{
    struct pair pair;
    struct ibv_qp_ex *ex = connect_ex(&pair, IBV_QPT_RC, OPS_RC);
    uint64_t to = (uintptr_t)pair.side[1].buffer + TO;
    EXPECT_EQ(pair_receive(&pair.side[1], 1, 0, 64), 0);
    EXPECT_EQ(pair_receive(&pair.side[1], 2, 0, 64), 0);
    EXPECT_EQ(pair_receive(&pair.side[1], 3, 0, 64), 0);
    ibv_wr_send(ex);
    ibv_wr_send_imm(ex, htobe32(5));
    ibv_wr_rdma_write_imm(ex, pair.side[1].mr->rkey, to, htobe32(6));
    ibv_wr_atomic_cmp_swp(ex, pair.side[1].mr->rkey, to, 0, 77);
    set_sge(&pair, ex, 0, 8);
    EXPECT_EQ(ibv_wr_complete(ex), 0);
    EXPECT_EQ(pair_expect_wc(&pair.side[1], 1, IBV_WC_SUCCESS).wc_flags, 0);
    EXPECT_EQ(be32toh(pair_expect_wc(&pair.side[1], 2, IBV_WC_SUCCESS).imm_data), 5);
    EXPECT_EQ(be32toh(pair_expect_wc(&pair.side[1], 3, IBV_WC_SUCCESS).imm_data), 6);
    EXPECT_EQ(pair.side[1].buffer[TO], 77);
    pair_fini(&pair);
}

// The caller may change its data when the setter has returned.
TEST(ExtendedQueuePair, CopiesInlineDataAndSegments)
{
    struct pair pair;
    struct ibv_qp_ex *ex = connect_ex(&pair, IBV_QPT_RC, OPS_RC);
    uint64_t to = (uintptr_t)pair.side[1].buffer + TO;
    char text[] = "abcdef";
    struct ibv_data_buf bufs[2] = {{text, 2}, {text + 4, 2}};
    struct ibv_sge sges[2] = {pair_sge(&pair.side[0], 0, 8), pair_sge(&pair.side[0], 8, 8)};
    cuda_fixture_fill(pair.side[0].buffer, 16, 6);
    ibv_wr_rdma_write(ex, pair.side[1].mr->rkey, to);
    ibv_wr_set_inline_data(ex, text, 6);
    ibv_wr_rdma_write(ex, pair.side[1].mr->rkey, to + 16);
    ibv_wr_set_inline_data_list(ex, 2, bufs);
    ibv_wr_rdma_write(ex, pair.side[1].mr->rkey, to + 32);
    ibv_wr_set_sge_list(ex, 2, sges);
    memset(text, 'x', 6);
    memset(sges, 0, sizeof sges);
    EXPECT_EQ(ibv_wr_complete(ex), 0);
    EXPECT_MEMEQ(pair.side[1].buffer + TO, "abcdef", 6);
    EXPECT_MEMEQ(pair.side[1].buffer + TO + 16, "abef", 4);
    EXPECT_MEMEQ(pair.side[1].buffer + TO + 32, pair.side[0].buffer, 16);
    pair_fini(&pair);
}

TEST(ExtendedQueuePair, PostsNothingOfABatchThatIsAborted)
{
    struct pair pair;
    struct ibv_qp_ex *ex = connect_ex(&pair, IBV_QPT_RC, OPS_RC);
    ibv_wr_rdma_write(ex, pair.side[1].mr->rkey, (uintptr_t)pair.side[1].buffer);
    ibv_wr_abort(ex);
    pair_expect_none(&pair.side[0]);
    ibv_wr_start(ex);
    EXPECT_EQ(ibv_wr_complete(ex), 0);
    pair_expect_none(&pair.side[0]);
    pair_fini(&pair);
}

static void writes(struct pair *pair, struct ibv_qp_ex *ex, unsigned count)
{
    ibv_wr_start(ex);
    for (unsigned i = 0; i < count; i++) {
        ibv_wr_rdma_write(ex, pair->side[1].mr->rkey, (uintptr_t)pair->side[1].buffer);
        set_sge(pair, ex, 0, 8);
    }
}

TEST(ExtendedQueuePair, PostsABatchWholeOrNotAtAll)
{
    struct pair pair;
    struct ibv_wc wc[PAIR_DEPTH];
    struct ibv_qp_ex *ex = connect_ex(&pair, IBV_QPT_RC, OPS_RC);
    writes(&pair, ex, PAIR_DEPTH + 1);
    EXPECT_EQ(ibv_wr_complete(ex), ENOMEM);
    pair_expect_none(&pair.side[0]);
    writes(&pair, ex, PAIR_DEPTH - 1);
    EXPECT_EQ(ibv_wr_complete(ex), 0);
    writes(&pair, ex, 2);
    EXPECT_EQ(ibv_wr_complete(ex), ENOMEM);
    EXPECT_EQ(ibv_poll_cq(pair.side[0].cq, PAIR_DEPTH, wc), PAIR_DEPTH - 1);
    writes(&pair, ex, PAIR_DEPTH);
    EXPECT_EQ(ibv_wr_complete(ex), 0);
    EXPECT_EQ(ibv_poll_cq(pair.side[0].cq, PAIR_DEPTH, wc), PAIR_DEPTH);
    pair_fini(&pair);
}

TEST(ExtendedQueuePair, TellsTheFirstErrorOfABatch)
{
    struct pair pair;
    char text[65] = {0};
    struct ibv_sge sges[5] = {{0}};
    struct ibv_qp_ex *ex = connect_ex(&pair, IBV_QPT_RC, OPS_RC);
    ibv_wr_set_sge(ex, 0, 0, 0); // without a request
    EXPECT_EQ(ibv_wr_complete(ex), EINVAL);
    writes(&pair, ex, 2);
    ibv_wr_set_sge_list(ex, 5, sges);
    EXPECT_EQ(ibv_wr_complete(ex), ENOMEM);
    writes(&pair, ex, 2);
    ibv_wr_set_inline_data(ex, text, 65);
    EXPECT_EQ(ibv_wr_complete(ex), ENOMEM);
    writes(&pair, ex, 1);
    EXPECT_EQ(pair_step(pair.side[0].qp, &pair.side[1], IBV_QPS_RESET), 0);
    EXPECT_EQ(ibv_wr_complete(ex), EINVAL);
    pair_expect_none(&pair.side[0]);
    pair_fini(&pair);
}

TEST(ExtendedQueuePair, AddressesDatagrams)
{
    struct pair pair;
    struct ibv_qp_ex *ex = connect_ex(&pair, IBV_QPT_UD, OPS_UD);
    EXPECT_EQ(pair_receive(&pair.side[1], 4, 0, 100), 0);
    ibv_wr_send(ex);
    ibv_wr_set_ud_addr(ex, pair.side[0].ah, pair.side[1].qp->qp_num, PAIR_QKEY);
    ibv_wr_set_inline_data(ex, "hello", 5);
    EXPECT_EQ(ibv_wr_complete(ex), 0);
    EXPECT_EQ(pair_expect_wc(&pair.side[1], 4, IBV_WC_SUCCESS).byte_len, 45);
    EXPECT_MEMEQ(pair.side[1].buffer + 40, "hello", 5);
    pair_fini(&pair);
}
