// What the driver keeps for itself: places in its queues, and objects behind those of the program.
#include <errno.h>

#include "fixture.h"

// --- domains ---------------------------------------------------------------------------------------------------------

// Takes all XRC domains of the adapter, without the driver.
static void domains_take(const struct backend *backend)
{
    struct hca_command command;
    int status = 0;
    for (unsigned i = 0; i <= fixture.base.config.max_pd && status == 0; i++) {
        command = (struct hca_command){.id = HCA_CMD_XRCD_CREATE};
        status = backend->ops->hca_command(backend->ctx, &command);
    }
    EXPECT_EQ(status, -ENOMEM);
}

TEST(Driver, AnXrcDomainThatTheDeviceRefusesLeavesNothingBehind)
{
    struct hca_config config = preset_hca("connectx-qdr");
    hca_context_t *context = NULL;
    hca_xrcd_t *xrcd = NULL;
    config.max_pd = 8;
    fixture_init_with(&config, HCA_RC);
    domains_take(&fixture.near->backend);
    ASSERT_EQ(hca_open(&fixture.near->backend, &context), 0);
    EXPECT_EQ(hca_xrcd_create(context, &xrcd), -ENOMEM);
    EXPECT_EQ(hca_close(context), 0); // it has no objects
    hca_fixture_fini(&fixture.base);
}

// --- completions of two queue pairs in one queue ---------------------------------------------------------------------

static hca_cq_t *common;
static struct hca_fixture_qp stays, goes;

static struct hca_fixture_qp qp_on_common(void)
{
    struct hca_fixture_qp qp = {.process = fixture.near, .cq = common}, peer = hca_fixture_qp(fixture.far, HCA_RC);
    struct hca_qp_create create = hca_fixture_qp_create(HCA_RC);
    create.send_cq = create.receive_cq = common;
    EXPECT_EQ(hca_qp_create(fixture.near->pd, &create, &qp.qp), 0);
    hca_fixture_connect(&qp, &peer);
    return qp;
}

static void writes_complete(const struct hca_fixture_qp *qp, uint32_t first_id, unsigned count)
{
    for (uint32_t i = 0; i < count; i++) {
        EXPECT_EQ(hca_fixture_send(qp, HCA_OP_WRITE, first_id + i, 1, fixture.far, 0), 0);
    }
    sim_thread_sleep(fixture.base.sim, 20 * US);
}

// The last two places of the ring have completions of the one queue pair, the first two those of the other.
static void end_one_at_the_turn(void *arg)
{
    const unsigned ring = hca_cq_entries(common) + 1; // one entry is for a resize
    struct hca_wc wc[4] = {{0}};
    (void)arg;
    for (unsigned i = 0; i < ring - 2; i++) {
        writes_complete(&stays, i, 1);
        EXPECT_EQ(hca_cq_poll(common, 1, wc), 1);
    }
    writes_complete(&stays, 100, 2);
    writes_complete(&goes, 200, 2);
    EXPECT_EQ(hca_qp_destroy(goes.qp), 0);
    ASSERT_EQ(hca_cq_poll(common, 4, wc), 2);
    EXPECT_EQ(wc[0].wr_id, 100);
    EXPECT_EQ(wc[1].wr_id, 101);
    EXPECT_EQ(hca_qp_destroy(stays.qp), 0);
    EXPECT_EQ(hca_cq_destroy(common), 0);
}

TEST(Driver, CompletionsThatCloseAGapAcrossTheEndOfTheRingAreFound)
{
    fixture_init(HCA_RC);
    ASSERT_EQ(hca_cq_create(fixture.near->context, 4, NULL, &common), 0);
    stays = qp_on_common();
    goes = qp_on_common();
    fixture_run(end_one_at_the_turn, NULL);
    hca_fixture_fini(&fixture.base);
}

// --- failures --------------------------------------------------------------------------------------------------------

static struct hca_fixture_qp initiator;

static void write_with_a_wrong_key(void *arg)
{
    struct hca_sge sge;
    struct hca_send_wr wr = hca_fixture_wr(&initiator, HCA_OP_WRITE, 0, 48, &sge);
    (void)arg;
    sge.lkey = 0x7777;
    wr.remote_srqn = 3;
    wr.remote_address = 0x123456789a;
    wr.rkey = 0x8888;
    EXPECT_EQ(hca_post_send(initiator.qp, &wr, NULL), 0);
    EXPECT_EQ(hca_fixture_completion(&initiator).status, HCA_LOCAL_PROTECTION);
    const struct hca_failure *failure = hca_qp_failure(initiator.qp);
    EXPECT_TRUE(failure->known);
    EXPECT_EQ(failure->opcode, HCA_OP_WRITE);
    EXPECT_EQ(failure->remote_address, wr.remote_address);
    EXPECT_EQ(failure->rkey, wr.rkey);
    EXPECT_EQ(failure->segments, 1);
    EXPECT_EQ(failure->lkey, sge.lkey);
    EXPECT_EQ(failure->address, sge.address);
    EXPECT_EQ(failure->bytes, sge.bytes);
}

TEST(Driver, AFailedXrcRequestIsToldAsItWasPosted)
{
    fixture_init(HCA_RC);
    const struct hca_qp_attr attr = hca_fixture_attr(&fixture.b);
    initiator = hca_fixture_qp(fixture.near, HCA_XRC_INITIATOR);
    hca_fixture_connect_with(&initiator, &attr);
    fixture_run(write_with_a_wrong_key, NULL);
    hca_fixture_fini(&fixture.base);
}
