// A process of its own: the lock, events on descriptors, and empty polls.
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "pair.h"
#include "verbs-shim/ibverbs/device.h"

static struct {
    int depth, deepest, waits, signals;
    unsigned empty, found;
    uint64_t site;
    struct pair *comes;      // sends while a poll waits
    struct ibv_qp_ex *batch; // given back while a thread waits
    struct ibv_cq_ex *polled;
    struct ibv_cq *to_settle;            // its only event is acknowledged while a thread waits
    int woken;                           // what that has signalled
    unsigned interrupts, interrupted_at; // interrupted_at: a signal comes in this wait
} seen;

static void lock(void)
{
    seen.depth++;
    seen.deepest = seen.depth > seen.deepest ? seen.depth : seen.deepest;
}

static void unlock(void)
{
    seen.depth--;
}

static void wait_free(void)
{
    seen.waits++;
    seen.interrupts += (unsigned)seen.waits == seen.interrupted_at;
    if (seen.batch != NULL) {
        struct ibv_qp_ex *batch = seen.batch;
        seen.batch = NULL;
        ibv_wr_abort(batch);
    }
    if (seen.polled != NULL) {
        struct ibv_cq_ex *polled = seen.polled;
        seen.polled = NULL;
        ibv_end_poll(polled);
    }
    if (seen.to_settle != NULL) {
        int before = seen.signals;
        ibv_ack_cq_events(seen.to_settle, 1);
        seen.woken = seen.signals - before;
        seen.to_settle = NULL;
    }
}

static void found(void)
{
    seen.found++;
}

static bool polled_empty(uint64_t site, const volatile void *word, bool repeats)
{
    EXPECT_EQ(seen.depth, 0);
    EXPECT_NULL(word); // the device in memory has no such word
    EXPECT_TRUE(!repeats);
    seen.empty++;
    seen.site = site;
    if (seen.comes != NULL) {
        struct ibv_sge sge = pair_sge(&seen.comes->side[0], 0, 8);
        struct ibv_send_wr wr = pair_wr(seen.comes, IBV_WR_SEND, &sge);
        EXPECT_EQ(pair_send(seen.comes, &wr), 0);
        seen.comes = NULL;
        return true;
    }
    return false;
}

static void signalled(void)
{
    seen.signals++;
}

static unsigned interrupts(void)
{
    return seen.interrupts;
}

static void opened(void)
{
}

static const struct ibverbs_outside outside = {.lock = lock,
                                               .unlock = unlock,
                                               .wait = wait_free,
                                               .interrupts = interrupts,
                                               .polled_empty = polled_empty,
                                               .found = found,
                                               .signalled = signalled,
                                               .opened = opened};

static void begin(struct pair *pair)
{
    memset(&seen, 0, sizeof seen);
    pair_init_outside(pair, &outside);
}

static bool readable(int fd)
{
    struct pollfd waits = {.fd = fd, .events = POLLIN};
    return poll(&waits, 1, 0) == 1;
}

TEST(ProcessOfItsOwn, HasTheLockInEveryCallAndNeverAfter)
{
    struct pair pair;
    begin(&pair);
    EXPECT_EQ(seen.depth, 0);
    seen.deepest = 0;
    EXPECT_NULL(ibv_reg_mr(pair.side[0].pd, NULL, 0, 0));
    EXPECT_EQ(seen.depth, 0);
    EXPECT_GT(seen.deepest, 0);
    pair_connect(&pair, IBV_QPT_RC);
    pair_fini(&pair);
    EXPECT_EQ(seen.depth, 0);
}

// Side 1 has a completion queue with an event of a receive, read from its device.
static void notify_one(struct pair *pair)
{
    struct pair_side *to = &pair->side[1];
    EXPECT_EQ(ibv_req_notify_cq(to->cq, 0), 0);
    EXPECT_EQ(pair_receive(to, 1, 0, 8), 0);
    struct ibv_sge sge = pair_sge(&pair->side[0], 0, 8);
    struct ibv_send_wr wr = pair_wr(pair, IBV_WR_SEND, &sge);
    EXPECT_EQ(pair_send(pair, &wr), 0);
    ibverbs_events_poll(&pair->fixture->processes[1]);
}

TEST(ProcessOfItsOwn, FindsItsChannelReadableWhileAnEventIsThere)
{
    struct pair pair;
    struct ibv_cq *cq;
    void *user;
    begin(&pair);
    pair_connect(&pair, IBV_QPT_RC);
    struct pair_side *to = &pair.side[1];
    notify_one(&pair);
    EXPECT_TRUE(readable(to->channel->fd));
    EXPECT_EQ(seen.signals, 1);
    EXPECT_EQ(ibv_get_cq_event(to->channel, &cq, &user), 0);
    EXPECT_TRUE(!readable(to->channel->fd));
    ibv_ack_cq_events(cq, 1);
    pair_fini(&pair);
}

static void queue_pair_destroy(struct pair_side *side)
{
    EXPECT_EQ(ibv_destroy_qp(side->qp), 0);
    side->qp = NULL;
}

// poll(2) would otherwise return forever for an event that no call finds.
TEST(ProcessOfItsOwn, DoesNotFindItsChannelReadableWhenTheEventWentWithItsQueue)
{
    struct pair pair;
    begin(&pair);
    pair_connect(&pair, IBV_QPT_RC);
    struct pair_side *to = &pair.side[1];
    notify_one(&pair);
    EXPECT_TRUE(readable(to->channel->fd));
    queue_pair_destroy(to);
    EXPECT_EQ(ibv_destroy_cq(to->cq), 0);
    EXPECT_TRUE(!readable(to->channel->fd));
    to->cq = ibv_create_cq(to->context, 1, NULL, NULL, 0);
    pair_fini(&pair);
}

// Any thread may acknowledge an event while another one waits to destroy the queue.
TEST(ProcessOfItsOwn, WakesTheThreadThatWaitsForAnAcknowledgement)
{
    struct pair pair;
    struct ibv_cq *cq;
    void *user;
    begin(&pair);
    pair_connect(&pair, IBV_QPT_RC);
    struct pair_side *to = &pair.side[1];
    notify_one(&pair);
    EXPECT_EQ(ibv_get_cq_event(to->channel, &cq, &user), 0);
    queue_pair_destroy(to);
    seen.to_settle = cq;
    EXPECT_EQ(ibv_destroy_cq(cq), 0);
    EXPECT_EQ(seen.waits, 1);
    EXPECT_EQ(seen.woken, 1);
    to->cq = ibv_create_cq(to->context, 1, NULL, NULL, 0);
    pair_fini(&pair);
}

// As read(2), which a real library calls there. Destroying a queue waits on.
TEST(ProcessOfItsOwn, ASignalEndsAWaitForAnEvent)
{
    struct pair pair;
    struct ibv_async_event event;
    struct ibv_cq *cq;
    void *user;
    begin(&pair);
    pair_connect(&pair, IBV_QPT_RC);
    struct pair_side *to = &pair.side[1];
    seen.interrupted_at = 3;
    EXPECT_EQ(ibv_get_cq_event(to->channel, &cq, &user), -1);
    EXPECT_EQ(errno, EINTR);
    EXPECT_EQ(seen.waits, 3);
    seen.interrupted_at = 4;
    EXPECT_EQ(ibv_get_async_event(to->context, &event), -1);
    EXPECT_EQ(errno, EINTR);
    EXPECT_EQ(seen.waits, 4);
    notify_one(&pair);
    seen.interrupted_at = 5;
    EXPECT_EQ(ibv_get_cq_event(to->channel, &cq, &user), 0); // it was there
    queue_pair_destroy(to);
    seen.to_settle = cq;
    EXPECT_EQ(ibv_destroy_cq(cq), 0);
    EXPECT_EQ(seen.waits, 5);
    to->cq = ibv_create_cq(to->context, 1, NULL, NULL, 0);
    pair_fini(&pair);
}

// Two call sites, which the compiler must neither copy nor merge.
__attribute__((noinline, noclone)) static int poll_once(struct ibv_cq *cq)
{
    struct ibv_wc wc;
    return ibv_poll_cq(cq, 1, &wc) + (int)sizeof wc;
}

__attribute__((noinline, noclone)) static int poll_from_elsewhere(struct ibv_cq *cq)
{
    struct ibv_wc wc[2];
    return ibv_poll_cq(cq, 2, wc) + (int)sizeof wc;
}

TEST(ProcessOfItsOwn, SaysThatALookWasInVainAndFromWhereItWasMade)
{
    struct pair pair;
    uint64_t sites[2];
    begin(&pair);
    for (volatile unsigned i = 0; i < 2; i++) {
        EXPECT_EQ(poll_once(pair.side[0].cq), (int)sizeof(struct ibv_wc));
        sites[i] = seen.site;
    }
    EXPECT_EQ(poll_from_elsewhere(pair.side[0].cq), (int)(2 * sizeof(struct ibv_wc)));
    EXPECT_EQ(seen.empty, 3);
    EXPECT_EQ(seen.found, 0);
    EXPECT_NE(seen.site, sites[0]);
    EXPECT_EQ(sites[1], sites[0]);
    pair_fini(&pair);
}

TEST(ProcessOfItsOwn, LooksAgainInTheSameCallWhenSomethingCameWhileItWaited)
{
    struct pair pair;
    struct ibv_wc wc;
    begin(&pair);
    pair_connect(&pair, IBV_QPT_RC);
    EXPECT_EQ(pair_receive(&pair.side[1], 7, 0, 8), 0);
    seen.comes = &pair;
    EXPECT_EQ(ibv_poll_cq(pair.side[1].cq, 1, &wc), 1);
    EXPECT_EQ(wc.wr_id, 7);
    EXPECT_EQ(seen.empty, 1);
    EXPECT_EQ(seen.found, 1);
    pair_fini(&pair);
}

TEST(ProcessOfItsOwn, HasNoLockWhileItBuildsABatch)
{
    struct pair pair;
    begin(&pair);
    struct pair_side *side = &pair.side[0];
    struct ibv_qp_init_attr plain = pair_qp_attr(side, IBV_QPT_RC);
    struct ibv_qp_init_attr_ex init = {.send_cq = plain.send_cq,
                                       .recv_cq = plain.recv_cq,
                                       .cap = plain.cap,
                                       .qp_type = IBV_QPT_RC,
                                       .pd = side->pd,
                                       .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
                                       .send_ops_flags = IBV_QP_EX_WITH_SEND};
    side->qp = ibv_create_qp_ex(side->context, &init);
    struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(side->qp);
    ibv_wr_start(ex);
    EXPECT_EQ(seen.depth, 0);
    ibv_wr_abort(ex);
    ibv_wr_start(ex);
    EXPECT_EQ(seen.waits, 0);
    seen.batch = ex; // another thread ends it while this one waits to begin its own
    ibv_wr_start(ex);
    EXPECT_EQ(seen.waits, 1);
    EXPECT_EQ(seen.signals, 1);
    EXPECT_EQ(ibv_wr_complete(ex), 0);
    EXPECT_EQ(seen.depth, 0);
    EXPECT_EQ(seen.signals, 1); // nobody waits
    pair_fini(&pair);
}

TEST(ProcessOfItsOwn, HasItsQueueFromStartPollToEndPollAndSaysThatItFoundSomething)
{
    struct pair pair;
    struct ibv_poll_cq_attr attr = {0};
    struct ibv_cq_init_attr_ex init = {.cqe = 4, .wc_flags = IBV_WC_STANDARD_FLAGS};
    begin(&pair);
    struct pair_side *side = &pair.side[0];
    struct ibv_cq *of_pair = side->cq;
    struct ibv_cq_ex *cq = ibv_create_cq_ex(side->context, &init);
    EXPECT_EQ(ibv_start_poll(cq, &attr), ENOENT);
    EXPECT_EQ(seen.depth, 0);
    side->cq = ibv_cq_ex_to_cq(cq);
    pair_connect(&pair, IBV_QPT_RC);
    EXPECT_EQ(pair_receive(side, 3, 0, 8), 0);
    EXPECT_EQ(pair_step(side->qp, &pair.side[1], IBV_QPS_ERR), 0); // flushes it
    EXPECT_EQ(ibv_start_poll(cq, &attr), 0);
    EXPECT_EQ(seen.depth, 0);
    EXPECT_EQ(seen.empty, 1); // the look above
    EXPECT_EQ(seen.found, 0);
    EXPECT_EQ(seen.waits, 0);
    seen.polled = cq; // another thread ends its poll while this one waits for the queue
    EXPECT_EQ(ibv_start_poll(cq, &attr), ENOENT);
    EXPECT_EQ(seen.waits, 1);
    EXPECT_EQ(ibv_next_poll(cq), ENOENT);
    EXPECT_EQ(seen.depth, 0);
    EXPECT_EQ(seen.found, 1);
    EXPECT_EQ(ibv_destroy_qp(side->qp), 0);
    EXPECT_EQ(ibv_destroy_cq(side->cq), 0);
    side->qp = NULL;
    side->cq = of_pair;
    pair_fini(&pair);
}
