#include "fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "machine.h"

enum { SECOND_NS = 1000000000 };

// --- setup -----------------------------------------------------------------------------------------------------------

struct fixture *fixture_new(enum device device)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    fixture->device = device;
    fixture->type = IBV_QPT_RC;
    fixture->nodes = 2;
    fixture->cq_entries = 128;
    fixture->cap = (struct ibv_qp_cap){FIXTURE_DEPTH, FIXTURE_DEPTH, 4, 4, 64};
    fixture->attr = (struct ibv_qp_attr){.path_mtu = IBV_MTU_1024,
                                         .rq_psn = 0xfffffe, // wraps
                                         .sq_psn = 0xfffffe,
                                         .qp_access_flags = FIXTURE_ALL,
                                         .max_rd_atomic = 4,
                                         .max_dest_rd_atomic = 4,
                                         .min_rnr_timer = 1,
                                         .qkey = FIXTURE_QKEY,
                                         .port_num = 1,
                                         .timeout = 10,
                                         .retry_cnt = 7,
                                         .rnr_retry = 7};
    return fixture;
}

static void sides_init(struct fixture *fixture)
{
    for (unsigned i = 0; i < fixture->nodes; i++) {
        struct side *side = &fixture->sides[i];
        side->fixture = fixture;
        side->index = i;
        side->attr = fixture->attr;
        side->peer = &fixture->sides[(i + 1) % fixture->nodes];
    }
}

// Page-aligned, with guards of known contents on both sides.
static void memory_fill(struct side *side, uint8_t *buffer)
{
    memset(buffer, 0xa5, FIXTURE_BYTES + 2 * FIXTURE_GUARD);
    side->memory = buffer + FIXTURE_GUARD;
    memset(side->memory, 0, FIXTURE_BYTES);
    if (side->index == 0) {
        fixture_fill(side->memory, FIXTURE_BYTES, 1);
    }
}

static void memory_make_pinned(struct side *side)
{
    const struct backend *backend = &backend_current()->backend;
    struct backend_buffer buffer = {0};
    ASSERT_EQ(backend->ops->alloc_pinned(backend->ctx, FIXTURE_BYTES + 2 * FIXTURE_GUARD, &buffer), 0);
    memory_fill(side, buffer.address);
}

void fixture_register(struct side *side)
{
    side->mr = ibv_reg_mr(side->pd, side->memory, FIXTURE_BYTES, FIXTURE_ALL);
    if (side->mr != NULL) {
        side->rkey = side->mr->rkey;
    }
}

static void memory_register(struct side *side)
{
    if (side->fixture->pageable) {
        side->pages = aligned_alloc(FIXTURE_GUARD, FIXTURE_BYTES + 2 * FIXTURE_GUARD);
        memory_fill(side, side->pages);
        fixture_register(side);
        if (side->mr == NULL) {
            EXPECT_EQ(errno, EFAULT);
        }
    }
    if (side->mr == NULL) {
        memory_make_pinned(side);
        fixture_register(side);
    }
}

struct ibv_qp *fixture_qp(struct side *side)
{
    struct ibv_qp_init_attr init = {.send_cq = side->cq,
                                    .recv_cq = side->cq,
                                    .srq = side->srq,
                                    .cap = side->fixture->cap,
                                    .qp_type = side->fixture->type,
                                    .sq_sig_all = side->fixture->all_signaled};
    struct ibv_qp *qp = ibv_create_qp(side->pd, &init);
    EXPECT_NOT_NULL(qp);
    return qp;
}

static void side_open(struct side *side)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    ASSERT_NOT_NULL(list[0]);
    side->context = ibv_open_device(list[0]);
    ibv_free_device_list(list);
    ASSERT_NOT_NULL(side->context);
    struct ibv_port_attr port;
    EXPECT_EQ(ibv_query_port(side->context, 1, &port), 0);
    side->lid = port.lid;
    side->pd = ibv_alloc_pd(side->context);
    side->channel = ibv_create_comp_channel(side->context);
    side->cq = ibv_create_cq(side->context, (int)side->fixture->cq_entries, side, side->channel, 0);
    side->idle_cq = ibv_create_cq(side->context, 1, NULL, NULL, 0);
    memory_register(side);
    ASSERT_NOT_NULL(side->cq);
    ASSERT_NOT_NULL(side->idle_cq);
    ASSERT_NOT_NULL(side->mr);
    struct ibv_srq_init_attr srq = {.attr = {.max_wr = FIXTURE_DEPTH, .max_sge = 2}};
    side->srq = side->fixture->shared_receives && side->index != 0 ? ibv_create_srq(side->pd, &srq) : NULL;
    for (unsigned i = 0; i < side->fixture->nodes; i++) {
        if (side->fixture->all_qps || &side->fixture->sides[i] == side->peer || side == side->fixture->sides[i].peer) {
            side->qps[i] = fixture_qp(side);
        }
    }
    side->qp = side->qps[side->peer->index];
}

static void side_connect(struct side *side)
{
    if (side->fixture->type == IBV_QPT_UD) {
        side->ah = ibv_create_ah(side->pd, &(struct ibv_ah_attr){.dlid = side->peer->lid, .port_num = 1});
        ASSERT_NOT_NULL(side->ah);
    }
    for (unsigned i = 0; i < side->fixture->nodes; i++) {
        if (side->qps[i] != NULL) {
            const struct side *peer = &side->fixture->sides[i];
            fixture_connect(side, side->qps[i], peer, peer->qps[side->index]->qp_num);
        }
    }
}

static void side_close(struct side *side)
{
    for (unsigned i = 0; i < side->fixture->nodes; i++) {
        EXPECT_EQ(side->qps[i] != NULL ? ibv_destroy_qp(side->qps[i]) : 0, 0);
    }
    EXPECT_EQ(side->ah != NULL ? ibv_destroy_ah(side->ah) : 0, 0);
    EXPECT_EQ(side->srq != NULL ? ibv_destroy_srq(side->srq) : 0, 0);
    EXPECT_EQ(ibv_destroy_cq(side->cq) | ibv_destroy_cq(side->idle_cq), 0);
    EXPECT_EQ(ibv_destroy_comp_channel(side->channel), 0);
    EXPECT_EQ(side->mr != NULL ? ibv_dereg_mr(side->mr) : 0, 0);
    EXPECT_EQ(ibv_dealloc_pd(side->pd), 0);
    EXPECT_EQ(ibv_close_device(side->context), 0);
    for (unsigned kind = 0; kind < IBVERBS_KINDS; kind++) {
        EXPECT_EQ(ibverbs_live(backend_current(), (enum ibverbs_kind)kind), 0);
    }
}

static void side_program(void *arg)
{
    struct side *side = arg;
    side_open(side);
    fixture_barrier(side);
    if (!side->fixture->unconnected) {
        side_connect(side);
        fixture_barrier(side);
    }
    if (side->program != NULL) {
        side->program(side);
    }
    if (!side->fixture->gone) {
        fixture_barrier(side);
    }
    if (!side->fixture->abandon) {
        side_close(side);
    }
}

void fixture_run(struct fixture *fixture, program_fn near, program_fn far)
{
    void *args[FIXTURE_NODES_MAX];
    sides_init(fixture);
    fixture->machine = machine_create(fixture->device, fixture->nodes, fixture->loss_every, fixture->cut_ps);
    if (fixture->harass_ps != 0) {
        machine_harass(fixture->machine, fixture->seed, fixture->harass_ps);
    }
    for (unsigned i = 0; i < fixture->nodes; i++) {
        fixture->sides[i].program = i == 0 ? near : far;
        args[i] = &fixture->sides[i];
    }
    machine_run(fixture->machine, side_program, args);
}

void fixture_end(struct fixture *fixture)
{
    static uint8_t guard[FIXTURE_GUARD];
    memset(guard, 0xa5, sizeof guard);
    for (unsigned i = 0; i < fixture->nodes && fixture->sides[i].memory != NULL; i++) {
        EXPECT_MEMEQ(fixture->sides[i].memory - FIXTURE_GUARD, guard, FIXTURE_GUARD);
        EXPECT_MEMEQ(fixture->sides[i].memory + FIXTURE_BYTES, guard, FIXTURE_GUARD);
    }
    if (!fixture->abandon && fixture->cut_ps == 0) {
        EXPECT_EQ(machine_live(fixture->machine), 0);
    }
    machine_destroy(fixture->machine);
    for (unsigned i = 0; i < fixture->nodes; i++) {
        free(fixture->sides[i].pages);
    }
    free(fixture);
}

void fixture_play(enum device device, program_fn near, program_fn far)
{
    struct fixture *fixture = fixture_new(device);
    fixture_run(fixture, near, far);
    fixture_end(fixture);
}

// --- time ------------------------------------------------------------------------------------------------------------

uint64_t fixture_now_ps(const struct side *side)
{
    return sim_now_ps(machine_sim(side->fixture->machine));
}

// tca0 makes progress when its library is called; the other devices do so by themselves.
static void make_progress(struct side *side)
{
    if (side->fixture->device == ON_TCA0) {
        struct ibv_wc wc;
        EXPECT_EQ(ibv_poll_cq(side->idle_cq, 1, &wc), 0);
    } else {
        sim_thread_sleep(machine_sim(side->fixture->machine), US / 2);
    }
}

void fixture_sleep(struct side *side, uint64_t ps)
{
    uint64_t until_ps = fixture_now_ps(side) + ps;
    while (fixture_now_ps(side) < until_ps) {
        make_progress(side);
    }
}

void fixture_barrier(struct side *side)
{
    struct fixture *fixture = side->fixture;
    unsigned round = fixture->round;
    fixture->waiting++;
    if (fixture->waiting == fixture->nodes) {
        fixture->waiting = 0;
        fixture->round++;
    }
    while (fixture->round == round) {
        make_progress(side);
    }
}

// --- queue pairs -----------------------------------------------------------------------------------------------------

static int step_mask(enum ibv_qp_state to, bool datagrams)
{
    switch (to) {
    case IBV_QPS_INIT:
        return IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | (datagrams ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS);
    case IBV_QPS_RTR:
        return datagrams ? IBV_QP_STATE
                         : IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                               IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    case IBV_QPS_RTS:
        return datagrams ? IBV_QP_STATE | IBV_QP_SQ_PSN
                         : IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                               IBV_QP_MAX_QP_RD_ATOMIC;
    default:
        return IBV_QP_STATE;
    }
}

int fixture_modify(struct side *side, struct ibv_qp *qp, enum ibv_qp_state to, const struct side *peer, uint32_t number)
{
    struct ibv_qp_attr attr = side->attr;
    attr.qp_state = to;
    attr.dest_qp_num = number;
    attr.ah_attr = (struct ibv_ah_attr){.dlid = peer->lid, .port_num = 1};
    return ibv_modify_qp(qp, &attr, step_mask(to, side->fixture->type == IBV_QPT_UD));
}

void fixture_connect(struct side *side, struct ibv_qp *qp, const struct side *peer, uint32_t number)
{
    for (enum ibv_qp_state state = IBV_QPS_INIT; state <= IBV_QPS_RTS; state++) {
        EXPECT_EQ(fixture_modify(side, qp, state, peer, number), 0);
    }
}

enum ibv_qp_state fixture_state(struct ibv_qp *qp)
{
    struct ibv_qp_attr attr = {0};
    struct ibv_qp_init_attr init;
    EXPECT_EQ(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init), 0);
    return attr.qp_state;
}

// --- requests --------------------------------------------------------------------------------------------------------

struct ibv_sge fixture_sge(const struct side *side, uint32_t offset, uint32_t bytes)
{
    return (struct ibv_sge){(uintptr_t)side->memory + offset, bytes, side->mr->lkey};
}

struct ibv_send_wr fixture_wr(const struct side *side, uint64_t id, enum ibv_wr_opcode opcode, struct ibv_sge *sge,
                              uint32_t remote_offset)
{
    struct ibv_send_wr wr = {
        .wr_id = id, .sg_list = sge, .num_sge = sge != NULL, .opcode = opcode, .send_flags = IBV_SEND_SIGNALED};
    uint64_t address = (uintptr_t)side->peer->memory + remote_offset;
    if (side->fixture->type == IBV_QPT_UD) {
        wr.wr.ud.ah = side->ah;
        wr.wr.ud.remote_qpn = side->peer->qps[side->index]->qp_num;
        wr.wr.ud.remote_qkey = FIXTURE_QKEY;
    } else if (opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        wr.wr.atomic.remote_addr = address;
        wr.wr.atomic.rkey = side->peer->rkey;
    } else {
        wr.wr.rdma.remote_addr = address;
        wr.wr.rdma.rkey = side->peer->rkey;
    }
    return wr;
}

// A post names a bad request exactly if it fails.
static void expect_bad(int error, const void *bad)
{
    if (error == 0) {
        EXPECT_NULL(bad);
    } else {
        EXPECT_NOT_NULL(bad);
    }
}

int fixture_post(struct side *side, struct ibv_send_wr *wr)
{
    struct ibv_send_wr *bad = NULL;
    int error = ibv_post_send(side->qp, wr, &bad);
    expect_bad(error, bad);
    return error;
}

void fixture_send(struct side *side, uint64_t id, enum ibv_wr_opcode opcode, uint32_t offset, uint32_t bytes,
                  uint32_t remote_offset)
{
    struct ibv_sge sge = fixture_sge(side, offset, bytes);
    struct ibv_send_wr wr = fixture_wr(side, id, opcode, &sge, remote_offset);
    EXPECT_EQ(fixture_post(side, &wr), 0);
}

int fixture_receive(struct side *side, uint64_t id, uint32_t offset, uint32_t bytes)
{
    struct ibv_sge sge = fixture_sge(side, offset, bytes);
    struct ibv_recv_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1}, *bad = NULL;
    int error = side->srq != NULL ? ibv_post_srq_recv(side->srq, &wr, &bad) : ibv_post_recv(side->qp, &wr, &bad);
    expect_bad(error, bad);
    return error;
}

// --- completions -----------------------------------------------------------------------------------------------------

bool fixture_await(struct side *side, uint64_t timeout_ps)
{
    uint64_t until_ps = fixture_now_ps(side) + timeout_ps;
    while (ibverbs_cq_wait(side->cq, timeout_ps / NS) != 0) {
        if (fixture_now_ps(side) >= until_ps) {
            return false;
        }
        make_progress(side); // the device in memory does not wait
    }
    return true;
}

struct ibv_wc fixture_completion(struct side *side)
{
    struct ibv_wc wc = {.status = IBV_WC_GENERAL_ERR, .wr_id = UINT64_MAX};
    if (!fixture_await(side, SECOND_NS * NS)) {
        FAIL("no completion within a second");
        return wc;
    }
    EXPECT_EQ(ibv_poll_cq(side->cq, 1, &wc), 1);
    return wc;
}

struct ibv_wc fixture_expect(struct side *side, uint64_t id, enum ibv_wc_status status)
{
    struct ibv_wc wc = fixture_completion(side);
    EXPECT_EQ(wc.wr_id, id);
    EXPECT_STREQ(ibv_wc_status_str(wc.status), ibv_wc_status_str(status));
    return wc;
}

void fixture_expect_none(struct side *side, uint64_t during_ps)
{
    EXPECT_FALSE(fixture_await(side, during_ps));
}

// --- events ----------------------------------------------------------------------------------------------------------

static bool event_take(struct side *side, struct ibv_async_event *event_out, uint64_t timeout_ps)
{
    uint64_t until_ps = fixture_now_ps(side) + timeout_ps;
    int flags = fcntl(side->context->async_fd, F_GETFL);
    (void)fcntl(side->context->async_fd, F_SETFL, flags | O_NONBLOCK);
    bool there = false;
    do {
        there = ibv_get_async_event(side->context, event_out) == 0;
        if (!there) {
            make_progress(side);
        }
    } while (!there && fixture_now_ps(side) < until_ps);
    (void)fcntl(side->context->async_fd, F_SETFL, flags);
    return there;
}

void fixture_expect_event(struct side *side, enum ibv_event_type type, const void *element)
{
    struct ibv_async_event event = {.event_type = IBV_EVENT_GID_CHANGE};
    if (!event_take(side, &event, 1000 * US)) {
        FAIL("no event; expected was: %s", ibv_event_type_str(type));
        return;
    }
    EXPECT_STREQ(ibv_event_type_str(event.event_type), ibv_event_type_str(type));
    if (element != NULL) {
        EXPECT_EQ(event.element.qp, element);
    }
    ibv_ack_async_event(&event);
}

void fixture_expect_no_event(struct side *side)
{
    struct ibv_async_event event;
    if (event_take(side, &event, 20 * US)) {
        FAIL("there is an event: %s", ibv_event_type_str(event.event_type));
        ibv_ack_async_event(&event);
    }
}

// --- memory ----------------------------------------------------------------------------------------------------------

static uint8_t byte_of(uint32_t index, uint32_t seed)
{
    return (uint8_t)(index * 11 + (index >> 8) * 73 + seed * 151 + 3);
}

void fixture_fill(uint8_t *data, uint32_t bytes, uint32_t seed)
{
    for (uint32_t i = 0; i < bytes; i++) {
        data[i] = byte_of(i, seed);
    }
}

bool fixture_is_filled(const uint8_t *data, uint32_t bytes, uint32_t seed)
{
    for (uint32_t i = 0; i < bytes; i++) {
        if (data[i] != byte_of(i, seed)) {
            return false;
        }
    }
    return true;
}

void fixture_expect_only(const struct side *side, uint32_t at, const struct side *from, uint32_t source, uint32_t bytes)
{
    static const uint8_t zeros[FIXTURE_BYTES];
    EXPECT_MEMEQ(side->memory, zeros, at);
    EXPECT_MEMEQ(side->memory + at, from->memory + source, bytes);
    EXPECT_MEMEQ(side->memory + at + bytes, zeros, FIXTURE_BYTES - at - bytes);
}
