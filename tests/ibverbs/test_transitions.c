// The transitions of queue pairs: every cell from every state, against the attributes printed in IBA 1.2.1, table 91
// (11.2.4.2), for each type of queue pair.
#include <errno.h>

#include "pair.h"
#include "verbs-shim/ibverbs/internal.h"

enum {
    PKEY = IBV_QP_PKEY_INDEX,
    PORT = IBV_QP_PORT,
    ACC = IBV_QP_ACCESS_FLAGS,
    QKEY = IBV_QP_QKEY,
    AV = IBV_QP_AV,
    MTU = IBV_QP_PATH_MTU,
    DQPN = IBV_QP_DEST_QPN,
    RPSN = IBV_QP_RQ_PSN,
    SPSN = IBV_QP_SQ_PSN,
    RRES = IBV_QP_MAX_DEST_RD_ATOMIC,
    IRES = IBV_QP_MAX_QP_RD_ATOMIC,
    RNRT = IBV_QP_MIN_RNR_TIMER,
    TMO = IBV_QP_TIMEOUT,
    RETRY = IBV_QP_RETRY_CNT,
    RNR = IBV_QP_RNR_RETRY,
    ALT = IBV_QP_ALT_PATH,
    MIG = IBV_QP_PATH_MIG_STATE,
    CUR = IBV_QP_CUR_STATE,
    NOTIFY = IBV_QP_EN_SQD_ASYNC_NOTIFY,
};

static const struct cell {
    enum ibv_qp_state from, to;
    enum ibv_qp_type type;
    int required, optional;
} cells[] = {
    {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPT_RC, PKEY | PORT | ACC, 0},
    {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPT_UC, PKEY | PORT | ACC, 0},
    {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPT_UD, PKEY | PORT | QKEY, 0},
    {IBV_QPS_INIT, IBV_QPS_INIT, IBV_QPT_RC, 0, PKEY | PORT | ACC},
    {IBV_QPS_INIT, IBV_QPS_INIT, IBV_QPT_UC, 0, PKEY | PORT | ACC},
    {IBV_QPS_INIT, IBV_QPS_INIT, IBV_QPT_UD, 0, PKEY | PORT | QKEY},
    {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPT_RC, AV | MTU | DQPN | RPSN | RRES | RNRT, ALT | ACC | PKEY},
    {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPT_UC, AV | MTU | DQPN | RPSN, ALT | ACC | PKEY},
    {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPT_UD, 0, PKEY | QKEY},
    {IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPT_RC, SPSN | TMO | RETRY | RNR | IRES, CUR | ACC | ALT | MIG | RNRT},
    {IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPT_UC, SPSN, CUR | ACC | ALT | MIG},
    {IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPT_UD, SPSN, CUR | QKEY},
    {IBV_QPS_RTS, IBV_QPS_RTS, IBV_QPT_RC, 0, CUR | ACC | ALT | MIG | RNRT},
    {IBV_QPS_RTS, IBV_QPS_RTS, IBV_QPT_UC, 0, CUR | ACC | ALT | MIG},
    {IBV_QPS_RTS, IBV_QPS_RTS, IBV_QPT_UD, 0, CUR | QKEY},
    {IBV_QPS_RTS, IBV_QPS_SQD, IBV_QPT_RC, 0, NOTIFY},
    {IBV_QPS_RTS, IBV_QPS_SQD, IBV_QPT_UC, 0, NOTIFY},
    {IBV_QPS_RTS, IBV_QPS_SQD, IBV_QPT_UD, 0, NOTIFY},
    {IBV_QPS_SQD, IBV_QPS_RTS, IBV_QPT_RC, 0, CUR | ACC | ALT | MIG | RNRT},
    {IBV_QPS_SQD, IBV_QPS_RTS, IBV_QPT_UC, 0, CUR | ACC | ALT | MIG},
    {IBV_QPS_SQD, IBV_QPS_RTS, IBV_QPT_UD, 0, CUR | QKEY},
    {IBV_QPS_SQD, IBV_QPS_SQD, IBV_QPT_RC, 0,
     PORT | AV | TMO | RETRY | RNR | IRES | RRES | ALT | ACC | PKEY | RNRT | MIG},
    {IBV_QPS_SQD, IBV_QPS_SQD, IBV_QPT_UC, 0, AV | ALT | ACC | PKEY | MIG},
    {IBV_QPS_SQD, IBV_QPS_SQD, IBV_QPT_UD, 0, PKEY | QKEY},
    {IBV_QPS_SQE, IBV_QPS_RTS, IBV_QPT_UC, 0, CUR | ACC},
    {IBV_QPS_SQE, IBV_QPS_RTS, IBV_QPT_UD, 0, CUR | QKEY},
};

static const struct cell *cell_find(enum ibv_qp_type type, enum ibv_qp_state from, enum ibv_qp_state to)
{
    for (unsigned i = 0; i < sizeof cells / sizeof cells[0]; i++) {
        if (cells[i].type == type && cells[i].from == from && cells[i].to == to) {
            return &cells[i];
        }
    }
    return NULL;
}

// A send from memory that is not registered fails only the send queue (10.3.1).
static void fail_send_queue(struct pair *pair)
{
    pair->side[0].ah = pair->side[0].ah != NULL ? pair->side[0].ah : pair_ah(&pair->side[0], &pair->side[1]);
    struct ibv_sge sge = {.addr = 8, .length = 8, .lkey = 1};
    struct ibv_send_wr wr = pair_wr(pair, IBV_WR_SEND, &sge);
    EXPECT_EQ(pair_send(pair, &wr), 0);
    (void)pair_expect_wc(&pair->side[0], 1, IBV_WC_LOC_PROT_ERR);
}

// A new queue pair of side 0 in this state.
static void bring(struct pair *pair, enum ibv_qp_type type, enum ibv_qp_state state)
{
    struct ibv_qp_init_attr init = pair_qp_attr(&pair->side[0], type);
    struct ibv_qp *qp = ibv_create_qp(pair->side[0].pd, &init);
    pair->side[0].qp = qp;
    for (enum ibv_qp_state step = IBV_QPS_INIT; step <= IBV_QPS_RTS && step <= state && state != IBV_QPS_ERR; step++) {
        EXPECT_EQ(pair_step(qp, &pair->side[1], step), 0);
    }
    if (state == IBV_QPS_SQD || state == IBV_QPS_ERR) {
        EXPECT_EQ(pair_step(qp, &pair->side[1], state), 0);
    }
    if (state == IBV_QPS_SQE) {
        fail_send_queue(pair);
    }
}

// The result of ibv_modify_qp in a state; the queue pair is destroyed afterwards.
static int try(struct pair *pair, enum ibv_qp_type type, enum ibv_qp_state from, enum ibv_qp_state to, int mask)
{
    struct ibv_qp_attr attr = pair_attr(&pair->side[1], to), now;
    struct ibv_qp_init_attr init;
    bring(pair, type, from);
    attr.cur_qp_state = from;
    int error = ibv_modify_qp(pair->side[0].qp, &attr, mask | IBV_QP_STATE);
    EXPECT_EQ(ibv_query_qp(pair->side[0].qp, &now, IBV_QP_STATE, &init), 0);
    EXPECT_EQ(now.qp_state, error == 0 ? to : from);
    EXPECT_EQ(ibv_destroy_qp(pair->side[0].qp), 0);
    pair->side[0].qp = NULL;
    return error;
}

static int expected(const struct cell *cell, int bit)
{
    bool allowed = cell != NULL && ((cell->required | cell->optional) & bit) != 0;
    return !allowed ? EINVAL : (bit & (ALT | MIG)) != 0 ? EOPNOTSUPP : 0;
}

static void check_cell(struct pair *pair, enum ibv_qp_type type, enum ibv_qp_state from, enum ibv_qp_state to)
{
    static const struct cell bare; // 10.3.1: every state leads to RESET and to ERR, with no attribute
    const struct cell *cell = to == IBV_QPS_RESET || to == IBV_QPS_ERR ? &bare : cell_find(type, from, to);
    int required = cell != NULL ? cell->required : 0;
    EXPECT_EQ(try(pair, type, from, to, required), cell != NULL ? 0 : EINVAL);
    for (int bit = IBV_QP_CUR_STATE; bit <= IBV_QP_DEST_QPN; bit <<= 1) {
        if ((required & bit) != 0) {
            EXPECT_EQ(try(pair, type, from, to, required & ~bit), EINVAL);
        } else {
            EXPECT_EQ(try(pair, type, from, to, required | bit), expected(cell, bit));
        }
    }
}

static void check_type(enum ibv_qp_type type)
{
    struct pair pair;
    pair_init(&pair);
    for (enum ibv_qp_state from = IBV_QPS_RESET; from <= IBV_QPS_ERR; from++) {
        for (enum ibv_qp_state to = IBV_QPS_RESET; to <= IBV_QPS_ERR; to++) {
            if (from != IBV_QPS_SQE || type != IBV_QPT_RC) {
                check_cell(&pair, type, from, to);
            }
        }
    }
    pair_fini(&pair);
}

TEST(Transitions, OfReliableConnectionsAreThoseOfTable91)
{
    check_type(IBV_QPT_RC);
}

TEST(Transitions, OfUnreliableConnectionsAreThoseOfTable91)
{
    check_type(IBV_QPT_UC);
}

TEST(Transitions, OfDatagramsAreThoseOfTable91)
{
    check_type(IBV_QPT_UD);
}

// 10.3.1: a reliable connection is never in SQE, so it has no transition from there.
TEST(Transitions, ReliableConnectionsHaveNoSendQueueError)
{
    EXPECT_FALSE(ibverbs_qp_transition(IBV_QPT_RC, IBV_QPS_SQE, IBV_QPS_RTS, IBV_QP_STATE));
    EXPECT_TRUE(ibverbs_qp_transition(IBV_QPT_UC, IBV_QPS_SQE, IBV_QPS_RTS, IBV_QP_STATE));
}

TEST(Transitions, LeadToNoStateThatDoesNotExist)
{
    struct pair pair;
    pair_init(&pair);
    bring(&pair, IBV_QPT_RC, IBV_QPS_RTS);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_UNKNOWN};
    EXPECT_EQ(ibv_modify_qp(pair.side[0].qp, &attr, IBV_QP_STATE), EINVAL);
    attr.qp_state = (enum ibv_qp_state)77;
    EXPECT_EQ(ibv_modify_qp(pair.side[0].qp, &attr, IBV_QP_STATE), EINVAL);
    pair_fini(&pair);
}

TEST(Transitions, AreRefusedWhenTheProgramBelievesAnotherState)
{
    struct pair pair;
    pair_init(&pair);
    bring(&pair, IBV_QPT_RC, IBV_QPS_RTS);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS, .cur_qp_state = IBV_QPS_SQD};
    EXPECT_EQ(ibv_modify_qp(pair.side[0].qp, &attr, IBV_QP_STATE | IBV_QP_CUR_STATE), EINVAL);
    attr.cur_qp_state = IBV_QPS_RTS;
    EXPECT_EQ(ibv_modify_qp(pair.side[0].qp, &attr, IBV_QP_STATE | IBV_QP_CUR_STATE), 0);
    pair_fini(&pair);
}

// Without a state in the mask the queue pair keeps its state.
TEST(Transitions, ChangeAttributesInPlace)
{
    struct pair pair;
    struct ibv_qp_init_attr init;
    pair_init(&pair);
    bring(&pair, IBV_QPT_RC, IBV_QPS_RTS);
    struct ibv_qp_attr attr = {.min_rnr_timer = 3, .qp_access_flags = IBV_ACCESS_REMOTE_READ};
    EXPECT_EQ(ibv_modify_qp(pair.side[0].qp, &attr, IBV_QP_MIN_RNR_TIMER | IBV_QP_ACCESS_FLAGS), 0);
    EXPECT_EQ(ibv_modify_qp(pair.side[0].qp, &attr, IBV_QP_TIMEOUT), EINVAL);
    EXPECT_EQ(ibv_query_qp(pair.side[0].qp, &attr, 0, &init), 0);
    EXPECT_EQ(attr.min_rnr_timer, 3);
    EXPECT_EQ(attr.qp_access_flags, IBV_ACCESS_REMOTE_READ);
    EXPECT_EQ(attr.timeout, 14);
    pair_fini(&pair);
}
