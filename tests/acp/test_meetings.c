// Introductions: the datagrams by which ranks connect.
#include <infiniband/verbs.h>
#include <string.h>

#include "crew.h"
#include "verbs-shim/acp/internal.h"

enum { MANY = 80, FROM = 0, TO = 1, NAMED = 2 };

static void put_to_the_first(struct crew_rank *rank)
{
    if (rank->number != 0) {
        *(uint32_t *)crew_own(0) = rank->number;
        acp_complete(acp_copy(crew_at(0, 8 * rank->number), crew_at(acp_rank(), 0), 4, ACP_HANDLE_NULL));
    }
    EXPECT_EQ(acp_sync(), 0);
    for (uint32_t i = 1; rank->number == 0 && i < MANY; i++) {
        EXPECT_EQ(*(uint32_t *)crew_own(8 * i), i);
    }
}

// A buffer is free again when its datagram was read.
TEST(AcpMeetings, ARankMeetsMoreRanksThanItHasBuffersForTheirDatagrams)
{
    EXPECT_GT(MANY, ACPB_MEETINGS);
    crew_do(CREW_IBSIM0, MANY, put_to_the_first, NULL);
}

// --- introductions of others ----------------------------------------------------------------------------------------

// As ranks send it (peer.c).
struct introduction {
    uint32_t rank, qpn;
    uint16_t ready, ask;
    uint32_t job;
};

struct sender {
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    struct ibv_ah *ah;
    struct ibv_mr *mr;
    struct introduction data;
};

static void sender_open(struct sender *sender, const struct acpb_process *process)
{
    struct ibv_ah_attr to = {.dlid = process->starters[TO].lid, .port_num = process->port_number};
    sender->cq = ibv_create_cq(process->context, 4, NULL, NULL, 0);
    struct ibv_qp_init_attr init = {
        .send_cq = sender->cq, .recv_cq = sender->cq, .cap = {2, 1, 1, 1, 0}, .qp_type = IBV_QPT_UD, .sq_sig_all = 1};
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = process->port_number, .qkey = ACPB_MEETING_QKEY};
    sender->qp = ibv_create_qp(process->pd, &init);
    sender->ah = ibv_create_ah(process->pd, &to);
    sender->mr = ibv_reg_mr(process->pd, &sender->data, sizeof sender->data, 0);
    EXPECT_EQ(ibv_modify_qp(sender->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY), 0);
    attr.qp_state = IBV_QPS_RTR;
    EXPECT_EQ(ibv_modify_qp(sender->qp, &attr, IBV_QP_STATE), 0);
    attr.qp_state = IBV_QPS_RTS;
    EXPECT_EQ(ibv_modify_qp(sender->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
}

static void sender_close(struct sender *sender)
{
    EXPECT_EQ(ibv_dereg_mr(sender->mr), 0);
    EXPECT_EQ(ibv_destroy_ah(sender->ah), 0);
    EXPECT_EQ(ibv_destroy_qp(sender->qp), 0);
    EXPECT_EQ(ibv_destroy_cq(sender->cq), 0);
}

static void introduce(struct crew_rank *rank, struct sender *sender, const struct acpb_process *process, uint32_t job)
{
    sender->data = (struct introduction){.rank = NAMED, .qpn = sender->qp->qp_num, .ask = 1, .job = job};
    struct ibv_sge sge = {(uintptr_t)&sender->data, sizeof sender->data, sender->mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad;
    struct ibv_wc wc;
    wr.wr.ud.ah = sender->ah;
    wr.wr.ud.remote_qpn = process->starters[TO].meeting_qpn;
    wr.wr.ud.remote_qkey = ACPB_MEETING_QKEY;
    EXPECT_EQ(ibv_post_send(sender->qp, &wr, &bad), 0);
    crew_sleep(rank, 50000);
    EXPECT_EQ(ibv_poll_cq(sender->cq, 1, &wc), 1);
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
}

// The datagram queue pair itself is one.
static void hear_of_both(struct crew_rank *rank)
{
    static struct sender sender;
    if (rank->number == FROM) {
        const struct acpb_process *process = acpb_current();
        sender_open(&sender, process);
        introduce(rank, &sender, process, process->job + 1);
        crew_sleep(rank, 50000);
        introduce(rank, &sender, process, process->job);
        sender_close(&sender);
    } else if (rank->number == TO) {
        crew_sleep(rank, 75000);
        EXPECT_EQ(acp_queue_pairs(), 1);
        crew_sleep(rank, 75000);
        EXPECT_EQ(acp_queue_pairs(), 2);
    } else {
        crew_sleep(rank, 150000);
    }
}

// The numbers of queue pairs are used again after a reset; what came late must connect nobody.
TEST(AcpMeetings, AnIntroductionFromBeforeAResetConnectsNobody)
{
    crew_do(CREW_IBSIM0, 3, hear_of_both, NULL);
}
