// Completion queues, their channels, and the extended interface (IBA 10.8, 11.4.2).
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "pair.h"

static int create_errno(struct pair *pair, int cqe, struct ibv_comp_channel *channel, int vector)
{
    errno = 0;
    struct ibv_cq *cq = ibv_create_cq(pair->side[0].context, cqe, NULL, channel, vector);
    if (cq != NULL) {
        EXPECT_GE(cq->cqe, cqe);
        EXPECT_EQ(ibv_destroy_cq(cq), 0);
    }
    return cq != NULL ? 0 : errno;
}

TEST(CompletionQueue, HasAtLeastTheEntriesAsked)
{
    struct pair pair;
    pair_init(&pair);
    EXPECT_EQ(create_errno(&pair, 1, NULL, 0), 0);
    EXPECT_EQ(create_errno(&pair, MEMORY_CQE_MAX, NULL, 0), 0);
    EXPECT_EQ(create_errno(&pair, MEMORY_CQE_MAX + 1, NULL, 0), EINVAL);
    EXPECT_EQ(create_errno(&pair, 0, NULL, 0), EINVAL);
    EXPECT_EQ(create_errno(&pair, -5, NULL, 0), EINVAL);
    memory_world_exhaust(pair.world);
    EXPECT_EQ(create_errno(&pair, 1, NULL, 0), ENOMEM);
    pair_fini(&pair);
}

TEST(CompletionQueue, HasAVectorAndAChannelOfItsContext)
{
    struct pair pair;
    pair_init(&pair);
    EXPECT_EQ(create_errno(&pair, 1, NULL, MEMORY_VECTORS - 1), 0);
    EXPECT_EQ(create_errno(&pair, 1, NULL, MEMORY_VECTORS), EINVAL);
    EXPECT_EQ(create_errno(&pair, 1, NULL, -1), EINVAL);
    EXPECT_EQ(create_errno(&pair, 1, pair.side[1].channel, 0), EINVAL);
    EXPECT_EQ(pair.side[0].context->num_comp_vectors, MEMORY_VECTORS);
    pair_fini(&pair);
}

TEST(CompletionQueue, IsBusyWhileAQueuePairUsesIt)
{
    struct pair pair;
    pair_init(&pair);
    pair_connect(&pair, IBV_QPT_RC);
    EXPECT_EQ(ibv_destroy_cq(pair.side[0].cq), EBUSY);
    EXPECT_EQ(ibv_destroy_comp_channel(pair.side[0].channel), EBUSY);
    pair_fini(&pair);
}

// A completed write of 8 bytes, solicited or not at the receiver.
static void write_one(struct pair *pair, uint64_t wr_id, unsigned flags)
{
    struct ibv_sge sge = pair_sge(&pair->side[0], 0, 8);
    struct ibv_send_wr wr = pair_wr(pair, IBV_WR_RDMA_WRITE_WITH_IMM, &sge);
    wr.wr_id = wr_id;
    wr.send_flags |= flags;
    EXPECT_EQ(pair_receive(&pair->side[1], wr_id, 0, 8), 0);
    EXPECT_EQ(pair_send(pair, &wr), 0);
}

TEST(CompletionQueue, IsPolledInOrder)
{
    struct pair pair;
    struct ibv_wc wc[8];
    pair_init(&pair);
    pair_connect(&pair, IBV_QPT_RC);
    for (unsigned i = 0; i < 5; i++) {
        write_one(&pair, i, 0);
    }
    EXPECT_EQ(ibv_poll_cq(pair.side[0].cq, 0, wc), 0);
    EXPECT_EQ(ibv_poll_cq(pair.side[0].cq, 3, wc), 3);
    EXPECT_EQ(ibv_poll_cq(pair.side[0].cq, 8, wc + 3), 2);
    for (unsigned i = 0; i < 5; i++) {
        EXPECT_EQ(wc[i].wr_id, i);
        EXPECT_EQ(wc[i].qp_num, pair.side[0].qp->qp_num);
        EXPECT_EQ(wc[i].opcode, IBV_WC_RDMA_WRITE);
    }
    pair_expect_none(&pair.side[0]);
    pair_fini(&pair);
}

TEST(CompletionQueue, IsResizedToNoLessThanItHolds)
{
    struct pair pair;
    pair_init(&pair);
    pair_connect(&pair, IBV_QPT_RC);
    for (unsigned i = 0; i < 5; i++) {
        write_one(&pair, i, 0);
    }
    EXPECT_EQ(ibv_resize_cq(pair.side[0].cq, 4), EINVAL);
    EXPECT_EQ(pair.side[0].cq->cqe, 64);
    EXPECT_EQ(ibv_resize_cq(pair.side[0].cq, 0), EINVAL);
    EXPECT_EQ(ibv_resize_cq(pair.side[0].cq, MEMORY_CQE_MAX + 1), EINVAL);
    EXPECT_EQ(ibv_resize_cq(pair.side[0].cq, 5), 0);
    EXPECT_EQ(pair.side[0].cq->cqe, 5);
    for (unsigned i = 0; i < 5; i++) {
        (void)pair_expect_wc(&pair.side[0], i, IBV_WC_SUCCESS);
    }
    pair_fini(&pair);
}

// 11.6.3: the queue goes to error, and with it the queue pairs that use it.
TEST(CompletionQueue, OverrunEndsItsQueuePairs)
{
    struct pair pair;
    pair_init(&pair);
    pair_connect(&pair, IBV_QPT_RC);
    EXPECT_EQ(ibv_resize_cq(pair.side[0].cq, 2), 0);
    for (unsigned i = 0; i < 3; i++) {
        write_one(&pair, i, 0);
    }
    pair_expect_event(&pair.side[0], IBV_EVENT_CQ_ERR);
    pair_expect_event(&pair.side[0], IBV_EVENT_QP_FATAL);
    pair_expect_no_event(&pair.side[0]);
    pair_fini(&pair);
}

TEST(CompletionQueue, WaitEndsWithACompletion)
{
    struct pair pair;
    pair_init(&pair);
    pair_connect(&pair, IBV_QPT_RC);
    EXPECT_EQ(ibverbs_cq_wait(pair.side[0].cq, 100), ETIMEDOUT);
    write_one(&pair, 1, 0);
    EXPECT_EQ(ibverbs_cq_wait(pair.side[0].cq, 100), 0);
    (void)pair_expect_wc(&pair.side[0], 1, IBV_WC_SUCCESS);
    pair_fini(&pair);
}

// --- notification (11.4.2.2) ----------------------------------------------------------------------------------------

static void expect_notified(struct pair_side *side, bool notified)
{
    struct ibv_cq *cq = NULL;
    void *cq_context = NULL;
    (void)fcntl(side->channel->fd, F_SETFL, O_NONBLOCK);
    int status = ibv_get_cq_event(side->channel, &cq, &cq_context);
    EXPECT_EQ(status, notified ? 0 : -1);
    if (status == 0) {
        EXPECT_EQ(cq, side->cq);
        EXPECT_EQ(cq_context, side);
        ibv_ack_cq_events(cq, 1);
    } else {
        EXPECT_EQ(errno, EAGAIN);
    }
}

TEST(Notification, ComesOnceForEachRequest)
{
    struct pair pair;
    pair_init(&pair);
    pair_connect(&pair, IBV_QPT_RC);
    write_one(&pair, 1, 0);
    expect_notified(&pair.side[0], false);
    (void)pair_expect_wc(&pair.side[0], 1, IBV_WC_SUCCESS);
    EXPECT_EQ(ibv_req_notify_cq(pair.side[0].cq, 0), 0);
    expect_notified(&pair.side[0], false);
    write_one(&pair, 2, 0);
    write_one(&pair, 3, 0);
    expect_notified(&pair.side[0], true);
    expect_notified(&pair.side[0], false);
    pair_fini(&pair);
}

TEST(Notification, MayWaitForASolicitedCompletion)
{
    struct pair pair;
    pair_init(&pair);
    pair_connect(&pair, IBV_QPT_RC);
    EXPECT_EQ(ibv_req_notify_cq(pair.side[1].cq, 1), 0);
    write_one(&pair, 1, 0);
    expect_notified(&pair.side[1], false);
    write_one(&pair, 2, IBV_SEND_SOLICITED);
    expect_notified(&pair.side[1], true);
    pair_fini(&pair);
}

TEST(Notification, OfSolicitedOnesCountsErrors)
{
    struct pair pair;
    pair_init(&pair);
    pair_connect(&pair, IBV_QPT_RC);
    EXPECT_EQ(ibv_req_notify_cq(pair.side[1].cq, 1), 0);
    EXPECT_EQ(pair_receive(&pair.side[1], 1, 0, 8), 0);
    EXPECT_EQ(pair_step(pair.side[1].qp, &pair.side[0], IBV_QPS_ERR), 0);
    expect_notified(&pair.side[1], true);
    pair_fini(&pair);
}

TEST(Notification, GoesWithItsQueue)
{
    struct pair pair;
    pair_init(&pair);
    struct ibv_cq *cq = ibv_create_cq(pair.side[0].context, 8, NULL, pair.side[0].channel, 0), *kept = pair.side[0].cq;
    pair.side[0].cq = cq;
    pair_connect(&pair, IBV_QPT_RC);
    EXPECT_EQ(ibv_req_notify_cq(cq, 0), 0);
    write_one(&pair, 1, 0);
    EXPECT_EQ(ibv_destroy_qp(pair.side[0].qp), 0);
    pair.side[0].qp = NULL;
    EXPECT_EQ(ibv_destroy_cq(cq), 0);
    pair.side[0].cq = kept;
    expect_notified(&pair.side[0], false);
    pair_fini(&pair);
}

// Connects side 0's queue pair with a completion queue of one entry.
static struct ibv_cq *connect_small(struct pair *pair)
{
    pair_init(pair);
    struct ibv_cq *kept = pair->side[0].cq;
    pair->side[0].cq = ibv_create_cq(pair->side[0].context, 1, NULL, pair->side[0].channel, 0);
    pair_connect(pair, IBV_QPT_RC);
    struct ibv_cq *small = pair->side[0].cq;
    pair->side[0].cq = kept;
    return small;
}

static void destroy_small(struct pair *pair, struct ibv_cq *small)
{
    EXPECT_EQ(ibv_destroy_qp(pair->side[0].qp), 0);
    pair->side[0].qp = NULL;
    EXPECT_EQ(ibv_destroy_cq(small), 0);
}

TEST(Notification, ThatNobodyTookGoesWithItsQueue)
{
    struct pair pair;
    struct ibv_cq *small = connect_small(&pair);
    EXPECT_EQ(ibv_req_notify_cq(small, 0), 0);
    write_one(&pair, 1, 0);
    pair_expect_no_event(&pair.side[0]); // reads the notification from the device
    destroy_small(&pair, small);
    expect_notified(&pair.side[0], false);
    pair_fini(&pair);
}

TEST(Notification, OfAnOverrunGoesWithItsQueue)
{
    struct pair pair;
    struct ibv_cq *small = connect_small(&pair);
    write_one(&pair, 1, 0);
    write_one(&pair, 2, 0);
    expect_notified(&pair.side[0], false); // reads the overrun from the device
    destroy_small(&pair, small);
    pair_expect_no_event(&pair.side[0]);
    pair_fini(&pair);
}

static void write_while_waiting(void *arg)
{
    write_one(arg, 7, 0);
}

TEST(Notification, IsWaitedFor)
{
    struct pair pair;
    struct ibv_cq *cq = NULL;
    void *cq_context;
    pair_init(&pair);
    pair_connect(&pair, IBV_QPT_RC);
    EXPECT_EQ(ibv_req_notify_cq(pair.side[1].cq, 0), 0);
    memory_world_set_wait(pair.world, write_while_waiting, &pair);
    EXPECT_EQ(ibv_get_cq_event(pair.side[1].channel, &cq, &cq_context), 0);
    EXPECT_EQ(cq, pair.side[1].cq);
    (void)pair_expect_wc(&pair.side[1], 7, IBV_WC_SUCCESS);
    ibv_ack_cq_events(cq, 1);
    pair_fini(&pair);
}

static void ack_while_waiting(void *arg)
{
    struct pair *pair = arg;
    ibv_ack_cq_events(pair->side[0].cq, 1);
    memory_world_cable(pair->world, 1, false); // an event ends each wait
}

// A queue is destroyed when all its events are acknowledged, not before.
TEST(Notification, IsAcknowledgedBeforeTheQueueGoes)
{
    struct pair pair;
    struct ibv_cq *cq;
    void *cq_context;
    pair_init(&pair);
    pair_connect(&pair, IBV_QPT_RC);
    for (unsigned i = 0; i < 2; i++) {
        EXPECT_EQ(ibv_req_notify_cq(pair.side[0].cq, 0), 0);
        write_one(&pair, i, 0);
        EXPECT_EQ(ibv_get_cq_event(pair.side[0].channel, &cq, &cq_context), 0);
        (void)pair_expect_wc(&pair.side[0], i, IBV_WC_SUCCESS);
    }
    EXPECT_EQ(ibv_destroy_qp(pair.side[0].qp), 0);
    pair.side[0].qp = NULL;
    EXPECT_EQ(ibv_destroy_cq(cq), EINTR); // no acknowledgement and no other event comes
    memory_world_set_wait(pair.world, ack_while_waiting, &pair);
    EXPECT_EQ(ibv_destroy_cq(cq), 0);
    pair.side[0].cq = ibv_create_cq(pair.side[0].context, 1, NULL, NULL, 0);
    pair_fini(&pair);
}

// ibv_ack_cq_events(3): the events of several calls may be acknowledged at once.
TEST(Notification, SeveralAreAcknowledgedAtOnce)
{
    struct pair pair;
    struct ibv_cq *cq;
    void *cq_context;
    pair_init(&pair);
    pair_connect(&pair, IBV_QPT_RC);
    for (unsigned i = 0; i < 3; i++) {
        EXPECT_EQ(ibv_req_notify_cq(pair.side[0].cq, 0), 0);
        write_one(&pair, i, 0);
        EXPECT_EQ(ibv_get_cq_event(pair.side[0].channel, &cq, &cq_context), 0);
        (void)pair_expect_wc(&pair.side[0], i, IBV_WC_SUCCESS);
    }
    EXPECT_EQ(ibv_destroy_qp(pair.side[0].qp), 0);
    pair.side[0].qp = NULL;
    ibv_ack_cq_events(cq, 3);
    EXPECT_EQ(ibv_destroy_cq(cq), 0);
    pair.side[0].cq = ibv_create_cq(pair.side[0].context, 1, NULL, NULL, 0);
    pair_fini(&pair);
}

// --- the extended interface -----------------------------------------------------------------------------------------

static struct ibv_cq_ex *create_ex(struct pair *pair, uint64_t wc_flags, uint32_t comp_mask, uint32_t flags)
{
    struct ibv_cq_init_attr_ex init = {.cqe = 16, .wc_flags = wc_flags, .comp_mask = comp_mask, .flags = flags};
    errno = 0;
    return ibv_create_cq_ex(pair->side[1].context, &init);
}

TEST(ExtendedCompletionQueue, ReadsWhatItWasMadeFor)
{
    struct pair pair;
    pair_init(&pair);
    struct ibv_cq *kept = pair.side[1].cq;
    struct ibv_cq_ex *cq = create_ex(&pair, IBV_WC_STANDARD_FLAGS, 0, 0);
    struct ibv_poll_cq_attr attr = {0};
    pair.side[1].cq = ibv_cq_ex_to_cq(cq);
    pair_connect(&pair, IBV_QPT_RC);
    EXPECT_EQ(ibv_start_poll(cq, &attr), ENOENT);
    write_one(&pair, 5, 0);
    EXPECT_EQ(ibv_start_poll(cq, &attr), 0);
    EXPECT_EQ(cq->wr_id, 5);
    EXPECT_EQ(cq->status, IBV_WC_SUCCESS);
    EXPECT_EQ(ibv_wc_read_opcode(cq), IBV_WC_RECV_RDMA_WITH_IMM);
    EXPECT_EQ(ibv_wc_read_byte_len(cq), 8);
    EXPECT_EQ(ibv_wc_read_wc_flags(cq), IBV_WC_WITH_IMM);
    EXPECT_EQ(ibv_wc_read_qp_num(cq), pair.side[1].qp->qp_num);
    EXPECT_EQ(ibv_next_poll(cq), ENOENT);
    ibv_end_poll(cq);
    EXPECT_EQ(ibv_destroy_qp(pair.side[1].qp), 0);
    pair.side[1].qp = NULL;
    EXPECT_EQ(ibv_destroy_cq(pair.side[1].cq), 0);
    pair.side[1].cq = kept;
    pair_fini(&pair);
}

TEST(ExtendedCompletionQueue, GoesOnFromOneToTheNext)
{
    struct pair pair;
    pair_init(&pair);
    struct ibv_cq *kept = pair.side[1].cq;
    struct ibv_cq_ex *cq = create_ex(&pair, IBV_WC_EX_WITH_IMM, 0, 0);
    struct ibv_poll_cq_attr attr = {0}, wrong = {.comp_mask = 1};
    pair.side[1].cq = ibv_cq_ex_to_cq(cq);
    pair_connect(&pair, IBV_QPT_RC);
    write_one(&pair, 5, 0);
    write_one(&pair, 6, 0);
    EXPECT_EQ(ibv_start_poll(cq, &wrong), EINVAL);
    EXPECT_EQ(ibv_start_poll(cq, &attr), 0);
    EXPECT_EQ(ibv_next_poll(cq), 0);
    EXPECT_EQ(cq->wr_id, 6);
    EXPECT_NOT_NULL(cq->read_imm_data);
    EXPECT_NULL(cq->read_byte_len);
    EXPECT_NULL(cq->read_completion_ts);
    ibv_end_poll(cq);
    EXPECT_EQ(ibv_destroy_qp(pair.side[1].qp), 0);
    pair.side[1].qp = NULL;
    EXPECT_EQ(ibv_destroy_cq(pair.side[1].cq), 0);
    pair.side[1].cq = kept;
    pair_fini(&pair);
}

TEST(ExtendedCompletionQueue, IsRefusedWithWhatNoDeviceHas)
{
    struct pair pair;
    pair_init(&pair);
    static const uint64_t wanted[] = {IBV_WC_EX_WITH_COMPLETION_TIMESTAMP, IBV_WC_EX_WITH_CVLAN,
                                      IBV_WC_EX_WITH_FLOW_TAG, IBV_WC_EX_WITH_TM_INFO,
                                      IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK};
    for (unsigned i = 0; i < 5; i++) {
        EXPECT_NULL(create_ex(&pair, wanted[i], 0, 0));
        EXPECT_EQ(errno, EOPNOTSUPP);
    }
    EXPECT_NULL(create_ex(&pair, 0, IBV_CQ_INIT_ATTR_MASK_PD, 0));
    EXPECT_NULL(create_ex(&pair, 0, IBV_CQ_INIT_ATTR_MASK_FLAGS, IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN));
    EXPECT_EQ(errno, EOPNOTSUPP);
    struct ibv_cq_ex *cq = create_ex(&pair, 0, IBV_CQ_INIT_ATTR_MASK_FLAGS, IBV_CREATE_CQ_ATTR_SINGLE_THREADED);
    EXPECT_EQ(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
    struct ibv_cq_init_attr_ex init = {.cqe = 0};
    EXPECT_NULL(ibv_create_cq_ex(pair.side[1].context, &init));
    EXPECT_EQ(errno, EINVAL);
    pair_fini(&pair);
}
