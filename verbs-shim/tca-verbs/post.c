// Posts requests: they are copied into the queue, and the first ones are sent at once.
#include <errno.h>
#include <string.h>

#include "verbs-shim/tca-verbs/internal.h"

unsigned tcav_send_room(void *object)
{
    const struct tcav_qp *qp = object;
    return qp->size - qp->count;
}

static void operands_set(struct tcav_request *request, const struct ibv_send_wr *wr, enum ibv_qp_type type)
{
    if (ibverbs_opcode_has(wr->opcode, HCA_HAS_ATOMIC)) {
        request->remote = wr->wr.atomic.remote_addr;
        request->key = wr->wr.atomic.rkey;
        request->swap_add = wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ? wr->wr.atomic.swap : wr->wr.atomic.compare_add;
        request->compare = wr->wr.atomic.compare_add;
    } else if (ibverbs_opcode_has(wr->opcode, HCA_HAS_REMOTE)) {
        request->remote = wr->wr.rdma.remote_addr;
        request->key = wr->wr.rdma.rkey;
    } else if (type == IBV_QPT_UD) {
        const struct tcav_ah *ah = ibverbs_ah_object(wr->wr.ud.ah);
        request->to = (struct tcav_destination){*ah, wr->wr.ud.remote_qpn, wr->wr.ud.remote_qkey};
    }
}

static void inline_copy(struct tcav_qp *qp, struct tcav_request *request, const struct ibv_send_wr *wr)
{
    unsigned bytes = 0;
    for (int i = 0; i < wr->num_sge; i++) {
        memcpy(request->data + bytes, (const void *)(uintptr_t)wr->sg_list[i].addr, wr->sg_list[i].length);
        bytes += wr->sg_list[i].length;
    }
    request->sges = 0;
    tcav_pay(qp->pd->context, BACKEND_COST_COPY, bytes);
}

static void request_add(struct tcav_qp *qp, const struct ibv_send_wr *wr)
{
    struct tcav_request *request = tcav_request_at(qp, qp->count);
    uint64_t length = tcav_list_bytes(wr->sg_list, (unsigned)wr->num_sge);
    *request = (struct tcav_request){
        .id = wr->wr_id,
        .length = length > UINT32_MAX ? UINT32_MAX : (uint32_t)length,
        .immediate = wr->imm_data,
        .message = qp->next_message,
        .opcode = wr->opcode,
        .flags = wr->send_flags,
        .sges = (unsigned)wr->num_sge,
    };
    operands_set(request, wr, qp->type);
    if (wr->num_sge != 0) {
        memcpy(request->sge, wr->sg_list, (unsigned)wr->num_sge * sizeof *wr->sg_list);
    }
    if ((wr->send_flags & IBV_SEND_INLINE) != 0) {
        inline_copy(qp, request, wr);
    }
    qp->next_message = (qp->next_message + 1) & TCAV_NUMBER_MASK;
    qp->count++;
    tcav_pay(qp->pd->context, BACKEND_COST_LOAD_STORE, 6 + 2 * request->sges);
}

int tcav_post_send(void *object, const struct ibv_send_wr *wr, unsigned count, const struct ibv_send_wr **bad_out)
{
    struct tcav_qp *qp = object;
    int error = 0;
    tcav_pay(qp->pd->context, BACKEND_COST_CALL, 1);
    tcav_pay(qp->pd->context, BACKEND_COST_LOCK, 1);
    qp->pd->context->repeats = false;
    if (qp->count == 0) {
        qp->progress_ps = 0; // set when the clock is read next
    }
    for (; count != 0; count--, wr = wr->next) {
        if (qp->count == qp->size) {
            *bad_out = wr;
            error = -ENOMEM;
            break;
        }
        request_add(qp, wr);
    }
    if (qp->state == IBV_QPS_ERR) {
        tcav_qp_fail(qp);
    } else if (qp->count != 0) {
        tcav_qp_activate(qp);
        tcav_transmit(qp->pd->context);
    }
    return error;
}
