// The transitions of queue pairs (IBA 10.3.1, and table 91 of 11.2.4.2).
//
// To RESET and to ERR there is a way from everywhere, with no attribute; the rest is one row a transition. Attributes
// of path migration are allowed where the specification has them, and refused later by devices without it.
#include "verbs-shim/ibverbs/internal.h"

enum {
    ACCESS = IBV_QP_ACCESS_FLAGS,
    CURRENT = IBV_QP_CUR_STATE,
    MIGRATION = IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE,
    PATH = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN,
    RETRIES = IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY,
};

// Indexes of the columns.
enum { RC, UC, UD, TYPES };

struct transition {
    bool exists[TYPES];
    int required[TYPES], optional[TYPES];
};

#define EVERY                                                                                                          \
    {                                                                                                                  \
        true, true, true                                                                                               \
    }

static const struct transition transitions[IBV_QPS_ERR + 1][IBV_QPS_ERR + 1] = {
    [IBV_QPS_RESET][IBV_QPS_INIT] = {EVERY,
                                     {IBV_QP_PKEY_INDEX | IBV_QP_PORT | ACCESS,
                                      IBV_QP_PKEY_INDEX | IBV_QP_PORT | ACCESS,
                                      IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY},
                                     {0}},
    [IBV_QPS_INIT][IBV_QPS_INIT] = {EVERY,
                                    {0},
                                    {IBV_QP_PKEY_INDEX | IBV_QP_PORT | ACCESS, IBV_QP_PKEY_INDEX | IBV_QP_PORT | ACCESS,
                                     IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY}},
    [IBV_QPS_INIT][IBV_QPS_RTR] = {EVERY,
                                   {PATH | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER, PATH, 0},
                                   {IBV_QP_ALT_PATH | ACCESS | IBV_QP_PKEY_INDEX,
                                    IBV_QP_ALT_PATH | ACCESS | IBV_QP_PKEY_INDEX, IBV_QP_PKEY_INDEX | IBV_QP_QKEY}},
    [IBV_QPS_RTR][IBV_QPS_RTS] = {EVERY,
                                  {RETRIES | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC, IBV_QP_SQ_PSN, IBV_QP_SQ_PSN},
                                  {CURRENT | ACCESS | MIGRATION | IBV_QP_MIN_RNR_TIMER, CURRENT | ACCESS | MIGRATION,
                                   CURRENT | IBV_QP_QKEY}},
    [IBV_QPS_RTS][IBV_QPS_RTS] = {EVERY,
                                  {0},
                                  {CURRENT | ACCESS | MIGRATION | IBV_QP_MIN_RNR_TIMER, CURRENT | ACCESS | MIGRATION,
                                   CURRENT | IBV_QP_QKEY}},
    [IBV_QPS_RTS][IBV_QPS_SQD] = {EVERY,
                                  {0},
                                  {IBV_QP_EN_SQD_ASYNC_NOTIFY, IBV_QP_EN_SQD_ASYNC_NOTIFY, IBV_QP_EN_SQD_ASYNC_NOTIFY}},
    [IBV_QPS_SQD][IBV_QPS_RTS] = {EVERY,
                                  {0},
                                  {CURRENT | ACCESS | MIGRATION | IBV_QP_MIN_RNR_TIMER, CURRENT | ACCESS | MIGRATION,
                                   CURRENT | IBV_QP_QKEY}},
    [IBV_QPS_SQD][IBV_QPS_SQD] = {EVERY,
                                  {0},
                                  {IBV_QP_PORT | IBV_QP_AV | RETRIES | IBV_QP_MAX_QP_RD_ATOMIC |
                                       IBV_QP_MAX_DEST_RD_ATOMIC | ACCESS | MIGRATION | IBV_QP_PKEY_INDEX |
                                       IBV_QP_MIN_RNR_TIMER,
                                   IBV_QP_AV | ACCESS | MIGRATION | IBV_QP_PKEY_INDEX,
                                   IBV_QP_PKEY_INDEX | IBV_QP_QKEY}},
    // A reliable connection has no such state: its send errors end in ERR (10.3.1.6).
    [IBV_QPS_SQE][IBV_QPS_RTS] = {{false, true, true}, {0}, {0, CURRENT | ACCESS, CURRENT | IBV_QP_QKEY}},
};

bool ibverbs_qp_transition(enum ibv_qp_type type, enum ibv_qp_state from, enum ibv_qp_state to, int mask)
{
    mask &= ~IBV_QP_STATE;
    if (from > IBV_QPS_ERR || to > IBV_QPS_ERR) {
        return false;
    }
    if (to == IBV_QPS_RESET || to == IBV_QPS_ERR) {
        return mask == 0;
    }
    const struct transition *transition = &transitions[from][to];
    unsigned column = type == IBV_QPT_RC ? RC : type == IBV_QPT_UC ? UC : UD;
    int required = transition->required[column];
    return transition->exists[column] && (mask & required) == required &&
           (mask & ~(required | transition->optional[column])) == 0;
}
