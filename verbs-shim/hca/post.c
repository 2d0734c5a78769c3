// Work requests: entries are written to their rings, and the doorbell is rung.
//
// The driver writes a single request that fits to the HCA with write-combined stores (BlueFlame), as libmlx4 does:
// always if its data is inline, and otherwise if the process prefers it (its MLX4_POST_SEND_PREFER_BF). Lists and
// longer requests stay in memory and ring the doorbell once.
#include <string.h>

#include "verbs-shim/hca/hca_internal.h"

// --- send ----------------------------------------------------------------------------------------------------------

static uint64_t sge_bytes(const struct hca_send_wr *wr)
{
    uint64_t bytes = 0;
    for (unsigned i = 0; i < wr->sge_count; i++) {
        bytes += wr->sges[i].bytes;
    }
    return bytes;
}

static int send_check(const hca_qp_t *qp, const struct hca_send_wr *wr)
{
    if (qp->state == HCA_RESET || qp->state == HCA_INIT || qp->state == HCA_RTR) {
        return -EINVAL;
    }
    if (qp->send_posted - qp->send_done >= qp->send_entries) {
        return -ENOMEM;
    }
    bool inlined = (wr->flags & HCA_WQE_INLINE) != 0;
    if (!hca_opcode_allowed(qp->type, wr->opcode) || (qp->type == HCA_UD && wr->ah == NULL) ||
        (inlined ? !hca_opcode_has(wr->opcode, HCA_HAS_DATA) || sge_bytes(wr) > qp->inline_bytes
                 : wr->sge_count > qp->send_segments)) {
        return -EINVAL;
    }
    return 0;
}

static size_t data_write(const struct hca_send_wr *wr, uint8_t *to)
{
    size_t at = 0;
    for (unsigned i = 0; i < wr->sge_count; i++) {
        const struct hca_sge *sge = &wr->sges[i];
        if ((wr->flags & HCA_WQE_INLINE) != 0) {
            memcpy(to + at, (const void *)(uintptr_t)sge->address, sge->bytes);
            at += sge->bytes;
        } else {
            const struct hca_wqe_data data = {.address = sge->address, .lkey = sge->lkey, .bytes = sge->bytes};
            memcpy(to + at, &data, sizeof data);
            at += sizeof data;
        }
    }
    return at;
}

static void datagram_write(const struct hca_send_wr *wr, uint8_t *to)
{
    const hca_ah_t *ah = wr->ah;
    struct hca_wqe_datagram datagram = {.qpn = wr->remote_qpn,
                                        .qkey = wr->remote_qkey,
                                        .dlid = ah->dlid,
                                        .sl = ah->sl,
                                        .global = ah->global,
                                        .traffic_class = ah->route.traffic_class,
                                        .hop_limit = ah->route.hop_limit,
                                        .flow_label = ah->route.flow_label};
    memcpy(datagram.dgid, ah->route.dgid, sizeof datagram.dgid);
    memcpy(to, &datagram, sizeof datagram);
}

static size_t heads_write(const hca_qp_t *qp, const struct hca_send_wr *wr, uint8_t *to)
{
    size_t at = 0;
    if (qp->type == HCA_UD) {
        datagram_write(wr, to);
        at += sizeof(struct hca_wqe_datagram);
    }
    if (qp->type == HCA_XRC_INITIATOR) {
        const struct hca_wqe_xrc xrc = {.srqn = wr->remote_srqn};
        memcpy(to + at, &xrc, sizeof xrc);
        at += sizeof xrc;
    }
    if (hca_opcode_has(wr->opcode, HCA_HAS_REMOTE)) {
        const struct hca_wqe_remote remote = {.address = wr->remote_address, .rkey = wr->rkey};
        memcpy(to + at, &remote, sizeof remote);
        at += sizeof remote;
    }
    if (hca_opcode_has(wr->opcode, HCA_HAS_ATOMIC)) {
        const struct hca_wqe_atomic atomic = {.swap_add = wr->swap_add, .compare = wr->compare};
        memcpy(to + at, &atomic, sizeof atomic);
        at += sizeof atomic;
    }
    return at;
}

// Returns the bytes of the request, in whole units.
static uint32_t request_write(hca_qp_t *qp, const struct hca_send_wr *wr, uint8_t *entry)
{
    size_t at = sizeof(struct hca_wqe_control);
    at += heads_write(qp, wr, entry + at);
    size_t data_bytes = data_write(wr, entry + at);
    at += data_bytes;
    const struct hca_wqe_control control = {.qpn = qp->number,
                                            .index = (uint16_t)qp->send_posted,
                                            .opcode = (uint8_t)wr->opcode,
                                            .flags = (uint8_t)(wr->flags | (qp->all_signaled ? HCA_WQE_SIGNALED : 0)),
                                            .inline_bytes =
                                                (wr->flags & HCA_WQE_INLINE) != 0 ? (uint16_t)data_bytes : 0,
                                            .units = (uint8_t)((at + HCA_WQE_UNIT_BYTES - 1) / HCA_WQE_UNIT_BYTES),
                                            .immediate = wr->immediate};
    memcpy(entry, &control, sizeof control);
    qp->wr_ids[qp->send_posted & (qp->send_entries - 1)] = wr->wr_id;
    qp->send_posted++;
    hca_cost(qp->pd->context, BACKEND_COST_LOAD_STORE, (at + 7) / 8);
    return (uint32_t)control.units * HCA_WQE_UNIT_BYTES;
}

static void blueflame_write(hca_context_t *context, const uint8_t *entry, uint32_t bytes)
{
    uint64_t offset = (uint64_t)context->uar * HCA_UAR_BYTES + HCA_UAR_BLUEFLAME +
                      (uint64_t)context->next_blueflame * HCA_BLUEFLAME_BYTES;
    context->next_blueflame = (context->next_blueflame + 1) % HCA_BLUEFLAME_BUFFERS;
    context->backend.ops->write_combined(context->backend.ctx, BACKEND_BAR_HCA_UAR, offset, entry, bytes);
    context->backend.ops->fence(context->backend.ctx);
}

int hca_post_send(hca_qp_t *qp, const struct hca_send_wr *wr, const struct hca_send_wr **bad_out)
{
    hca_context_t *context = qp->pd->context;
    unsigned posted = 0;
    uint32_t bytes = 0;
    int status = 0;
    const uint8_t *entry = NULL;
    bool inlined = false;
    hca_cost(context, BACKEND_COST_CALL, 1);
    for (; wr != NULL; wr = wr->next) {
        status = send_check(qp, wr);
        if (status != 0) {
            break;
        }
        uint8_t *slot = qp->send_ring + (size_t)(qp->send_posted & (qp->send_entries - 1)) * qp->send_stride_bytes;
        bytes = request_write(qp, wr, slot);
        entry = slot;
        inlined = (wr->flags & HCA_WQE_INLINE) != 0;
        posted++;
    }
    bool preferred = inlined || context->info.blueflame_all;
    if (posted == 1 && bytes <= HCA_BLUEFLAME_BYTES && preferred) {
        blueflame_write(context, entry, bytes);
    } else if (posted > 0) {
        hca_doorbell(context, HCA_UAR_SEND_DOORBELL, hca_doorbell_send(qp->number, (uint16_t)qp->send_posted));
    }
    if (status != 0 && bad_out != NULL) {
        *bad_out = wr;
    }
    return status;
}

// --- receive -------------------------------------------------------------------------------------------------------

static int receive_write(const hca_context_t *context, struct hca_receive_ring *receive,
                         const struct hca_receive_wr *wr)
{
    if (receive->free_count == 0) {
        return -ENOMEM;
    }
    if (wr->sge_count > receive->segments) {
        return -EINVAL;
    }
    uint8_t *entry = receive->ring + (size_t)(receive->posted & (receive->entries - 1)) * receive->stride_bytes;
    const struct hca_wqe_receive head = {.cookie = receive->cookies[--receive->free_count], .segments = wr->sge_count};
    memcpy(entry, &head, sizeof head);
    struct hca_receive_buffer *buffer = &receive->buffers[head.cookie];
    *buffer = (struct hca_receive_buffer){.segments = wr->sge_count};
    if (wr->sge_count > 0) {
        buffer->address = wr->sges[0].address;
        buffer->first_bytes = wr->sges[0].bytes;
        buffer->lkey = wr->sges[0].lkey;
    }
    for (unsigned i = 0; i < wr->sge_count; i++) {
        const struct hca_wqe_data data = {
            .address = wr->sges[i].address, .lkey = wr->sges[i].lkey, .bytes = wr->sges[i].bytes};
        buffer->bytes += data.bytes;
        memcpy(entry + sizeof head + i * sizeof data, &data, sizeof data);
    }
    receive->wr_ids[head.cookie] = wr->wr_id;
    receive->posted++;
    hca_cost(context, BACKEND_COST_LOAD_STORE, 2 + 2 * (uint64_t)wr->sge_count);
    return 0;
}

static int receive_post(const hca_context_t *context, struct hca_receive_ring *receive, const struct hca_receive_wr *wr,
                        const struct hca_receive_wr **bad_out)
{
    int status = 0;
    hca_cost(context, BACKEND_COST_CALL, 1);
    for (; wr != NULL && status == 0; wr = status == 0 ? wr->next : wr) {
        status = receive_write(context, receive, wr);
    }
    *receive->record = receive->posted;
    hca_cost(context, BACKEND_COST_LOAD_STORE, 1);
    if (status != 0 && bad_out != NULL) {
        *bad_out = wr;
    }
    return status;
}

void hca_receive_doorbell(hca_qp_t *qp)
{
    if (qp->receive.entries != 0) {
        hca_doorbell(qp->pd->context, HCA_UAR_RECEIVE_DOORBELL, qp->number);
    }
}

int hca_post_receive(hca_qp_t *qp, const struct hca_receive_wr *wr, const struct hca_receive_wr **bad_out)
{
    if (qp->state == HCA_RESET || qp->receive.entries == 0) { // 11.4.1.2
        if (bad_out != NULL) {
            *bad_out = wr;
        }
        return -EINVAL;
    }
    int status = receive_post(qp->pd->context, &qp->receive, wr, bad_out);
    if (qp->failed || qp->state == HCA_ERROR) {
        hca_receive_doorbell(qp);
    }
    return status;
}

int hca_post_srq_receive(hca_srq_t *srq, const struct hca_receive_wr *wr, const struct hca_receive_wr **bad_out)
{
    return receive_post(srq->pd->context, &srq->receive, wr, bad_out);
}
