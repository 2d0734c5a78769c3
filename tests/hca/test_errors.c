// Each error of a request: its code at the requester, and what becomes of the two queue pairs.
#include <errno.h>
#include <string.h>

#include "rig.h"

// One request from a to b, and what comes of it.
struct scene {
    struct rig rig;
    struct rig_process *near, *far;
    struct rig_qp a, b;
    struct hca_send_wr wr;
    struct hca_sge sge[2];
    uint32_t receive_bytes;                 // a receive of that many is posted first; 0: none
    uint32_t receive_key;                   // 0: the right one
    enum hca_status expected, expected_far; // far: of its receive; HCA_STATUSES: none is looked for
    enum hca_qp_state state, state_far;
};

static void scene_init_with(struct scene *scene, enum hca_qp_type type, void (*change)(struct hca_qp_attr *attr))
{
    memset(scene, 0, sizeof *scene);
    rig_init(&scene->rig, "connectx-qdr");
    scene->near = rig_process(&scene->rig, 0);
    scene->far = rig_process(&scene->rig, 1);
    scene->a = rig_qp(scene->near, type);
    scene->b = rig_qp(scene->far, type);
    struct hca_qp_attr to_b = rig_attr(&scene->b), to_a = rig_attr(&scene->a);
    if (change != NULL) {
        change(&to_a);
        change(&to_b);
    }
    rig_connect_with(&scene->a, &to_b);
    rig_connect_with(&scene->b, &to_a);
    scene->wr = rig_wr(&scene->a, HCA_OP_WRITE, 0, 64, scene->sge);
    scene->wr.remote_address = (uint64_t)(uintptr_t)scene->far->memory;
    scene->wr.rkey = hca_mr_rkey(scene->far->mr);
    scene->expected_far = HCA_STATUSES;
    scene->state = HCA_ERROR;
    scene->state_far = HCA_ERROR;
    memset(scene->near->memory, 0x5a, 65536);
}

static void near_run(void *arg)
{
    struct scene *scene = arg;
    EXPECT_EQ(hca_post_send(scene->a.qp, &scene->wr, NULL), 0);
    EXPECT_EQ(rig_completion(&scene->a).status, scene->expected);
}

static void far_run(void *arg)
{
    struct scene *scene = arg;
    if (scene->receive_bytes > 0) {
        const struct hca_sge sge = {.address = (uint64_t)(uintptr_t)scene->far->memory,
                                    .bytes = scene->receive_bytes,
                                    .lkey = scene->receive_key != 0 ? scene->receive_key : hca_mr_lkey(scene->far->mr)};
        const struct hca_receive_wr wr = {.sges = &sge, .sge_count = 1};
        EXPECT_EQ(hca_post_receive(scene->b.qp, &wr, NULL), 0);
    }
    rig_spawn(&scene->rig, "near", near_run, scene);
    if (scene->expected_far != HCA_STATUSES) {
        EXPECT_EQ(rig_completion(&scene->b).status, scene->expected_far);
    }
}

// Nothing but what succeeded was written at the far side.
static void scene_run(struct scene *scene)
{
    static const uint8_t zeros[65536];
    struct hca_qp_attr attr;
    rig_spawn(&scene->rig, "far", far_run, scene);
    rig_run(&scene->rig);
    if (scene->expected != HCA_OK) {
        EXPECT_MEMEQ(scene->far->memory, zeros, sizeof zeros);
    }
    EXPECT_EQ(hca_qp_query(scene->a.qp, &attr), 0);
    EXPECT_EQ(attr.state, scene->state);
    EXPECT_EQ(hca_qp_query(scene->b.qp, &attr), 0);
    EXPECT_EQ(attr.state, scene->state_far);
    rig_fini(&scene->rig);
}

static struct scene scene;

TEST(Error, WrongRemoteKeyIsRemoteAccess)
{
    scene_init_with(&scene, HCA_RC, NULL);
    scene.wr.rkey ^= 0x10000;
    scene.expected = HCA_REMOTE_ACCESS;
    scene_run(&scene);
}

TEST(Error, WriteBeyondTheRegionIsRemoteAccess)
{
    scene_init_with(&scene, HCA_RC, NULL);
    scene.wr.remote_address += REGION_BYTES - 63;
    scene.expected = HCA_REMOTE_ACCESS;
    scene_run(&scene);
}

TEST(Error, ReadFromADeregisteredRegionIsRemoteAccess)
{
    scene_init_with(&scene, HCA_RC, NULL);
    scene.wr.opcode = HCA_OP_READ;
    EXPECT_EQ(hca_mr_deregister(scene.far->mr), 0);
    scene.far->mr = NULL;
    scene.expected = HCA_REMOTE_ACCESS;
    scene_run(&scene);
}

static void forbid_atomics(struct hca_qp_attr *attr)
{
    attr->access = HCA_REMOTE_WRITE;
}

TEST(Error, AnAtomicThatTheQueuePairDoesNotAllowIsAnInvalidRequest)
{
    scene_init_with(&scene, HCA_RC, forbid_atomics);
    scene.wr.opcode = HCA_OP_FETCH_ADD;
    scene.sge[0].bytes = 8;
    scene.expected = HCA_REMOTE_INVALID_REQUEST;
    scene_run(&scene);
}

TEST(Error, AMisalignedAtomicIsARemoteInvalidRequest)
{
    scene_init_with(&scene, HCA_RC, NULL);
    scene.wr.opcode = HCA_OP_FETCH_ADD;
    scene.wr.remote_address += 4;
    scene.sge[0].bytes = 8;
    scene.expected = HCA_REMOTE_INVALID_REQUEST;
    scene_run(&scene);
}

static void forbid_reads(struct hca_qp_attr *attr)
{
    attr->max_dest_rd_atomic = 0;
}

TEST(Error, AReadWithoutResponderResourcesIsARemoteInvalidRequest)
{
    scene_init_with(&scene, HCA_RC, forbid_reads);
    scene.wr.opcode = HCA_OP_READ;
    scene.expected = HCA_REMOTE_INVALID_REQUEST;
    scene_run(&scene);
}

TEST(Error, ASendLongerThanTheReceiveIsLocalLengthThereAndRemoteInvalidHere)
{
    scene_init_with(&scene, HCA_RC, NULL);
    scene.wr.opcode = HCA_OP_SEND;
    scene.receive_bytes = 63;
    scene.expected_far = HCA_LOCAL_LENGTH;
    scene.expected = HCA_REMOTE_INVALID_REQUEST;
    scene_run(&scene);
}

TEST(Error, AReceiveWithAWrongKeyIsLocalProtectionThereAndRemoteOperationHere)
{
    scene_init_with(&scene, HCA_RC, NULL);
    scene.wr.opcode = HCA_OP_SEND;
    scene.receive_bytes = 64;
    scene.receive_key = 0x7777;
    scene.expected_far = HCA_LOCAL_PROTECTION;
    scene.expected = HCA_REMOTE_OPERATION;
    scene_run(&scene);
}

TEST(Error, ASendFromMemoryWithoutAKeyIsLocalProtection)
{
    scene_init_with(&scene, HCA_RC, NULL);
    scene.sge[0].lkey = 0x7777;
    scene.expected = HCA_LOCAL_PROTECTION;
    scene.state_far = HCA_RTS;
    scene_run(&scene);
}

TEST(Error, AReadIntoMemoryWithoutAKeyIsLocalProtection)
{
    scene_init_with(&scene, HCA_RC, NULL);
    scene.wr.opcode = HCA_OP_READ;
    scene.sge[0].lkey = 0x7777;
    scene.expected = HCA_LOCAL_PROTECTION;
    scene.state_far = HCA_RTS;
    scene_run(&scene);
}

TEST(Error, AnAtomicOfOtherThanEightBytesIsLocalLength)
{
    scene_init_with(&scene, HCA_RC, NULL);
    scene.wr.opcode = HCA_OP_FETCH_ADD;
    scene.expected = HCA_LOCAL_LENGTH;
    scene.state_far = HCA_RTS;
    scene_run(&scene);
}

static void forbid_own_reads(struct hca_qp_attr *attr)
{
    attr->max_rd_atomic = 0;
}

TEST(Error, AReadWithoutInitiatorResourcesIsALocalOperation)
{
    scene_init_with(&scene, HCA_RC, forbid_own_reads);
    scene.wr.opcode = HCA_OP_READ;
    scene.expected = HCA_LOCAL_OPERATION;
    scene.state_far = HCA_RTS;
    scene_run(&scene);
}

TEST(Error, APulledCableIsRetryExceeded)
{
    scene_init_with(&scene, HCA_RC, NULL);
    ib_link_set_up(scene.rig.cable, false);
    scene.expected = HCA_RETRY_EXCEEDED;
    scene.state_far = HCA_RTS;
    scene_run(&scene);
}

static void twice_rnr(struct hca_qp_attr *attr)
{
    attr->rnr_retry = 2;
}

TEST(Error, AReceiverWithoutBuffersIsRnrRetryExceededAfterTheCount)
{
    scene_init_with(&scene, HCA_RC, twice_rnr);
    scene.wr.opcode = HCA_OP_SEND;
    scene.expected = HCA_RNR_RETRY_EXCEEDED;
    scene.state_far = HCA_RTS;
    rig_spawn(&scene.rig, "far", far_run, &scene);
    rig_run(&scene.rig);
    EXPECT_EQ(rig_counter(&scene.rig, 1, "rnr_naks_sent"), 3);
    rig_fini(&scene.rig);
}

TEST(Error, AnUnreliableSendWithAWrongKeyStopsSendingOnly)
{
    scene_init_with(&scene, HCA_UC, NULL);
    scene.sge[0].lkey = 0x7777;
    scene.expected = HCA_LOCAL_PROTECTION;
    scene.state = HCA_SQE;
    scene.state_far = HCA_RTS;
    scene_run(&scene);
}

TEST(Error, MemoryThatDoesNotAnswerIsALocalOperation)
{
    scene_init_with(&scene, HCA_RC, NULL);
    EXPECT_EQ(hca_mr_register_bus(scene.near->pd, 0x10000, 0x9000000000ull, 4096, EVERY_ACCESS, &scene.near->other_mr),
              0);
    scene.sge[0] = (struct hca_sge){.address = 0x10000, .bytes = 64, .lkey = hca_mr_lkey(scene.near->other_mr)};
    scene.expected = HCA_LOCAL_OPERATION;
    scene.state_far = HCA_RTS;
    scene_run(&scene);
}

TEST(Error, RemoteMemoryThatDoesNotAnswerAnAtomicIsARemoteOperation)
{
    scene_init_with(&scene, HCA_RC, NULL);
    EXPECT_EQ(hca_mr_register_bus(scene.far->pd, 0x10000, 0x9000000000ull, 4096, EVERY_ACCESS, &scene.far->other_mr),
              0);
    scene.wr.opcode = HCA_OP_FETCH_ADD;
    scene.wr.remote_address = 0x10000;
    scene.wr.rkey = hca_mr_rkey(scene.far->other_mr);
    scene.sge[0].bytes = 8;
    scene.expected = HCA_REMOTE_OPERATION;
    scene_run(&scene);
}

// --- flushing ------------------------------------------------------------------------------------------------------

static void flush_run(void *arg)
{
    struct scene *s = arg;
    for (unsigned i = 0; i < 5; i++) {
        EXPECT_EQ(rig_receive(&s->a, 100 + i, 0, 64), 0);
    }
    s->wr.rkey = 1;
    for (unsigned i = 0; i < 3; i++) {
        s->wr.wr_id = i;
        EXPECT_EQ(hca_post_send(s->a.qp, &s->wr, NULL), 0);
    }
    EXPECT_EQ(rig_completion(&s->a).status, HCA_REMOTE_ACCESS);
    EXPECT_EQ(rig_receive(&s->a, 105, 0, 64), 0); // posted after the failure
    unsigned sends = 1, receives = 100;
    for (unsigned i = 0; i < 8; i++) {
        const struct hca_wc wc = rig_completion(&s->a);
        EXPECT_EQ(wc.status, HCA_FLUSHED);
        EXPECT_EQ(wc.wr_id, wc.kind == HCA_CQE_SEND ? sends : receives);
        sends += wc.kind == HCA_CQE_SEND;
        receives += wc.kind != HCA_CQE_SEND;
    }
    EXPECT_EQ(sends, 3);
    EXPECT_EQ(receives, 106);
}

TEST(Error, FlushesEverythingThatWasPostedInOrder)
{
    scene_init_with(&scene, HCA_RC, NULL);
    rig_spawn(&scene.rig, "near", flush_run, &scene);
    rig_run(&scene.rig);
    rig_fini(&scene.rig);
}

// --- refused by the driver -------------------------------------------------------------------------------------------

static void refuse_run(void *arg)
{
    struct scene *s = arg;
    const struct hca_send_wr *bad = NULL;
    struct hca_sge many[5] = {s->sge[0], s->sge[0], s->sge[0], s->sge[0], s->sge[0]};
    struct hca_send_wr wr = s->wr;
    wr.sges = many;
    wr.sge_count = 5;
    EXPECT_EQ(hca_post_send(s->a.qp, &wr, &bad), -EINVAL);
    EXPECT_TRUE(bad == &wr);
    wr = s->wr;
    wr.flags = HCA_WQE_INLINE;
    many[0].bytes = 65;
    wr.sges = many;
    EXPECT_EQ(hca_post_send(s->a.qp, &wr, &bad), -EINVAL);
    ib_link_set_up(s->rig.cable, false); // nothing completes soon
    for (unsigned i = 0; i < 128; i++) {
        EXPECT_EQ(hca_post_send(s->a.qp, &s->wr, &bad), 0);
    }
    EXPECT_EQ(hca_post_send(s->a.qp, &s->wr, &bad), -ENOMEM);
    EXPECT_TRUE(bad == &s->wr);
}

TEST(Error, TooManySegmentsTooMuchInlineAndAFullQueueAreRefused)
{
    scene_init_with(&scene, HCA_RC, NULL);
    rig_spawn(&scene.rig, "near", refuse_run, &scene);
    rig_run(&scene.rig);
    rig_fini(&scene.rig);
}

TEST(Error, WhatIsInUseIsNotDestroyed)
{
    scene_init_with(&scene, HCA_RC, NULL);
    EXPECT_EQ(hca_cq_destroy(scene.a.cq), -EBUSY);
    EXPECT_EQ(hca_pd_destroy(scene.near->pd), -EBUSY);
    EXPECT_EQ(hca_close(scene.near->context), -EBUSY);
    rig_qp_close(&scene.a);
    EXPECT_EQ(hca_mr_deregister(scene.near->mr), 0);
    EXPECT_EQ(hca_pd_destroy(scene.near->pd), 0);
    EXPECT_EQ(hca_close(scene.near->context), 0);
    scene.near->context = NULL;
    scene.near->mr = NULL;
    rig_fini(&scene.rig);
}
