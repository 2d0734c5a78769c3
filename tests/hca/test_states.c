// Transitions of a queue pair compared with IBA 1.2.1, table 91, typed from the specification.
#include "tests/support/hca_fixture.h"

enum { R = 1, U = 2, D = 4, ALL = R | U | D }; // services that have the transition

// [from][to], in the order RESET INIT RTR RTS SQD SQE ERROR
static const uint8_t EXISTS[HCA_QP_STATES][HCA_QP_STATES] = {
    [HCA_RESET] = {ALL, ALL, 0, 0, 0, 0, 0},   [HCA_INIT] = {ALL, ALL, ALL, 0, 0, 0, ALL},
    [HCA_RTR] = {ALL, 0, 0, ALL, 0, 0, ALL},   [HCA_RTS] = {ALL, 0, 0, ALL, ALL, 0, ALL},
    [HCA_SQD] = {ALL, 0, 0, ALL, ALL, 0, ALL}, [HCA_SQE] = {ALL, 0, 0, U | D, 0, 0, ALL},
    [HCA_ERROR] = {ALL, 0, 0, 0, 0, 0, ALL},
};

TEST(States, ExistAsTheSpecificationSays)
{
    uint32_t required, optional;
    for (unsigned type = 0; type < 3; type++) {
        for (unsigned from = 0; from < HCA_QP_STATES; from++) {
            for (unsigned to = 0; to < HCA_QP_STATES; to++) {
                bool exists = hca_qp_transition((enum hca_qp_type)type, (enum hca_qp_state)from, (enum hca_qp_state)to,
                                                &required, &optional);
                EXPECT_EQ(exists, (EXISTS[from][to] >> type & 1) != 0);
            }
        }
    }
}

static uint32_t required_of(enum hca_qp_type type, enum hca_qp_state from, enum hca_qp_state to)
{
    uint32_t required = 0, optional;
    EXPECT_TRUE(hca_qp_transition(type, from, to, &required, &optional));
    return required;
}

TEST(States, RequireWhatTheSpecificationSays)
{
    EXPECT_EQ(required_of(HCA_RC, HCA_RESET, HCA_INIT), HCA_QP_PORT | HCA_QP_ACCESS);
    EXPECT_EQ(required_of(HCA_UD, HCA_RESET, HCA_INIT), HCA_QP_PORT | HCA_QP_QKEY);
    EXPECT_EQ(required_of(HCA_RC, HCA_INIT, HCA_RTR), HCA_QP_PATH | HCA_QP_PATH_MTU | HCA_QP_DEST_QPN |
                                                          HCA_QP_RECEIVE_PSN | HCA_QP_MAX_DEST_RD |
                                                          HCA_QP_MIN_RNR_TIMER);
    EXPECT_EQ(required_of(HCA_UC, HCA_INIT, HCA_RTR),
              HCA_QP_PATH | HCA_QP_PATH_MTU | HCA_QP_DEST_QPN | HCA_QP_RECEIVE_PSN);
    EXPECT_EQ(required_of(HCA_UD, HCA_INIT, HCA_RTR), 0);
    EXPECT_EQ(required_of(HCA_RC, HCA_RTR, HCA_RTS),
              HCA_QP_SEND_PSN | HCA_QP_TIMEOUT | HCA_QP_RETRY_COUNT | HCA_QP_RNR_RETRY | HCA_QP_MAX_RD_ATOMIC);
    EXPECT_EQ(required_of(HCA_UC, HCA_RTR, HCA_RTS), HCA_QP_SEND_PSN);
    EXPECT_EQ(required_of(HCA_UD, HCA_RTR, HCA_RTS), HCA_QP_SEND_PSN);
}

TEST(States, RefuseMissingAndUnknownAttributesAndValuesOutOfRange)
{
    static struct hca_fixture fixture;
    hca_fixture_init(&fixture, "connectx-qdr");
    struct hca_fixture_qp qp = hca_fixture_qp(hca_fixture_process(&fixture, 0), HCA_RC);
    struct hca_qp_attr attr = hca_fixture_attr(&qp);
    attr.state = HCA_INIT;
    EXPECT_NE(hca_qp_modify(qp.qp, HCA_QP_STATE | HCA_QP_PORT, &attr), 0);
    EXPECT_NE(hca_qp_modify(qp.qp, HCA_QP_STATE | HCA_QP_PORT | HCA_QP_ACCESS | HCA_QP_QKEY, &attr), 0);
    attr.port = 2;
    EXPECT_NE(hca_qp_modify(qp.qp, HCA_QP_STATE | HCA_QP_PORT | HCA_QP_ACCESS, &attr), 0);
    attr.port = 1;
    EXPECT_EQ(hca_qp_modify(qp.qp, HCA_QP_STATE | HCA_QP_PORT | HCA_QP_ACCESS, &attr), 0);
    EXPECT_EQ(hca_qp_query(qp.qp, &attr), 0);
    EXPECT_EQ(attr.state, HCA_INIT);
    hca_fixture_fini(&fixture);
}

static int step(const struct hca_fixture_qp *qp, struct hca_qp_attr *attr, enum hca_qp_state to)
{
    uint32_t required = 0, optional;
    EXPECT_TRUE(hca_qp_transition(HCA_RC, (enum hca_qp_state)(to - 1), to, &required, &optional));
    attr->state = to;
    return hca_qp_modify(qp->qp, required | HCA_QP_STATE, attr);
}

// IBA 11.2.1.2: the two limits are different attributes of the device.
TEST(States, TakeAsManyReadsAsTheDeviceBeginsAndAnswers)
{
    static struct hca_fixture fixture;
    hca_fixture_init(&fixture, "connectx-qdr");
    struct hca_fixture_qp qp = hca_fixture_qp(hca_fixture_process(&fixture, 0), HCA_RC);
    struct hca_qp_attr attr = hca_fixture_attr(&qp);
    const uint8_t begins = (uint8_t)fixture.config.initiator_reads, answers = (uint8_t)fixture.config.responder_reads;
    ASSERT_NE(begins, answers);
    EXPECT_EQ(step(&qp, &attr, HCA_INIT), 0);
    attr.max_dest_rd_atomic = (uint8_t)(answers + 1);
    EXPECT_NE(step(&qp, &attr, HCA_RTR), 0);
    attr.max_dest_rd_atomic = answers;
    EXPECT_EQ(step(&qp, &attr, HCA_RTR), 0);
    attr.max_rd_atomic = (uint8_t)(begins + 1);
    EXPECT_NE(step(&qp, &attr, HCA_RTS), 0);
    attr.max_rd_atomic = begins;
    EXPECT_EQ(step(&qp, &attr, HCA_RTS), 0);
    hca_fixture_fini(&fixture);
}

// IBA table 45.
TEST(States, RnrTimersAreThoseOfTheTable)
{
    EXPECT_EQ(hca_rnr_timer_ps(0), 655360 * US);
    EXPECT_EQ(hca_rnr_timer_ps(1), 10 * US);
    EXPECT_EQ(hca_rnr_timer_ps(16), 2560 * US);
    EXPECT_EQ(hca_rnr_timer_ps(31), 491520 * US);
}
