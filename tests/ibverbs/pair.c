#include "pair.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#define TIMEOUT_NS 1000000000u // for timed devices
#define RIGHTS      (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

// --- setup ----------------------------------------------------------------------------------------------------------

static uint8_t *bus_at(void *arg, uint64_t bus_address)
{
    struct cuda_fixture *fixture = arg;
    uint64_t offset = bus_address - CUDA_FIXTURE_BAR_BASE; // of GPU 0, the only one that these tests use
    return fixture->gpu[0].memory + fixture->gpu[0].pages[offset / 65536] + offset % 65536;
}

static void side_init(struct pair_side *side)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    side->context = ibv_open_device(list[0]);
    ibv_free_device_list(list);
    side->pd = ibv_alloc_pd(side->context);
    side->channel = ibv_create_comp_channel(side->context);
    side->cq = ibv_create_cq(side->context, 64, side, side->channel, 0);
    side->buffer = aligned_alloc(4096, PAIR_BYTES);
    memset(side->buffer, 0, PAIR_BYTES);
    side->mr = ibv_reg_mr(side->pd, side->buffer, PAIR_BYTES, RIGHTS);
    ASSERT_NOT_NULL(side->cq);
    ASSERT_NOT_NULL(side->mr);
}

void pair_init(struct pair *pair)
{
    pair_init_outside(pair, NULL);
}

void pair_init_outside(struct pair *pair, const struct ibverbs_outside *outside)
{
    *pair = (struct pair){.fixture = cuda_fixture_open(), .world = memory_world_create()};
    memory_world_set_bus(pair->world, bus_at, pair->fixture);
    for (unsigned i = 0; i < 2; i++) {
        memory_world_join(pair->world, &pair->fixture->processes[i]);
        ibverbs_outside_set(&pair->fixture->processes[i], outside);
        cuda_fixture_process(pair->fixture, i);
        side_init(&pair->side[i]);
    }
    cuda_fixture_process(pair->fixture, 0);
}

static void side_fini(struct pair_side *side)
{
    EXPECT_EQ(side->qp != NULL ? ibv_destroy_qp(side->qp) : 0, 0);
    EXPECT_EQ(side->srq != NULL ? ibv_destroy_srq(side->srq) : 0, 0);
    EXPECT_EQ(side->ah != NULL ? ibv_destroy_ah(side->ah) : 0, 0);
    EXPECT_EQ(ibv_destroy_cq(side->cq), 0);
    EXPECT_EQ(ibv_destroy_comp_channel(side->channel), 0);
    EXPECT_EQ(ibv_dereg_mr(side->mr), 0);
    EXPECT_EQ(ibv_dealloc_pd(side->pd), 0);
    EXPECT_EQ(ibv_close_device(side->context), 0);
    free(side->buffer);
}

void pair_fini(struct pair *pair)
{
    for (unsigned i = 0; i < 2; i++) {
        cuda_fixture_process(pair->fixture, i);
        side_fini(&pair->side[i]);
        for (unsigned kind = 0; kind < IBVERBS_KINDS; kind++) {
            EXPECT_EQ(ibverbs_live(&pair->fixture->processes[i], (enum ibverbs_kind)kind), 0);
        }
    }
    EXPECT_EQ(memory_world_live(pair->world), 0);
    cuda_fixture_close(pair->fixture);
    memory_world_destroy(pair->world);
}

void pair_free(struct pair *pair)
{
    free(pair->side[0].buffer);
    free(pair->side[1].buffer);
}

// --- queue pairs ----------------------------------------------------------------------------------------------------

struct ibv_qp_init_attr pair_qp_attr(const struct pair_side *side, enum ibv_qp_type type)
{
    return (struct ibv_qp_init_attr){.send_cq = side->cq,
                                     .recv_cq = side->cq,
                                     .srq = side->srq,
                                     .cap = {.max_send_wr = PAIR_DEPTH,
                                             .max_recv_wr = PAIR_DEPTH,
                                             .max_send_sge = 4,
                                             .max_recv_sge = 4,
                                             .max_inline_data = 64},
                                     .qp_type = type};
}

struct ibv_qp_attr pair_attr(const struct pair_side *to, enum ibv_qp_state state)
{
    struct ibv_port_attr port;
    EXPECT_EQ(ibv_query_port(to->context, 1, &port), 0);
    return (struct ibv_qp_attr){.qp_state = state,
                                .path_mtu = IBV_MTU_1024,
                                .qkey = PAIR_QKEY,
                                .rq_psn = 5,
                                .sq_psn = 5,
                                .dest_qp_num = to->qp != NULL ? to->qp->qp_num : 0,
                                .qp_access_flags = RIGHTS,
                                .ah_attr = {.dlid = port.lid, .port_num = 1},
                                .max_rd_atomic = 4,
                                .max_dest_rd_atomic = 4,
                                .min_rnr_timer = 12,
                                .port_num = 1,
                                .timeout = 14,
                                .retry_cnt = 7,
                                .rnr_retry = 3};
}

int pair_mask(enum ibv_qp_type type, enum ibv_qp_state to)
{
    const int connect = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    const int reliable = IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
    int mask = IBV_QP_STATE;
    if (to == IBV_QPS_INIT) {
        mask |= IBV_QP_PKEY_INDEX | IBV_QP_PORT | (type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS);
    } else if (to == IBV_QPS_RTR && type != IBV_QPT_UD) {
        mask |= connect | (type == IBV_QPT_RC ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0);
    } else if (to == IBV_QPS_RTS) {
        mask |= IBV_QP_SQ_PSN | (type == IBV_QPT_RC ? reliable : 0);
    }
    return mask;
}

int pair_step(struct ibv_qp *qp, const struct pair_side *to, enum ibv_qp_state state)
{
    struct ibv_qp_attr attr = pair_attr(to, state);
    return ibv_modify_qp(qp, &attr, pair_mask(qp->qp_type, state));
}

struct ibv_ah *pair_ah(const struct pair_side *side, const struct pair_side *to)
{
    struct ibv_ah_attr attr = pair_attr(to, IBV_QPS_INIT).ah_attr;
    return ibv_create_ah(side->pd, &attr);
}

void pair_connect(struct pair *pair, enum ibv_qp_type type)
{
    for (unsigned i = 0; i < 2; i++) {
        struct ibv_qp_init_attr init = pair_qp_attr(&pair->side[i], type);
        pair->side[i].qp = ibv_create_qp(pair->side[i].pd, &init);
        ASSERT_NOT_NULL(pair->side[i].qp);
        pair->side[i].ah = type == IBV_QPT_UD ? pair_ah(&pair->side[i], &pair->side[1 - i]) : NULL;
    }
    for (unsigned i = 0; i < 2; i++) {
        for (enum ibv_qp_state state = IBV_QPS_INIT; state <= IBV_QPS_RTS; state++) {
            EXPECT_EQ(pair_step(pair->side[i].qp, &pair->side[1 - i], state), 0);
        }
    }
}

// --- requests -------------------------------------------------------------------------------------------------------

struct ibv_sge pair_sge(const struct pair_side *side, unsigned offset, unsigned bytes)
{
    return (struct ibv_sge){(uintptr_t)side->buffer + offset, bytes, side->mr->lkey};
}

int pair_receive(struct pair_side *side, uint64_t wr_id, unsigned offset, unsigned bytes)
{
    struct ibv_sge sge = pair_sge(side, offset, bytes);
    struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1}, *bad = NULL;
    return side->srq != NULL ? ibv_post_srq_recv(side->srq, &wr, &bad) : ibv_post_recv(side->qp, &wr, &bad);
}

struct ibv_send_wr pair_wr(const struct pair *pair, enum ibv_wr_opcode opcode, struct ibv_sge *sge)
{
    const struct pair_side *to = &pair->side[1];
    struct ibv_send_wr wr = {
        .wr_id = 1, .sg_list = sge, .num_sge = sge != NULL, .opcode = opcode, .send_flags = IBV_SEND_SIGNALED};
    uint64_t offset = sge != NULL ? sge->addr - (uintptr_t)pair->side[0].buffer : 0;
    uint64_t address = (uintptr_t)to->buffer + PAIR_BYTES / 2 + offset;
    if (pair->side[0].qp->qp_type == IBV_QPT_UD) {
        wr.wr.ud.ah = pair->side[0].ah;
        wr.wr.ud.remote_qpn = to->qp != NULL ? to->qp->qp_num : 0;
        wr.wr.ud.remote_qkey = PAIR_QKEY;
    } else if (opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        wr.wr.atomic.remote_addr = address;
        wr.wr.atomic.rkey = to->mr->rkey;
    } else {
        wr.wr.rdma.remote_addr = address;
        wr.wr.rdma.rkey = to->mr->rkey;
    }
    return wr;
}

int pair_send(struct pair *pair, struct ibv_send_wr *wr)
{
    struct ibv_send_wr *bad = NULL;
    int error = ibv_post_send(pair->side[0].qp, wr, &bad);
    if (error != 0) {
        EXPECT_EQ(bad, wr);
    }
    return error;
}

struct ibv_wc pair_expect_wc(struct pair_side *side, uint64_t wr_id, enum ibv_wc_status status)
{
    struct ibv_wc wc = {0};
    EXPECT_EQ(ibverbs_cq_wait(side->cq, TIMEOUT_NS), 0);
    EXPECT_EQ(ibv_poll_cq(side->cq, 1, &wc), 1);
    EXPECT_EQ(wc.wr_id, wr_id);
    EXPECT_STREQ(ibv_wc_status_str(wc.status), ibv_wc_status_str(status));
    return wc;
}

void pair_expect_none(struct pair_side *side)
{
    struct ibv_wc wc;
    EXPECT_EQ(ibv_poll_cq(side->cq, 1, &wc), 0);
}

void pair_expect_event(struct pair_side *side, enum ibv_event_type type)
{
    struct ibv_async_event event = {0};
    (void)fcntl(side->context->async_fd, F_SETFL, O_NONBLOCK);
    int status = ibv_get_async_event(side->context, &event);
    EXPECT_EQ(status, 0);
    if (status == 0) {
        EXPECT_STREQ(ibv_event_type_str(event.event_type), ibv_event_type_str(type));
        ibv_ack_async_event(&event);
    }
}

void pair_expect_no_event(struct pair_side *side)
{
    struct ibv_async_event event;
    (void)fcntl(side->context->async_fd, F_SETFL, O_NONBLOCK);
    EXPECT_EQ(ibv_get_async_event(side->context, &event), -1);
    EXPECT_EQ(errno, EAGAIN);
}
