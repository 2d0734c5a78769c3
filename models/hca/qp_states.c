// The transitions of a queue pair and their attributes: IBA 10.3.1 and table 91, as data.
#include "models/hca/internal.h"

#define RESET_INIT_CONNECTED (HCA_QP_PORT | HCA_QP_ACCESS)
#define RTR_CONNECTED        (HCA_QP_PATH | HCA_QP_PATH_MTU | HCA_QP_DEST_QPN | HCA_QP_RECEIVE_PSN)
#define RTR_RC               (RTR_CONNECTED | HCA_QP_MAX_DEST_RD | HCA_QP_MIN_RNR_TIMER)
#define RTS_RC               (HCA_QP_TIMEOUT | HCA_QP_RETRY_COUNT | HCA_QP_RNR_RETRY | HCA_QP_SEND_PSN | HCA_QP_MAX_RD_ATOMIC)
#define RTS_TARGET           (HCA_QP_TIMEOUT | HCA_QP_SEND_PSN)
#define STAY_RC              (HCA_QP_CURRENT_STATE | HCA_QP_ACCESS | HCA_QP_MIN_RNR_TIMER)
#define STAY_UC              (HCA_QP_CURRENT_STATE | HCA_QP_ACCESS)
#define STAY_UD              (HCA_QP_CURRENT_STATE | HCA_QP_QKEY)
#define SQD_UC               (HCA_QP_PORT | HCA_QP_PATH | HCA_QP_ACCESS)
#define SQD_INITIATOR        (SQD_UC | HCA_QP_TIMEOUT | HCA_QP_RETRY_COUNT | HCA_QP_RNR_RETRY | HCA_QP_MAX_RD_ATOMIC)
#define SQD_TARGET           (SQD_UC | HCA_QP_TIMEOUT | HCA_QP_MAX_DEST_RD | HCA_QP_MIN_RNR_TIMER)
#define SQD_RC               (SQD_INITIATOR | SQD_TARGET)

// In the order of enum hca_qp_type: RC, UC, UD, XRC initiator, XRC target.
struct transition {
    enum hca_qp_state from, to;
    uint32_t required[HCA_QP_TYPES], optional[HCA_QP_TYPES];
};

#define ONE(unconnected, connected)                                                                                    \
    {                                                                                                                  \
        connected, connected, unconnected, connected, connected                                                        \
    }
#define STAY                                                                                                           \
    {                                                                                                                  \
        STAY_RC, STAY_UC, STAY_UD, STAY_UC, STAY_RC                                                                    \
    }

static const struct transition TRANSITIONS[] = {
    {HCA_RESET, HCA_INIT, ONE(HCA_QP_PORT | HCA_QP_QKEY, RESET_INIT_CONNECTED), {0}},
    {HCA_INIT, HCA_INIT, {0}, ONE(HCA_QP_PORT | HCA_QP_QKEY, RESET_INIT_CONNECTED)},
    {HCA_INIT, HCA_RTR, {RTR_RC, RTR_CONNECTED, 0, RTR_CONNECTED, RTR_RC}, ONE(HCA_QP_QKEY, HCA_QP_ACCESS)},
    {HCA_RTR, HCA_RTS, {RTS_RC, HCA_QP_SEND_PSN, HCA_QP_SEND_PSN, RTS_RC, RTS_TARGET}, STAY},
    {HCA_RTS, HCA_RTS, {0}, STAY},
    {HCA_RTS, HCA_SQD, {0}, ONE(HCA_QP_DRAINED_EVENT, HCA_QP_DRAINED_EVENT)},
    {HCA_SQD, HCA_SQD, {0}, {SQD_RC, SQD_UC, HCA_QP_QKEY, SQD_INITIATOR, SQD_TARGET}},
    {HCA_SQD, HCA_RTS, {0}, STAY},
    {HCA_SQE, HCA_RTS, {0}, {0, STAY_UC, STAY_UD, 0, 0}}, // not for reliable services: their errors end in ERROR
};

bool hca_qp_transition(enum hca_qp_type type, enum hca_qp_state from, enum hca_qp_state to, uint32_t *required_out,
                       uint32_t *optional_out)
{
    *required_out = 0;
    *optional_out = 0;
    if (to == HCA_RESET || (to == HCA_ERROR && from != HCA_RESET)) {
        return true; // from any state, without attributes
    }
    for (unsigned i = 0; i < sizeof TRANSITIONS / sizeof *TRANSITIONS; i++) {
        const struct transition *transition = &TRANSITIONS[i];
        bool exists = from != HCA_SQE || !hca_is_reliable(type);
        if (transition->from == from && transition->to == to && exists) {
            *required_out = transition->required[type];
            *optional_out = transition->optional[type];
            return true;
        }
    }
    return false;
}

static bool mtu_valid(uint32_t bytes, uint32_t max)
{
    return bytes >= 256 && bytes <= max && (bytes & (bytes - 1)) == 0;
}

bool hca_qp_attr_valid(const hca_t *hca, const struct hca_qp *qp, uint32_t mask, const struct hca_qp_attr *attr)
{
    const uint32_t all_access = HCA_LOCAL_WRITE | HCA_REMOTE_WRITE | HCA_REMOTE_READ | HCA_REMOTE_ATOMIC;
    const struct {
        uint32_t bit;
        bool valid;
    } rules[] = {
        {HCA_QP_CURRENT_STATE, attr->current_state == qp->state},
        {HCA_QP_ACCESS, (attr->access & ~all_access) == 0},
        {HCA_QP_PORT, attr->port == 1},
        {HCA_QP_PATH, attr->dlid != 0 && attr->sl < 16},
        {HCA_QP_PATH_MTU, mtu_valid(attr->path_mtu_bytes, hca->config.max_mtu_bytes)},
        {HCA_QP_TIMEOUT, attr->timeout < 32},
        {HCA_QP_RETRY_COUNT, attr->retry_count < 8},
        {HCA_QP_RNR_RETRY, attr->rnr_retry < 8},
        {HCA_QP_RECEIVE_PSN, attr->receive_psn <= IB_PSN_MASK},
        {HCA_QP_SEND_PSN, attr->send_psn <= IB_PSN_MASK},
        {HCA_QP_MAX_RD_ATOMIC, attr->max_rd_atomic <= hca->config.initiator_reads},
        {HCA_QP_MAX_DEST_RD, attr->max_dest_rd_atomic <= hca->config.responder_reads},
        {HCA_QP_MIN_RNR_TIMER, attr->min_rnr_timer < 32},
        {HCA_QP_DEST_QPN, attr->dest_qpn <= 0xffffffu},
    };
    for (unsigned i = 0; i < sizeof rules / sizeof *rules; i++) {
        if ((mask & rules[i].bit) != 0 && !rules[i].valid) {
            return false;
        }
    }
    return true;
}

uint64_t hca_rnr_timer_ps(unsigned code)
{
    static const uint32_t TENS_OF_US[32] = {65536, 1,    2,    3,    4,    6,     8,     12,    16,    24,   32,
                                            48,    64,   96,   128,  192,  256,   384,   512,   768,   1024, 1536,
                                            2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152};
    return TENS_OF_US[code & 31] * 10 * SIM_PS_PER_US;
}
