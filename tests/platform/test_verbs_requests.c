// Features of requests on tca0: fences, draining, inline data, lists, lengths; and requests that libibverbs or the
// device refuses, which move no byte.
#include <cuda_runtime.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "verbs.h"
#include "verbs-shim/ibverbs/device.h"

static struct verbs_end *end_of(struct verbs_pair *pair, unsigned node)
{
    return &pair->ends[node][0];
}

static struct ibv_sge sge_of(const struct verbs_end *end, unsigned at, unsigned bytes)
{
    return (struct ibv_sge){(uintptr_t)end->data + at, bytes, end->mr->lkey};
}

// Posts a request of node 0 with this list; returns the result of ibv_post_send.
static int post(struct verbs_pair *pair, enum ibv_wr_opcode opcode, struct ibv_sge *list, int count, unsigned far_at,
                unsigned flags)
{
    struct ibv_send_wr wr = {.wr_id = far_at, .sg_list = list, .num_sge = count, .opcode = opcode, .send_flags = flags};
    struct ibv_send_wr *bad = NULL;
    wr.wr.rdma.remote_addr = (uintptr_t)end_of(pair, 1)->data + far_at;
    wr.wr.rdma.rkey = end_of(pair, 1)->mr->rkey;
    int error = ibv_post_send(end_of(pair, 0)->qp, &wr, &bad);
    EXPECT_EQ(bad, error != 0 ? &wr : NULL);
    return error;
}

static void expect_wc(struct verbs_pair *pair, unsigned node, uint64_t id, enum ibv_wc_status status)
{
    struct ibv_wc wc = verbs_wc(end_of(pair, node));
    EXPECT_EQ(wc.wr_id, id);
    EXPECT_EQ(wc.status, status);
}

static void waits(void *arg, peach2_handle_t *board)
{
    struct verbs_pair *pair = arg;
    struct verbs_end *end = verbs_enter(pair, peach2_node(board));
    verbs_pair_meet(pair, 1);
    verbs_look(end);
}

static void run(plat_program_fn first, plat_program_fn second, struct verbs_pair *pair)
{
    verbs_pair_init(pair, SCN_FIDELITY_TWIN);
    verbs_pair_run(pair, first, second);
}

// --- order ----------------------------------------------------------------------------------------------------------

// A write sends the data of the read before it, once with a fence and once without.
static void fences(void *arg, peach2_handle_t *board)
{
    struct verbs_pair *pair = arg;
    struct verbs_end *end = verbs_enter(pair, peach2_node(board));
    struct ibv_sge near = sge_of(end, 64, 64);
    for (unsigned i = 0; i < 2; i++) {
        memset(end->data + 64, 0xdd, 64);
        EXPECT_EQ(post(pair, IBV_WR_RDMA_READ, &near, 1, 1000, 0), 0);
        EXPECT_EQ(post(pair, IBV_WR_RDMA_WRITE, &near, 1, 2000 + 1000 * i, i == 0 ? IBV_SEND_FENCE : 0), 0);
        expect_wc(pair, 0, 1000, IBV_WC_SUCCESS);
        expect_wc(pair, 0, 2000 + 1000 * i, IBV_WC_SUCCESS);
    }
    verbs_pair_meet(pair, 0);
}

TEST(TcaRequests, BehindAFenceSeeWhatReadsBrought)
{
    struct verbs_pair pair;
    run(fences, waits, &pair);
    EXPECT_MEMEQ(end_of(&pair, 1)->image + 2000, end_of(&pair, 1)->image + 1000, 64);
    EXPECT_TRUE(site_is_value(end_of(&pair, 1)->image + 3000, 64, 0xdd)); // the write did not wait for the read
    verbs_pair_fini(&pair);
}

static void state_set(struct verbs_end *end, enum ibv_qp_state state, int mask)
{
    struct ibv_qp_attr attr = {.qp_state = state, .en_sqd_async_notify = 1};
    EXPECT_EQ(ibv_modify_qp(end->qp, &attr, IBV_QP_STATE | mask), 0);
}

static void drains(void *arg, peach2_handle_t *board)
{
    struct verbs_pair *pair = arg;
    struct verbs_end *end = verbs_enter(pair, peach2_node(board));
    struct ibv_sge large = sge_of(end, 16, 50000), small = sge_of(end, 3, 8);
    struct ibv_async_event event;
    EXPECT_EQ(post(pair, IBV_WR_RDMA_WRITE, &large, 1, 16, 0), 0);
    EXPECT_EQ(ibverbs_cq_wait(end->idle, 3000), ETIMEDOUT); // the write is in progress
    state_set(end, IBV_QPS_SQD, IBV_QP_EN_SQD_ASYNC_NOTIFY);
    EXPECT_EQ(post(pair, IBV_WR_RDMA_WRITE, &small, 1, 100000, 0), 0);
    EXPECT_EQ(ibv_get_async_event(end->context, &event), 0);
    EXPECT_EQ(event.event_type, IBV_EVENT_SQ_DRAINED);
    EXPECT_EQ(event.element.qp, end->qp);
    ibv_ack_async_event(&event);
    expect_wc(pair, 0, 16, IBV_WC_SUCCESS);
    EXPECT_EQ(ibverbs_cq_wait(end->cq, 100000), ETIMEDOUT); // the other request waits
    state_set(end, IBV_QPS_RTS, 0);
    expect_wc(pair, 0, 100000, IBV_WC_SUCCESS);
    verbs_pair_meet(pair, 0);
}

TEST(TcaRequests, InADrainedQueueWaitUntilItSendsAgain)
{
    struct verbs_pair pair;
    run(drains, waits, &pair);
    verbs_pair_fini(&pair);
}

// The second context reads events first, and receives none of the other context's queue pair.
static void opens_again(void *arg, peach2_handle_t *board)
{
    struct verbs_pair *pair = arg;
    struct verbs_end *end = verbs_enter(pair, peach2_node(board));
    struct ibv_context *second = verbs_open("tca0");
    struct ibv_sge sge = sge_of(end, 16, 64);
    struct ibv_async_event event;
    ASSERT_NOT_NULL(second);
    EXPECT_NE(second, end->context);
    EXPECT_EQ(fcntl(second->async_fd, F_SETFL, O_NONBLOCK), 0);
    state_set(end, IBV_QPS_SQD, IBV_QP_EN_SQD_ASYNC_NOTIFY);
    EXPECT_EQ(ibverbs_cq_wait(end->idle, 3000), ETIMEDOUT);
    EXPECT_EQ(ibv_get_async_event(second, &event), -1);
    EXPECT_EQ(ibv_get_async_event(end->context, &event), 0);
    EXPECT_EQ(event.element.qp, end->qp);
    ibv_ack_async_event(&event);
    EXPECT_EQ(ibv_close_device(second), 0);
    state_set(end, IBV_QPS_RTS, 0);
    EXPECT_EQ(post(pair, IBV_WR_RDMA_WRITE, &sge, 1, 16, 0), 0);
    expect_wc(pair, 0, 16, IBV_WC_SUCCESS);
    verbs_pair_meet(pair, 0);
}

TEST(TcaDevice, MayBeOpenedTwiceByAProcess)
{
    struct verbs_pair pair;
    run(opens_again, waits, &pair);
    verbs_pair_fini(&pair);
}

// --- data -----------------------------------------------------------------------------------------------------------

static void inlines(void *arg, peach2_handle_t *board)
{
    struct verbs_pair *pair = arg;
    (void)verbs_enter(pair, peach2_node(board));
    uint8_t data[200];
    for (unsigned bytes = 0; bytes <= 80; bytes += 8) {
        struct ibv_sge sge = {(uintptr_t)data, bytes, 0}; // inline data need no key
        site_fill(data, bytes, bytes);
        EXPECT_EQ(post(pair, IBV_WR_RDMA_WRITE, &sge, 1, 200 * bytes, IBV_SEND_INLINE), 0);
        memset(data, 0, sizeof data); // the program may reuse the memory
        expect_wc(pair, 0, 200 * bytes, IBV_WC_SUCCESS);
    }
    struct ibv_sge sge = {(uintptr_t)data, sizeof data, 0};
    EXPECT_EQ(post(pair, IBV_WR_RDMA_WRITE, &sge, 1, 0, IBV_SEND_INLINE), ENOMEM);
    verbs_pair_meet(pair, 0);
}

TEST(TcaRequests, CarryInlineDataAndRefuseMoreThanDeclared)
{
    struct verbs_pair pair;
    run(inlines, waits, &pair);
    for (unsigned bytes = 0; bytes <= 80; bytes += 8) {
        EXPECT_TRUE(site_is_filled(end_of(&pair, 1)->image + 200 * bytes, bytes, bytes));
    }
    verbs_pair_fini(&pair);
}

enum { PARTS = 8 }; // max_sge
static const unsigned parts[PARTS] = {1, 70, 0, 4033, 3, 8200, 5, 16};

static unsigned list_make(const struct verbs_end *end, struct ibv_sge *list, unsigned parts_at)
{
    unsigned bytes = 0;
    for (unsigned i = 0; i < PARTS; i++) {
        list[i] = sge_of(end, parts_at + 10000 * i, parts[i]);
        bytes += parts[i];
    }
    return bytes;
}

static void gathers(void *arg, peach2_handle_t *board)
{
    struct verbs_pair *pair = arg;
    struct verbs_end *end = verbs_enter(pair, peach2_node(board));
    struct ibv_sge list[PARTS + 1];
    (void)list_make(end, list, 0);
    list[PARTS] = list[0];
    verbs_pair_meet(pair, 0);
    EXPECT_EQ(post(pair, IBV_WR_SEND, list, PARTS + 1, 1, 0), ENOMEM);
    EXPECT_EQ(post(pair, IBV_WR_SEND, list, PARTS, 2, 0), 0);
    expect_wc(pair, 0, 2, IBV_WC_SUCCESS);
    EXPECT_EQ(post(pair, IBV_WR_RDMA_WRITE, list, PARTS, 90000, 0), 0);
    expect_wc(pair, 0, 90000, IBV_WC_SUCCESS);
    (void)list_make(end, list, 100001);
    EXPECT_EQ(post(pair, IBV_WR_RDMA_READ, list, PARTS, 90000, 0), 0);
    expect_wc(pair, 0, 90000, IBV_WC_SUCCESS);
    verbs_pair_meet(pair, 0);
    verbs_look(end);
}

static void scatters(void *arg, peach2_handle_t *board)
{
    struct verbs_pair *pair = arg;
    struct verbs_end *end = verbs_enter(pair, peach2_node(board));
    struct ibv_sge list[PARTS + 1];
    unsigned bytes = list_make(end, list, 7);
    struct ibv_recv_wr wr = {.wr_id = 9, .sg_list = list, .num_sge = PARTS + 1}, *bad = NULL;
    EXPECT_EQ(ibv_post_recv(end->qp, &wr, &bad), EINVAL);
    EXPECT_EQ(bad, &wr);
    wr.num_sge = PARTS;
    EXPECT_EQ(ibv_post_recv(end->qp, &wr, &bad), 0);
    verbs_pair_meet(pair, 1);
    struct ibv_wc wc = verbs_wc(end);
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    EXPECT_EQ(wc.byte_len, bytes);
    verbs_pair_meet(pair, 1);
    verbs_look(end);
}

static void lists(struct verbs_pair *pair, enum verbs_memory near, enum verbs_memory far)
{
    verbs_pair_init(pair, SCN_FIDELITY_TWIN);
    pair->create.cap.max_send_sge = pair->create.cap.max_recv_sge = PARTS;
    pair->memory[0] = near;
    pair->memory[1] = far;
    verbs_pair_run(pair, gathers, scatters);
    const uint8_t *from = end_of(pair, 0)->image, *to = end_of(pair, 1)->image;
    unsigned whole = 90000;
    for (unsigned i = 0; i < PARTS; whole += parts[i++]) {
        EXPECT_MEMEQ(to + 7 + 10000 * i, from + 10000 * i, parts[i]);
        EXPECT_MEMEQ(to + whole, from + 10000 * i, parts[i]);
        EXPECT_MEMEQ(from + 100001 + 10000 * i, from + 10000 * i, parts[i]);
    }
    verbs_pair_fini(pair);
}

TEST(TcaRequests, GatherAndScatterListsOfAsManyElementsAsDeclaredAndNoMore)
{
    struct verbs_pair pair;
    lists(&pair, VERBS_PINNED, VERBS_PINNED);
    lists(&pair, VERBS_GPU, VERBS_PLAIN);
    lists(&pair, VERBS_PLAIN, VERBS_GPU);
}

// --- refused requests -----------------------------------------------------------------------------------------------

static void posts_too_early(void *arg, peach2_handle_t *board)
{
    struct verbs_pair *pair = arg;
    struct verbs_end *end = verbs_enter(pair, peach2_node(board));
    struct ibv_sge sge = sge_of(end, 0, 8);
    state_set(end, IBV_QPS_RESET, 0);
    EXPECT_EQ(post(pair, IBV_WR_RDMA_WRITE, &sge, 1, 0, 0), EINVAL);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
    EXPECT_EQ(ibv_modify_qp(end->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), 0);
    EXPECT_EQ(post(pair, IBV_WR_RDMA_WRITE, &sge, 1, 0, 0), EINVAL);
    EXPECT_EQ(ibverbs_cq_wait(end->cq, 50000), ETIMEDOUT);
    verbs_pair_meet(pair, 0);
}

TEST(TcaRequests, AreRefusedInTheWrongState)
{
    struct verbs_pair pair;
    run(posts_too_early, waits, &pair);
    EXPECT_TRUE(site_is_filled(end_of(&pair, 1)->image, VERBS_BYTES, 1));
    verbs_pair_fini(&pair);
}

static void overfills(void *arg, peach2_handle_t *board)
{
    struct verbs_pair *pair = arg;
    struct verbs_end *end = verbs_enter(pair, peach2_node(board));
    struct ibv_sge sge = sge_of(end, 0, 8);
    struct ibv_send_wr wrs[20], *bad = NULL;
    for (unsigned i = 0; i < 20; i++) {
        wrs[i] = (struct ibv_send_wr){.wr_id = i,
                                      .next = i < 19 ? &wrs[i + 1] : NULL,
                                      .sg_list = &sge,
                                      .num_sge = 1,
                                      .opcode = IBV_WR_RDMA_WRITE};
        wrs[i].wr.rdma.remote_addr = (uintptr_t)end_of(pair, 1)->data + 100 * i;
        wrs[i].wr.rdma.rkey = end_of(pair, 1)->mr->rkey;
    }
    EXPECT_EQ(ibv_post_send(end->qp, wrs, &bad), ENOMEM);
    EXPECT_EQ(bad, &wrs[16]);
    for (unsigned i = 0; i < 16; i++) {
        expect_wc(pair, 0, i, IBV_WC_SUCCESS);
    }
    EXPECT_EQ(ibverbs_cq_wait(end->cq, 50000), ETIMEDOUT);
    verbs_pair_meet(pair, 0);
}

TEST(TcaRequests, BeyondAFullQueueAreRefusedAndThoseBeforeAreCarriedOut)
{
    struct verbs_pair pair;
    run(overfills, waits, &pair);
    for (unsigned i = 0; i < 20; i++) {
        bool moved = memcmp(end_of(&pair, 1)->image + 100 * i, end_of(&pair, 0)->data, 8) == 0;
        EXPECT_EQ(moved, i < 16);
    }
    verbs_pair_fini(&pair);
}

static void zero(void *arg, peach2_handle_t *board)
{
    struct verbs_pair *pair = arg;
    struct verbs_end *end = verbs_enter(pair, peach2_node(board));
    struct ibv_sge empty = {0}; // IBA 9.7.4.1.3: no bytes need no keys
    end_of(pair, 1)->mr->rkey += 1;
    EXPECT_EQ(post(pair, IBV_WR_RDMA_WRITE, &empty, 1, 0, 0), 0);
    expect_wc(pair, 0, 0, IBV_WC_SUCCESS);
    EXPECT_EQ(post(pair, IBV_WR_RDMA_READ, NULL, 0, 1, 0), 0);
    expect_wc(pair, 0, 1, IBV_WC_SUCCESS);
    struct ibv_sge one = sge_of(end, 0, 1);
    EXPECT_EQ(post(pair, IBV_WR_RDMA_WRITE, &one, 1, 2, 0), 0);
    expect_wc(pair, 0, 2, IBV_WC_REM_ACCESS_ERR);
    verbs_pair_meet(pair, 0);
}

TEST(TcaRequests, OfNoBytesNeedNoKey)
{
    struct verbs_pair pair;
    run(zero, waits, &pair);
    EXPECT_TRUE(site_is_filled(end_of(&pair, 1)->image, VERBS_BYTES, 1));
    verbs_pair_fini(&pair);
}

// --- length ---------------------------------------------------------------------------------------------------------

enum { LONG_BYTES = (17 << 20) + 5, LONG_AT = 3 }; // more than one descriptor of the board can move

struct long_memory {
    uint8_t *data;
    struct ibv_mr *mr;
};

static struct long_memory long_make(const struct verbs_end *end)
{
    struct long_memory memory = {0};
    EXPECT_EQ(cudaMallocHost((void **)&memory.data, LONG_BYTES + 16), cudaSuccess);
    memory.mr = ibv_reg_mr(end->pd, memory.data, LONG_BYTES + 16, VERBS_RIGHTS);
    return memory;
}

static void writes_long(void *arg, peach2_handle_t *board)
{
    struct verbs_pair *pair = arg;
    struct verbs_end *end = verbs_enter(pair, peach2_node(board));
    struct long_memory memory = long_make(end);
    site_fill(memory.data, LONG_BYTES + 16, 4);
    verbs_pair_meet(pair, 0);
    struct ibv_sge sge = {(uintptr_t)memory.data + LONG_AT, LONG_BYTES, memory.mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE}, *bad;
    wr.wr.rdma.remote_addr = pair->value[0] + LONG_AT;
    wr.wr.rdma.rkey = (uint32_t)pair->value[1];
    EXPECT_EQ(ibv_post_send(end->qp, &wr, &bad), 0);
    expect_wc(pair, 0, 0, IBV_WC_SUCCESS);
    EXPECT_MEMEQ((const uint8_t *)(uintptr_t)pair->value[0] + LONG_AT, memory.data + LONG_AT, LONG_BYTES);
    verbs_pair_meet(pair, 0);
}

static void is_written_long(void *arg, peach2_handle_t *board)
{
    struct verbs_pair *pair = arg;
    struct verbs_end *end = verbs_enter(pair, peach2_node(board));
    struct long_memory memory = long_make(end);
    pair->value[0] = (uintptr_t)memory.data;
    pair->value[1] = memory.mr->rkey;
    verbs_pair_meet(pair, 1);
    verbs_pair_meet(pair, 1);
    EXPECT_TRUE(site_is_value(memory.data, LONG_AT, 0));
    EXPECT_TRUE(site_is_value(memory.data + LONG_AT + LONG_BYTES, 16 - LONG_AT, 0));
}

TEST(TcaRequests, OfMoreBytesThanADescriptorHoldsArriveWhole)
{
    struct verbs_pair pair;
    run(writes_long, is_written_long, &pair);
    verbs_pair_fini(&pair);
}
