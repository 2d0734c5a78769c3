#include "verbs-shim/ibverbs/check.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static const struct backend *backend_of(const struct ibverbs_library *library)
{
    return &library->process->backend;
}

void ibverbs_refuse_why(struct ibverbs_library *library, enum journal_reason reason, uint64_t a, uint64_t b)
{
    if (library->refused.reason == JOURNAL_WHY_NONE) {
        library->refused = (struct ibverbs_refusal){reason, a, b};
    }
}

uint64_t ibverbs_note_begin(struct ibverbs_library *library)
{
    library->refused.reason = JOURNAL_WHY_NONE;
    return library->journal != NULL ? library->journal->now_ps(backend_of(library)->ctx) : 0;
}

void ibverbs_note_end(struct ibverbs_context *context, uint64_t began_ps, enum journal_call call, int error,
                      struct journal_record *record)
{
    record->context = context->number;
    ibverbs_note_library(context->device->library, began_ps, call, error, record);
}

void ibverbs_note_library(struct ibverbs_library *library, uint64_t began_ps, enum journal_call call, int error,
                          struct journal_record *record)
{
    if (library->journal == NULL || library->abandoned) {
        return;
    }
    record->call = (uint16_t)call;
    record->error = error;
    record->began_ps = began_ps;
    if (error != 0) {
        record->reason = (uint16_t)library->refused.reason;
        record->a = library->refused.a;
        record->b = library->refused.b;
    }
    library->journal->note(backend_of(library)->ctx, record);
}

// --- objects --------------------------------------------------------------------------------------------------------

void ibverbs_note_object(struct ibverbs_context *context, uint64_t began_ps, enum journal_call call, int error,
                         uint32_t handle, uint32_t value)
{
    struct journal_record record = {.object = {handle, value}};
    ibverbs_note_end(context, began_ps, call, error, &record);
}

void ibverbs_note_context(struct ibverbs_context *context, uint64_t began_ps, int error)
{
    if (ibverbs_notes(context->device->library)) {
        struct ibv_port_attr port = {0};
        struct journal_record record = {.device = {.vendor_part = context->device->info.attr.vendor_part_id}};
        (void)context->device->ops->query_port(context->device->object, 1, &port);
        record.device.lid = port.lid;
        (void)snprintf(record.device.device, sizeof record.device.device, "%.15s", context->device->base.name);
        ibverbs_note_end(context, began_ps, JOURNAL_OPEN_DEVICE, error, &record);
    }
}

void ibverbs_note_mr(const struct ibverbs_mr *mr, uint64_t began_ps)
{
    struct journal_record record = {.mr = {.address = (uintptr_t)mr->base.addr,
                                           .bytes = mr->base.length,
                                           .iova = mr->iova,
                                           .handle = mr->base.handle,
                                           .pd = mr->base.pd->handle,
                                           .lkey = mr->base.lkey,
                                           .rkey = mr->base.rkey,
                                           .access = mr->access}};
    bool (*is_copied)(void *) = ibverbs_ops(&mr->object)->mr_is_copied;
    record.mr.is_copied = is_copied != NULL && is_copied(mr->object.device);
    ibverbs_note_end(mr->object.context, began_ps, JOURNAL_REG_MR, 0, &record);
}

void ibverbs_note_mr_refused(struct ibverbs_pd *pd, uint64_t began_ps, int error, const struct ibverbs_region *region)
{
    struct journal_record record = {.mr = {.address = (uintptr_t)region->address,
                                           .bytes = region->bytes,
                                           .iova = region->iova,
                                           .pd = pd->base.handle,
                                           .access = region->access}};
    ibverbs_note_end(pd->object.context, began_ps, JOURNAL_REG_MR, error, &record);
}

struct journal_record ibverbs_record_cq(const struct ibverbs_cq *cq)
{
    const struct ibverbs_channel *channel = (struct ibverbs_channel *)cq->base.channel;
    return (struct journal_record){
        .cq = {cq->base.handle, (uint32_t)cq->base.cqe, channel != NULL ? channel->handle + 1 : 0}};
}

void ibverbs_note_cq(struct ibverbs_cq *cq, uint64_t began_ps, enum journal_call call, int error)
{
    struct journal_record record = ibverbs_record_cq(cq);
    ibverbs_note_end(cq->object.context, began_ps, call, error, &record);
}

void ibverbs_note_cq_refused(struct ibverbs_context *context, uint64_t began_ps, int error, uint32_t entries)
{
    struct journal_record record = {.cq = {.entries = entries}};
    ibverbs_note_end(context, began_ps, JOURNAL_CREATE_CQ, error, &record);
}

static struct journal_qp qp_describe(const struct ibv_qp_cap *cap, enum ibv_qp_type type)
{
    return (struct journal_qp){.type = type,
                               .max_send = cap->max_send_wr,
                               .max_receive = cap->max_recv_wr,
                               .max_send_segments = cap->max_send_sge,
                               .max_receive_segments = cap->max_recv_sge,
                               .max_inline = cap->max_inline_data};
}

struct journal_record ibverbs_record_qp(const struct ibverbs_qp *qp)
{
    const struct ibv_qp *base = &qp->base;
    struct journal_record record = {.qp = qp_describe(&qp->attr.cap, base->qp_type)};
    record.qp.number = base->qp_num;
    record.qp.pd = base->pd != NULL ? base->pd->handle : 0;
    record.qp.send_cq = base->send_cq != NULL ? base->send_cq->handle : 0;
    record.qp.receive_cq = base->recv_cq != NULL ? base->recv_cq->handle + 1 : 0;
    record.qp.srq = base->srq != NULL ? base->srq->handle + 1 : 0;
    record.qp.all_signaled = qp->all_signaled;
    return record;
}

void ibverbs_note_qp(struct ibverbs_qp *qp, uint64_t began_ps, int error)
{
    struct journal_record record = ibverbs_record_qp(qp);
    ibverbs_note_end(qp->object.context, began_ps, JOURNAL_CREATE_QP, error, &record);
}

void ibverbs_note_qp_refused(struct ibverbs_context *context, uint64_t began_ps, int error,
                             const struct ibv_qp_init_attr *init)
{
    struct journal_record record = {.qp = qp_describe(&init->cap, init->qp_type)};
    ibverbs_note_end(context, began_ps, JOURNAL_CREATE_QP, error, &record);
}

void ibverbs_note_modify(struct ibverbs_qp *qp, uint64_t began_ps, int error, const struct ibv_qp_attr *attr, int mask,
                         enum ibv_qp_state from)
{
    struct journal_record record = {
        .modify = {.number = qp->base.qp_num,
                   .mask = (uint32_t)mask,
                   .from = from,
                   .to = (mask & IBV_QP_STATE) != 0 ? attr->qp_state : from,
                   .dest = attr->dest_qp_num,
                   .dlid = attr->ah_attr.dlid,
                   .mtu_bytes = 128u << (attr->path_mtu <= IBV_MTU_4096 ? attr->path_mtu : 0),
                   .access = attr->qp_access_flags,
                   .send_psn = attr->sq_psn,
                   .receive_psn = attr->rq_psn,
                   .qkey = attr->qkey,
                   .retry_count = attr->retry_cnt,
                   .rnr_retry = attr->rnr_retry,
                   .timeout = attr->timeout,
                   .min_rnr_timer = attr->min_rnr_timer,
                   .reads = attr->max_rd_atomic,
                   .dest_reads = attr->max_dest_rd_atomic}};
    ibverbs_note_end(qp->object.context, began_ps, JOURNAL_MODIFY_QP, error, &record);
}

// --- posts ----------------------------------------------------------------------------------------------------------

static uint64_t segments_bytes(const struct ibv_sge *list, int count)
{
    uint64_t bytes = 0;
    for (int i = 0; i < count; i++) {
        bytes += list[i].length;
    }
    return bytes;
}

static bool is_atomic(enum ibv_wr_opcode opcode)
{
    return ibverbs_opcode_has(opcode, HCA_HAS_ATOMIC);
}

static struct journal_send send_describe(const struct ibverbs_qp *qp, const struct ibv_send_wr *wr)
{
    bool has_list = wr->num_sge > 0 && (uint32_t)wr->num_sge <= qp->attr.cap.max_send_sge;
    struct journal_send send = {.wr_id = wr->wr_id,
                                .qp = qp->base.qp_num,
                                .opcode = wr->opcode,
                                .flags = wr->send_flags,
                                .segments = (uint32_t)wr->num_sge,
                                .signaled = qp->all_signaled || (wr->send_flags & IBV_SEND_SIGNALED) != 0};
    if (has_list) {
        send.bytes = segments_bytes(wr->sg_list, wr->num_sge);
        send.address = wr->sg_list[0].addr;
        send.lkey = (wr->send_flags & IBV_SEND_INLINE) == 0 ? wr->sg_list[0].lkey : 0;
    }
    if (ibverbs_opcode_has(wr->opcode, HCA_HAS_REMOTE)) {
        send.remote_address = is_atomic(wr->opcode) ? wr->wr.atomic.remote_addr : wr->wr.rdma.remote_addr;
        send.rkey = is_atomic(wr->opcode) ? wr->wr.atomic.rkey : wr->wr.rdma.rkey;
    }
    return send;
}

void ibverbs_note_sends(struct ibverbs_qp *qp, uint64_t began_ps, const struct ibv_send_wr *wr, unsigned count,
                        int error)
{
    bool all = ibverbs_notes_all(qp->object.context->device->library);
    uint32_t follows = 0;
    for (; wr != NULL && (count > 0 || error != 0); wr = wr->next) {
        int its_error = count > 0 ? 0 : error;
        if (all || its_error != 0) {
            struct journal_record record = {.follows = follows++, .send = send_describe(qp, wr)};
            ibverbs_note_end(qp->object.context, began_ps, JOURNAL_POST_SEND, its_error, &record);
        }
        if (its_error != 0) {
            return;
        }
        count--;
    }
}

static void poster_name(const void *caller, char name[JOURNAL_NAME_BYTES])
{
    Dl_info info;
    if (dladdr(caller, &info) != 0 && info.dli_fname != NULL) {
        const char *slash = strrchr(info.dli_fname, '/');
        snprintf(name, JOURNAL_NAME_BYTES, "%s", slash != NULL ? slash + 1 : info.dli_fname);
    }
}

void ibverbs_note_receives(struct ibverbs_context *context, uint64_t began_ps, enum journal_call call, uint32_t queue,
                           const void *caller, const struct ibv_recv_wr *wr, unsigned count, int error)
{
    bool all = ibverbs_notes_all(context->device->library);
    char poster[JOURNAL_NAME_BYTES] = {0};
    if (all) {
        poster_name(caller, poster);
    }
    uint32_t follows = 0;
    for (; wr != NULL && (count > 0 || error != 0); wr = wr->next) {
        int its_error = count > 0 ? 0 : error;
        bool has_list = its_error == 0 && wr->num_sge > 0;
        if (all || its_error != 0) {
            struct journal_record record = {
                .follows = follows++,
                .receive = {.wr_id = wr->wr_id,
                            .bytes = has_list ? segments_bytes(wr->sg_list, wr->num_sge) : 0,
                            .address = has_list ? wr->sg_list[0].addr : 0,
                            .lkey = has_list ? wr->sg_list[0].lkey : 0,
                            .segments = (uint32_t)wr->num_sge,
                            .queue = queue}};
            memcpy(record.receive.poster, poster, sizeof poster);
            ibverbs_note_end(context, began_ps, call, its_error, &record);
        }
        if (its_error != 0) {
            return;
        }
        count--;
    }
}

// --- polls ----------------------------------------------------------------------------------------------------------

static bool is_receive(const struct ibv_wc *wc)
{
    return (wc->opcode & IBV_WC_RECV) != 0;
}

struct ibverbs_qp *ibverbs_qp_of_number(const struct ibverbs_context *context, uint32_t number)
{
    const struct ibverbs_object *at = context->objects[IBVERBS_QP];
    while (at != NULL && ((const struct ibverbs_qp *)at->container)->base.qp_num != number) {
        at = at->next;
    }
    return at != NULL ? at->container : NULL;
}

static struct journal_completion completion_describe(const struct ibverbs_cq *cq, const struct ibv_wc *wc)
{
    struct journal_completion completion = {.wr_id = wc->wr_id,
                                            .bytes = wc->byte_len,
                                            .cq = cq->base.handle,
                                            .qp = wc->qp_num,
                                            .status = wc->status,
                                            .opcode = wc->opcode,
                                            .vendor_error = wc->vendor_err,
                                            .source_qp = wc->src_qp,
                                            .is_receive = is_receive(wc)};
    bool failed = wc->status != IBV_WC_SUCCESS && wc->status != IBV_WC_WR_FLUSH_ERR;
    const struct ibverbs_qp *qp = failed ? ibverbs_qp_of_number(cq->object.context, wc->qp_num) : NULL;
    struct ibverbs_failure failure;
    if (qp != NULL && ibverbs_ops(&qp->object)->qp_failure != NULL &&
        ibverbs_ops(&qp->object)->qp_failure(qp->object.device, &failure)) {
        completion.is_known = true;
        completion.opcode = failure.opcode;
        completion.is_receive = failure.is_receive;
        completion.posted_bytes = failure.bytes;
        completion.remote_address = failure.remote_address;
        completion.rkey = failure.rkey;
        completion.address = failure.address;
        completion.first_bytes = failure.first_bytes;
        completion.segments = failure.segments;
        completion.lkey = failure.lkey;
    }
    return completion;
}

static void completions_note(struct ibverbs_cq *cq, uint64_t began_ps, const struct ibv_wc *wc, int count)
{
    struct ibverbs_library *library = cq->object.context->device->library;
    uint32_t follows = 0;
    for (int i = 0; i < count; i++) {
        if (library->checks) {
            ibverbs_check_completion(cq, &wc[i]);
        }
        if (library->journal_all || wc[i].status != IBV_WC_SUCCESS) {
            struct journal_record record = {.follows = follows++, .completion = completion_describe(cq, &wc[i])};
            ibverbs_note_end(cq->object.context, began_ps, JOURNAL_POLL_CQ, 0, &record);
        }
    }
}

static void taken_note(struct ibverbs_cq *cq, const struct ibv_wc *wc, int count)
{
    struct ibverbs_library *library = cq->object.context->device->library;
    const struct ibv_wc *last = &wc[count - 1];
    library->polled = library->polled == cq ? NULL : library->polled;
    cq->taken += (unsigned)count;
    cq->taken_ps = atomic_load_explicit(library->slot_ps, memory_order_relaxed);
    cq->last = (struct journal_request){last->wr_id, last->qp_num, last->opcode, last->status};
}

void ibverbs_note_poll(struct ibverbs_cq *cq, uint64_t began_ps, const struct ibv_wc *wc, int count)
{
    const struct ibverbs_library *library = cq->object.context->device->library;
    if (library->journal == NULL) {
        return;
    }
    if (count > 0) {
        completions_note(cq, began_ps, wc, count);
        taken_note(cq, wc, count);
    } else if (library->journal_all && library->journal->nothing != NULL) {
        library->journal->nothing(library->process->backend.ctx);
    }
}

// --- state of queues ------------------------------------------------------------------------------------------------

// In the queue for its sends, of this queue pair at most.
static unsigned completions_waiting(const struct ibverbs_qp *qp)
{
    const struct ibverbs_cq *cq = (const struct ibverbs_cq *)qp->base.send_cq;
    struct ibv_wc first;
    return cq != NULL && ibverbs_ops(&cq->object)->cq_waiting != NULL
               ? ibverbs_ops(&cq->object)->cq_waiting(cq->object.device, &first)
               : 0;
}

static struct journal_state qp_state(struct ibverbs_qp *qp)
{
    struct journal_state state = {.context = qp->object.context->number, .number = qp->base.qp_num};
    state.qp.state = qp->base.state;
    state.qp.sends_posted = qp->sends_posted;
    state.qp.receives_posted = qp->receives_posted;
    state.qp.last_receive_ps = qp->last_receive_ps;
    state.qp.unsignaled = qp->unsignaled;
    unsigned sends = 0, receives = 0;
    if (ibverbs_ops(&qp->object)->qp_outstanding != NULL) {
        ibverbs_ops(&qp->object)->qp_outstanding(qp->object.device, &sends, &receives);
    }
    state.qp.sends_outstanding = sends;
    state.qp.receives_outstanding = receives;
    state.qp.needs_receive = qp->last_message > qp->sends_posted - sends && sends > completions_waiting(qp);
    return state;
}

static struct journal_state cq_state(const struct ibverbs_cq *cq)
{
    struct journal_state state = {.is_cq = 1, .context = cq->object.context->number, .number = cq->base.handle};
    struct ibv_wc first = {0};
    if (ibverbs_ops(&cq->object)->cq_waiting != NULL) {
        state.cq.waiting = ibverbs_ops(&cq->object)->cq_waiting(cq->object.device, &first);
    }
    state.cq.taken = cq->taken;
    state.cq.taken_ps = cq->taken_ps;
    state.cq.last = cq->last;
    state.cq.first = (struct journal_request){first.wr_id, first.qp_num, first.opcode, first.status};
    state.cq.armed = cq->base.channel != NULL ? cq->armed : JOURNAL_ARMED_NO_CHANNEL;
    state.cq.unacknowledged = cq->completions_taken - cq->base.comp_events_completed;
    state.cq.is_polled = cq->object.context->device->library->polled == cq;
    return state;
}

static unsigned objects_describe(const struct ibverbs_context *context, enum ibverbs_kind kind,
                                 struct journal_state *states, unsigned count, unsigned room)
{
    for (const struct ibverbs_object *at = context->objects[kind]; at != NULL && count < room; at = at->next) {
        if (!at->ending) {
            states[count++] = kind == IBVERBS_QP ? qp_state(at->container) : cq_state(at->container);
        }
    }
    return count;
}

unsigned ibverbs_describe(void *arg, struct journal_state *states, unsigned room)
{
    const struct ibverbs_library *library = arg;
    unsigned count = 0;
    for (const struct ibverbs_context *context = library->contexts; context != NULL; context = context->next) {
        count = objects_describe(context, IBVERBS_QP, states, count, room);
        count = objects_describe(context, IBVERBS_CQ, states, count, room);
    }
    return count;
}
