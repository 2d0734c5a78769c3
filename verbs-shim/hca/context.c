// The device as a process opens it; protection domains, memory regions, address handles, events.
#include <stdlib.h>
#include <string.h>

#include "verbs-shim/hca/hca_internal.h"

uint32_t hca_round_up(uint32_t value, uint32_t least)
{
    uint32_t rounded = least;
    while (rounded < value) {
        rounded *= 2;
    }
    return rounded;
}

bool hca_numbered_set(struct hca_numbered *numbered, uint32_t number, void *object)
{
    if (number >= numbered->count) {
        uint32_t count = hca_round_up(number + 1, 16);
        void **objects = realloc(numbered->objects, count * sizeof *objects);
        if (objects == NULL) {
            return false;
        }
        memset(objects + numbered->count, 0, (count - numbered->count) * sizeof *objects);
        numbered->objects = objects;
        numbered->count = count;
    }
    numbered->objects[number] = object;
    return true;
}

// --- open ----------------------------------------------------------------------------------------------------------

static void context_free(hca_context_t *context)
{
    if (context->events.bytes > 0) {
        context->backend.ops->free_pinned(context->backend.ctx, &context->events);
    }
    free(context->cqs.objects);
    free(context->qps.objects);
    free(context->srqs.objects);
    free(context);
}

static int events_create(hca_context_t *context)
{
    void *ctx = context->backend.ctx;
    const size_t ring_bytes = HCA_EVENT_ENTRIES * sizeof(struct hca_eqe);
    int status = context->backend.ops->alloc_pinned(ctx, ring_bytes + sizeof(uint64_t), &context->events);
    if (status != 0) {
        return status;
    }
    context->events_record = (volatile uint64_t *)(void *)((uint8_t *)context->events.address + ring_bytes);
    const struct hca_command create = {.id = HCA_CMD_EQ_CREATE,
                                       .eq_create = {.base = context->events.bus_address,
                                                     .record = context->events.bus_address + ring_bytes,
                                                     .entries = HCA_EVENT_ENTRIES}};
    return hca_create(context, create, &context->eqn);
}

int hca_query_device(const struct backend *backend, struct hca_device_info *info_out)
{
    struct hca_command query = {.id = HCA_CMD_QUERY_DEVICE};
    int status = backend->ops->hca_command(backend->ctx, &query);
    *info_out = query.query_device;
    return status;
}

int hca_query_port(const struct backend *backend, struct hca_port_info *info_out)
{
    struct hca_command query = {.id = HCA_CMD_QUERY_PORT};
    int status = backend->ops->hca_command(backend->ctx, &query);
    *info_out = query.query_port;
    return status;
}

int hca_open(const struct backend *backend, hca_context_t **context_out)
{
    if (backend->ops->hca_command == NULL) {
        return -ENODEV;
    }
    hca_context_t *context = calloc(1, sizeof *context);
    if (context == NULL) {
        return -ENOMEM;
    }
    context->backend = *backend;
    int status = hca_query_device(backend, &context->info);
    if (status != 0) {
        context_free(context);
        return status;
    }
    status = hca_create(context, (struct hca_command){.id = HCA_CMD_UAR_ALLOC}, &context->uar);
    if (status != 0) {
        context_free(context);
        return status;
    }
    status = events_create(context);
    if (status != 0) {
        (void)hca_command_plain(context, HCA_CMD_UAR_FREE, context->uar);
        context_free(context);
        return status;
    }
    *context_out = context;
    return 0;
}

int hca_close(hca_context_t *context)
{
    if (context->users > 0) {
        return -EBUSY;
    }
    (void)hca_command_plain(context, HCA_CMD_EQ_DESTROY, context->eqn);
    (void)hca_command_plain(context, HCA_CMD_UAR_FREE, context->uar);
    context_free(context);
    return 0;
}

// --- protection domains, regions, address handles --------------------------------------------------------------------

int hca_pd_create(hca_context_t *context, hca_pd_t **pd_out)
{
    hca_pd_t *pd = calloc(1, sizeof *pd);
    if (pd == NULL) {
        return -ENOMEM;
    }
    pd->context = context;
    int status = hca_create(context, (struct hca_command){.id = HCA_CMD_PD_CREATE}, &pd->number);
    if (status != 0) {
        free(pd);
        return status;
    }
    context->users++;
    *pd_out = pd;
    return 0;
}

int hca_pd_destroy(hca_pd_t *pd)
{
    if (pd->users > 0) {
        return -EBUSY;
    }
    int status = hca_command_plain(pd->context, HCA_CMD_PD_DESTROY, pd->number);
    if (status == 0) {
        pd->context->users--;
        free(pd);
    }
    return status;
}

static int mr_register(hca_pd_t *pd, uint64_t address, uint64_t iova, uint64_t bus_address, size_t bytes,
                       uint32_t access, hca_mr_t **mr_out)
{
    hca_mr_t *mr = calloc(1, sizeof *mr);
    if (mr == NULL) {
        return -ENOMEM;
    }
    mr->pd = pd;
    const struct hca_command create = {
        .id = HCA_CMD_MR_REGISTER,
        .mr_register = {.pdn = pd->number,
                        .access = access,
                        .iova = iova,
                        .displacement = address - iova,
                        .bytes = bytes,
                        .bus_address = bus_address}};
    int status = bytes == 0 ? -EINVAL : hca_create(pd->context, create, &mr->key);
    if (status != 0) {
        free(mr);
        return status;
    }
    pd->users++;
    *mr_out = mr;
    return 0;
}

int hca_mr_register(hca_pd_t *pd, void *address, size_t bytes, uint32_t access, hca_mr_t **mr_out)
{
    return hca_mr_register_at(pd, address, (uintptr_t)address, bytes, access, mr_out);
}

int hca_mr_register_at(hca_pd_t *pd, void *address, uint64_t iova, size_t bytes, uint32_t access, hca_mr_t **mr_out)
{
    return mr_register(pd, (uintptr_t)address, iova, 0, bytes, access, mr_out);
}

int hca_mr_register_bus(hca_pd_t *pd, uint64_t iova, uint64_t bus_address, size_t bytes, uint32_t access,
                        hca_mr_t **mr_out)
{
    return bus_address == 0 ? -EINVAL : mr_register(pd, iova, iova, bus_address, bytes, access, mr_out);
}

int hca_mr_deregister(hca_mr_t *mr)
{
    int status = hca_command_plain(mr->pd->context, HCA_CMD_MR_DEREGISTER, mr->key);
    if (status == 0) {
        mr->pd->users--;
        free(mr);
    }
    return status;
}

uint32_t hca_mr_lkey(const hca_mr_t *mr)
{
    return mr->key;
}

uint32_t hca_mr_rkey(const hca_mr_t *mr)
{
    return mr->key;
}

int hca_xrcd_create(hca_context_t *context, hca_xrcd_t **xrcd_out)
{
    hca_xrcd_t *xrcd = calloc(1, sizeof *xrcd);
    if (xrcd == NULL) {
        return -ENOMEM;
    }
    int status = hca_pd_create(context, &xrcd->pd);
    if (status == 0) {
        status = hca_create(context, (struct hca_command){.id = HCA_CMD_XRCD_CREATE}, &xrcd->number);
        if (status != 0) {
            (void)hca_pd_destroy(xrcd->pd);
        }
    }
    if (status != 0) {
        free(xrcd);
        return status;
    }
    *xrcd_out = xrcd;
    return 0;
}

int hca_xrcd_destroy(hca_xrcd_t *xrcd)
{
    const hca_context_t *context = xrcd->pd->context;
    int status = xrcd->pd->users > 0 ? -EBUSY : hca_command_plain(context, HCA_CMD_XRCD_DESTROY, xrcd->number);
    if (status == 0) {
        (void)hca_pd_destroy(xrcd->pd); // it has no users
        free(xrcd);
    }
    return status;
}

int hca_ah_create(hca_pd_t *pd, uint16_t dlid, uint8_t sl, const struct hca_route *route, hca_ah_t **ah_out)
{
    hca_ah_t *ah = dlid == 0 || sl > 15 ? NULL : malloc(sizeof *ah);
    if (ah == NULL) {
        return dlid == 0 || sl > 15 ? -EINVAL : -ENOMEM;
    }
    *ah = (hca_ah_t){.pd = pd, .dlid = dlid, .sl = sl, .global = route != NULL};
    if (route != NULL) {
        ah->route = *route;
    }
    pd->users++;
    *ah_out = ah;
    return 0;
}

int hca_ah_destroy(hca_ah_t *ah)
{
    ah->pd->users--;
    free(ah);
    return 0;
}

// --- events --------------------------------------------------------------------------------------------------------

static void *event_user(const hca_context_t *context, enum hca_event_type type, uint32_t object)
{
    const hca_cq_t *cq;
    const hca_qp_t *qp;
    const hca_srq_t *srq;
    switch (type) {
    case HCA_EVENT_COMPLETION:
    case HCA_EVENT_CQ_ERROR:
        cq = hca_numbered_get(&context->cqs, object);
        return cq == NULL ? NULL : cq->user;
    case HCA_EVENT_QP_FATAL:
    case HCA_EVENT_QP_REQUEST_ERROR:
    case HCA_EVENT_QP_ACCESS_ERROR:
    case HCA_EVENT_COMMUNICATION_ESTABLISHED:
    case HCA_EVENT_SEND_QUEUE_DRAINED:
    case HCA_EVENT_LAST_WQE_REACHED:
        qp = hca_numbered_get(&context->qps, object);
        return qp == NULL ? NULL : qp->user;
    case HCA_EVENT_SRQ_ERROR:
    case HCA_EVENT_SRQ_LIMIT:
        srq = hca_numbered_get(&context->srqs, object);
        return srq == NULL ? NULL : srq->user;
    case HCA_EVENT_PORT_ACTIVE:
    case HCA_EVENT_PORT_ERROR:
    case HCA_EVENT_DEVICE_FATAL:
    case HCA_EVENTS:
        break;
    }
    return NULL;
}

static const struct hca_eqe *event_next(const hca_context_t *context, const volatile uint64_t **word_out,
                                        uint64_t *owner_out)
{
    const struct hca_eqe *ring = context->events.address;
    const struct hca_eqe *entry = &ring[context->events_taken & (HCA_EVENT_ENTRIES - 1)];
    *owner_out = (context->events_taken & HCA_EVENT_ENTRIES) == 0;
    *word_out = (const volatile uint64_t *)(const void *)&entry->type;
    return entry;
}

bool hca_event_waits(const hca_context_t *context)
{
    const volatile uint64_t *word;
    uint64_t owner;
    (void)event_next(context, &word, &owner);
    return *word >> 56 == owner;
}

int hca_event_get(hca_context_t *context, uint64_t timeout_ns, struct hca_event *event_out)
{
    const volatile uint64_t *word;
    uint64_t owner;
    const struct hca_eqe *entry = event_next(context, &word, &owner);
    if (timeout_ns == HCA_NO_WAIT) {
        hca_cost(context, BACKEND_COST_CALL, 1);
        if (*word >> 56 != owner) {
            return -EAGAIN;
        }
    } else {
        int status =
            context->backend.ops->wait_word(context->backend.ctx, word, UINT64_C(0xff) << 56, owner << 56, timeout_ns);
        if (status != 0) {
            return status;
        }
        hca_cost(context, BACKEND_COST_INTERRUPT, 1);
    }
    context->events_taken++;
    event_out->type = (enum hca_event_type)entry->type;
    event_out->object = entry->object;
    event_out->user = event_user(context, event_out->type, entry->object);
    *context->events_record = context->events_taken;
    return 0;
}
