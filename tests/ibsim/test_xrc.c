// XRC: an initiator on side 0, a target on side 1, and shared receive queues that requests name (annex A14).
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fixture.h"

enum { BYTES = 2500, QUEUES = 2 };

// Data that the two sides share.
static struct {
    uint32_t initiator_qpn, target_qpn, rkey, srqns[QUEUES];
    uint64_t address;
} known;

struct target {
    struct ibv_xrcd *xrcds[QUEUES]; // domain of the queue with this index; the first is the target's
    struct ibv_cq *cqs[QUEUES];
    struct ibv_srq *srqs[QUEUES];
    struct ibv_pd *pd; // of the second queue
    struct ibv_qp *qp;
};

// --- setup -----------------------------------------------------------------------------------------------------------

static struct ibv_xrcd *domain_open(struct fixture_side *side)
{
    struct ibv_xrcd_init_attr init = {
        .comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = -1, .oflags = O_CREAT};
    return ibv_open_xrcd(side->context, &init);
}

static struct ibv_srq *queue_create(struct fixture_side *side, struct ibv_pd *pd, struct ibv_xrcd *xrcd,
                                    struct ibv_cq *cq)
{
    struct ibv_srq_init_attr_ex init = {.attr = {.max_wr = FIXTURE_DEPTH, .max_sge = 1},
                                        .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
                                                     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
                                        .srq_type = IBV_SRQT_XRC,
                                        .pd = pd,
                                        .xrcd = xrcd,
                                        .cq = cq};
    return ibv_create_srq_ex(side->context, &init);
}

static int step_mask(enum ibv_qp_type type, enum ibv_qp_state to)
{
    bool target = type == IBV_QPT_XRC_RECV;
    if (to == IBV_QPS_INIT) {
        return IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
    }
    if (to == IBV_QPS_RTR) {
        return IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
               (target ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0);
    }
    return IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
           (target ? 0 : IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC);
}

static void connect(struct fixture_side *side, struct ibv_qp *qp, uint32_t dest_qpn)
{
    struct ibv_qp_attr attr = {.path_mtu = IBV_MTU_1024,
                               .dest_qp_num = dest_qpn,
                               .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
                               .ah_attr = {.dlid = side->peer->lid, .port_num = 1},
                               .max_rd_atomic = 1,
                               .max_dest_rd_atomic = 1,
                               .min_rnr_timer = 1,
                               .port_num = 1,
                               .timeout = 4,
                               .retry_cnt = 7,
                               .rnr_retry = 7};
    for (enum ibv_qp_state state = IBV_QPS_INIT; state <= IBV_QPS_RTS; state++) {
        attr.qp_state = state;
        EXPECT_EQ(ibv_modify_qp(qp, &attr, step_mask(qp->qp_type, state)), 0);
    }
}

static struct ibv_qp *initiator_open(struct fixture_side *side)
{
    struct ibv_qp_init_attr init = {
        .send_cq = side->cq, .cap = {.max_send_wr = FIXTURE_DEPTH, .max_send_sge = 1}, .qp_type = IBV_QPT_XRC_SEND};
    struct ibv_qp *qp = ibv_create_qp(side->pd, &init);
    known.initiator_qpn = qp->qp_num;
    fixture_barrier(side);
    connect(side, qp, known.target_qpn);
    fixture_barrier(side);
    return qp;
}

// domains: for the queues.
static void target_open(struct fixture_side *side, struct target *target, unsigned domains)
{
    *target = (struct target){.pd = ibv_alloc_pd(side->context)};
    for (unsigned i = 0; i < QUEUES; i++) {
        target->xrcds[i] = i < domains ? domain_open(side) : target->xrcds[0];
        target->cqs[i] = ibv_create_cq(side->context, FIXTURE_DEPTH, NULL, NULL, 0);
        target->srqs[i] = queue_create(side, i == 0 ? side->pd : target->pd, target->xrcds[i], target->cqs[i]);
        EXPECT_EQ(ibv_get_srq_num(target->srqs[i], &known.srqns[i]), 0);
    }
    struct ibv_qp_init_attr_ex init = {
        .comp_mask = IBV_QP_INIT_ATTR_XRCD, .xrcd = target->xrcds[0], .qp_type = IBV_QPT_XRC_RECV};
    target->qp = ibv_create_qp_ex(side->context, &init);
    known.target_qpn = target->qp->qp_num;
    known.rkey = side->mr->rkey;
    known.address = (uintptr_t)side->memory;
    fixture_barrier(side);
    connect(side, target->qp, known.initiator_qpn);
    fixture_barrier(side);
}

static void target_close(struct target *target)
{
    EXPECT_EQ(ibv_close_xrcd(target->xrcds[0]), EBUSY);
    EXPECT_EQ(ibv_destroy_qp(target->qp), 0);
    for (unsigned i = 0; i < QUEUES; i++) {
        EXPECT_EQ(target->srqs[i] != NULL ? ibv_destroy_srq(target->srqs[i]) : 0, 0);
        EXPECT_EQ(ibv_destroy_cq(target->cqs[i]), 0);
    }
    EXPECT_EQ(target->xrcds[1] != target->xrcds[0] ? ibv_close_xrcd(target->xrcds[1]) : 0, 0);
    EXPECT_EQ(ibv_close_xrcd(target->xrcds[0]), 0);
    EXPECT_EQ(ibv_dealloc_pd(target->pd), 0);
}

static int post(struct fixture_side *side, struct ibv_qp *qp, enum ibv_wr_opcode opcode, uint32_t srqn)
{
    struct ibv_sge sge = fixture_sge(side, 0, BYTES);
    struct ibv_send_wr wr = {.wr_id = srqn,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .opcode = opcode,
                             .send_flags = IBV_SEND_SIGNALED,
                             .wr.rdma = {.remote_addr = known.address + 2 * BYTES, .rkey = known.rkey},
                             .qp_type.xrc.remote_srqn = srqn},
                       *bad;
    return ibv_post_send(qp, &wr, &bad);
}

static int receive(struct target *target, unsigned queue, const struct fixture_side *side, uint32_t lkey,
                   uint64_t wr_id)
{
    struct ibv_sge sge = {.addr = (uintptr_t)side->memory + wr_id * BYTES, .length = BYTES, .lkey = lkey};
    struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1}, *bad;
    return ibv_post_srq_recv(target->srqs[queue], &wr, &bad);
}

static struct ibv_wc completion(struct ibv_cq *cq)
{
    struct ibv_wc wc;
    while (ibv_poll_cq(cq, 1, &wc) == 0) {
        EXPECT_EQ(ibverbs_cq_wait(cq, FIXTURE_TIMEOUT), 0);
    }
    return wc;
}

// --- queues that requests may name -----------------------------------------------------------------------------------

static void two_and_a_write(struct fixture_side *side)
{
    struct ibv_qp *qp = initiator_open(side);
    EXPECT_EQ(post(side, qp, IBV_WR_SEND, known.srqns[1]), 0);
    EXPECT_EQ(post(side, qp, IBV_WR_RDMA_WRITE, known.srqns[0]), 0);
    EXPECT_EQ(post(side, qp, IBV_WR_SEND, known.srqns[0]), 0);
    for (unsigned i = 0; i < 3; i++) {
        EXPECT_EQ(completion(side->cq).status, IBV_WC_SUCCESS);
    }
    struct ibv_recv_wr wr = {0}, *bad;
    EXPECT_EQ(ibv_post_recv(qp, &wr, &bad), EINVAL);
    fixture_barrier(side);
    EXPECT_EQ(ibv_destroy_qp(qp), 0);
}

static void two_queues(struct fixture_side *side)
{
    struct target target;
    target_open(side, &target, 1);
    struct ibv_mr *other = ibv_reg_mr(target.pd, side->memory, REGION_BYTES, IBV_ACCESS_LOCAL_WRITE);
    EXPECT_EQ(receive(&target, 0, side, side->mr->lkey, 0), 0);
    EXPECT_EQ(receive(&target, 1, side, other->lkey, 1), 0);
    for (unsigned i = 0; i < QUEUES; i++) {
        struct ibv_wc wc = completion(target.cqs[i]);
        EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
        EXPECT_EQ(wc.wr_id, i);
        EXPECT_EQ(wc.byte_len, BYTES);
        EXPECT_EQ(wc.qp_num, target.qp->qp_num);
        EXPECT_EQ(ibv_poll_cq(target.cqs[i], 1, &wc), 0);
    }
    struct ibv_send_wr wr = {.opcode = IBV_WR_SEND}, *bad;
    EXPECT_EQ(ibv_post_send(target.qp, &wr, &bad), EINVAL);
    fixture_barrier(side);
    EXPECT_EQ(ibv_dereg_mr(other), 0);
    target_close(&target);
}

TEST(IbsimXrc, ARequestGoesToTheSharedReceiveQueueThatItNames)
{
    struct fixture *fixture = fixture_new(IBV_QPT_RC);
    fixture_run(fixture, two_and_a_write, two_queues);
    for (unsigned i = 0; i < 3; i++) {
        EXPECT_MEMEQ(fixture->sides[1].memory + (size_t)i * BYTES, fixture->sides[0].memory, BYTES);
    }
    fixture_end(fixture);
}

static void three(struct fixture_side *side)
{
    struct ibv_qp *qp = initiator_open(side);
    for (unsigned i = 0; i < 3; i++) {
        EXPECT_EQ(post(side, qp, IBV_WR_SEND, known.srqns[0]), 0);
        EXPECT_EQ(completion(side->cq).status, IBV_WC_SUCCESS);
    }
    fixture_barrier(side);
    EXPECT_EQ(ibv_destroy_qp(qp), 0);
}

static void unpolled(struct fixture_side *side)
{
    struct target target;
    struct ibv_wc wc;
    target_open(side, &target, 1);
    for (unsigned i = 0; i < 3; i++) {
        EXPECT_EQ(receive(&target, 0, side, side->mr->lkey, i), 0);
    }
    fixture_barrier(side);
    EXPECT_EQ(ibv_destroy_srq(target.srqs[0]), 0);
    target.srqs[0] = queue_create(side, side->pd, target.xrcds[0], target.cqs[0]); // gets the same number
    EXPECT_EQ(ibv_poll_cq(target.cqs[0], 1, &wc), 0);
    target_close(&target);
}

TEST(IbsimXrc, CompletionsOfAQueueGoWithIt)
{
    struct fixture *fixture = fixture_new(IBV_QPT_RC);
    fixture_run(fixture, three, unpolled);
    fixture_end(fixture);
}

static void send_three(struct fixture_side *side)
{
    struct ibv_qp *qp = initiator_open(side);
    fixture_barrier(side);
    for (unsigned i = 0; i < 3; i++) {
        EXPECT_EQ(post(side, qp, IBV_WR_SEND, known.srqns[0]), 0);
    }
    for (unsigned i = 0; i < 3; i++) {
        (void)completion(side->cq);
    }
    fixture_barrier(side);
    EXPECT_EQ(ibv_destroy_qp(qp), 0);
}

static void expect_event(struct fixture_side *side, enum ibv_event_type type, const void *element)
{
    struct ibv_async_event event;
    EXPECT_EQ(ibv_get_async_event(side->context, &event), 0);
    EXPECT_STREQ(ibv_event_type_str(event.event_type), ibv_event_type_str(type));
    EXPECT_EQ(event.element.srq, element);
    ibv_ack_async_event(&event);
}

static void fill_two(struct fixture_side *side)
{
    struct target target;
    target_open(side, &target, 1);
    EXPECT_EQ(ibv_destroy_srq(target.srqs[0]), 0);
    EXPECT_EQ(ibv_destroy_cq(target.cqs[0]), 0);
    target.cqs[0] = ibv_create_cq(side->context, 1, NULL, NULL, 0);
    ASSERT_EQ(target.cqs[0]->cqe, 1); // and one more entry, for a resize
    target.srqs[0] = queue_create(side, side->pd, target.xrcds[0], target.cqs[0]);
    EXPECT_EQ(ibv_get_srq_num(target.srqs[0], &known.srqns[0]), 0);
    for (unsigned i = 0; i < 3; i++) {
        EXPECT_EQ(receive(&target, 0, side, side->mr->lkey, i), 0);
    }
    fixture_barrier(side);
    expect_event(side, IBV_EVENT_CQ_ERR, target.cqs[0]);
    expect_event(side, IBV_EVENT_SRQ_ERR, target.srqs[0]);
    fixture_barrier(side);
    target_close(&target);
}

// IBA 11.6.3.2: it cannot complete receives any more.
TEST(IbsimXrc, AQueueWhoseCompletionQueueOverflowsIsInError)
{
    struct fixture *fixture = fixture_new(IBV_QPT_RC);
    fixture_run(fixture, send_three, fill_two);
    fixture_end(fixture);
}

// --- queues that requests may not name -------------------------------------------------------------------------------

static void send_one(struct fixture_side *side, enum ibv_wc_status status)
{
    struct ibv_qp *qp = initiator_open(side);
    EXPECT_EQ(post(side, qp, IBV_WR_SEND, known.srqns[1]), 0);
    EXPECT_EQ(completion(side->cq).status, status);
    fixture_barrier(side);
    EXPECT_EQ(ibv_destroy_qp(qp), 0);
}

static void refused(struct fixture_side *side)
{
    send_one(side, IBV_WC_REM_INV_REQ_ERR);
}

static void other_domain(struct fixture_side *side)
{
    struct target target;
    target_open(side, &target, 2);
    EXPECT_EQ(receive(&target, 1, side, side->mr->lkey, 0), 0);
    fixture_barrier(side);
    struct ibv_wc wc;
    EXPECT_EQ(ibv_poll_cq(target.cqs[1], 1, &wc), 0);
    target_close(&target);
}

TEST(IbsimXrc, AQueueOfAnotherDomainIsAnInvalidRequest)
{
    struct fixture *fixture = fixture_new(IBV_QPT_RC);
    fixture_run(fixture, refused, other_domain);
    fixture_end(fixture);
}

static void queue_goes(struct fixture_side *side)
{
    struct target target;
    target_open(side, &target, 1);
    EXPECT_EQ(ibverbs_cq_wait(target.cqs[1], 50000), ETIMEDOUT); // the message arrives, and is refused with an RNR NAK
    EXPECT_EQ(ibv_destroy_srq(target.srqs[1]), 0);
    target.srqs[1] = NULL;
    fixture_barrier(side);
    target_close(&target);
}

TEST(IbsimXrc, AQueueThatIsGoneIsAnInvalidRequest)
{
    struct fixture *fixture = fixture_new(IBV_QPT_RC);
    fixture_run(fixture, refused, queue_goes);
    fixture_end(fixture);
}

// --- no entry yet ----------------------------------------------------------------------------------------------------

static void one(struct fixture_side *side)
{
    send_one(side, IBV_WC_SUCCESS);
}

static void late(struct fixture_side *side)
{
    struct target target;
    target_open(side, &target, 1);
    EXPECT_EQ(ibverbs_cq_wait(target.cqs[1], 50000), ETIMEDOUT);
    EXPECT_EQ(receive(&target, 1, side, side->mr->lkey, 0), 0); // in another protection domain than the queue
    EXPECT_EQ(completion(target.cqs[1]).status, IBV_WC_LOC_PROT_ERR);
    fixture_barrier(side);
    target_close(&target);
}

static void fails_there(struct fixture_side *side)
{
    struct ibv_qp *qp = initiator_open(side);
    EXPECT_EQ(post(side, qp, IBV_WR_SEND, known.srqns[1]), 0);
    EXPECT_EQ(completion(side->cq).status, IBV_WC_REM_OP_ERR);
    fixture_barrier(side);
    EXPECT_EQ(ibv_destroy_qp(qp), 0);
}

TEST(IbsimXrc, EntriesAreOfTheQueuesProtectionDomain)
{
    struct fixture *fixture = fixture_new(IBV_QPT_RC);
    fixture_run(fixture, fails_there, late);
    fixture_end(fixture);
}

static void late_and_right(struct fixture_side *side)
{
    struct target target;
    target_open(side, &target, 1);
    EXPECT_EQ(ibverbs_cq_wait(target.cqs[1], 50000), ETIMEDOUT);
    struct ibv_mr *other = ibv_reg_mr(target.pd, side->memory, REGION_BYTES, IBV_ACCESS_LOCAL_WRITE);
    EXPECT_EQ(receive(&target, 1, side, other->lkey, 0), 0);
    EXPECT_EQ(completion(target.cqs[1]).status, IBV_WC_SUCCESS);
    fixture_barrier(side);
    EXPECT_EQ(ibv_dereg_mr(other), 0);
    target_close(&target);
}

TEST(IbsimXrc, AMessageComesAgainUntilThereIsAnEntry)
{
    struct fixture *fixture = fixture_new(IBV_QPT_RC);
    fixture_run(fixture, one, late_and_right);
    EXPECT_MEMEQ(fixture->sides[1].memory, fixture->sides[0].memory, BYTES);
    fixture_end(fixture);
}

// --- domains ---------------------------------------------------------------------------------------------------------

static void by_file(struct fixture_side *side)
{
    struct ibv_xrcd_init_attr init = {.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS};
    init.fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    EXPECT_NULL(ibv_open_xrcd(side->context, &init)); // it does not exist yet
    init.oflags = O_CREAT;
    struct ibv_xrcd *first = ibv_open_xrcd(side->context, &init), *second = ibv_open_xrcd(side->context, &init);
    ASSERT_NOT_NULL(first);
    ASSERT_EQ(second, first);
    init.oflags = O_CREAT | O_EXCL;
    EXPECT_NULL(ibv_open_xrcd(side->context, &init));
    struct ibv_srq *srq = queue_create(side, side->pd, first, side->cq);
    EXPECT_EQ(ibv_close_xrcd(first), 0);
    EXPECT_EQ(ibv_close_xrcd(second), EBUSY);
    EXPECT_EQ(ibv_destroy_srq(srq), 0);
    EXPECT_EQ(ibv_close_xrcd(second), 0);
    close(init.fd);
}

// The roots of most file systems in memory have the inode 1. fds_out: two of these; false: there are none.
static bool same_inode_open(int fds_out[2])
{
    static const char *const roots[] = {"/proc", "/sys", "/dev/shm", "/dev/pts"};
    struct stat file[2];
    unsigned count = 0;
    for (unsigned i = 0; i < sizeof roots / sizeof roots[0] && count < 2; i++) {
        int fd = open(roots[i], O_RDONLY | O_CLOEXEC);
        bool good = fd >= 0 && fstat(fd, &file[count]) == 0 && file[count].st_ino == 1 &&
                    (count == 0 || file[1].st_dev != file[0].st_dev);
        if (good) {
            fds_out[count++] = fd;
        } else if (fd >= 0) {
            close(fd);
        }
    }
    return EXPECT_EQ(count, 2);
}

static void by_files_with_one_number(struct fixture_side *side)
{
    struct ibv_xrcd_init_attr init = {.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
                                      .oflags = O_CREAT};
    int fds[2];
    ASSERT_TRUE(same_inode_open(fds));
    init.fd = fds[0];
    struct ibv_xrcd *first = ibv_open_xrcd(side->context, &init);
    init.fd = fds[1];
    struct ibv_xrcd *second = ibv_open_xrcd(side->context, &init);
    ASSERT_NOT_NULL(first);
    ASSERT_NOT_NULL(second);
    EXPECT_NE(second, first);
    EXPECT_EQ(ibv_close_xrcd(first), 0);
    EXPECT_EQ(second != first ? ibv_close_xrcd(second) : 0, 0);
    close(fds[0]);
    close(fds[1]);
}

// An inode is a number of its file system.
TEST(IbsimXrc, FilesOfTwoFileSystemsHaveTwoDomains)
{
    struct fixture *fixture = fixture_new(IBV_QPT_RC);
    fixture_run(fixture, by_files_with_one_number, NULL);
    fixture_end(fixture);
}

TEST(IbsimXrc, ADomainOfAFileIsTheSameForAllWhoOpenIt)
{
    struct fixture *fixture = fixture_new(IBV_QPT_RC);
    fixture_run(fixture, by_file, NULL);
    fixture_end(fixture);
}
