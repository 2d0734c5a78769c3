#include "scenarios/workloads/far.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "verbs-shim/ibverbs/device.h"

#define PORT         1
#define DEPTH        16u // outstanding requests of a queue pair
#define INLINE_BYTES 64u
#define BATCH        16
#define LINE_BYTES   64u
#define QP_TIMEOUT   14
#define RETRIES      7
#define RIGHTS       (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)

struct letter {
    uint64_t address;
    uint32_t key, out_qpn, in_qpn;
    uint16_t lid;
};

static int give_up(const struct far *far, int error, const char *what)
{
    far->workload->fail(far->workload->ctx, "%s: %s: %s", far->program, what, strerror(error));
    return -error;
}

static size_t word_offset(uint64_t bytes)
{
    return (size_t)(bytes + sizeof(uint64_t) - 1) / sizeof(uint64_t) * sizeof(uint64_t);
}

// --- set-up ---------------------------------------------------------------------------------------------------------

static int device_open(struct far *far)
{
    static const char name[] = "ibsim0";
    int count = 0;
    struct ibv_device **list = ibv_get_device_list(&count);
    for (int i = 0; list != NULL && i < count && far->context == NULL; i++) {
        far->context = strcmp(ibv_get_device_name(list[i]), name) == 0 ? ibv_open_device(list[i]) : NULL;
    }
    if (list != NULL) {
        ibv_free_device_list(list);
    }
    if (far->context == NULL) {
        return give_up(far, ENODEV, name);
    }
    int error = ibv_query_port(far->context, PORT, &far->port);
    if (error != 0) {
        return give_up(far, error, "ibv_query_port");
    }
    far->pd = ibv_alloc_pd(far->context);
    far->cq = ibv_create_cq(far->context, (int)(far->link_count * DEPTH), NULL, NULL, 0);
    return far->pd != NULL && far->cq != NULL ? 0 : give_up(far, errno, "ibv_create_cq");
}

static int memory_alloc(struct far *far, struct region *region, struct ibv_mr **mr_out)
{
    int error = region_alloc(far->backend, far->stride * far->slots, region);
    if (error != 0) {
        return give_up(far, -error, "no pinned memory");
    }
    region_guard(region);
    *mr_out = ibv_reg_mr(far->pd, region->buffer.address, region_memory_bytes(region->capacity), RIGHTS);
    return *mr_out != NULL ? 0 : give_up(far, errno, "ibv_reg_mr");
}

int far_open(struct far *far, struct workload *workload, const char *program, uint32_t links, uint32_t slots,
             uint64_t bytes)
{
    size_t message = word_offset(bytes) + sizeof(uint64_t);
    *far = (struct far){.workload = workload,
                        .program = program,
                        .backend = &backend_current()->backend,
                        .links = calloc(links, sizeof *far->links),
                        .link_count = links,
                        .slots = slots,
                        .stride = (message + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES};
    if (far->links == NULL) {
        return give_up(far, ENOMEM, "links");
    }
    int error = device_open(far);
    if (error == 0) {
        error = memory_alloc(far, &far->send, &far->send_mr);
    }
    return error == 0 ? memory_alloc(far, &far->receive, &far->receive_mr) : error;
}

static int queue_pair_create(struct far *far, uint32_t link)
{
    struct ibv_qp_init_attr init = {
        .send_cq = far->cq, .recv_cq = far->cq, .cap = {DEPTH, 0, 1, 0, INLINE_BYTES}, .qp_type = IBV_QPT_RC};
    far->links[link].qp = ibv_create_qp(far->pd, &init);
    return far->links[link].qp != NULL ? 0 : give_up(far, errno, "ibv_create_qp");
}

static int queue_pair_connect(struct far *far, uint32_t link, const struct letter *peer, uint32_t qpn)
{
    static const int masks[] = {
        [IBV_QPS_INIT] = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
        [IBV_QPS_RTR] = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                        IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
        [IBV_QPS_RTS] = IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                        IBV_QP_MAX_QP_RD_ATOMIC,
    };
    struct ibv_qp_attr attr = {.path_mtu = far->port.active_mtu,
                               .dest_qp_num = qpn,
                               .qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
                               .ah_attr = {.dlid = peer->lid, .port_num = PORT},
                               .max_rd_atomic = 1,
                               .max_dest_rd_atomic = 1,
                               .min_rnr_timer = 12,
                               .port_num = PORT,
                               .timeout = QP_TIMEOUT,
                               .retry_cnt = RETRIES,
                               .rnr_retry = RETRIES};
    int error = 0;
    for (enum ibv_qp_state state = IBV_QPS_INIT; error == 0 && state <= IBV_QPS_RTS; state++) {
        attr.qp_state = state;
        error = ibv_modify_qp(far->links[link].qp, &attr, masks[state]);
    }
    far->links[link].address = peer->address;
    far->links[link].key = peer->key;
    return error == 0 ? 0 : give_up(far, error, "connecting a queue pair");
}

static uint32_t qpn_of(const struct far *far, uint32_t link, uint32_t rank)
{
    return rank != FAR_NONE ? far->links[link].qp->qp_num : 0;
}

static int queue_pairs_create(struct far *far, uint32_t out, uint32_t out_rank, uint32_t in, uint32_t in_rank)
{
    int error = out_rank != FAR_NONE ? queue_pair_create(far, out) : 0;
    if (error == 0 && in_rank != FAR_NONE && in_rank != out_rank) {
        error = queue_pair_create(far, in);
    }
    return error;
}

int far_connect(struct far *far, struct workload *workload, uint32_t out, uint32_t out_rank, uint32_t in,
                uint32_t in_rank)
{
    struct letter mine = {0};
    int error = far != NULL ? queue_pairs_create(far, out, out_rank, in, in_rank) : 0;
    if (error != 0) {
        return error;
    }
    if (far != NULL) {
        mine = (struct letter){.address = (uintptr_t)region_data(&far->receive),
                               .key = far->receive_mr->rkey,
                               .out_qpn = qpn_of(far, out, out_rank),
                               .in_qpn = qpn_of(far, in, in_rank),
                               .lid = far->port.lid};
    }
    workload->post(workload->ctx, &mine, sizeof mine);
    if (out_rank != FAR_NONE) {
        const struct letter *peer = workload->letter(workload->ctx, out_rank);
        error = queue_pair_connect(far, out, peer, peer->in_qpn);
    }
    if (error == 0 && in_rank != FAR_NONE && in_rank != out_rank) {
        const struct letter *peer = workload->letter(workload->ctx, in_rank);
        error = queue_pair_connect(far, in, peer, peer->out_qpn);
    }
    return error;
}

void far_close(struct far *far)
{
    for (uint32_t i = 0; i < far->link_count; i++) {
        if (far->links[i].qp != NULL) {
            (void)ibv_destroy_qp(far->links[i].qp);
        }
    }
    free(far->links);
    (void)ibv_dereg_mr(far->send_mr);
    (void)ibv_dereg_mr(far->receive_mr);
    (void)ibv_destroy_cq(far->cq);
    (void)ibv_dealloc_pd(far->pd);
    (void)ibv_close_device(far->context);
    region_free(far->backend, &far->send);
    region_free(far->backend, &far->receive);
}

// --- messages -------------------------------------------------------------------------------------------------------

size_t far_offset(const struct far *far, uint32_t slot)
{
    return slot * far->stride;
}

uint8_t *far_send_data(const struct far *far, uint32_t slot)
{
    return region_data(&far->send) + far_offset(far, slot);
}

const uint8_t *far_received_data(const struct far *far, uint32_t slot)
{
    return region_data(&far->receive) + far_offset(far, slot);
}

void far_clear(const struct far *far, uint32_t slot, uint64_t bytes)
{
    memset(region_data(&far->receive) + far_offset(far, slot) + word_offset(bytes), 0, sizeof(uint64_t));
}

static int completions_take(struct far *far)
{
    struct ibv_wc wcs[BATCH];
    int error = ibverbs_cq_wait(far->cq, 0);
    if (error != 0) {
        return give_up(far, error, "waiting for a request");
    }
    int count = ibv_poll_cq(far->cq, BATCH, wcs);
    for (int i = 0; i < count; i++) {
        if (wcs[i].status != IBV_WC_SUCCESS) {
            far->workload->fail(far->workload->ctx, "%s: a request: %s", far->program,
                                ibv_wc_status_str(wcs[i].status));
            return -EIO;
        }
        far->links[wcs[i].wr_id].outstanding--;
        far->outstanding--;
    }
    return 0;
}

int far_send(struct far *far, uint32_t link, uint32_t from_slot, uint32_t to_slot, uint64_t bytes, uint64_t number)
{
    struct far_link *to = &far->links[link];
    size_t word = word_offset(bytes), message = word + sizeof number;
    int error = 0;
    while (error == 0 && to->outstanding == DEPTH) {
        error = completions_take(far);
    }
    if (error != 0) {
        return error;
    }
    memcpy(far_send_data(far, from_slot) + word, &number, sizeof number);
    struct ibv_sge sge = {(uintptr_t)far_send_data(far, from_slot), (uint32_t)message, far->send_mr->lkey};
    struct ibv_send_wr *bad, wr = {.wr_id = link,
                                   .sg_list = &sge,
                                   .num_sge = 1,
                                   .opcode = IBV_WR_RDMA_WRITE,
                                   .send_flags = IBV_SEND_SIGNALED | (message <= INLINE_BYTES ? IBV_SEND_INLINE : 0u)};
    wr.wr.rdma.remote_addr = to->address + far_offset(far, to_slot);
    wr.wr.rdma.rkey = to->key;
    error = ibv_post_send(to->qp, &wr, &bad);
    if (error != 0) {
        return give_up(far, error, "ibv_post_send");
    }
    to->outstanding++;
    far->outstanding++;
    return 0;
}

int far_wait(struct far *far, uint32_t slot, uint64_t bytes, uint64_t number)
{
    const void *word = far_received_data(far, slot) + word_offset(bytes);
    int error = far->backend->ops->wait_word(far->backend->ctx, word, UINT64_MAX, number, 0);
    return error == 0 ? 0 : give_up(far, -error, "waiting for a message");
}

int far_flush(struct far *far)
{
    int error = 0;
    while (error == 0 && far->outstanding > 0) {
        error = completions_take(far);
    }
    return error;
}
