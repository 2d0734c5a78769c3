#include "fixture.h"

#include <cuda_runtime.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct ibverbs_device_ops *ops = &tca_verbs_ops;

void fixture_init(struct fixture *fixture, unsigned nodes)
{
    *fixture = (struct fixture){.nodes = nodes, .cq_entries = 256};
    site_init(&fixture->cluster.site, nodes);
    for (unsigned i = 0; i < nodes; i++) {
        fixture->cluster.site.scenario->nodes[i].board.fidelity = SCN_FIDELITY_TWIN;
    }
    fixture->cap = (struct ibv_qp_cap){.max_send_wr = 64, .max_recv_wr = 64, .max_send_sge = 4, .max_recv_sge = 4};
    fixture->attr = (struct ibv_qp_attr){.timeout = 12,
                                         .retry_cnt = 3,
                                         .rnr_retry = 7,
                                         .min_rnr_timer = 1,
                                         .max_rd_atomic = 4,
                                         .max_dest_rd_atomic = 4,
                                         .sq_psn = 0xfffff0,
                                         .rq_psn = 0xfffff0,
                                         .qp_access_flags = FIXTURE_ALL};
}

void fixture_init_published(struct fixture *fixture)
{
    const char *const sets[] = {"nodes.*.preset=ha-pacs-tca-2014", "nodes.*.board.fidelity=twin"};
    const struct scn_load_options options = {.configs_dir = TCASIM_SOURCE_DIR "/configs", .sets = sets, .set_count = 2};
    struct scn_messages messages = {0};
    fixture_init(fixture, 2);
    ASSERT_EQ(scn_load(TCASIM_SOURCE_DIR "/scenarios/smoke/smallest.yaml", &options, &fixture->published, &messages),
              SIM_OK);
    *fixture->cluster.site.scenario = *fixture->published;
}

void fixture_run(struct fixture *fixture, plat_program_fn first, plat_program_fn other)
{
    site_build(&fixture->cluster.site);
    cluster_run(&fixture->cluster, first, other);
}

void fixture_fini(struct fixture *fixture)
{
    cluster_fini(&fixture->cluster);
    scn_free(fixture->published);
}

// --- ends -----------------------------------------------------------------------------------------------------------

static void memory_register(struct end *end, struct memory *memory)
{
    const struct ibverbs_region region = {.address = memory->data,
                                          .bytes = FIXTURE_BYTES,
                                          .iova = (uint64_t)(uintptr_t)memory->data,
                                          .access = FIXTURE_ALL};
    uint32_t rkey;
    EXPECT_EQ(ops->mr_register(end->pd, &region, &memory->mr, &memory->key, &rkey), 0);
    EXPECT_EQ(rkey, memory->key);
}

void fixture_gpu(struct end *end)
{
    void *data;
    unsigned long long bus_address;
    uint32_t rkey;
    EXPECT_EQ(cudaMalloc(&data, FIXTURE_BYTES), cudaSuccess);
    EXPECT_EQ(tcaCreateHandleGPU(&bus_address, data, FIXTURE_BYTES), tcaSuccess);
    const struct ibverbs_region region = {.address = data,
                                          .bytes = FIXTURE_BYTES,
                                          .iova = (uint64_t)(uintptr_t)data,
                                          .access = FIXTURE_ALL,
                                          .bus_address = bus_address};
    end->device_memory.data = data;
    EXPECT_EQ(ops->mr_register(end->pd, &region, &end->device_memory.mr, &end->device_memory.key, &rkey), 0);
}

void fixture_qp_make(struct fixture *fixture, struct end *end, struct fixture_qp *qp)
{
    struct ibverbs_qp_create create = {
        .type = IBV_QPT_RC, .send_cq = end->cq, .recv_cq = end->cq, .srq = end->srq, .cap = fixture->cap, .user = qp};
    EXPECT_EQ(ops->qp_create(end->pd, &create, &qp->qp, &qp->number), 0);
    struct ibv_qp_attr attr = fixture->attr;
    attr.qp_state = IBV_QPS_INIT;
    EXPECT_EQ(ops->qp_modify(qp->qp, &attr, IBV_QP_STATE | IBV_QP_ACCESS_FLAGS), 0);
}

int fixture_qp_connect(struct fixture *fixture, struct end *end, struct fixture_qp *qp, uint32_t node, uint32_t number)
{
    (void)end;
    struct ibv_qp_attr attr = fixture->attr;
    attr.qp_state = IBV_QPS_RTR;
    attr.dest_qp_num = number;
    attr.ah_attr.dlid = (uint16_t)(node + 1);
    int error = ops->qp_modify(qp->qp, &attr,
                               IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                   IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    attr.qp_state = IBV_QPS_RTS;
    return error != 0 ? error
                      : ops->qp_modify(qp->qp, &attr,
                                       IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                           IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

enum ibv_qp_state fixture_qp_state(const struct fixture_qp *qp)
{
    struct ibv_qp_attr attr;
    EXPECT_EQ(ops->qp_query(qp->qp, &attr), 0);
    return attr.qp_state;
}

static void end_open(struct fixture *fixture, struct end *end, peach2_handle_t *board)
{
    void *near;
    unsigned entries = (unsigned)fixture->cq_entries;
    end->device.board = board;
    EXPECT_EQ(ops->open(&end->device, backend_current(), &end->context), 0);
    EXPECT_EQ(ops->pd_create(end->context, &end->pd), 0);
    EXPECT_EQ(ops->cq_create(end->context, &entries, 0, end, &end->cq), 0);
    if (fixture->use_srq) {
        struct ibv_srq_attr attr = {.max_wr = 64, .max_sge = 4};
        EXPECT_EQ(ops->srq_create(end->pd, &attr, end, &end->srq), 0);
    }
    EXPECT_EQ(tcaMalloc(&near, FIXTURE_BYTES, tcaMemoryCPU), tcaSuccess);
    end->near.data = near;
    end->far.data = calloc(1, FIXTURE_BYTES);
    memory_register(end, &end->near);
    memory_register(end, &end->far);
}

struct end *fixture_enter(struct fixture *fixture, peach2_handle_t *board)
{
    uint32_t node = peach2_node(board);
    struct end *end = &fixture->ends[node];
    end_open(fixture, end, board);
    for (uint32_t peer = 0; peer < fixture->nodes; peer++) {
        fixture_qp_make(fixture, end, &end->qps[peer]);
    }
    fixture_barrier(fixture, end);
    for (uint32_t peer = 0; peer < fixture->nodes; peer++) {
        EXPECT_EQ(fixture_qp_connect(fixture, end, &end->qps[peer], peer, fixture->ends[peer].qps[node].number), 0);
    }
    fixture_barrier(fixture, end);
    return end;
}

void fixture_leave(struct fixture *fixture, peach2_handle_t *board)
{
    struct end *end = &fixture->ends[peach2_node(board)];
    if (!fixture->gone) {
        fixture_barrier(fixture, end);
    }
    if (!fixture->abandoned) { // abandoned objects are destroyed in any order
        EXPECT_EQ(ops->cq_destroy(end->cq), -EBUSY);
        EXPECT_EQ(ops->pd_destroy(end->pd), -EBUSY);
    }
    for (uint32_t peer = 0; peer < fixture->nodes; peer++) {
        EXPECT_EQ(ops->qp_destroy(end->qps[peer].qp), 0);
    }
    if (!fixture->abandoned) {
        EXPECT_EQ(ops->close(end->context), -EBUSY);
    }
    EXPECT_EQ(ops->cq_destroy(end->cq), 0);
    EXPECT_EQ(end->srq != NULL ? ops->srq_destroy(end->srq) : 0, 0);
    EXPECT_EQ(end->near.mr != NULL ? ops->mr_deregister(end->near.mr) : 0, 0);
    EXPECT_EQ(end->device_memory.mr != NULL ? ops->mr_deregister(end->device_memory.mr) : 0, 0);
    EXPECT_EQ(end->far.mr != NULL ? ops->mr_deregister(end->far.mr) : 0, 0);
    EXPECT_EQ(ops->pd_destroy(end->pd), 0);
    EXPECT_EQ(ops->close(end->context), 0);
    EXPECT_EQ(tcaFree(end->near.data, tcaMemoryCPU), tcaSuccess);
    free(end->far.data);
}

void fixture_barrier(struct fixture *fixture, struct end *end)
{
    unsigned round = fixture->round;
    fixture->waiting++;
    if (fixture->waiting == fixture->nodes) {
        fixture->waiting = 0;
        fixture->round++;
    }
    while (fixture->round == round) {
        EXPECT_EQ(ops->cq_poll(end->cq, 0, NULL), 0);
    }
}

// --- work -----------------------------------------------------------------------------------------------------------

struct ibv_sge fixture_sge(const struct memory *memory, size_t offset, uint32_t bytes)
{
    return (struct ibv_sge){(uint64_t)(uintptr_t)(memory->data + offset), bytes, memory->key};
}

int fixture_post(const struct fixture_qp *qp, const struct ibv_send_wr *wr, const struct ibv_sge *sge)
{
    const struct ibv_send_wr *bad = NULL;
    struct ibv_send_wr one = *wr;
    struct ibv_sge list = sge != NULL ? *sge : (struct ibv_sge){0};
    one.sg_list = &list;
    one.num_sge = sge != NULL;
    one.send_flags |= IBV_SEND_SIGNALED;
    int error = ops->post_send(qp->qp, &one, 1, &bad);
    if (error == 0) {
        EXPECT_NULL(bad);
    } else {
        EXPECT_NOT_NULL(bad);
    }
    return error;
}

int fixture_receive(const struct fixture_qp *qp, uint64_t id, const struct ibv_sge *sge)
{
    const struct ibv_recv_wr *bad = NULL;
    struct ibv_sge list = sge != NULL ? *sge : (struct ibv_sge){0};
    const struct ibv_recv_wr wr = {.wr_id = id, .sg_list = &list, .num_sge = sge != NULL};
    return ops->post_recv(qp->qp, &wr, 1, &bad);
}

struct ibv_wc fixture_wc(struct end *end)
{
    struct ibv_wc wc = {.status = IBV_WC_GENERAL_ERR};
    EXPECT_EQ(ops->cq_wait(end->cq, 1000000000), 0);
    EXPECT_EQ(ops->cq_poll(end->cq, 1, &wc), 1);
    return wc;
}

void fixture_expect(struct end *end, uint64_t id, enum ibv_wc_status status)
{
    struct ibv_wc wc = fixture_wc(end);
    EXPECT_EQ(wc.wr_id, id);
    EXPECT_EQ(wc.status, status);
}
