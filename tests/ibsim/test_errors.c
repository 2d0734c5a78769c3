// Errors: the right status on the right request, the event, and no byte where none belongs.
#include <errno.h>

#include "scene.h"

enum { BYTES = 3000 };

static void expect_untouched(const struct scene *scene)
{
    static const uint8_t zeros[REGION_BYTES];
    EXPECT_MEMEQ(scene->sides[1].memory, zeros, REGION_BYTES);
}

static void event_expect(struct scene_side *side, enum ibv_event_type type)
{
    struct ibv_async_event event;
    EXPECT_EQ(ibv_get_async_event(side->context, &event), 0);
    EXPECT_STREQ(ibv_event_type_str(event.event_type), ibv_event_type_str(type));
    EXPECT_TRUE(event.element.qp == side->qp);
    ibv_ack_async_event(&event);
}

// --- keys and addresses ----------------------------------------------------------------------------------------------

static void bad_write(struct scene_side *side, uint32_t rkey_change, uint32_t remote_offset)
{
    struct ibv_sge sge = scene_sge(side, 0, BYTES);
    struct ibv_send_wr second = scene_wr(side, IBV_WR_RDMA_WRITE, &sge, 0);
    struct ibv_send_wr first = scene_wr(side, IBV_WR_RDMA_WRITE, &sge, remote_offset);
    first.wr.rdma.rkey += rkey_change;
    first.next = &second;
    second.wr_id = 2;
    EXPECT_EQ(scene_post(side, &first), 0);
    (void)scene_completion(side, 1, IBV_WC_REM_ACCESS_ERR);
    (void)scene_completion(side, 2, IBV_WC_WR_FLUSH_ERR);
    EXPECT_EQ(scene_state(side), IBV_QPS_ERR);
}

static void wrong_key(struct scene_side *side)
{
    bad_write(side, 0x40, 0);
}

static void access_event(struct scene_side *side)
{
    event_expect(side, IBV_EVENT_QP_ACCESS_ERR);
    EXPECT_EQ(scene_state(side), IBV_QPS_ERR);
}

TEST(IbsimErrors, AWrongRemoteKeyIsARemoteAccessError)
{
    struct scene *scene = scene_new(IBV_QPT_RC);
    scene_run(scene, wrong_key, access_event);
    expect_untouched(scene);
    scene_end(scene);
}

static void beyond_region(struct scene_side *side)
{
    bad_write(side, 0, REGION_BYTES - BYTES + 1);
}

TEST(IbsimErrors, AByteBeyondTheRegionIsARemoteAccessError)
{
    struct scene *scene = scene_new(IBV_QPT_RC);
    scene_run(scene, beyond_region, access_event);
    expect_untouched(scene);
    scene_end(scene);
}

static void wrong_local_key(struct scene_side *side)
{
    struct ibv_sge sge = scene_sge(side, 0, BYTES);
    struct ibv_send_wr wr = scene_wr(side, IBV_WR_RDMA_WRITE, &sge, 0);
    sge.lkey += 0x40;
    EXPECT_EQ(scene_post(side, &wr), 0);
    (void)scene_completion(side, 1, IBV_WC_LOC_PROT_ERR);
}

TEST(IbsimErrors, AWrongLocalKeyIsALocalProtectionError)
{
    struct scene *scene = scene_new(IBV_QPT_RC);
    scene_run(scene, wrong_local_key, NULL);
    expect_untouched(scene);
    scene_end(scene);
}

// --- receivers -------------------------------------------------------------------------------------------------------

static void send_expect(struct scene_side *side, enum ibv_wc_status status)
{
    struct ibv_sge sge = scene_sge(side, 0, BYTES);
    struct ibv_send_wr wr = scene_wr(side, IBV_WR_SEND, &sge, 0);
    EXPECT_EQ(scene_post(side, &wr), 0);
    (void)scene_completion(side, 1, status);
}

static void send_in_vain(struct scene_side *side)
{
    send_expect(side, IBV_WC_RNR_RETRY_EXC_ERR);
    EXPECT_EQ(scene_state(side), IBV_QPS_ERR);
}

TEST(IbsimErrors, AReceiverWithoutABufferUsesUpTheRetries)
{
    struct scene *scene = scene_new(IBV_QPT_RC);
    scene->rnr_retry = 2;
    scene_run(scene, send_in_vain, NULL);
    expect_untouched(scene);
    scene_end(scene);
}

static void send_with_endless_retries(struct scene_side *side)
{
    send_expect(side, IBV_WC_SUCCESS);
}

static void receive_late(struct scene_side *side)
{
    sim_thread_sleep(side->scene->rig.sim, 300 * US);
    EXPECT_EQ(scene_receive(side, 5, 0, BYTES), 0);
    EXPECT_EQ(scene_completion(side, 5, IBV_WC_SUCCESS).byte_len, BYTES);
}

TEST(IbsimErrors, EndlessRetriesReachALateReceive)
{
    struct scene *scene = scene_new(IBV_QPT_RC);
    scene_run(scene, send_with_endless_retries, receive_late);
    EXPECT_MEMEQ(scene->sides[1].memory, scene->sides[0].memory, BYTES);
    scene_end(scene);
}

static void send_too_much(struct scene_side *side)
{
    scene_meet(side);
    send_expect(side, IBV_WC_REM_INV_REQ_ERR);
}

static void receive_too_little(struct scene_side *side)
{
    EXPECT_EQ(scene_receive(side, 5, 0, BYTES - 1), 0);
    EXPECT_EQ(scene_receive(side, 6, 0, BYTES), 0);
    scene_meet(side);
    (void)scene_completion(side, 5, IBV_WC_LOC_LEN_ERR);
    (void)scene_completion(side, 6, IBV_WC_WR_FLUSH_ERR);
}

TEST(IbsimErrors, AMessageLongerThanTheBufferFailsBothSides)
{
    static const uint8_t zeros[BYTES];
    struct scene *scene = scene_new(IBV_QPT_RC);
    scene_run(scene, send_too_much, receive_too_little);
    EXPECT_MEMEQ(scene->sides[1].memory + BYTES - 1, zeros, BYTES);
    scene_end(scene);
}

// --- flush -----------------------------------------------------------------------------------------------------------

static void fail_by_hand(struct scene_side *side)
{
    EXPECT_EQ(scene_receive(side, 1, 0, BYTES), 0);
    EXPECT_EQ(scene_receive(side, 2, 0, BYTES), 0);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    EXPECT_EQ(ibv_modify_qp(side->qp, &attr, IBV_QP_STATE), 0);
    (void)scene_completion(side, 1, IBV_WC_WR_FLUSH_ERR);
    (void)scene_completion(side, 2, IBV_WC_WR_FLUSH_ERR);
    struct ibv_sge sge = scene_sge(side, 0, BYTES);
    struct ibv_send_wr wr = scene_wr(side, IBV_WR_SEND, &sge, 0);
    wr.wr_id = 3;
    EXPECT_EQ(scene_post(side, &wr), 0);
    (void)scene_completion(side, 3, IBV_WC_WR_FLUSH_ERR);
    EXPECT_EQ(scene_receive(side, 4, 0, BYTES), 0);
    (void)scene_completion(side, 4, IBV_WC_WR_FLUSH_ERR);
}

TEST(IbsimErrors, AQueuePairInErrorFlushesWhatIsThereAndWhatComes)
{
    struct scene *scene = scene_new(IBV_QPT_RC);
    scene_run(scene, fail_by_hand, NULL);
    scene_end(scene);
}

// --- the device ------------------------------------------------------------------------------------------------------

static void lose_the_slot(struct scene_side *side)
{
    struct ibv_async_event event;
    struct ibv_sge sge = scene_sge(side, 0, BYTES);
    struct ibv_send_wr wr = scene_wr(side, IBV_WR_SEND, &sge, 0);
    EXPECT_EQ(scene_post(side, &wr), 0);
    pcie_link_set_down(side->scene->rig.nodes[side->index].slot);
    EXPECT_EQ(ibv_get_async_event(side->context, &event), 0);
    EXPECT_STREQ(ibv_event_type_str(event.event_type), ibv_event_type_str(IBV_EVENT_DEVICE_FATAL));
    ibv_ack_async_event(&event);
    errno = 0;
    EXPECT_TRUE(ibv_create_cq(side->context, 8, NULL, NULL, 0) == NULL);
    EXPECT_EQ(errno, EIO);
    EXPECT_TRUE(ibv_reg_mr(side->pd, side->memory, 8, 0) == NULL);
    EXPECT_EQ(errno, EIO);
}

TEST(IbsimErrors, AnHcaThatLosesItsSlotIsAFatalErrorAndLetsEverythingBeDestroyed)
{
    struct scene *scene = scene_new(IBV_QPT_RC);
    scene_run(scene, lose_the_slot, NULL);
    scene_end(scene);
}

// --- the link's MTU --------------------------------------------------------------------------------------------------

static void longer_than_the_link(struct scene_side *side)
{
    struct ibv_port_attr port;
    EXPECT_EQ(ibv_query_port(side->context, 1, &port), 0);
    EXPECT_EQ(port.max_mtu, IBV_MTU_4096);
    EXPECT_EQ(port.active_mtu, IBV_MTU_2048);
    struct ibv_sge fits = scene_sge(side, 0, 2048), sge = scene_sge(side, 0, BYTES);
    struct ibv_send_wr first = scene_wr(side, IBV_WR_RDMA_WRITE, &fits, 0);
    EXPECT_EQ(scene_post(side, &first), 0);
    (void)scene_completion(side, 1, IBV_WC_SUCCESS);
    struct ibv_send_wr second = scene_wr(side, IBV_WR_RDMA_WRITE, &sge, 2048);
    EXPECT_EQ(scene_post(side, &second), 0);
    (void)scene_completion(side, 1, IBV_WC_RETRY_EXC_ERR);
}

TEST(IbsimErrors, APathMtuBeyondTheLinksIsAcceptedAndItsPacketsAreDiscarded)
{
    static const uint8_t zeros[REGION_BYTES];
    struct scene *scene = scene_new(IBV_QPT_RC);
    scene->path_mtu = IBV_MTU_4096;
    scene_run(scene, longer_than_the_link, NULL);
    EXPECT_MEMEQ(scene->sides[1].memory, scene->sides[0].memory, 2048);
    EXPECT_MEMEQ(scene->sides[1].memory + 2048, zeros, REGION_BYTES - 2048);
    scene_end(scene);
}
