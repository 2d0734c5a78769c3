// Requests of a send queue: read ahead from host memory, or received with the doorbell, and their contents.
#include <string.h>

#include "models/hca/internal.h"

uint8_t *hca_wqe_raw(const struct hca_qp *qp, uint32_t count)
{
    return qp->sq.raw + (size_t)(count & (qp->sq.entries - 1)) * qp->sq.stride_bytes;
}

struct hca_request *hca_wqe_request(const struct hca_qp *qp, uint32_t count)
{
    return &qp->sq.requests[count & (qp->sq.entries - 1)];
}

const struct hca_wqe_data *hca_wqe_segments(const struct hca_qp *qp, uint32_t count)
{
    return (const struct hca_wqe_data *)(const void *)(hca_wqe_raw(qp, count) +
                                                       hca_wqe_request(qp, count)->data_offset);
}

// --- contents of a request -------------------------------------------------------------------------------------------

static uint16_t data_offset(enum hca_qp_type type, unsigned opcode)
{
    size_t offset = sizeof(struct hca_wqe_control);
    offset += type == HCA_UD ? sizeof(struct hca_wqe_datagram) : 0;
    offset += type == HCA_XRC_INITIATOR ? sizeof(struct hca_wqe_xrc) : 0;
    offset += hca_opcode_has(opcode, HCA_HAS_REMOTE) ? sizeof(struct hca_wqe_remote) : 0;
    offset += hca_opcode_has(opcode, HCA_HAS_ATOMIC) ? sizeof(struct hca_wqe_atomic) : 0;
    return (uint16_t)offset;
}

static enum hca_status length_check(const struct hca_qp *qp, unsigned opcode, uint64_t bytes)
{
    if (bytes > UINT64_C(1) << 31 || (hca_opcode_has(opcode, HCA_IS_WORD) && bytes != sizeof(uint64_t)) ||
        (qp->init.type == HCA_UD && bytes > qp->hca->config.active_mtu_bytes)) {
        return HCA_LOCAL_LENGTH;
    }
    return HCA_OK;
}

static void request_parse(struct hca_qp *qp, uint32_t count)
{
    struct hca_request *request = hca_wqe_request(qp, count);
    struct hca_wqe_control control;
    memcpy(&control, hca_wqe_raw(qp, count), sizeof control);
    request->opcode = control.opcode;
    request->flags = control.flags;
    request->sent = false;
    request->data_offset = data_offset(qp->init.type, control.opcode);
    uint32_t whole = (uint32_t)control.units * HCA_WQE_UNIT_BYTES;
    uint32_t inlined = (control.flags & HCA_WQE_INLINE) != 0 ? control.inline_bytes : 0;
    bool sane = control.qpn == qp->number && control.index == (uint16_t)count && whole <= qp->sq.stride_bytes &&
                request->data_offset + inlined <= whole && hca_opcode_allowed(qp->init.type, control.opcode) &&
                ((control.flags & HCA_WQE_INLINE) == 0 || hca_opcode_has(control.opcode, HCA_HAS_DATA));
    uint32_t segments = (whole - request->data_offset) / (uint32_t)sizeof(struct hca_wqe_data);
    if (!sane || ((control.flags & HCA_WQE_INLINE) == 0 && segments > HCA_SEGMENTS_MAX)) {
        request->status = HCA_LOCAL_OPERATION;
        return;
    }
    request->segments = 0;
    uint64_t bytes = inlined;
    if ((control.flags & HCA_WQE_INLINE) == 0) {
        request->segments = (uint8_t)segments;
        bytes = hca_segments_bytes(hca_wqe_segments(qp, count), request->segments);
    }
    request->status = (uint8_t)length_check(qp, control.opcode, bytes);
    request->bytes = (uint32_t)bytes;
    uint32_t mtu = qp->init.type == HCA_UD ? qp->hca->config.active_mtu_bytes : qp->attr.path_mtu_bytes;
    request->packets = bytes == 0 ? 1 : (uint32_t)((bytes + mtu - 1) / mtu);
}

void hca_wqe_store(struct hca_qp *qp, uint32_t count, const uint8_t *data, uint32_t bytes)
{
    uint32_t most = qp->sq.stride_bytes;
    memcpy(hca_wqe_raw(qp, count), data, bytes < most ? bytes : most);
    request_parse(qp, count);
    qp->sq.fetched = count + 1;
}

// --- fetching ------------------------------------------------------------------------------------------------------

static void fetch_done(hca_t *hca, struct hca_dma_read *read)
{
    struct hca_qp *qp = read->owner;
    if (!qp->used || qp->generation != read->generation || qp->state == HCA_ERROR || qp->state == HCA_SQE) {
        return;
    }
    static const struct sim_work fetch_ends = {NULL, "fetch", true};
    sim_cause_mark(hca->sim, hca->name, &fetch_ends);
    struct hca_sq *sq = &qp->sq;
    sq->fetching = false;
    uint32_t count = read->bytes / sq->stride_bytes;
    if (sq->fetched == read->detail && !read->failed) { // else a go-back happened meanwhile
        for (uint32_t i = 0; i < count; i++) {
            hca_wqe_store(qp, read->detail + i, read->data + (size_t)i * sq->stride_bytes, sq->stride_bytes);
        }
        sim_trace(hca->sim, hca->name, &hca_trace_fetched, (const uint64_t[]){qp->number, count});
    } else if (read->failed) {
        hca_request_fail(qp, sq->next, HCA_LOCAL_OPERATION, HCA_FAULT_MEMORY);
        return;
    }
    hca_wqe_fetch(qp);
    hca_sender_kick(qp);
}

static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

void hca_wqe_fetch(struct hca_qp *qp)
{
    struct hca_sq *sq = &qp->sq;
    uint32_t ahead = qp->hca->config.prefetch_requests, index = sq->fetched & (sq->entries - 1);
    bool sending = qp->state == HCA_RTS || (qp->state == HCA_SQD && sq->packet > 0);
    if (!sending || sq->fetching || sq->fetched == sq->producer || sq->fetched - sq->next >= ahead) {
        return;
    }
    uint32_t count = smaller(smaller(sq->producer - sq->fetched, ahead), sq->entries - index);
    count = smaller(count, HCA_DMA_BYTES_MAX / sq->stride_bytes);
    static const struct sim_work fetch_begins = {"descriptor", "fetch", true};
    sim_cause_t cause = sim_cause_now(qp->hca->sim);
    sim_cause_mark(qp->hca->sim, qp->hca->name, &fetch_begins);
    sq->fetching = true;
    qp->hca->counters[HCA_WQE_FETCHES]++;
    struct hca_dma_read *read = hca_dma_read(qp->hca, HCA_DMA_QUEUES, sq->base + (uint64_t)index * sq->stride_bytes,
                                             count * sq->stride_bytes, NULL, fetch_done, qp);
    read->generation = qp->generation;
    read->detail = sq->fetched;
    sim_cause_arrive(qp->hca->sim, cause);
}
