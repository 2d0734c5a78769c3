// Queue pairs and shared receive queues.
#include <stdlib.h>
#include <string.h>

#include "verbs-shim/hca/hca_internal.h"

enum { RECORD_BYTES = 64, STRIDE_MIN = 64 };

// --- receive rings ---------------------------------------------------------------------------------------------------

uint32_t hca_receive_stride(unsigned segments)
{
    return hca_round_up((uint32_t)(sizeof(struct hca_wqe_receive) + segments * sizeof(struct hca_wqe_data)), 32);
}

void hca_receive_reset(struct hca_receive_ring *receive)
{
    receive->posted = 0;
    receive->free_count = receive->entries;
    for (uint32_t i = 0; i < receive->entries; i++) {
        receive->cookies[i] = receive->entries - 1 - i;
    }
    *receive->record = 0;
}

int hca_receive_init(struct hca_receive_ring *receive, uint32_t entries, uint32_t segments, uint8_t *ring,
                     volatile uint64_t *record)
{
    *receive = (struct hca_receive_ring){.ring = ring,
                                         .record = record,
                                         .entries = entries,
                                         .segments = segments,
                                         .stride_bytes = hca_receive_stride(segments)};
    receive->wr_ids = malloc(entries * sizeof *receive->wr_ids);
    receive->buffers = malloc(entries * sizeof *receive->buffers);
    receive->cookies = malloc(entries * sizeof *receive->cookies);
    if (receive->wr_ids == NULL || receive->buffers == NULL || receive->cookies == NULL) {
        hca_receive_fini(receive);
        return -ENOMEM;
    }
    hca_receive_reset(receive);
    return 0;
}

void hca_receive_fini(struct hca_receive_ring *receive)
{
    free(receive->wr_ids);
    free(receive->buffers);
    free(receive->cookies);
    receive->buffers = NULL;
    receive->wr_ids = NULL;
    receive->cookies = NULL;
}

uint64_t hca_receive_take(struct hca_receive_ring *receive, uint32_t cookie)
{
    receive->cookies[receive->free_count++] = cookie;
    return receive->wr_ids[cookie];
}

// --- queue pairs -----------------------------------------------------------------------------------------------------

static uint32_t send_stride(enum hca_qp_type type, unsigned segments, unsigned inline_bytes)
{
    uint32_t head = sizeof(struct hca_wqe_control);
    head += type == HCA_XRC_INITIATOR ? sizeof(struct hca_wqe_xrc) : 0;
    head += type == HCA_UD ? sizeof(struct hca_wqe_datagram)
                           : sizeof(struct hca_wqe_remote) + sizeof(struct hca_wqe_atomic);
    uint32_t data = segments * (uint32_t)sizeof(struct hca_wqe_data);
    return hca_round_up(head + (data > inline_bytes ? data : inline_bytes), STRIDE_MIN);
}

static bool create_valid(const hca_pd_t *pd, const struct hca_qp_create *create)
{
    const struct hca_device_info *info = &pd->context->info;
    if (create->type == HCA_XRC_TARGET) {
        return create->xrcd != NULL;
    }
    return create->type < HCA_QP_TYPES && create->send_cq != NULL && create->receive_cq != NULL &&
           create->send_entries <= info->max_qp_entries && create->receive_entries <= info->max_qp_entries &&
           create->send_entries <= 32768 && create->send_segments <= info->max_segments &&
           create->receive_segments <= info->max_segments && create->inline_bytes <= info->max_inline_bytes;
}

static void sizes_decide(hca_qp_t *qp, struct hca_qp_create *create)
{
    bool receives = qp->srq == NULL && create->type < HCA_XRC_INITIATOR;
    qp->send_entries = hca_sends(create->type) ? hca_round_up(create->send_entries, 1) : 0;
    qp->send_segments = create->send_segments == 0 ? 1 : create->send_segments;
    qp->inline_bytes = create->inline_bytes;
    qp->send_stride_bytes = send_stride(create->type, qp->send_segments, create->inline_bytes);
    qp->receive.entries = !receives ? 0 : hca_round_up(create->receive_entries, 1);
    qp->receive.segments = create->receive_segments == 0 ? 1 : create->receive_segments;
    create->send_entries = qp->send_entries;
    create->send_segments = qp->send_segments;
    create->receive_entries = qp->receive.entries;
    create->receive_segments = !receives ? 0 : qp->receive.segments;
}

static size_t send_ring_bytes(const hca_qp_t *qp)
{
    return ((size_t)qp->send_entries * qp->send_stride_bytes + 1023) & ~(size_t)1023;
}

static size_t receive_ring_bytes(const hca_qp_t *qp)
{
    return ((size_t)qp->receive.entries * hca_receive_stride(qp->receive.segments) + 63) & ~(size_t)63;
}

size_t hca_qp_bytes(const struct hca_qp_create *create)
{
    struct hca_qp_create decided = *create;
    hca_qp_t qp = {.srq = create->srq};
    sizes_decide(&qp, &decided);
    return sizeof qp + send_ring_bytes(&qp) + receive_ring_bytes(&qp) + RECORD_BYTES +
           qp.send_entries * sizeof *qp.wr_ids +
           qp.receive.entries * (sizeof *qp.receive.wr_ids + sizeof *qp.receive.cookies);
}

// Send ring, receive ring, record. Strides are powers of two smaller than a page, so every entry is aligned to its
// stride.
static int memory_create(hca_qp_t *qp, struct hca_qp_init *init)
{
    hca_context_t *context = qp->pd->context;
    size_t send_bytes = send_ring_bytes(qp), receive_bytes = receive_ring_bytes(qp);
    int status = context->backend.ops->alloc_pinned(context->backend.ctx, send_bytes + receive_bytes + RECORD_BYTES,
                                                    &qp->buffer);
    if (status != 0) {
        return status;
    }
    qp->send_ring = qp->buffer.address;
    init->send_base = qp->buffer.bus_address;
    init->send_entries = qp->send_entries;
    init->send_stride_bytes = qp->send_stride_bytes;
    init->receive_base = qp->buffer.bus_address + send_bytes;
    init->receive_record = init->receive_base + receive_bytes;
    init->receive_entries = qp->receive.entries;
    init->receive_stride_bytes = hca_receive_stride(qp->receive.segments);
    qp->wr_ids = malloc((qp->send_entries + 1) * sizeof *qp->wr_ids);
    uint8_t *ring = qp->send_ring + send_bytes;
    if (qp->wr_ids == NULL) {
        return -ENOMEM;
    }
    return qp->receive.entries == 0 ? 0
                                    : hca_receive_init(&qp->receive, qp->receive.entries, qp->receive.segments, ring,
                                                       (volatile uint64_t *)(void *)(ring + receive_bytes));
}

static void qp_free(hca_qp_t *qp)
{
    const struct backend *backend = &qp->pd->context->backend;
    if (qp->buffer.bytes > 0) {
        backend->ops->free_pinned(backend->ctx, &qp->buffer);
    }
    hca_receive_fini(&qp->receive); // does nothing if there is no receive queue
    free(qp->wr_ids);
    free(qp);
}

static void users_add(hca_qp_t *qp, uint32_t count)
{
    qp->pd->users += count;
    if (qp->send_cq != NULL) {
        qp->send_cq->users += count;
        qp->receive_cq->users += count;
    }
    if (qp->srq != NULL) {
        qp->srq->users += count;
    }
}

int hca_qp_create(hca_pd_t *pd, struct hca_qp_create *create, hca_qp_t **qp_out)
{
    bool target = create->type == HCA_XRC_TARGET;
    pd = target && create->xrcd != NULL ? create->xrcd->pd : pd;
    if (!create_valid(pd, create)) {
        return -EINVAL;
    }
    hca_qp_t *qp = calloc(1, sizeof *qp);
    if (qp == NULL) {
        return -ENOMEM;
    }
    qp->pd = pd;
    qp->type = create->type;
    qp->all_signaled = create->all_signaled;
    qp->user = create->user;
    qp->send_cq = create->send_cq;
    qp->receive_cq = create->receive_cq;
    qp->srq = create->srq;
    sizes_decide(qp, create);
    struct hca_command command = {.id = HCA_CMD_QP_CREATE};
    command.qp_create = (struct hca_qp_init){.type = create->type,
                               .eqn = pd->context->eqn,
                               .pdn = pd->number,
                               .uar = pd->context->uar,
                               .xrcdn = target ? create->xrcd->number : HCA_NO_XRCD,
                               .send_cqn = target ? 0 : create->send_cq->number,
                               .receive_cqn = target ? 0 : create->receive_cq->number,
                               .srqn = create->srq != NULL ? create->srq->number : HCA_NO_SRQ};
    int status = memory_create(qp, &command.qp_create);
    if (status == 0) {
        status = hca_create(pd->context, command, &qp->number);
    }
    if (status != 0) {
        qp_free(qp);
        return status;
    }
    if (!hca_numbered_set(&pd->context->qps, qp->number, qp)) {
        (void)hca_command_plain(pd->context, HCA_CMD_QP_DESTROY, qp->number);
        qp_free(qp);
        return -ENOMEM;
    }
    users_add(qp, 1);
    *qp_out = qp;
    return 0;
}

static void completions_forget(hca_qp_t *qp)
{
    if (qp->send_cq == NULL) {
        return; // the completions of a target are in the CQs of shared receive queues
    }
    hca_cq_clean(qp->send_cq, qp);
    if (qp->receive_cq != qp->send_cq) {
        hca_cq_clean(qp->receive_cq, qp);
    }
}

int hca_qp_destroy(hca_qp_t *qp)
{
    hca_context_t *context = qp->pd->context;
    int status = hca_command_plain(context, HCA_CMD_QP_DESTROY, qp->number);
    if (status != 0) {
        return status;
    }
    completions_forget(qp);
    (void)hca_numbered_set(&context->qps, qp->number, NULL);
    users_add(qp, UINT32_MAX); // one user less
    qp_free(qp);
    return 0;
}

uint32_t hca_qp_number(const hca_qp_t *qp)
{
    return qp->number;
}

enum hca_qp_type hca_qp_type(const hca_qp_t *qp)
{
    return qp->type;
}

unsigned hca_qp_send_room(const hca_qp_t *qp)
{
    return qp->send_entries - (qp->send_posted - qp->send_done);
}

int hca_qp_modify(hca_qp_t *qp, uint32_t mask, const struct hca_qp_attr *attr)
{
    hca_context_t *context = qp->pd->context;
    struct hca_command modify = {.id = HCA_CMD_QP_MODIFY, .number = qp->number, .qp_modify = {mask, *attr}};
    int status = hca_command(context, &modify);
    if (status != 0 || (mask & HCA_QP_STATE) == 0) {
        return status;
    }
    qp->state = attr->state;
    qp->failed = attr->state == HCA_ERROR;
    if (attr->state == HCA_RESET) {
        completions_forget(qp);
        qp->send_posted = 0;
        qp->send_done = 0;
        if (qp->receive.entries != 0) {
            hca_receive_reset(&qp->receive);
        }
    }
    return 0;
}

int hca_qp_query(hca_qp_t *qp, struct hca_qp_attr *attr_out)
{
    hca_context_t *context = qp->pd->context;
    struct hca_command query = {.id = HCA_CMD_QP_QUERY, .number = qp->number};
    int status = hca_command(context, &query);
    *attr_out = query.qp_query;
    if (status == 0 && attr_out->state == HCA_ERROR) { // it may have gone to ERROR by itself
        qp->state = HCA_ERROR;
    }
    return status;
}

int hca_qp_group(hca_qp_t *qp, const uint8_t mgid[16], uint16_t mlid, bool joins)
{
    const hca_context_t *context = qp->pd->context;
    struct hca_command command = {.id = joins ? HCA_CMD_GROUP_ATTACH : HCA_CMD_GROUP_DETACH, .number = qp->number};
    struct hca_group *group = joins ? &command.group_attach : &command.group_detach;
    memcpy(group->mgid, mgid, sizeof group->mgid);
    group->mlid = mlid;
    return hca_command(context, &command);
}

// --- shared receive queues -------------------------------------------------------------------------------------------

int hca_srq_create(hca_pd_t *pd, unsigned entries, unsigned segments, void *user, const hca_xrcd_t *xrcd, hca_cq_t *cq,
                   hca_srq_t **srq_out)
{
    hca_context_t *context = pd->context;
    if (entries == 0 || entries > context->info.max_srq_entries || segments > context->info.max_segments) {
        return -EINVAL;
    }
    hca_srq_t *srq = calloc(1, sizeof *srq);
    if (srq == NULL) {
        return -ENOMEM;
    }
    srq->pd = pd;
    srq->user = user;
    uint32_t rounded = hca_round_up(entries, 1), stride = hca_receive_stride(segments);
    size_t ring_bytes = ((size_t)rounded * stride + 63) & ~(size_t)63;
    int status = context->backend.ops->alloc_pinned(context->backend.ctx, ring_bytes + RECORD_BYTES, &srq->buffer);
    if (status != 0) {
        free(srq);
        return status;
    }
    uint8_t *ring = srq->buffer.address;
    status = hca_receive_init(&srq->receive, rounded, segments, ring, (volatile uint64_t *)(void *)(ring + ring_bytes));
    struct hca_command create = {.id = HCA_CMD_SRQ_CREATE};
    create.srq_create = (struct hca_srq_init){.eqn = context->eqn,
                                      .pdn = pd->number,
                                      .xrcdn = xrcd != NULL ? xrcd->number : HCA_NO_XRCD,
                                      .cqn = xrcd != NULL ? cq->number : 0,
                                      .base = srq->buffer.bus_address,
                                      .record = srq->buffer.bus_address + ring_bytes,
                                      .entries = rounded,
                                      .stride_bytes = stride};
    status = status != 0 ? status : hca_create(context, create, &srq->number);
    if (status == 0 && !hca_numbered_set(&context->srqs, srq->number, srq)) {
        (void)hca_command_plain(context, HCA_CMD_SRQ_DESTROY, srq->number);
        status = -ENOMEM;
    }
    if (status != 0) {
        context->backend.ops->free_pinned(context->backend.ctx, &srq->buffer);
        hca_receive_fini(&srq->receive);
        free(srq);
        return status;
    }
    srq->cq = xrcd != NULL ? cq : NULL;
    pd->users++;
    if (srq->cq != NULL) {
        srq->cq->users++;
    }
    *srq_out = srq;
    return 0;
}

int hca_srq_destroy(hca_srq_t *srq)
{
    hca_context_t *context = srq->pd->context;
    if (srq->users > 0) {
        return -EBUSY;
    }
    int status = hca_command_plain(context, HCA_CMD_SRQ_DESTROY, srq->number);
    if (status != 0) {
        return status;
    }
    (void)hca_numbered_set(&context->srqs, srq->number, NULL);
    srq->pd->users--;
    if (srq->cq != NULL) {
        hca_cq_clean_srq(srq->cq, srq->number);
        srq->cq->users--;
    }
    context->backend.ops->free_pinned(context->backend.ctx, &srq->buffer);
    hca_receive_fini(&srq->receive);
    free(srq);
    return 0;
}

uint32_t hca_srq_number(const hca_srq_t *srq)
{
    return srq->number;
}

void hca_srq_size(const hca_srq_t *srq, unsigned *entries_out, unsigned *segments_out)
{
    *entries_out = srq->receive.entries;
    *segments_out = srq->receive.segments;
}

int hca_srq_limit(const hca_srq_t *srq, unsigned *limit_out)
{
    const hca_context_t *context = srq->pd->context;
    struct hca_command query = {.id = HCA_CMD_SRQ_QUERY, .number = srq->number};
    int status = hca_command(context, &query);
    *limit_out = query.srq_query.limit;
    return status;
}

int hca_srq_arm(hca_srq_t *srq, unsigned limit)
{
    hca_context_t *context = srq->pd->context;
    struct hca_command arm = {.id = HCA_CMD_SRQ_ARM, .number = srq->number, .srq_arm = {limit}};
    return hca_command(context, &arm);
}

const struct hca_failure *hca_qp_failure(const hca_qp_t *qp)
{
    return &qp->failure;
}

void hca_qp_outstanding(const hca_qp_t *qp, unsigned *sends_out, unsigned *receives_out)
{
    *sends_out = qp->send_posted - qp->send_done;
    *receives_out = qp->srq == NULL ? qp->receive.entries - qp->receive.free_count : 0;
}
