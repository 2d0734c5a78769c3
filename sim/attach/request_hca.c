// The HCA's driver, for programs. Objects are named by numbers that all processes of the node share, so each is looked
// for among the process's own; addresses must be of memory that it has.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "models/hca/abi/hca_abi.h"
#include "sim/attach/internal.h"

static bool has(const struct attach_thread *thread, enum attach_object_kind kind, uint64_t number)
{
    return attach_object_find(thread->process, kind, 0, number) != NULL;
}

static int64_t keep(struct attach_thread *thread, enum attach_object_kind kind, int status, uint32_t number)
{
    const struct attach_object object = {.kind = kind, .number = number};
    thread->slot->values[0] = number;
    return status != 0 ? status : attach_object_keep(thread, &object);
}

static bool ring_owned(const struct attach_thread *thread, uint64_t base, uint64_t entries, uint64_t entry_bytes)
{
    return entries == 0 || attach_memory_owned(thread->process, base, entries * entry_bytes);
}

static bool record_owned(const struct attach_thread *thread, uint64_t record)
{
    return attach_memory_owned(thread->process, record, sizeof(uint64_t));
}

// --- creation -------------------------------------------------------------------------------------------------------

static int64_t eq_create(struct attach_thread *thread, const void *structure)
{
    struct hca_eq_init init;
    uint32_t number = 0;
    memcpy(&init, structure, sizeof init);
    // The driver itself writes there when the HCA goes, so it must be the node's memory.
    if (!attach_pinned_owned(thread->process, init.record, sizeof(uint64_t)) ||
        !attach_pinned_owned(thread->process, init.base, init.entries * sizeof(struct hca_eqe))) {
        return -EINVAL;
    }
    int status = thread->backend.ops.hca->eq_create(&thread->backend, &init, &number);
    if (status == 0) {
        struct attach_process *process = thread->process;
        uint64_t to = init.base + init.entries * sizeof(struct hca_eqe);
        bool first = process->events_to == 0;
        process->events_from = first || init.base < process->events_from ? init.base : process->events_from;
        process->events_to = to > process->events_to ? to : process->events_to;
    }
    return keep(thread, OBJECT_EQ, status, number);
}

static int64_t cq_create(struct attach_thread *thread, const void *structure)
{
    struct hca_cq_init init;
    uint32_t number = 0;
    memcpy(&init, structure, sizeof init);
    if (!has(thread, OBJECT_EQ, init.eqn) || !record_owned(thread, init.record) ||
        !ring_owned(thread, init.base, init.entries, sizeof(struct hca_cqe))) {
        return -EINVAL;
    }
    int status = thread->backend.ops.hca->cq_create(&thread->backend, &init, &number);
    return keep(thread, OBJECT_CQ, status, number);
}

static int64_t cq_resize(struct attach_thread *thread, uint64_t cqn, const void *structure)
{
    struct hca_cq_resize resize;
    memcpy(&resize, structure, sizeof resize);
    if (!has(thread, OBJECT_CQ, cqn) || !ring_owned(thread, resize.base, resize.entries, sizeof(struct hca_cqe))) {
        return -EINVAL;
    }
    return thread->backend.ops.hca->cq_resize(&thread->backend, (uint32_t)cqn, &resize);
}

static int64_t srq_create(struct attach_thread *thread, const void *structure)
{
    struct hca_srq_init init;
    uint32_t number = 0;
    memcpy(&init, structure, sizeof init);
    bool xrc = init.xrcdn == HCA_NO_XRCD || (has(thread, OBJECT_XRCD, init.xrcdn) && has(thread, OBJECT_CQ, init.cqn));
    if (!has(thread, OBJECT_EQ, init.eqn) || !has(thread, OBJECT_PD, init.pdn) || !xrc ||
        !record_owned(thread, init.record) || !ring_owned(thread, init.base, init.entries, init.stride_bytes)) {
        return -EINVAL;
    }
    int status = thread->backend.ops.hca->srq_create(&thread->backend, &init, &number);
    return keep(thread, OBJECT_SRQ, status, number);
}

static bool qp_objects_owned(const struct attach_thread *thread, const struct hca_qp_init *init)
{
    bool own =
        has(thread, OBJECT_EQ, init->eqn) && has(thread, OBJECT_PD, init->pdn) && has(thread, OBJECT_UAR, init->uar);
    if (init->type == HCA_XRC_TARGET) {
        return own && has(thread, OBJECT_XRCD, init->xrcdn);
    }
    return own && has(thread, OBJECT_CQ, init->send_cqn) && has(thread, OBJECT_CQ, init->receive_cqn) &&
           (init->srqn == HCA_NO_SRQ || has(thread, OBJECT_SRQ, init->srqn));
}

static int64_t qp_create(struct attach_thread *thread, const void *structure)
{
    struct hca_qp_init init;
    uint32_t number = 0;
    memcpy(&init, structure, sizeof init);
    bool receives = init.srqn == HCA_NO_SRQ && init.receive_entries != 0 && init.type < HCA_XRC_INITIATOR;
    bool sends = init.type != HCA_XRC_TARGET;
    if ((unsigned)init.type >= HCA_QP_TYPES || !qp_objects_owned(thread, &init) ||
        (sends && !ring_owned(thread, init.send_base, init.send_entries, init.send_stride_bytes)) ||
        (receives && (!record_owned(thread, init.receive_record) ||
                      !ring_owned(thread, init.receive_base, init.receive_entries, init.receive_stride_bytes)))) {
        return -EINVAL;
    }
    int status = thread->backend.ops.hca->qp_create(&thread->backend, &init, &number);
    return keep(thread, OBJECT_QP, status, number);
}

// Memory of the program that is not pinned: page by page, with the process as its owner.
static int64_t region_create(struct attach_thread *thread, const struct hca_mr_init *wanted)
{
    struct attach_process *process = thread->process;
    struct hca_mr_init init = *wanted;
    uint32_t key = 0;
    if (!plat_process_memory_exists(process->pid, init.iova, init.bytes, (init.access & HCA_LOCAL_WRITE) != 0)) {
        return -EFAULT;
    }
    struct attach_object object = {.kind = OBJECT_MR,
                                   .va = init.iova,
                                   .va_bytes = init.bytes,
                                   .bytes = host_memory_page_count(init.iova, init.bytes)};
    object.pages = malloc(object.bytes * sizeof *object.pages);
    if (object.pages == NULL) {
        return -ENOMEM;
    }
    if (host_memory_pin(thread->backend.memory, &process->owner, init.iova, init.bytes, object.pages) != SIM_OK) {
        free(object.pages);
        return -ENOMEM;
    }
    init.pages = object.pages;
    enum sim_status status = hca_fw_mr_create(thread->backend.hca, &init, &key);
    object.number = key;
    if (status != SIM_OK) {
        host_memory_unpin(thread->backend.memory, object.pages, object.bytes);
        free(object.pages);
        return status == SIM_ERR_NO_MEMORY ? -ENOMEM : -EINVAL;
    }
    object.open = (init.access & (HCA_REMOTE_WRITE | HCA_REMOTE_ATOMIC)) != 0;
    process->open_regions += object.open;
    thread->slot->values[0] = key;
    return attach_object_keep(thread, &object);
}

int attach_region_destroy(struct attach_thread *thread, const struct attach_object *object)
{
    int status = thread->backend.ops.hca->mr_deregister(&thread->backend, (uint32_t)object->number);
    if (status == 0 && object->pages != NULL) {
        thread->process->open_regions -= object->open;
        host_memory_unpin(thread->backend.memory, object->pages, object->bytes);
        free(object->pages);
    }
    return status;
}

static int64_t mr_register(struct attach_thread *thread, const uint64_t *arguments)
{
    uint32_t key = 0;
    uint64_t bus_address = arguments[4];
    const struct hca_mr_init init = {.pdn = (uint32_t)arguments[0],
                                     .access = (uint32_t)arguments[3],
                                     .iova = arguments[1],
                                     .bytes = arguments[2],
                                     .page_bytes = 4096};
    if (arguments[0] > UINT32_MAX || arguments[3] > UINT32_MAX || !has(thread, OBJECT_PD, arguments[0]) ||
        init.bytes == 0 || init.iova + init.bytes < init.iova) {
        return -EINVAL;
    }
    if (bus_address == 0) {
        return hca_is_gone(thread->backend.hca) ? -EIO : region_create(thread, &init);
    }
    if (!attach_memory_owned(thread->process, bus_address, init.bytes)) {
        return -EFAULT;
    }
    int status = thread->backend.ops.hca->mr_register(&thread->backend, init.pdn, init.iova, init.bytes, init.access,
                                                      bus_address, &key);
    return keep(thread, OBJECT_MR, status, key);
}

static int64_t plain_create(struct attach_thread *thread, enum attach_object_kind kind,
                            int (*create)(void *ctx, uint32_t *number_out))
{
    uint32_t number = 0;
    int status = create(&thread->backend, &number);
    return keep(thread, kind, status, number);
}

// --- the others -----------------------------------------------------------------------------------------------------

static int64_t query_device(struct attach_thread *thread)
{
    struct hca_device_info info = {0};
    int status = thread->backend.ops.hca->query_device(&thread->backend, &info);
    memcpy(thread->slot->structure, &info, sizeof info);
    return status;
}

static int64_t query_port(struct attach_thread *thread)
{
    struct hca_port_info info = {0};
    int status = thread->backend.ops.hca->query_port(&thread->backend, &info);
    memcpy(thread->slot->structure, &info, sizeof info);
    return status;
}

static int64_t group_do(struct attach_thread *thread, const struct attach_request *request)
{
    const struct backend_hca_ops *ops = thread->backend.ops.hca;
    uint32_t qpn = (uint32_t)request->arguments[0];
    if (!has(thread, OBJECT_QP, request->arguments[0]) || request->arguments[1] > UINT16_MAX) {
        return -EINVAL;
    }
    bool attaches = request->op == ATTACH_OP_HCA_GROUP_ATTACH;
    return (attaches ? ops->group_attach : ops->group_detach)(&thread->backend, qpn, request->structure,
                                                              (uint16_t)request->arguments[1]);
}

static int64_t srq_do(struct attach_thread *thread, const struct attach_request *request)
{
    const struct backend_hca_ops *ops = thread->backend.ops.hca;
    uint32_t limit = 0, srqn = (uint32_t)request->arguments[0];
    if (!has(thread, OBJECT_SRQ, request->arguments[0])) {
        return -EINVAL;
    }
    if (request->op == ATTACH_OP_HCA_SRQ_ARM) {
        return request->arguments[1] > UINT32_MAX
                   ? -EINVAL
                   : ops->srq_arm(&thread->backend, srqn, (uint32_t)request->arguments[1]);
    }
    int status = ops->srq_query(&thread->backend, srqn, &limit);
    thread->slot->values[0] = limit;
    return status;
}

static int64_t qp_do(struct attach_thread *thread, const struct attach_request *request)
{
    const struct backend_hca_ops *ops = thread->backend.ops.hca;
    uint32_t qpn = (uint32_t)request->arguments[0];
    struct hca_qp_attr attr = {0};
    if (!has(thread, OBJECT_QP, request->arguments[0])) {
        return -EINVAL;
    }
    if (request->op == ATTACH_OP_HCA_QP_QUERY) {
        int status = ops->qp_query(&thread->backend, qpn, &attr);
        memcpy(thread->slot->structure, &attr, sizeof attr);
        return status;
    }
    // Whatever bits the program has there, a bool is read as one.
    unsigned char bytes[sizeof attr];
    memcpy(bytes, request->structure, sizeof bytes);
    bytes[offsetof(struct hca_qp_attr, drained_event)] &= 1;
    memcpy(&attr, bytes, sizeof attr);
    bool states = (unsigned)attr.state < HCA_QP_STATES && (unsigned)attr.current_state < HCA_QP_STATES;
    return states && request->arguments[1] <= UINT32_MAX
               ? ops->qp_modify(&thread->backend, qpn, (uint32_t)request->arguments[1], &attr)
               : -EINVAL;
}

int64_t attach_request_hca(struct attach_thread *thread, const struct attach_request *request)
{
    const struct backend_hca_ops *ops = thread->backend.ops.hca;
    const uint64_t *arguments = request->arguments;
    if (ops == NULL) {
        return -ENODEV;
    }
    switch (request->op) {
    case ATTACH_OP_HCA_UAR_ALLOC:
        return plain_create(thread, OBJECT_UAR, ops->uar_alloc);
    case ATTACH_OP_HCA_UAR_FREE:
        return attach_object_release(thread, OBJECT_UAR, 0, arguments[0]);
    case ATTACH_OP_HCA_QUERY_DEVICE:
        return query_device(thread);
    case ATTACH_OP_HCA_QUERY_PORT:
        return query_port(thread);
    case ATTACH_OP_HCA_PD_CREATE:
        return plain_create(thread, OBJECT_PD, ops->pd_create);
    case ATTACH_OP_HCA_PD_DESTROY:
        return attach_object_release(thread, OBJECT_PD, 0, arguments[0]);
    case ATTACH_OP_HCA_XRCD_CREATE:
        return plain_create(thread, OBJECT_XRCD, ops->xrcd_create);
    case ATTACH_OP_HCA_XRCD_DESTROY:
        return attach_object_release(thread, OBJECT_XRCD, 0, arguments[0]);
    case ATTACH_OP_HCA_MR_REGISTER:
        return mr_register(thread, arguments);
    case ATTACH_OP_HCA_MR_DEREGISTER:
        return attach_object_release(thread, OBJECT_MR, 0, arguments[0]);
    case ATTACH_OP_HCA_EQ_CREATE:
        return eq_create(thread, request->structure);
    case ATTACH_OP_HCA_EQ_DESTROY:
        return attach_object_release(thread, OBJECT_EQ, 0, arguments[0]);
    case ATTACH_OP_HCA_CQ_CREATE:
        return cq_create(thread, request->structure);
    case ATTACH_OP_HCA_CQ_RESIZE:
        return cq_resize(thread, arguments[0], request->structure);
    case ATTACH_OP_HCA_CQ_DESTROY:
        return attach_object_release(thread, OBJECT_CQ, 0, arguments[0]);
    case ATTACH_OP_HCA_SRQ_CREATE:
        return srq_create(thread, request->structure);
    case ATTACH_OP_HCA_SRQ_ARM:
    case ATTACH_OP_HCA_SRQ_QUERY:
        return srq_do(thread, request);
    case ATTACH_OP_HCA_SRQ_DESTROY:
        return attach_object_release(thread, OBJECT_SRQ, 0, arguments[0]);
    case ATTACH_OP_HCA_QP_CREATE:
        return qp_create(thread, request->structure);
    case ATTACH_OP_HCA_QP_MODIFY:
    case ATTACH_OP_HCA_QP_QUERY:
        return qp_do(thread, request);
    case ATTACH_OP_HCA_GROUP_ATTACH:
    case ATTACH_OP_HCA_GROUP_DETACH:
        return group_do(thread, request);
    case ATTACH_OP_HCA_QP_DESTROY:
        return attach_object_release(thread, OBJECT_QP, 0, arguments[0]);
    }
    return -ENOSYS;
}
