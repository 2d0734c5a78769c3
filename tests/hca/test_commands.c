// Commands that the adapter refuses: each limit of a ring and each name of an object by itself, from both sides. The valid
// command is that of an object that the driver has made.
#include "fixture.h"
#include "models/hca/internal.h"

static hca_t *hca;

// Carries it out, and ends the object that it made.
static enum sim_status done_with(struct hca_command command)
{
    enum sim_status status = hca_fw_command(hca, &command);
    if (status == SIM_OK) {
        command.id = command.id == HCA_CMD_QP_CREATE ? HCA_CMD_QP_DESTROY : HCA_CMD_CQ_DESTROY;
        EXPECT_EQ(hca_fw_command(hca, &command), SIM_OK);
    }
    return status;
}

static struct hca_command cq_command(void)
{
    uint32_t cqn = 1;
    while (hca_cq_find(hca, cqn) == NULL) {
        cqn++;
    }
    return (struct hca_command){.id = HCA_CMD_CQ_CREATE, .cq_create = hca_cq_find(hca, cqn)->init};
}

static struct hca_command qp_command(void)
{
    const struct hca_fixture_qp qp = hca_fixture_qp(fixture.near, HCA_RC);
    return (struct hca_command){.id = HCA_CMD_QP_CREATE, .qp_create = hca_qp_find(hca, hca_qp_number(qp.qp))->init};
}

#define EXPECT_WITH(command, key, value, expected)                                                                     \
    do {                                                                                                               \
        struct hca_command changed = (command);                                                                        \
        changed.key = (value);                                                                                         \
        EXPECT_EQ(done_with(changed), expected);                                                                       \
    } while (0)

static void begin(void)
{
    fixture_init(HCA_RC);
    hca = fixture.base.nodes[0].hca;
}

TEST(HcaCommands, ACompletionQueueHasARingOfItsSize)
{
    begin();
    const struct hca_command cq = cq_command();
    const uint32_t most = fixture.base.config.max_cq_entries;
    EXPECT_WITH(cq, cq_create.entries, 0, SIM_ERR_INVALID);
    EXPECT_WITH(cq, cq_create.entries, 1, SIM_OK);
    EXPECT_WITH(cq, cq_create.entries, 3, SIM_ERR_INVALID);
    EXPECT_WITH(cq, cq_create.entries, most, SIM_OK);
    EXPECT_WITH(cq, cq_create.entries, 2 * most, SIM_ERR_INVALID);
    EXPECT_WITH(cq, cq_create.base, cq.cq_create.base + 8, SIM_ERR_INVALID);
    EXPECT_WITH(cq, cq_create.record, cq.cq_create.record + 4, SIM_ERR_INVALID);
    EXPECT_WITH(cq, cq_create.eqn, 0, SIM_ERR_INVALID);
    EXPECT_WITH(cq, cq_create.eqn, fixture.base.config.max_eq, SIM_ERR_INVALID); // nobody has it
    EXPECT_WITH(cq, cq_create.eqn, fixture.base.config.max_eq + 1, SIM_ERR_INVALID);
    EXPECT_WITH(cq, cq_create.uar, HCA_UAR_PAGES, SIM_ERR_INVALID);
    EXPECT_WITH(cq, cq_create.uar, HCA_UAR_PAGES - 1, SIM_ERR_INVALID); // nobody has it
    hca_fixture_fini(&fixture.base);
}

TEST(HcaCommands, AQueuePairHasRingsOfTheirSizes)
{
    begin();
    const struct hca_command qp = qp_command();
    const uint32_t most = fixture.base.config.max_entries;
    EXPECT_WITH(qp, qp_create.send_entries, 0, SIM_ERR_INVALID);
    EXPECT_WITH(qp, qp_create.send_entries, 1, SIM_OK);
    EXPECT_WITH(qp, qp_create.send_entries, 3, SIM_ERR_INVALID);
    EXPECT_WITH(qp, qp_create.send_entries, most, SIM_OK);
    EXPECT_WITH(qp, qp_create.send_entries, 2 * most, SIM_ERR_INVALID);
    EXPECT_WITH(qp, qp_create.send_stride_bytes, 16, SIM_ERR_INVALID);
    EXPECT_WITH(qp, qp_create.send_stride_bytes, 32, SIM_OK);
    EXPECT_WITH(qp, qp_create.send_stride_bytes, 96, SIM_ERR_INVALID);
    struct hca_command at_0 = qp; // a multiple of any stride
    at_0.qp_create.send_base = 0;
    EXPECT_WITH(at_0, qp_create.send_stride_bytes, 96, SIM_ERR_INVALID);
    EXPECT_WITH(qp, qp_create.send_stride_bytes, HCA_WQE_BYTES_MAX, SIM_OK);
    EXPECT_WITH(qp, qp_create.send_stride_bytes, 2 * HCA_WQE_BYTES_MAX, SIM_ERR_INVALID);
    EXPECT_WITH(qp, qp_create.send_base, qp.qp_create.send_base + 16, SIM_ERR_INVALID);
    EXPECT_WITH(qp, qp_create.receive_entries, 0, SIM_ERR_INVALID);
    EXPECT_WITH(qp, qp_create.receive_stride_bytes, 16, SIM_ERR_INVALID);
    EXPECT_WITH(qp, qp_create.receive_base, qp.qp_create.receive_base + 16, SIM_ERR_INVALID);
    EXPECT_WITH(qp, qp_create.receive_record, qp.qp_create.receive_record + 4, SIM_ERR_INVALID);
    hca_fixture_fini(&fixture.base);
}

TEST(HcaCommands, AQueuePairNamesObjectsThatExist)
{
    begin();
    const struct hca_command qp = qp_command();
    EXPECT_WITH(qp, qp_create.type, HCA_QP_TYPES, SIM_ERR_INVALID);
    EXPECT_WITH(qp, qp_create.pdn, qp.qp_create.pdn + 100, SIM_ERR_INVALID);
    EXPECT_WITH(qp, qp_create.uar, HCA_UAR_PAGES, SIM_ERR_INVALID);
    EXPECT_WITH(qp, qp_create.eqn, 0, SIM_ERR_INVALID);
    EXPECT_WITH(qp, qp_create.send_cqn, 1000, SIM_ERR_INVALID);
    EXPECT_WITH(qp, qp_create.receive_cqn, 1000, SIM_ERR_INVALID);
    EXPECT_WITH(qp, qp_create.srqn, 1000, SIM_ERR_INVALID);
    EXPECT_EQ(done_with(qp), SIM_OK);
    hca_fixture_fini(&fixture.base);
}
