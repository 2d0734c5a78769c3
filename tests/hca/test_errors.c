// Each error of a request: its code at the requester, and the states of the two queue pairs.
#include <errno.h>
#include <string.h>

#include "tests/support/hca_fixture.h"

// One request from a to b, and its expected results.
struct error_fixture {
    struct hca_fixture base;
    struct hca_fixture_process *near, *far;
    struct hca_fixture_qp a, b;
    struct hca_send_wr wr;
    struct hca_sge sge[2];
    uint32_t receive_bytes;                 // a receive of this size is posted first; 0: none
    uint32_t receive_key;                   // 0: the correct one
    enum hca_status expected, expected_far; // far: of its receive; HCA_STATUSES: not checked
    enum hca_qp_state state, state_far;
};

static void error_fixture_init_with(struct error_fixture *fixture, enum hca_qp_type type,
                                    void (*change)(struct hca_qp_attr *attr))
{
    memset(fixture, 0, sizeof *fixture);
    hca_fixture_init(&fixture->base, "connectx-qdr");
    fixture->near = hca_fixture_process(&fixture->base, 0);
    fixture->far = hca_fixture_process(&fixture->base, 1);
    fixture->a = hca_fixture_qp(fixture->near, type);
    fixture->b = hca_fixture_qp(fixture->far, type);
    struct hca_qp_attr to_b = hca_fixture_attr(&fixture->b), to_a = hca_fixture_attr(&fixture->a);
    if (change != NULL) {
        change(&to_a);
        change(&to_b);
    }
    hca_fixture_connect_with(&fixture->a, &to_b);
    hca_fixture_connect_with(&fixture->b, &to_a);
    fixture->wr = hca_fixture_wr(&fixture->a, HCA_OP_WRITE, 0, 64, fixture->sge);
    fixture->wr.remote_address = (uint64_t)(uintptr_t)fixture->far->memory;
    fixture->wr.rkey = hca_mr_rkey(fixture->far->mr);
    fixture->expected_far = HCA_STATUSES;
    fixture->state = HCA_ERROR;
    fixture->state_far = HCA_ERROR;
    memset(fixture->near->memory, 0x5a, 65536);
}

static void near_run(void *arg)
{
    struct error_fixture *fixture = arg;
    EXPECT_EQ(hca_post_send(fixture->a.qp, &fixture->wr, NULL), 0);
    EXPECT_EQ(hca_fixture_completion(&fixture->a).status, fixture->expected);
}

static void far_run(void *arg)
{
    struct error_fixture *fixture = arg;
    if (fixture->receive_bytes > 0) {
        const struct hca_sge sge = {.address = (uint64_t)(uintptr_t)fixture->far->memory,
                                    .bytes = fixture->receive_bytes,
                                    .lkey = fixture->receive_key != 0 ? fixture->receive_key
                                                                      : hca_mr_lkey(fixture->far->mr)};
        const struct hca_receive_wr wr = {.sges = &sge, .sge_count = 1};
        EXPECT_EQ(hca_post_receive(fixture->b.qp, &wr, NULL), 0);
    }
    hca_fixture_spawn(&fixture->base, "near", near_run, fixture);
    if (fixture->expected_far != HCA_STATUSES) {
        EXPECT_EQ(hca_fixture_completion(&fixture->b).status, fixture->expected_far);
    }
}

// Only successful requests may have written at the far side.
static void error_fixture_run(struct error_fixture *fixture)
{
    static const uint8_t zeros[65536];
    struct hca_qp_attr attr;
    hca_fixture_spawn(&fixture->base, "far", far_run, fixture);
    hca_fixture_run(&fixture->base);
    if (fixture->expected != HCA_OK) {
        EXPECT_MEMEQ(fixture->far->memory, zeros, sizeof zeros);
    }
    EXPECT_EQ(hca_qp_query(fixture->a.qp, &attr), 0);
    EXPECT_EQ(attr.state, fixture->state);
    EXPECT_EQ(hca_qp_query(fixture->b.qp, &attr), 0);
    EXPECT_EQ(attr.state, fixture->state_far);
    hca_fixture_fini(&fixture->base);
}

static struct error_fixture fixture;

TEST(Error, WrongRemoteKeyIsRemoteAccess)
{
    error_fixture_init_with(&fixture, HCA_RC, NULL);
    fixture.wr.rkey ^= 0x10000;
    fixture.expected = HCA_REMOTE_ACCESS;
    error_fixture_run(&fixture);
}

TEST(Error, WriteBeyondTheRegionIsRemoteAccess)
{
    error_fixture_init_with(&fixture, HCA_RC, NULL);
    fixture.wr.remote_address += REGION_BYTES - 63;
    fixture.expected = HCA_REMOTE_ACCESS;
    error_fixture_run(&fixture);
}

TEST(Error, WriteOfMoreThanTheRegionHoldsIsRemoteAccess)
{
    error_fixture_init_with(&fixture, HCA_RC, NULL);
    fixture.sge[0].bytes = REGION_BYTES;
    fixture.sge[1] = fixture.sge[0];
    fixture.wr.sge_count = 2;
    fixture.expected = HCA_REMOTE_ACCESS;
    error_fixture_run(&fixture);
}

TEST(Error, ReadFromADeregisteredRegionIsRemoteAccess)
{
    error_fixture_init_with(&fixture, HCA_RC, NULL);
    fixture.wr.opcode = HCA_OP_READ;
    EXPECT_EQ(hca_mr_deregister(fixture.far->mr), 0);
    fixture.far->mr = NULL;
    fixture.expected = HCA_REMOTE_ACCESS;
    error_fixture_run(&fixture);
}

static void deregister_midway(void *arg)
{
    struct error_fixture *s = arg;
    while (hca_fixture_counter(&s->base, 1, "port_xmit_packets") < 4) {
        sim_thread_sleep(s->base.sim, 20 * NS);
    }
    EXPECT_EQ(hca_mr_deregister(s->far->mr), 0);
    s->far->mr = NULL;
}

// 32 packets; those that were answered before the refusal arrive.
TEST(Error, AReadWhoseRegionGoesInTheMiddleIsRemoteAccess)
{
    error_fixture_init_with(&fixture, HCA_RC, NULL);
    fixture.wr.opcode = HCA_OP_READ;
    fixture.sge[0].bytes = 32 * 2048;
    fixture.expected = HCA_REMOTE_ACCESS;
    hca_fixture_spawn(&fixture.base, "deregister", deregister_midway, &fixture);
    error_fixture_run(&fixture);
}

static void forbid_atomics(struct hca_qp_attr *attr)
{
    attr->access = HCA_REMOTE_WRITE;
}

TEST(Error, AnAtomicThatTheQueuePairDoesNotAllowIsAnInvalidRequest)
{
    error_fixture_init_with(&fixture, HCA_RC, forbid_atomics);
    fixture.wr.opcode = HCA_OP_FETCH_ADD;
    fixture.sge[0].bytes = 8;
    fixture.expected = HCA_REMOTE_INVALID_REQUEST;
    error_fixture_run(&fixture);
}

TEST(Error, AMisalignedAtomicIsARemoteInvalidRequest)
{
    error_fixture_init_with(&fixture, HCA_RC, NULL);
    fixture.wr.opcode = HCA_OP_FETCH_ADD;
    fixture.wr.remote_address += 4;
    fixture.sge[0].bytes = 8;
    fixture.expected = HCA_REMOTE_INVALID_REQUEST;
    error_fixture_run(&fixture);
}

static void forbid_reads(struct hca_qp_attr *attr)
{
    attr->max_dest_rd_atomic = 0;
}

TEST(Error, AReadWithoutResponderResourcesIsARemoteInvalidRequest)
{
    error_fixture_init_with(&fixture, HCA_RC, forbid_reads);
    fixture.wr.opcode = HCA_OP_READ;
    fixture.expected = HCA_REMOTE_INVALID_REQUEST;
    error_fixture_run(&fixture);
}

TEST(Error, ASendLongerThanTheReceiveIsLocalLengthThereAndRemoteInvalidHere)
{
    error_fixture_init_with(&fixture, HCA_RC, NULL);
    fixture.wr.opcode = HCA_OP_SEND;
    fixture.receive_bytes = 63;
    fixture.expected_far = HCA_LOCAL_LENGTH;
    fixture.expected = HCA_REMOTE_INVALID_REQUEST;
    error_fixture_run(&fixture);
}

TEST(Error, AReceiveWithAWrongKeyIsLocalProtectionThereAndRemoteOperationHere)
{
    error_fixture_init_with(&fixture, HCA_RC, NULL);
    fixture.wr.opcode = HCA_OP_SEND;
    fixture.receive_bytes = 64;
    fixture.receive_key = 0x7777;
    fixture.expected_far = HCA_LOCAL_PROTECTION;
    fixture.expected = HCA_REMOTE_OPERATION;
    error_fixture_run(&fixture);
}

TEST(Error, ASendFromMemoryWithoutAKeyIsLocalProtection)
{
    error_fixture_init_with(&fixture, HCA_RC, NULL);
    fixture.sge[0].lkey = 0x7777;
    fixture.expected = HCA_LOCAL_PROTECTION;
    fixture.state_far = HCA_RTS;
    error_fixture_run(&fixture);
}

TEST(Error, AReadIntoMemoryWithoutAKeyIsLocalProtection)
{
    error_fixture_init_with(&fixture, HCA_RC, NULL);
    fixture.wr.opcode = HCA_OP_READ;
    fixture.sge[0].lkey = 0x7777;
    fixture.expected = HCA_LOCAL_PROTECTION;
    fixture.state_far = HCA_RTS;
    error_fixture_run(&fixture);
}

TEST(Error, AnAtomicOfOtherThanEightBytesIsLocalLength)
{
    error_fixture_init_with(&fixture, HCA_RC, NULL);
    fixture.wr.opcode = HCA_OP_FETCH_ADD;
    fixture.expected = HCA_LOCAL_LENGTH;
    fixture.state_far = HCA_RTS;
    error_fixture_run(&fixture);
}

static void forbid_own_reads(struct hca_qp_attr *attr)
{
    attr->max_rd_atomic = 0;
}

TEST(Error, AReadWithoutInitiatorResourcesIsALocalOperation)
{
    error_fixture_init_with(&fixture, HCA_RC, forbid_own_reads);
    fixture.wr.opcode = HCA_OP_READ;
    fixture.expected = HCA_LOCAL_OPERATION;
    fixture.state_far = HCA_RTS;
    error_fixture_run(&fixture);
}

TEST(Error, APulledCableIsRetryExceeded)
{
    error_fixture_init_with(&fixture, HCA_RC, NULL);
    ib_link_set_up(fixture.base.cable, false);
    fixture.expected = HCA_RETRY_EXCEEDED;
    fixture.state_far = HCA_RTS;
    error_fixture_run(&fixture);
}

static void twice_rnr(struct hca_qp_attr *attr)
{
    attr->rnr_retry = 2;
}

TEST(Error, AReceiverWithoutBuffersIsRnrRetryExceededAfterTheCount)
{
    error_fixture_init_with(&fixture, HCA_RC, twice_rnr);
    fixture.wr.opcode = HCA_OP_SEND;
    fixture.expected = HCA_RNR_RETRY_EXCEEDED;
    fixture.state_far = HCA_RTS;
    hca_fixture_spawn(&fixture.base, "far", far_run, &fixture);
    hca_fixture_run(&fixture.base);
    EXPECT_EQ(hca_fixture_counter(&fixture.base, 1, "rnr_naks_sent"), 3);
    hca_fixture_fini(&fixture.base);
}

TEST(Error, AnUnreliableSendWithAWrongKeyStopsSendingOnly)
{
    error_fixture_init_with(&fixture, HCA_UC, NULL);
    fixture.sge[0].lkey = 0x7777;
    fixture.expected = HCA_LOCAL_PROTECTION;
    fixture.state = HCA_SQE;
    fixture.state_far = HCA_RTS;
    error_fixture_run(&fixture);
}

TEST(Error, MemoryThatDoesNotAnswerIsALocalOperation)
{
    error_fixture_init_with(&fixture, HCA_RC, NULL);
    EXPECT_EQ(
        hca_mr_register_bus(fixture.near->pd, 0x10000, 0x9000000000ull, 4096, EVERY_ACCESS, &fixture.near->other_mr),
        0);
    fixture.sge[0] = (struct hca_sge){.address = 0x10000, .bytes = 64, .lkey = hca_mr_lkey(fixture.near->other_mr)};
    fixture.expected = HCA_LOCAL_OPERATION;
    fixture.state_far = HCA_RTS;
    error_fixture_run(&fixture);
}

TEST(Error, RemoteMemoryThatDoesNotAnswerAnAtomicIsARemoteOperation)
{
    error_fixture_init_with(&fixture, HCA_RC, NULL);
    EXPECT_EQ(
        hca_mr_register_bus(fixture.far->pd, 0x10000, 0x9000000000ull, 4096, EVERY_ACCESS, &fixture.far->other_mr), 0);
    fixture.wr.opcode = HCA_OP_FETCH_ADD;
    fixture.wr.remote_address = 0x10000;
    fixture.wr.rkey = hca_mr_rkey(fixture.far->other_mr);
    fixture.sge[0].bytes = 8;
    fixture.expected = HCA_REMOTE_OPERATION;
    error_fixture_run(&fixture);
}

// --- flushing ------------------------------------------------------------------------------------------------------

static void flush_run(void *arg)
{
    struct error_fixture *s = arg;
    for (unsigned i = 0; i < 5; i++) {
        EXPECT_EQ(hca_fixture_receive(&s->a, 100 + i, 0, 64), 0);
    }
    s->wr.rkey = 1;
    for (unsigned i = 0; i < 3; i++) {
        s->wr.wr_id = i;
        EXPECT_EQ(hca_post_send(s->a.qp, &s->wr, NULL), 0);
    }
    EXPECT_EQ(hca_fixture_completion(&s->a).status, HCA_REMOTE_ACCESS);
    EXPECT_EQ(hca_fixture_receive(&s->a, 105, 0, 64), 0); // posted after the failure
    unsigned sends = 1, receives = 100;
    for (unsigned i = 0; i < 8; i++) {
        const struct hca_wc wc = hca_fixture_completion(&s->a);
        EXPECT_EQ(wc.status, HCA_FLUSHED);
        EXPECT_EQ(wc.wr_id, wc.kind == HCA_CQE_SEND ? sends : receives);
        sends += wc.kind == HCA_CQE_SEND;
        receives += wc.kind != HCA_CQE_SEND;
    }
    EXPECT_EQ(sends, 3);
    EXPECT_EQ(receives, 106);
}

static void receive_flushed(const struct hca_fixture_qp *qp, uint64_t wr_id)
{
    EXPECT_EQ(hca_fixture_receive(qp, wr_id, 0, 64), 0);
    const struct hca_wc wc = hca_fixture_completion(qp);
    EXPECT_EQ(wc.status, HCA_FLUSHED);
    EXPECT_EQ(wc.wr_id, wr_id);
}

static void fail_and_receive_late(void *arg)
{
    struct error_fixture *s = arg;
    s->wr.rkey = 1;
    EXPECT_EQ(hca_post_send(s->a.qp, &s->wr, NULL), 0);
    EXPECT_EQ(hca_fixture_completion(&s->a).status, HCA_REMOTE_ACCESS);
    sim_thread_sleep(s->base.sim, 50 * US); // what was posted before is flushed
    receive_flushed(&s->a, 7);
}

// IBA 10.3.1.5.
TEST(Error, FlushesAReceiveThatIsPostedLongAfterTheFailure)
{
    error_fixture_init_with(&fixture, HCA_RC, NULL);
    hca_fixture_spawn(&fixture.base, "near", fail_and_receive_late, &fixture);
    hca_fixture_run(&fixture.base);
    hca_fixture_fini(&fixture.base);
}

static void query_and_receive(void *arg)
{
    struct error_fixture *s = arg;
    struct hca_qp_attr attr = {.state = HCA_RTS};
    while (attr.state != HCA_ERROR) {
        sim_thread_sleep(s->base.sim, 10 * US);
        ASSERT_EQ(hca_qp_query(s->b.qp, &attr), 0);
    }
    receive_flushed(&s->b, 8);
}

// The queue pair of the far side has failed without a completion there: only a query tells of it.
TEST(Error, FlushesAReceiveThatIsPostedWhenTheStateIsKnown)
{
    error_fixture_init_with(&fixture, HCA_RC, NULL);
    fixture.wr.rkey = 1;
    fixture.expected = HCA_REMOTE_ACCESS;
    hca_fixture_spawn(&fixture.base, "near", near_run, &fixture);
    hca_fixture_spawn(&fixture.base, "far", query_and_receive, &fixture);
    hca_fixture_run(&fixture.base);
    hca_fixture_fini(&fixture.base);
}

TEST(Error, FlushesEverythingThatWasPostedInOrder)
{
    error_fixture_init_with(&fixture, HCA_RC, NULL);
    hca_fixture_spawn(&fixture.base, "near", flush_run, &fixture);
    hca_fixture_run(&fixture.base);
    EXPECT_EQ(hca_fixture_counter(&fixture.base, 0, "completion_errors"), 1 + 8); // IBA 11.6.2: flushed ones as well
    hca_fixture_fini(&fixture.base);
}

// --- refused by the driver -------------------------------------------------------------------------------------------

static void refuse_run(void *arg)
{
    struct error_fixture *s = arg;
    const struct hca_send_wr *bad = NULL;
    struct hca_sge many[5] = {s->sge[0], s->sge[0], s->sge[0], s->sge[0], s->sge[0]};
    struct hca_send_wr wr = s->wr;
    wr.sges = many;
    wr.sge_count = 5;
    EXPECT_EQ(hca_post_send(s->a.qp, &wr, &bad), -EINVAL);
    EXPECT_EQ(bad, &wr);
    wr = s->wr;
    wr.flags = HCA_WQE_INLINE;
    many[0].bytes = 65;
    wr.sges = many;
    EXPECT_EQ(hca_post_send(s->a.qp, &wr, &bad), -EINVAL);
    ib_link_set_up(s->base.cable, false); // so that nothing completes soon
    for (unsigned i = 0; i < 128; i++) {
        EXPECT_EQ(hca_post_send(s->a.qp, &s->wr, &bad), 0);
    }
    EXPECT_EQ(hca_post_send(s->a.qp, &s->wr, &bad), -ENOMEM);
    EXPECT_EQ(bad, &s->wr);
}

TEST(Error, TooManySegmentsTooMuchInlineAndAFullQueueAreRefused)
{
    error_fixture_init_with(&fixture, HCA_RC, NULL);
    hca_fixture_spawn(&fixture.base, "near", refuse_run, &fixture);
    hca_fixture_run(&fixture.base);
    hca_fixture_fini(&fixture.base);
}

TEST(Error, WhatIsInUseIsNotDestroyed)
{
    error_fixture_init_with(&fixture, HCA_RC, NULL);
    EXPECT_EQ(hca_cq_destroy(fixture.a.cq), -EBUSY);
    EXPECT_EQ(hca_pd_destroy(fixture.near->pd), -EBUSY);
    EXPECT_EQ(hca_close(fixture.near->context), -EBUSY);
    hca_fixture_qp_close(&fixture.a);
    EXPECT_EQ(hca_mr_deregister(fixture.near->mr), 0);
    EXPECT_EQ(hca_pd_destroy(fixture.near->pd), 0);
    EXPECT_EQ(hca_close(fixture.near->context), 0);
    fixture.near->context = NULL;
    fixture.near->mr = NULL;
    hca_fixture_fini(&fixture.base);
}
