#include "fixture.h"

#include <stdlib.h>
#include <string.h>

#include "verbs-shim/ibsim/ibsim.h"

enum {
    CQ_ENTRIES = 64,
    RIGHTS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC
};

// --- setup -----------------------------------------------------------------------------------------------------------

struct fixture *fixture_new(enum ibv_qp_type type)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    fixture->type = type;
    fixture->rnr_retry = 7;
    fixture->path_mtu = IBV_MTU_1024;
    hca_fixture_init(&fixture->base, "connectx-qdr");
    sim_condition_init(&fixture->barrier);
    for (unsigned i = 0; i < 2; i++) {
        struct fixture_side *side = &fixture->sides[i];
        *side = (struct fixture_side){.fixture = fixture, .index = i, .peer = &fixture->sides[1 - i]};
        side->process = hca_fixture_process_bare(&fixture->base, i);
        side->memory = side->process->memory;
    }
    for (uint32_t i = 0; i < REGION_BYTES; i++) {
        fixture->sides[0].memory[i] = (uint8_t)(i * 7 + (i >> 8) + 1);
    }
    return fixture;
}

void fixture_end(struct fixture *fixture)
{
    for (unsigned i = 0; i < 2; i++) {
        plat_backend_leave(&fixture->sides[i].process->inproc);
    }
    hca_fixture_fini(&fixture->base);
    free(fixture);
}

void fixture_barrier(struct fixture_side *side)
{
    struct fixture *fixture = side->fixture;
    const struct sim_wait_reason reason = {"fixture", "the other side", 0, 0};
    unsigned round = fixture->barriers;
    if (++fixture->at_barrier == 2) {
        fixture->at_barrier = 0;
        fixture->barriers++;
        sim_condition_signal(fixture->base.sim, &fixture->barrier);
    }
    while (fixture->barriers == round) {
        (void)sim_condition_wait(fixture->base.sim, &fixture->barrier, SIM_NEVER_PS, &reason);
    }
}

static void side_open(struct fixture_side *side)
{
    int count = 0;
    struct ibv_device **list = ibv_get_device_list(&count);
    ASSERT_EQ(count, 1);
    EXPECT_STREQ(ibv_get_device_name(list[0]), "ibsim0");
    side->context = ibv_open_device(list[0]);
    ibv_free_device_list(list);
    ASSERT_NOT_NULL(side->context);
    struct ibv_port_attr port;
    EXPECT_EQ(ibv_query_port(side->context, 1, &port), 0);
    side->lid = port.lid;
    side->pd = ibv_alloc_pd(side->context);
    side->channel = ibv_create_comp_channel(side->context);
    side->cq = ibv_create_cq(side->context, CQ_ENTRIES, side, side->channel, 0);
    side->mr = ibv_reg_mr(side->pd, side->memory, REGION_BYTES, RIGHTS);
    struct ibv_srq_init_attr srq = {.attr = {.max_wr = FIXTURE_DEPTH, .max_sge = 2}};
    side->srq = side->fixture->shared_receives && side->index == 1 ? ibv_create_srq(side->pd, &srq) : NULL;
    struct ibv_qp_init_attr init = {.send_cq = side->cq,
                                    .recv_cq = side->cq,
                                    .srq = side->srq,
                                    .cap = {FIXTURE_DEPTH, FIXTURE_DEPTH, 4, 4, 64},
                                    .qp_type = side->fixture->type};
    side->qp = ibv_create_qp(side->pd, &init);
    ASSERT_NOT_NULL(side->mr);
    ASSERT_NOT_NULL(side->qp);
}

static int step_mask(enum ibv_qp_type type, enum ibv_qp_state to)
{
    const int connect = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    const int reliable = IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
    bool datagram = type == IBV_QPT_UD, rc = type == IBV_QPT_RC;
    if (to == IBV_QPS_INIT) {
        return IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | (datagram ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS);
    }
    if (to == IBV_QPS_RTR) {
        return IBV_QP_STATE | (datagram ? 0 : connect) | (rc ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0);
    }
    return IBV_QP_STATE | IBV_QP_SQ_PSN | (rc ? reliable : 0);
}

static void side_connect(struct fixture_side *side)
{
    const struct fixture *fixture = side->fixture;
    struct ibv_qp_attr attr = {.path_mtu =
                                   side->index == 1 && fixture->far_mtu != 0 ? fixture->far_mtu : fixture->path_mtu,
                               .qkey = FIXTURE_QKEY,
                               .rq_psn = 0xfffffe,
                               .sq_psn = 0xfffffe,
                               .dest_qp_num = side->peer->qp->qp_num,
                               .qp_access_flags = RIGHTS,
                               .ah_attr = {.dlid = side->peer->lid, .port_num = 1, .is_global = fixture->global},
                               .max_rd_atomic = 4,
                               .max_dest_rd_atomic = 4,
                               .min_rnr_timer = 1,
                               .port_num = 1,
                               .timeout = 4,
                               .retry_cnt = 7,
                               .rnr_retry = fixture->rnr_retry};
    EXPECT_EQ(ibv_query_gid(side->peer->context, 1, 0, &attr.ah_attr.grh.dgid), 0);
    for (enum ibv_qp_state state = IBV_QPS_INIT; state <= IBV_QPS_RTS; state++) {
        attr.qp_state = state;
        EXPECT_EQ(ibv_modify_qp(side->qp, &attr, step_mask(fixture->type, state)), 0);
    }
    side->ah = fixture->type == IBV_QPT_UD ? ibv_create_ah(side->pd, &attr.ah_attr) : NULL;
}

static void side_close(struct fixture_side *side)
{
    EXPECT_EQ(ibv_destroy_qp(side->qp), 0);
    EXPECT_EQ(side->srq != NULL ? ibv_destroy_srq(side->srq) : 0, 0);
    EXPECT_EQ(side->ah != NULL ? ibv_destroy_ah(side->ah) : 0, 0);
    EXPECT_EQ(ibv_destroy_cq(side->cq), 0);
    EXPECT_EQ(ibv_destroy_comp_channel(side->channel), 0);
    EXPECT_EQ(ibv_dereg_mr(side->mr), 0);
    EXPECT_EQ(ibv_dealloc_pd(side->pd), 0);
    EXPECT_EQ(ibv_close_device(side->context), 0);
    for (unsigned kind = 0; kind < IBVERBS_KINDS; kind++) {
        EXPECT_EQ(ibverbs_live(&side->process->inproc.process, (enum ibverbs_kind)kind), 0);
    }
}

static void side_thread(void *arg)
{
    struct fixture_side *side = arg;
    plat_backend_enter(&side->process->inproc, NULL);
    EXPECT_EQ(ibsim_device_add(&side->process->inproc.process), 0);
    side_open(side);
    fixture_barrier(side);
    side_connect(side);
    fixture_barrier(side);
    if (side->program != NULL) {
        side->program(side);
    }
    fixture_barrier(side);
    side_close(side);
}

void fixture_run(struct fixture *fixture, void (*near)(struct fixture_side *), void (*far)(struct fixture_side *))
{
    fixture->sides[0].program = near;
    fixture->sides[1].program = far;
    hca_fixture_spawn(&fixture->base, "near", side_thread, &fixture->sides[0]);
    hca_fixture_spawn(&fixture->base, "far", side_thread, &fixture->sides[1]);
    hca_fixture_run(&fixture->base);
}

// --- requests --------------------------------------------------------------------------------------------------------

struct ibv_sge fixture_sge(const struct fixture_side *side, uint32_t offset, uint32_t bytes)
{
    return (struct ibv_sge){(uintptr_t)side->memory + offset, bytes, side->mr->lkey};
}

int fixture_receive(struct fixture_side *side, uint64_t wr_id, uint32_t offset, uint32_t bytes)
{
    struct ibv_sge sge = fixture_sge(side, offset, bytes);
    struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1}, *bad = NULL;
    return side->srq != NULL ? ibv_post_srq_recv(side->srq, &wr, &bad) : ibv_post_recv(side->qp, &wr, &bad);
}

struct ibv_send_wr fixture_wr(struct fixture_side *side, enum ibv_wr_opcode opcode, struct ibv_sge *sge,
                              uint32_t remote_offset)
{
    struct ibv_send_wr wr = {
        .wr_id = 1, .sg_list = sge, .num_sge = 1, .opcode = opcode, .send_flags = IBV_SEND_SIGNALED};
    uint64_t address = (uintptr_t)side->peer->memory + remote_offset;
    if (side->fixture->type == IBV_QPT_UD) {
        wr.wr.ud.ah = side->ah;
        wr.wr.ud.remote_qpn = side->peer->qp->qp_num;
        wr.wr.ud.remote_qkey = FIXTURE_QKEY;
    } else if (opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        wr.wr.atomic.remote_addr = address;
        wr.wr.atomic.rkey = side->peer->mr->rkey;
    } else {
        wr.wr.rdma.remote_addr = address;
        wr.wr.rdma.rkey = side->peer->mr->rkey;
    }
    return wr;
}

int fixture_post(struct fixture_side *side, struct ibv_send_wr *wr)
{
    struct ibv_send_wr *bad = NULL;
    int error = ibv_post_send(side->qp, wr, &bad);
    if (error != 0) {
        EXPECT_NOT_NULL(bad);
    }
    return error;
}

struct ibv_wc fixture_completion(struct fixture_side *side, uint64_t wr_id, enum ibv_wc_status status)
{
    struct ibv_wc wc = {0};
    EXPECT_EQ(ibverbs_cq_wait(side->cq, FIXTURE_TIMEOUT), 0);
    EXPECT_EQ(ibv_poll_cq(side->cq, 1, &wc), 1);
    EXPECT_EQ(wc.wr_id, wr_id);
    EXPECT_EQ(wc.qp_num, side->qp->qp_num);
    EXPECT_STREQ(ibv_wc_status_str(wc.status), ibv_wc_status_str(status));
    return wc;
}

enum ibv_qp_state fixture_state(struct fixture_side *side)
{
    struct ibv_qp_attr attr = {0};
    struct ibv_qp_init_attr init;
    EXPECT_EQ(ibv_query_qp(side->qp, &attr, IBV_QP_STATE, &init), 0);
    return attr.qp_state;
}
