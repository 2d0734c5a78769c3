// The transitions of queue pairs (IBA 10.3.1, and table 91 of 11.2.4.2).
//
// Transitions to RESET and to ERR exist from every state and need no attribute; every other transition is a row.
// Attributes of path migration are allowed where the specification has them; devices without it refuse them later.
#include "verbs-shim/ibverbs/internal.h"

enum {
    ACCESS = IBV_QP_ACCESS_FLAGS,
    CURRENT = IBV_QP_CUR_STATE,
    MIGRATION = IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE,
    PATH = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN,
    RETRIES = IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY,
};

// Indexes of the columns: INI and TGT are the two types of XRC.
enum { RC, UC, UD, INI, TGT, TYPES };

struct transition {
    bool exists;
    int required[TYPES], optional[TYPES];
};

// The same attributes for all connected types, and those for datagrams.
#define CONNECTED(connected, datagram)                                                                                 \
    {                                                                                                                  \
        connected, connected, datagram, connected, connected                                                           \
    }
#define PLACE(last) (IBV_QP_PKEY_INDEX | IBV_QP_PORT | (last))
#define STAY                                                                                                           \
    {                                                                                                                  \
        CURRENT | ACCESS | MIGRATION | IBV_QP_MIN_RNR_TIMER, CURRENT | ACCESS | MIGRATION, CURRENT | IBV_QP_QKEY,      \
            CURRENT | ACCESS | MIGRATION, CURRENT | ACCESS | MIGRATION | IBV_QP_MIN_RNR_TIMER                          \
    }

enum {
    RESPONDER = IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
    REQUESTER = RETRIES | IBV_QP_MAX_QP_RD_ATOMIC,
    MOVED = IBV_QP_AV | ACCESS | MIGRATION | IBV_QP_PKEY_INDEX
};

static const struct transition transitions[IBV_QPS_ERR + 1][IBV_QPS_ERR + 1] = {
    [IBV_QPS_RESET][IBV_QPS_INIT] = {true, CONNECTED(PLACE(ACCESS), PLACE(IBV_QP_QKEY)), {0}},
    [IBV_QPS_INIT][IBV_QPS_INIT] = {true, {0}, CONNECTED(PLACE(ACCESS), PLACE(IBV_QP_QKEY))},
    [IBV_QPS_INIT][IBV_QPS_RTR] = {true,
                                   {PATH | RESPONDER, PATH, 0, PATH, PATH | RESPONDER},
                                   CONNECTED(IBV_QP_ALT_PATH | ACCESS | IBV_QP_PKEY_INDEX,
                                             IBV_QP_PKEY_INDEX | IBV_QP_QKEY)},
    [IBV_QPS_RTR][IBV_QPS_RTS] = {true,
                                  {REQUESTER | IBV_QP_SQ_PSN, IBV_QP_SQ_PSN, IBV_QP_SQ_PSN, REQUESTER | IBV_QP_SQ_PSN,
                                   IBV_QP_TIMEOUT | IBV_QP_SQ_PSN},
                                  STAY},
    [IBV_QPS_RTS][IBV_QPS_RTS] = {true, {0}, STAY},
    [IBV_QPS_RTS][IBV_QPS_SQD] = {true, {0}, CONNECTED(IBV_QP_EN_SQD_ASYNC_NOTIFY, IBV_QP_EN_SQD_ASYNC_NOTIFY)},
    [IBV_QPS_SQD][IBV_QPS_RTS] = {true, {0}, STAY},
    [IBV_QPS_SQD][IBV_QPS_SQD] = {true,
                                  {0},
                                  {IBV_QP_PORT | MOVED | REQUESTER | RESPONDER, MOVED, IBV_QP_PKEY_INDEX | IBV_QP_QKEY,
                                   IBV_QP_PORT | MOVED | REQUESTER, IBV_QP_PORT | MOVED | IBV_QP_TIMEOUT | RESPONDER}},
    // A reliable connection has no such state: its send errors lead to ERR (10.3.1.6).
    [IBV_QPS_SQE][IBV_QPS_RTS] = {true, {0}, {0, CURRENT | ACCESS, CURRENT | IBV_QP_QKEY, 0, 0}},
};

static unsigned column_of(enum ibv_qp_type type)
{
    switch (type) {
    case IBV_QPT_RC:
        return RC;
    case IBV_QPT_UC:
        return UC;
    case IBV_QPT_XRC_SEND:
        return INI;
    case IBV_QPT_XRC_RECV:
        return TGT;
    case IBV_QPT_UD:
    case IBV_QPT_RAW_PACKET:
    case IBV_QPT_DRIVER:
        break;
    }
    return UD;
}

bool ibverbs_qp_transition_lacks(enum ibv_qp_type type, enum ibv_qp_state from, enum ibv_qp_state to, int mask,
                                 int *missing_out, int *surplus_out)
{
    mask &= ~IBV_QP_STATE;
    if (from > IBV_QPS_ERR || to > IBV_QPS_ERR) {
        return false;
    }
    if (to == IBV_QPS_RESET || to == IBV_QPS_ERR) {
        *missing_out = 0;
        *surplus_out = mask;
        return true;
    }
    const struct transition *transition = &transitions[from][to];
    unsigned column = column_of(type);
    int required = transition->required[column];
    *missing_out = required & ~mask;
    *surplus_out = mask & ~(required | transition->optional[column]);
    return transition->exists && (from != IBV_QPS_SQE || column == UC || column == UD);
}

bool ibverbs_qp_transition(enum ibv_qp_type type, enum ibv_qp_state from, enum ibv_qp_state to, int mask)
{
    int missing, surplus;
    return ibverbs_qp_transition_lacks(type, from, to, mask, &missing, &surplus) && missing == 0 && surplus == 0;
}
