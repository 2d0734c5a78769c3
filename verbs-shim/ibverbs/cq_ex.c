// The extended interface of completion queues: one completion at a time, read by field.
#include <stdlib.h>

#include "verbs-shim/ibverbs/note.h"

static struct ibverbs_cq *cq_of(struct ibv_cq_ex *current)
{
    return (struct ibverbs_cq *)current;
}

// --- polling --------------------------------------------------------------------------------------------------------

static int completion_take(struct ibv_cq_ex *current)
{
    struct ibverbs_cq *cq = cq_of(current);
    struct ibverbs_library *library = cq->object.context->device->library;
    uint64_t began_ps = ibverbs_notes_all(library) ? ibverbs_note_begin(library) : 0;
    int count = ibverbs_ops(&cq->object)->cq_poll(cq->object.device, 1, &cq->wc);
    ibverbs_note_poll(cq, began_ps, &cq->wc, count);
    if (count <= 0) {
        return count == 0 ? ENOENT : -count;
    }
    current->wr_id = cq->wc.wr_id;
    current->status = cq->wc.status;
    return 0;
}

static int next_poll(struct ibv_cq_ex *current)
{
    IBVERBS_ENTER(cq_of(current)->object.context->device->library);
    return completion_take(current);
}

static int poll_begin(struct ibv_cq_ex *current, const struct ibv_poll_cq_attr *attr)
{
    IBVERBS_ENTER(cq_of(current)->object.context->device->library);
    ibverbs_own(entered, &cq_of(current)->owner);
    int error = attr->comp_mask != 0 ? EINVAL : completion_take(current);
    if (error != 0) {
        ibverbs_disown(entered, &cq_of(current)->owner);
    }
    return error;
}

// If there is a completion, the caller owns the queue until end_poll.
static int start_poll(struct ibv_cq_ex *current, struct ibv_poll_cq_attr *attr)
{
    struct ibverbs_cq *cq = cq_of(current);
    const uint64_t site = IBVERBS_SITE(cq);
    int error = poll_begin(current, attr);
    return error == ENOENT && ibverbs_cq_poll_again(cq, false, site) ? poll_begin(current, attr) : error;
}

// Each entry returns to the device when it is taken.
static void end_poll(struct ibv_cq_ex *current)
{
    IBVERBS_ENTER(cq_of(current)->object.context->device->library);
    (void)ibverbs_cq_poll_again(cq_of(current), true, 0);
    ibverbs_disown(entered, &cq_of(current)->owner);
}

// --- readers --------------------------------------------------------------------------------------------------------

static enum ibv_wc_opcode read_opcode(struct ibv_cq_ex *current)
{
    return cq_of(current)->wc.opcode;
}

static uint32_t read_vendor_err(struct ibv_cq_ex *current)
{
    return cq_of(current)->wc.vendor_err;
}

static unsigned int read_wc_flags(struct ibv_cq_ex *current)
{
    return cq_of(current)->wc.wc_flags;
}

static uint32_t read_byte_len(struct ibv_cq_ex *current)
{
    return cq_of(current)->wc.byte_len;
}

static __be32 read_imm_data(struct ibv_cq_ex *current)
{
    return cq_of(current)->wc.imm_data;
}

static uint32_t read_qp_num(struct ibv_cq_ex *current)
{
    return cq_of(current)->wc.qp_num;
}

static uint32_t read_src_qp(struct ibv_cq_ex *current)
{
    return cq_of(current)->wc.src_qp;
}

static uint32_t read_slid(struct ibv_cq_ex *current)
{
    return cq_of(current)->wc.slid;
}

static uint8_t read_sl(struct ibv_cq_ex *current)
{
    return cq_of(current)->wc.sl;
}

static uint8_t read_dlid_path_bits(struct ibv_cq_ex *current)
{
    return cq_of(current)->wc.dlid_path_bits;
}

// A field that was not requested has no reader.
void ibverbs_cq_extend(struct ibverbs_cq *cq, uint64_t wc_flags)
{
    struct ibv_cq_ex *ex = &cq->ex;
    ex->start_poll = start_poll;
    ex->next_poll = next_poll;
    ex->end_poll = end_poll;
    ex->read_opcode = read_opcode;
    ex->read_vendor_err = read_vendor_err;
    ex->read_wc_flags = read_wc_flags;
    ex->read_byte_len = (wc_flags & IBV_WC_EX_WITH_BYTE_LEN) != 0 ? read_byte_len : NULL;
    ex->read_imm_data = (wc_flags & IBV_WC_EX_WITH_IMM) != 0 ? read_imm_data : NULL;
    ex->read_qp_num = (wc_flags & IBV_WC_EX_WITH_QP_NUM) != 0 ? read_qp_num : NULL;
    ex->read_src_qp = (wc_flags & IBV_WC_EX_WITH_SRC_QP) != 0 ? read_src_qp : NULL;
    ex->read_slid = (wc_flags & IBV_WC_EX_WITH_SLID) != 0 ? read_slid : NULL;
    ex->read_sl = (wc_flags & IBV_WC_EX_WITH_SL) != 0 ? read_sl : NULL;
    ex->read_dlid_path_bits = (wc_flags & IBV_WC_EX_WITH_DLID_PATH_BITS) != 0 ? read_dlid_path_bits : NULL;
}

// No device has time stamps, VLANs, flow tags or tag matching. Every CQ allows use by a single thread.
struct ibv_cq_ex *ibverbs_create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *init)
{
    IBVERBS_ENTER_CONTEXT(context);
    bool has_flags = (init->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) != 0;
    if ((init->comp_mask & ~(uint32_t)IBV_CQ_INIT_ATTR_MASK_FLAGS) != 0 ||
        (init->wc_flags & ~(uint64_t)IBV_WC_STANDARD_FLAGS) != 0 ||
        (has_flags && (init->flags & ~(uint32_t)IBV_CREATE_CQ_ATTR_SINGLE_THREADED) != 0)) {
        return ibverbs_fail(-EOPNOTSUPP);
    }
    struct ibverbs_cq *cq;
    int status = ibverbs_cq_create(ibverbs_context_of(context), init, &cq);
    if (status != 0) {
        return ibverbs_fail(status);
    }
    ibverbs_cq_extend(cq, init->wc_flags);
    return &cq->ex;
}
