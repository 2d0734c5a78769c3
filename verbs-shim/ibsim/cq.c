// Completion queues.
#include <stdlib.h>

#include "verbs-shim/ibsim/ibsim_internal.h"

int ibsim_cq_create(void *object, unsigned *entries, unsigned vector, void *user, void **cq_out)
{
    struct ibsim_context *context = object;
    struct ibsim_cq *cq = calloc(1, sizeof *cq);
    (void)vector; // there is only one
    int status = cq != NULL ? hca_cq_create(context->hca, *entries, user, &cq->hca) : -ENOMEM;
    if (status == 0 && !ibsim_scratch_completions(&context->scratch, hca_cq_entries(cq->hca))) {
        (void)hca_cq_destroy(cq->hca);
        status = -ENOMEM;
    }
    if (status != 0) {
        free(cq);
        return status;
    }
    cq->context = context;
    *entries = hca_cq_entries(cq->hca);
    *cq_out = cq;
    return 0;
}

int ibsim_cq_destroy(void *cq)
{
    int status = hca_cq_destroy(((struct ibsim_cq *)cq)->hca);
    if (status == 0) {
        free(cq);
    }
    return status;
}

int ibsim_cq_resize(void *object, unsigned *entries)
{
    struct ibsim_cq *cq = object;
    if (!ibsim_scratch_completions(&cq->context->scratch, 2 * *entries)) { // the driver returns fewer entries than that
        return -ENOMEM;
    }
    int status = hca_cq_resize(cq->hca, *entries);
    *entries = hca_cq_entries(cq->hca);
    return status;
}

int ibsim_cq_arm(void *cq, bool solicited_only)
{
    return hca_cq_arm(((struct ibsim_cq *)cq)->hca, solicited_only);
}

const volatile void *ibsim_cq_next_word(void *cq)
{
    return hca_cq_next_word(((struct ibsim_cq *)cq)->hca);
}

enum ibverbs_idle ibsim_cq_idle(void *object, struct ibverbs_idle_poll *poll_out)
{
    const struct ibsim_cq *cq = object;
    *poll_out = (struct ibverbs_idle_poll){.word = hca_cq_next_word(cq->hca),
                                           .calls = HCA_POLL_CALLS,
                                           .loads = HCA_POLL_LOADS,
                                           .until_ps = UINT64_MAX};
    return hca_cq_is_empty(cq->hca) ? IBVERBS_IDLE : IBVERBS_FINDS;
}

int ibsim_cq_wait(void *cq, uint64_t timeout_ns)
{
    return hca_cq_wait(((struct ibsim_cq *)cq)->hca, timeout_ns);
}

// --- completions -----------------------------------------------------------------------------------------------------

static enum ibv_wc_status status_of(enum hca_status status)
{
    static const enum ibv_wc_status statuses[HCA_STATUSES] = {
        [HCA_OK] = IBV_WC_SUCCESS,
        [HCA_LOCAL_LENGTH] = IBV_WC_LOC_LEN_ERR,
        [HCA_LOCAL_OPERATION] = IBV_WC_LOC_QP_OP_ERR,
        [HCA_LOCAL_PROTECTION] = IBV_WC_LOC_PROT_ERR,
        [HCA_FLUSHED] = IBV_WC_WR_FLUSH_ERR,
        [HCA_BAD_RESPONSE] = IBV_WC_BAD_RESP_ERR,
        [HCA_LOCAL_ACCESS] = IBV_WC_LOC_ACCESS_ERR,
        [HCA_REMOTE_INVALID_REQUEST] = IBV_WC_REM_INV_REQ_ERR,
        [HCA_REMOTE_ACCESS] = IBV_WC_REM_ACCESS_ERR,
        [HCA_REMOTE_OPERATION] = IBV_WC_REM_OP_ERR,
        [HCA_RETRY_EXCEEDED] = IBV_WC_RETRY_EXC_ERR,
        [HCA_RNR_RETRY_EXCEEDED] = IBV_WC_RNR_RETRY_EXC_ERR,
    };
    return statuses[status];
}

static enum ibv_wc_opcode opcode_of(const struct hca_wc *wc)
{
    static const enum ibv_wc_opcode sends[HCA_OPCODES] = {
#define OPCODE(id, verb, completion, packet, transports, operands) [HCA_OP_##id] = IBV_WC_##completion,
#include "models/hca/abi/opcodes.def"
#undef OPCODE
    };
    switch (wc->kind) {
    case HCA_CQE_RECEIVE:
        return IBV_WC_RECV;
    case HCA_CQE_RECEIVE_WRITE_IMM:
        return IBV_WC_RECV_RDMA_WITH_IMM;
    case HCA_CQE_SEND:
    case HCA_CQE_RESIZED: // never in a poll
        break;
    }
    return sends[wc->opcode];
}

bool ibsim_qp_failure(void *object, struct ibverbs_failure *failure_out)
{
    const struct hca_failure *failure = hca_qp_failure(((struct ibsim_qp *)object)->hca);
    const struct hca_wc wc = {.kind = failure->is_receive ? HCA_CQE_RECEIVE : HCA_CQE_SEND, .opcode = failure->opcode};
    *failure_out = (struct ibverbs_failure){.is_receive = failure->is_receive,
                                            .opcode = opcode_of(&wc),
                                            .bytes = failure->bytes,
                                            .remote_address = failure->remote_address,
                                            .rkey = failure->rkey,
                                            .lkey = failure->lkey,
                                            .address = failure->address,
                                            .first_bytes = failure->first_bytes,
                                            .segments = failure->segments};
    return failure->known;
}

// Immediate data keeps its memory order: network byte order on both sides.
static struct ibv_wc completion_of(const struct hca_wc *wc)
{
    return (struct ibv_wc){.wr_id = wc->wr_id,
                           .status = status_of(wc->status),
                           .opcode = opcode_of(wc),
                           .vendor_err = wc->fault,
                           .byte_len = wc->bytes,
                           .imm_data = wc->status == HCA_OK ? wc->immediate : 0,
                           .qp_num = wc->qpn,
                           .src_qp = wc->source_qpn,
                           .wc_flags = (wc->has_immediate ? IBV_WC_WITH_IMM : 0) | (wc->has_route ? IBV_WC_GRH : 0),
                           .slid = wc->source_lid,
                           .sl = wc->sl};
}

int ibsim_cq_poll(void *object, int max, struct ibv_wc *wc_out)
{
    const struct ibsim_cq *cq = object;
    int entries = (int)hca_cq_entries(cq->hca);
    struct hca_wc *taken = cq->context->scratch.completions;
    int count = hca_cq_poll(cq->hca, max < entries ? max : entries, taken);
    for (int i = 0; i < count; i++) {
        wc_out[i] = completion_of(&taken[i]);
    }
    return count;
}

unsigned ibsim_cq_waiting(void *object, struct ibv_wc *first_out)
{
    struct hca_wc first;
    unsigned count = hca_cq_waiting(((struct ibsim_cq *)object)->hca, &first);
    *first_out = completion_of(&first);
    return count;
}
