// Errors: the right status for the right request, the event, and no byte outside of the target.
#include <errno.h>

#include "fixture.h"

enum { BYTES = 3000 };

static void expect_untouched(const struct fixture *fixture)
{
    static const uint8_t zeros[REGION_BYTES];
    EXPECT_MEMEQ(fixture->sides[1].memory, zeros, REGION_BYTES);
}

static void event_expect(struct fixture_side *side, enum ibv_event_type type)
{
    struct ibv_async_event event;
    EXPECT_EQ(ibv_get_async_event(side->context, &event), 0);
    EXPECT_STREQ(ibv_event_type_str(event.event_type), ibv_event_type_str(type));
    EXPECT_EQ(event.element.qp, side->qp);
    ibv_ack_async_event(&event);
}

// --- keys and addresses ----------------------------------------------------------------------------------------------

static void bad_write(struct fixture_side *side, uint32_t rkey_change, uint32_t remote_offset)
{
    struct ibv_sge sge = fixture_sge(side, 0, BYTES);
    struct ibv_send_wr second = fixture_wr(side, IBV_WR_RDMA_WRITE, &sge, 0);
    struct ibv_send_wr first = fixture_wr(side, IBV_WR_RDMA_WRITE, &sge, remote_offset);
    first.wr.rdma.rkey += rkey_change;
    first.next = &second;
    second.wr_id = 2;
    EXPECT_EQ(fixture_post(side, &first), 0);
    (void)fixture_completion(side, 1, IBV_WC_REM_ACCESS_ERR);
    (void)fixture_completion(side, 2, IBV_WC_WR_FLUSH_ERR);
    EXPECT_EQ(fixture_state(side), IBV_QPS_ERR);
}

static void wrong_key(struct fixture_side *side)
{
    bad_write(side, 0x40, 0);
}

static void access_event(struct fixture_side *side)
{
    event_expect(side, IBV_EVENT_QP_ACCESS_ERR);
    EXPECT_EQ(fixture_state(side), IBV_QPS_ERR);
}

TEST(IbsimErrors, AWrongRemoteKeyIsARemoteAccessError)
{
    struct fixture *fixture = fixture_new(IBV_QPT_RC);
    fixture_run(fixture, wrong_key, access_event);
    expect_untouched(fixture);
    fixture_end(fixture);
}

static void beyond_region(struct fixture_side *side)
{
    bad_write(side, 0, REGION_BYTES - BYTES + 1);
}

TEST(IbsimErrors, AByteBeyondTheRegionIsARemoteAccessError)
{
    struct fixture *fixture = fixture_new(IBV_QPT_RC);
    fixture_run(fixture, beyond_region, access_event);
    expect_untouched(fixture);
    fixture_end(fixture);
}

static void wrong_local_key(struct fixture_side *side)
{
    struct ibv_sge sge = fixture_sge(side, 0, BYTES);
    struct ibv_send_wr wr = fixture_wr(side, IBV_WR_RDMA_WRITE, &sge, 0);
    sge.lkey += 0x40;
    EXPECT_EQ(fixture_post(side, &wr), 0);
    (void)fixture_completion(side, 1, IBV_WC_LOC_PROT_ERR);
}

TEST(IbsimErrors, AWrongLocalKeyIsALocalProtectionError)
{
    struct fixture *fixture = fixture_new(IBV_QPT_RC);
    fixture_run(fixture, wrong_local_key, NULL);
    expect_untouched(fixture);
    fixture_end(fixture);
}

// --- receivers -------------------------------------------------------------------------------------------------------

static void send_expect(struct fixture_side *side, enum ibv_wc_status status)
{
    struct ibv_sge sge = fixture_sge(side, 0, BYTES);
    struct ibv_send_wr wr = fixture_wr(side, IBV_WR_SEND, &sge, 0);
    EXPECT_EQ(fixture_post(side, &wr), 0);
    (void)fixture_completion(side, 1, status);
}

static void send_without_receive(struct fixture_side *side)
{
    send_expect(side, IBV_WC_RNR_RETRY_EXC_ERR);
    EXPECT_EQ(fixture_state(side), IBV_QPS_ERR);
}

TEST(IbsimErrors, AReceiverWithoutABufferUsesUpTheRetries)
{
    struct fixture *fixture = fixture_new(IBV_QPT_RC);
    fixture->rnr_retry = 2;
    fixture_run(fixture, send_without_receive, NULL);
    expect_untouched(fixture);
    fixture_end(fixture);
}

static void send_with_endless_retries(struct fixture_side *side)
{
    send_expect(side, IBV_WC_SUCCESS);
}

static void receive_late(struct fixture_side *side)
{
    sim_thread_sleep(side->fixture->base.sim, 300 * US);
    EXPECT_EQ(fixture_receive(side, 5, 0, BYTES), 0);
    EXPECT_EQ(fixture_completion(side, 5, IBV_WC_SUCCESS).byte_len, BYTES);
}

TEST(IbsimErrors, EndlessRetriesReachALateReceive)
{
    struct fixture *fixture = fixture_new(IBV_QPT_RC);
    fixture_run(fixture, send_with_endless_retries, receive_late);
    EXPECT_MEMEQ(fixture->sides[1].memory, fixture->sides[0].memory, BYTES);
    fixture_end(fixture);
}

static void send_too_much(struct fixture_side *side)
{
    fixture_barrier(side);
    send_expect(side, IBV_WC_REM_INV_REQ_ERR);
}

static void receive_too_little(struct fixture_side *side)
{
    EXPECT_EQ(fixture_receive(side, 5, 0, BYTES - 1), 0);
    EXPECT_EQ(fixture_receive(side, 6, 0, BYTES), 0);
    fixture_barrier(side);
    (void)fixture_completion(side, 5, IBV_WC_LOC_LEN_ERR);
    (void)fixture_completion(side, 6, IBV_WC_WR_FLUSH_ERR);
}

TEST(IbsimErrors, AMessageLongerThanTheBufferFailsBothSides)
{
    static const uint8_t zeros[BYTES];
    struct fixture *fixture = fixture_new(IBV_QPT_RC);
    fixture_run(fixture, send_too_much, receive_too_little);
    EXPECT_MEMEQ(fixture->sides[1].memory + BYTES - 1, zeros, BYTES);
    fixture_end(fixture);
}

static void read_from_other_packets(struct fixture_side *side)
{
    struct ibv_sge sge = fixture_sge(side, 0, BYTES);
    struct ibv_send_wr wr = fixture_wr(side, IBV_WR_RDMA_READ, &sge, 0);
    EXPECT_EQ(fixture_post(side, &wr), 0);
    (void)fixture_completion(side, 1, IBV_WC_BAD_RESP_ERR);
    EXPECT_EQ(fixture_state(side), IBV_QPS_ERR);
}

// IBA 9.9.2.4.2, 11.6.2: the answers come in packets of 512 bytes, not of 1024.
TEST(IbsimErrors, AnswersOfAnotherPathMtuAreABadResponse)
{
    struct fixture *fixture = fixture_new(IBV_QPT_RC);
    fixture->far_mtu = IBV_MTU_512;
    fixture_run(fixture, read_from_other_packets, NULL);
    fixture_end(fixture);
}

// --- flush -----------------------------------------------------------------------------------------------------------

static void fail_by_hand(struct fixture_side *side)
{
    EXPECT_EQ(fixture_receive(side, 1, 0, BYTES), 0);
    EXPECT_EQ(fixture_receive(side, 2, 0, BYTES), 0);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    EXPECT_EQ(ibv_modify_qp(side->qp, &attr, IBV_QP_STATE), 0);
    (void)fixture_completion(side, 1, IBV_WC_WR_FLUSH_ERR);
    (void)fixture_completion(side, 2, IBV_WC_WR_FLUSH_ERR);
    struct ibv_sge sge = fixture_sge(side, 0, BYTES);
    struct ibv_send_wr wr = fixture_wr(side, IBV_WR_SEND, &sge, 0);
    wr.wr_id = 3;
    EXPECT_EQ(fixture_post(side, &wr), 0);
    (void)fixture_completion(side, 3, IBV_WC_WR_FLUSH_ERR);
    EXPECT_EQ(fixture_receive(side, 4, 0, BYTES), 0);
    (void)fixture_completion(side, 4, IBV_WC_WR_FLUSH_ERR);
}

TEST(IbsimErrors, AQueuePairInErrorFlushesWhatIsThereAndWhatComes)
{
    struct fixture *fixture = fixture_new(IBV_QPT_RC);
    fixture_run(fixture, fail_by_hand, NULL);
    fixture_end(fixture);
}

// --- the device ------------------------------------------------------------------------------------------------------

static void lose_the_slot(struct fixture_side *side)
{
    struct ibv_async_event event;
    struct ibv_sge sge = fixture_sge(side, 0, BYTES);
    struct ibv_send_wr wr = fixture_wr(side, IBV_WR_SEND, &sge, 0);
    EXPECT_EQ(fixture_post(side, &wr), 0);
    pcie_link_set_down(side->fixture->base.nodes[side->index].slot);
    EXPECT_EQ(ibv_get_async_event(side->context, &event), 0);
    EXPECT_STREQ(ibv_event_type_str(event.event_type), ibv_event_type_str(IBV_EVENT_DEVICE_FATAL));
    ibv_ack_async_event(&event);
    errno = 0;
    EXPECT_NULL(ibv_create_cq(side->context, 8, NULL, NULL, 0));
    EXPECT_EQ(errno, EIO);
    EXPECT_NULL(ibv_reg_mr(side->pd, side->memory, 8, 0));
    EXPECT_EQ(errno, EIO);
}

TEST(IbsimErrors, AnHcaThatLosesItsSlotIsAFatalErrorAndLetsEverythingBeDestroyed)
{
    struct fixture *fixture = fixture_new(IBV_QPT_RC);
    fixture_run(fixture, lose_the_slot, NULL);
    fixture_end(fixture);
}

// --- the link's MTU --------------------------------------------------------------------------------------------------

static void longer_than_the_link(struct fixture_side *side)
{
    struct ibv_port_attr port;
    EXPECT_EQ(ibv_query_port(side->context, 1, &port), 0);
    EXPECT_EQ(port.max_mtu, IBV_MTU_4096);
    EXPECT_EQ(port.active_mtu, IBV_MTU_2048);
    struct ibv_sge fits = fixture_sge(side, 0, 2048), sge = fixture_sge(side, 0, BYTES);
    struct ibv_send_wr first = fixture_wr(side, IBV_WR_RDMA_WRITE, &fits, 0);
    EXPECT_EQ(fixture_post(side, &first), 0);
    (void)fixture_completion(side, 1, IBV_WC_SUCCESS);
    struct ibv_send_wr second = fixture_wr(side, IBV_WR_RDMA_WRITE, &sge, 2048);
    EXPECT_EQ(fixture_post(side, &second), 0);
    (void)fixture_completion(side, 1, IBV_WC_RETRY_EXC_ERR);
}

TEST(IbsimErrors, APathMtuBeyondTheLinksIsAcceptedAndItsPacketsAreDiscarded)
{
    static const uint8_t zeros[REGION_BYTES];
    struct fixture *fixture = fixture_new(IBV_QPT_RC);
    fixture->path_mtu = IBV_MTU_4096;
    fixture_run(fixture, longer_than_the_link, NULL);
    EXPECT_MEMEQ(fixture->sides[1].memory, fixture->sides[0].memory, 2048);
    EXPECT_MEMEQ(fixture->sides[1].memory + 2048, zeros, REGION_BYTES - 2048);
    fixture_end(fixture);
}
