// The extended interface of queue pairs: calls between wr_start and wr_complete build requests; wr_complete posts all
// of them or none.
//
// A slot holds one request with its segments and its inline data. Pointers into slots are set at the end, because the
// array of slots grows. wr_complete returns the first error of a batch.
#include <stdlib.h>
#include <string.h>

#include "verbs-shim/ibverbs/internal.h"

struct slot {
    struct ibv_send_wr wr;
    bool has_segment; // one segment, for the inline data
    struct ibv_sge segment;
    // segments or inline data of the caller, copied
};

struct ibverbs_builder {
    uint8_t *slots;
    size_t slot_bytes, data_bytes;
    unsigned count, room;
    struct ibverbs_owner owner; // the thread that builds
    int error;
};

#define SLOTS_FIRST 16u

static struct slot *slot_at(const struct ibverbs_builder *builder, unsigned index)
{
    return (struct slot *)(void *)(builder->slots + index * builder->slot_bytes);
}

static uint8_t *slot_data(struct slot *slot)
{
    return (uint8_t *)slot + sizeof *slot;
}

static struct ibverbs_builder *builder_of(struct ibv_qp_ex *ex)
{
    return ((struct ibverbs_qp *)ex)->builder;
}

static void batch_fail(struct ibverbs_builder *builder, int error)
{
    builder->error = builder->error == 0 ? error : builder->error;
}

// --- batch ----------------------------------------------------------------------------------------------------------

static struct ibverbs_library *library_of(struct ibv_qp_ex *ex)
{
    return ((struct ibverbs_qp *)ex)->object.context->device->library;
}

// The caller owns the queue pair until the end of the batch.
static void wr_start(struct ibv_qp_ex *ex)
{
    IBVERBS_ENTER(library_of(ex));
    ibverbs_own(entered, &builder_of(ex)->owner);
    builder_of(ex)->count = 0;
    builder_of(ex)->error = 0;
}

static void wr_abort(struct ibv_qp_ex *ex)
{
    IBVERBS_ENTER(library_of(ex));
    builder_of(ex)->count = 0;
    builder_of(ex)->error = 0;
    ibverbs_disown(entered, &builder_of(ex)->owner);
}

// Sets the pointers and checks the request.
static void slot_finish(struct ibverbs_qp *qp, struct ibverbs_builder *builder, unsigned index)
{
    struct slot *slot = slot_at(builder, index);
    slot->segment.addr = (uintptr_t)slot_data(slot);
    slot->wr.sg_list = slot->has_segment ? &slot->segment : (struct ibv_sge *)(void *)slot_data(slot);
    slot->wr.next = index + 1 < builder->count ? &slot_at(builder, index + 1)->wr : NULL;
    batch_fail(builder, ibverbs_send_check(qp, &slot->wr));
}

static int batch_post(struct ibverbs_qp *qp)
{
    struct ibverbs_builder *builder = qp->builder;
    struct ibv_send_wr *bad;
    for (unsigned i = 0; i < builder->count && builder->error == 0; i++) {
        slot_finish(qp, builder, i);
    }
    if (builder->error != 0 || builder->count == 0) {
        return builder->error;
    }
    if (ibverbs_ops(&qp->object)->send_room(qp->object.device) < builder->count) {
        return ENOMEM;
    }
    return ibverbs_post_send(&qp->base, &slot_at(builder, 0)->wr, &bad);
}

static int wr_complete(struct ibv_qp_ex *ex)
{
    IBVERBS_ENTER(library_of(ex));
    int error = batch_post((struct ibverbs_qp *)ex);
    ibverbs_disown(entered, &builder_of(ex)->owner);
    return error;
}

// --- requests -------------------------------------------------------------------------------------------------------

static bool builder_grow(struct ibverbs_builder *builder)
{
    unsigned room = builder->room == 0 ? SLOTS_FIRST : 2 * builder->room;
    uint8_t *slots = realloc(builder->slots, room * builder->slot_bytes);
    if (slots == NULL) {
        return false;
    }
    builder->slots = slots;
    builder->room = room;
    return true;
}

// Adds the next request, with the wr_id and the flags that are set on the queue pair. NULL: the batch has failed.
static struct ibv_send_wr *request_add(struct ibv_qp_ex *ex, enum ibv_wr_opcode opcode)
{
    struct ibverbs_builder *builder = builder_of(ex);
    bool room = builder->count < ((struct ibverbs_qp *)ex)->attr.cap.max_send_wr;
    if (!room || (builder->count == builder->room && !builder_grow(builder))) {
        batch_fail(builder, ENOMEM);
    }
    if (builder->error != 0) {
        return NULL;
    }
    struct slot *slot = slot_at(builder, builder->count++);
    *slot = (struct slot){.wr = {.wr_id = ex->wr_id, .opcode = opcode, .send_flags = ex->wr_flags}};
    return &slot->wr;
}

static void wr_send(struct ibv_qp_ex *ex)
{
    (void)request_add(ex, IBV_WR_SEND);
}

static void wr_send_imm(struct ibv_qp_ex *ex, __be32 imm_data)
{
    struct ibv_send_wr *wr = request_add(ex, IBV_WR_SEND_WITH_IMM);
    if (wr != NULL) {
        wr->imm_data = imm_data;
    }
}

static struct ibv_send_wr *rdma_add(struct ibv_qp_ex *ex, enum ibv_wr_opcode opcode, uint32_t rkey, uint64_t address)
{
    struct ibv_send_wr *wr = request_add(ex, opcode);
    if (wr != NULL) {
        wr->wr.rdma.remote_addr = address;
        wr->wr.rdma.rkey = rkey;
    }
    return wr;
}

static void wr_rdma_read(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr)
{
    (void)rdma_add(ex, IBV_WR_RDMA_READ, rkey, remote_addr);
}

static void wr_rdma_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr)
{
    (void)rdma_add(ex, IBV_WR_RDMA_WRITE, rkey, remote_addr);
}

static void wr_rdma_write_imm(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr, __be32 imm_data)
{
    struct ibv_send_wr *wr = rdma_add(ex, IBV_WR_RDMA_WRITE_WITH_IMM, rkey, remote_addr);
    if (wr != NULL) {
        wr->imm_data = imm_data;
    }
}

static void atomic_add(struct ibv_qp_ex *ex, enum ibv_wr_opcode opcode, uint32_t rkey, uint64_t address,
                       uint64_t compare_add, uint64_t swap)
{
    struct ibv_send_wr *wr = request_add(ex, opcode);
    if (wr != NULL) {
        wr->wr.atomic.remote_addr = address;
        wr->wr.atomic.compare_add = compare_add;
        wr->wr.atomic.swap = swap;
        wr->wr.atomic.rkey = rkey;
    }
}

static void wr_atomic_cmp_swp(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr, uint64_t compare,
                              uint64_t swap)
{
    atomic_add(ex, IBV_WR_ATOMIC_CMP_AND_SWP, rkey, remote_addr, compare, swap);
}

static void wr_atomic_fetch_add(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr, uint64_t add)
{
    atomic_add(ex, IBV_WR_ATOMIC_FETCH_AND_ADD, rkey, remote_addr, add, 0);
}

// --- setters of the request added last ------------------------------------------------------------------------------

static struct slot *slot_last(struct ibverbs_builder *builder)
{
    if (builder->error == 0 && builder->count == 0) {
        batch_fail(builder, EINVAL);
    }
    return builder->error == 0 ? slot_at(builder, builder->count - 1) : NULL;
}

static void wr_set_ud_addr(struct ibv_qp_ex *ex, struct ibv_ah *ah, uint32_t remote_qpn, uint32_t remote_qkey)
{
    struct slot *slot = slot_last(builder_of(ex));
    if (slot != NULL) {
        slot->wr.wr.ud.ah = ah;
        slot->wr.wr.ud.remote_qpn = remote_qpn;
        slot->wr.wr.ud.remote_qkey = remote_qkey;
    }
}

static void wr_set_xrc_srqn(struct ibv_qp_ex *ex, uint32_t remote_srqn)
{
    struct slot *slot = slot_last(builder_of(ex));
    if (slot != NULL) {
        slot->wr.qp_type.xrc.remote_srqn = remote_srqn;
    }
}

static void wr_set_sge_list(struct ibv_qp_ex *ex, size_t num_sge, const struct ibv_sge *sg_list)
{
    struct ibverbs_builder *builder = builder_of(ex);
    if (num_sge > ((struct ibverbs_qp *)ex)->attr.cap.max_send_sge) {
        batch_fail(builder, ENOMEM);
    }
    struct slot *slot = slot_last(builder);
    if (slot != NULL && num_sge > 0) {
        memcpy(slot_data(slot), sg_list, num_sge * sizeof *sg_list);
        slot->wr.num_sge = (int)num_sge;
    }
}

static void wr_set_sge(struct ibv_qp_ex *ex, uint32_t lkey, uint64_t addr, uint32_t length)
{
    const struct ibv_sge sge = {.addr = addr, .length = length, .lkey = lkey};
    wr_set_sge_list(ex, 1, &sge);
}

static void wr_set_inline_data_list(struct ibv_qp_ex *ex, size_t num_buf, const struct ibv_data_buf *buf_list)
{
    struct ibverbs_builder *builder = builder_of(ex);
    size_t limit = ((struct ibverbs_qp *)ex)->attr.cap.max_inline_data, at = 0;
    struct slot *slot = slot_last(builder);
    for (size_t i = 0; i < num_buf && slot != NULL; i++) {
        if (buf_list[i].length > limit - at) {
            batch_fail(builder, ENOMEM);
            return;
        }
        memcpy(slot_data(slot) + at, buf_list[i].addr, buf_list[i].length);
        at += buf_list[i].length;
    }
    if (slot != NULL) {
        slot->has_segment = true;
        slot->segment.length = (uint32_t)at;
        slot->wr.num_sge = 1;
        slot->wr.send_flags |= IBV_SEND_INLINE;
    }
}

static void wr_set_inline_data(struct ibv_qp_ex *ex, void *addr, size_t length)
{
    const struct ibv_data_buf buf = {.addr = addr, .length = length};
    wr_set_inline_data_list(ex, 1, &buf);
}

// --- the table ------------------------------------------------------------------------------------------------------

// An operation that was not requested has no function.
static void functions_set(struct ibv_qp_ex *ex, uint64_t ops, enum ibv_qp_type type)
{
    ex->wr_start = wr_start;
    ex->wr_complete = wr_complete;
    ex->wr_abort = wr_abort;
    ex->wr_set_sge = wr_set_sge;
    ex->wr_set_sge_list = wr_set_sge_list;
    ex->wr_set_inline_data = wr_set_inline_data;
    ex->wr_set_inline_data_list = wr_set_inline_data_list;
    ex->wr_set_ud_addr = type == IBV_QPT_UD ? wr_set_ud_addr : NULL;
    ex->wr_set_xrc_srqn = type == IBV_QPT_XRC_SEND ? wr_set_xrc_srqn : NULL;
    ex->wr_send = (ops & IBV_QP_EX_WITH_SEND) != 0 ? wr_send : NULL;
    ex->wr_send_imm = (ops & IBV_QP_EX_WITH_SEND_WITH_IMM) != 0 ? wr_send_imm : NULL;
    ex->wr_rdma_write = (ops & IBV_QP_EX_WITH_RDMA_WRITE) != 0 ? wr_rdma_write : NULL;
    ex->wr_rdma_write_imm = (ops & IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM) != 0 ? wr_rdma_write_imm : NULL;
    ex->wr_rdma_read = (ops & IBV_QP_EX_WITH_RDMA_READ) != 0 ? wr_rdma_read : NULL;
    ex->wr_atomic_cmp_swp = (ops & IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP) != 0 ? wr_atomic_cmp_swp : NULL;
    ex->wr_atomic_fetch_add = (ops & IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD) != 0 ? wr_atomic_fetch_add : NULL;
}

int ibverbs_builder_create(struct ibverbs_qp *qp, uint64_t ops)
{
    struct ibverbs_builder *builder = calloc(1, sizeof *builder);
    if (builder == NULL) {
        return -ENOMEM;
    }
    size_t segments = qp->attr.cap.max_send_sge * sizeof(struct ibv_sge), inlined = qp->attr.cap.max_inline_data;
    size_t data = segments > inlined ? segments : inlined;
    builder->slot_bytes = (sizeof(struct slot) + data + 15) & ~(size_t)15;
    qp->builder = builder;
    functions_set(&qp->ex, ops, qp->base.qp_type);
    return 0;
}

void ibverbs_builder_destroy(struct ibverbs_builder *builder)
{
    if (builder != NULL) {
        free(builder->slots);
        free(builder);
    }
}
