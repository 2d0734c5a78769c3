#include "pair.h"

#include <errno.h>
#include <string.h>

#include "verbs-shim/hca/hca_driver.h"
#include "verbs-shim/peach2/peach2_driver.h"

#define WORDS 16

void (*pair_ready)(void);

struct run {
    const struct backend_ops *ops;
    void *ctx;
    struct peach2_board_handle *board;
    struct backend_buffer buffer;
    struct pair *pair;
    uint64_t remote; // the other side's buffer, in the window
};

static void stamp(struct run *run)
{
    run->pair->stamps[run->pair->count++] = run->ops->time_ps(run->ctx);
}

static void fail(struct run *run, int line)
{
    run->pair->error = run->pair->error != 0 ? run->pair->error : line;
}

// A small and a large write by PIO; the other side waits for the last word.
static void send(struct run *run, uint64_t value)
{
    uint64_t words[WORDS];
    for (unsigned i = 0; i < WORDS; i++) {
        words[i] = value;
    }
    run->ops->cost(run->ctx, BACKEND_COST_COPY, sizeof words);
    if (peach2_pio_write(run->board, run->remote, words, value % 3 == 0 ? sizeof words : 8) != 0) {
        fail(run, __LINE__);
    }
}

static void receive(struct run *run, uint64_t value)
{
    const uint64_t *words = run->buffer.address;
    if (run->ops->wait_word(run->ctx, words, UINT64_MAX, value, 1000000000) != 0) {
        fail(run, __LINE__);
    }
    stamp(run);
    if (value % 3 == 0 && run->ops->wait_word(run->ctx, words + WORDS - 1, UINT64_MAX, value, 1000000000) != 0) {
        fail(run, __LINE__);
    }
}

static void look_around(struct run *run)
{
    uint64_t value;
    if (run->ops->read(run->ctx, BACKEND_BAR_REGISTERS, 0, 4, &value) != 0) {
        fail(run, __LINE__);
    }
    stamp(run);
    if (run->ops->wait_word(run->ctx, run->buffer.address, UINT64_MAX, 77, 2000) != -ETIMEDOUT) {
        fail(run, __LINE__);
    }
    stamp(run);
    run->ops->cost(run->ctx, BACKEND_COST_CALL, 3);
    run->ops->cost(run->ctx, BACKEND_COST_TIME, 12);
    stamp(run);
}

// --- the HCA --------------------------------------------------------------------------------------------------------

struct verbs {
    hca_context_t *context;
    hca_pd_t *pd;
    hca_cq_t *cq;
    hca_qp_t *qp;
    hca_mr_t *mr;
};

// Queue pairs of the two sides have the same number, and the LIDs are the nodes' numbers from 1 on.
static int connect_qp(struct verbs *verbs, unsigned side)
{
    struct hca_qp_attr attr = {.state = HCA_INIT,
                               .port = 1,
                               .access = HCA_LOCAL_WRITE,
                               .dest_qpn = hca_qp_number(verbs->qp),
                               .path_mtu_bytes = 2048,
                               .dlid = (uint16_t)(2 - side),
                               .timeout = 14,
                               .retry_count = 7,
                               .rnr_retry = 7};
    int error = hca_qp_modify(verbs->qp, HCA_QP_STATE | HCA_QP_PORT | HCA_QP_ACCESS, &attr);
    attr.state = HCA_RTR;
    error = error != 0 ? error
                       : hca_qp_modify(verbs->qp,
                                       HCA_QP_STATE | HCA_QP_PATH | HCA_QP_PATH_MTU | HCA_QP_DEST_QPN |
                                           HCA_QP_RECEIVE_PSN | HCA_QP_MAX_DEST_RD | HCA_QP_MIN_RNR_TIMER,
                                       &attr);
    attr.state = HCA_RTS;
    return error != 0 ? error
                      : hca_qp_modify(verbs->qp,
                                      HCA_QP_STATE | HCA_QP_TIMEOUT | HCA_QP_RETRY_COUNT | HCA_QP_RNR_RETRY |
                                          HCA_QP_SEND_PSN | HCA_QP_MAX_RD_ATOMIC,
                                      &attr);
}

static int verbs_open(struct run *run, struct verbs *verbs, const struct backend *backend, unsigned side)
{
    int error = hca_open(backend, &verbs->context);
    error = error != 0 ? error : hca_pd_create(verbs->context, &verbs->pd);
    error = error != 0 ? error : hca_cq_create(verbs->context, 64, NULL, &verbs->cq);
    error = error != 0
                ? error
                : hca_mr_register(verbs->pd, run->buffer.address, run->buffer.bytes, HCA_LOCAL_WRITE, &verbs->mr);
    struct hca_qp_create create = {.type = HCA_RC,
                                   .send_cq = verbs->cq,
                                   .receive_cq = verbs->cq,
                                   .send_entries = 16,
                                   .receive_entries = 16,
                                   .send_segments = 1,
                                   .receive_segments = 1,
                                   .inline_bytes = 32,
                                   .all_signaled = true};
    error = error != 0 ? error : hca_qp_create(verbs->pd, &create, &verbs->qp);
    return error != 0 ? error : connect_qp(verbs, side);
}

static void completion(struct run *run, struct verbs *verbs)
{
    struct hca_wc wc;
    if (hca_cq_wait(verbs->cq, 1000000000) != 0 || hca_cq_poll(verbs->cq, 1, &wc) != 1 || wc.status != HCA_OK) {
        fail(run, __LINE__);
    }
    stamp(run);
}

static void verbs_round(struct run *run, struct verbs *verbs, bool first, uint64_t round)
{
    const struct hca_sge in = {(uint64_t)(uintptr_t)run->buffer.address, 4096, hca_mr_lkey(verbs->mr)};
    const struct hca_sge out = {in.address + 4096, round % 2 == 0 ? 3000 : 8, in.lkey};
    const struct hca_receive_wr receive = {.sges = &in, .sge_count = 1};
    const struct hca_send_wr send = {
        .sges = &out, .sge_count = 1, .opcode = HCA_OP_SEND, .flags = round % 2 == 0 ? 0 : HCA_WQE_INLINE};
    if (hca_post_receive(verbs->qp, &receive, NULL) != 0) {
        fail(run, __LINE__);
    }
    if (!first) {
        completion(run, verbs);
    }
    if (hca_post_send(verbs->qp, &send, NULL) != 0) {
        fail(run, __LINE__);
    }
    completion(run, verbs);
    if (first) {
        completion(run, verbs);
    }
}

static void verbs_run(struct run *run, const struct backend *backend, unsigned side, unsigned rounds)
{
    struct verbs verbs = {0};
    int error = verbs_open(run, &verbs, backend, side);
    if (error != 0) {
        run->pair->error = error;
        return;
    }
    for (uint64_t round = 1; round <= rounds; round++) {
        verbs_round(run, &verbs, side == 0, round);
    }
    error = hca_qp_destroy(verbs.qp);
    error = error != 0 ? error : hca_mr_deregister(verbs.mr);
    error = error != 0 ? error : hca_cq_destroy(verbs.cq);
    error = error != 0 ? error : hca_pd_destroy(verbs.pd);
    error = error != 0 ? error : hca_close(verbs.context);
    run->pair->error = run->pair->error != 0 ? run->pair->error : error;
}

void pair_run(struct backend_process *process, unsigned side, unsigned rounds, struct pair *pair)
{
    struct run run = {process->backend.ops, process->backend.ctx, process->board, {0}, pair, 0};
    memset(pair, 0, sizeof *pair);
    stamp(&run);
    pair->error = run.ops->alloc_pinned(run.ctx, 8192, &run.buffer);
    if (pair->error != 0) {
        return;
    }
    if (pair_ready != NULL) {
        pair_ready();
    }
    // Both sides' first buffers have the same address.
    run.remote = peach2_window_address(run.board, 1 - side, run.buffer.bus_address);
    look_around(&run);
    for (uint64_t round = 1; round <= rounds; round++) {
        if (side == 0) {
            send(&run, round);
            receive(&run, round);
        } else {
            receive(&run, round);
            send(&run, round);
        }
    }
    look_around(&run);
    if (run.ops->hca_command != NULL) {
        verbs_run(&run, &process->backend, side, rounds);
    }
    run.ops->free_pinned(run.ctx, &run.buffer);
}
