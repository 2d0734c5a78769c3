// The objects of every process, from the records of the calls that made them.
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "sim/observe/internal.h"

// How many ended objects are kept, for requests that name them too late.
enum { ENDED_MAX = 256, ENDED_QPS_MAX = 4096 };
// Limit on the objects of a process: a program's records are not trusted beyond it.
enum { OBJECTS_MAX = 1 << 17 };

static int compare(const void *a, const void *b)
{
    const struct observe_object *x = a, *y = b;
    if (x->kind != y->kind) {
        return x->kind < y->kind ? -1 : 1;
    }
    if (x->context != y->context) {
        return x->context < y->context ? -1 : 1;
    }
    return x->number == y->number ? 0 : x->number < y->number ? -1 : 1;
}

struct observe_object *observe_object_find(const observe_process_t *process, enum observe_kind kind, uint32_t context,
                                           uint32_t number)
{
    const struct observe_object wanted = {.kind = kind, .context = context, .number = number};
    struct observe_object *const *found = tfind(&wanted, &process->objects, compare);
    return found != NULL ? *found : NULL;
}

// --- creation and end -----------------------------------------------------------------------------------------------

static void object_free(void *node)
{
    struct observe_object *object = node;
    observe_queues_free(object);
    free(object);
}

static void ended_forget(observe_process_t *process, struct observe_object *object)
{
    struct observe_object **link = &process->ended_first;
    while (*link != NULL && *link != object) {
        link = &(*link)->next_ended;
    }
    if (*link != NULL) {
        *link = object->next_ended;
        process->ended_end = *link == NULL ? link : process->ended_end;
        process->ended_count--;
    }
}

// A number that is used again belongs to the new object. NULL: no memory.
static struct observe_object *made(observe_process_t *process, enum observe_kind kind, uint32_t context,
                                   uint32_t number, uint64_t at_ps)
{
    struct observe_object *object = observe_object_find(process, kind, context, number);
    bool known = object != NULL;
    if (!known && process->object_count >= OBJECTS_MAX) {
        return NULL;
    }
    if (known && object->ended) {
        ended_forget(process, object);
    }
    if (known) {
        observe_queues_free(object);
    }
    object = known ? object : malloc(sizeof *object);
    if (object != NULL) {
        *object = (struct observe_object){
            .kind = kind, .context = context, .number = number, .process = process, .made_ps = at_ps};
        if (!known && tsearch(object, &process->objects, compare) == NULL) {
            free(object);
            object = NULL;
        }
        process->object_count += !known && object != NULL;
    }
    return object;
}

static void ended(observe_process_t *process, enum observe_kind kind, uint32_t context, uint32_t number, uint64_t at_ps)
{
    struct observe_object *object = observe_object_find(process, kind, context, number);
    if (object == NULL || object->ended) {
        return;
    }
    if (kind == OBSERVE_QP) {
        observe_requests_drop(object);
    }
    object->ended = true;
    object->ended_ps = at_ps;
    object->next_ended = NULL;
    *process->ended_end = object;
    process->ended_end = &object->next_ended;
    // Queue pairs are kept longer, for the summary.
    unsigned most = process->ended_first->kind == OBSERVE_QP ? ENDED_QPS_MAX : ENDED_MAX;
    if (++process->ended_count > most) {
        struct observe_object *oldest = process->ended_first;
        ended_forget(process, oldest);
        (void)tdelete(oldest, &process->objects, compare);
        object_free(oldest);
        process->object_count--;
    }
}

void observe_objects_free(observe_process_t *process)
{
    tdestroy(process->objects, object_free);
    process->objects = NULL;
}

struct observe_object *observe_context_find(const observe_process_t *process, uint32_t i)
{
    return observe_object_find(process, OBSERVE_CONTEXT, i, 0);
}

struct observe_object *observe_qp_find(const observe_process_t *process, uint32_t context, uint32_t number)
{
    struct observe_object *object = observe_object_find(process, OBSERVE_QP, context, number);
    return object != NULL && !object->ended ? object : NULL;
}

static void modify_note(observe_process_t *process, const struct journal_record *record)
{
    const struct journal_modify *modify = &record->modify;
    struct observe_object *object = observe_qp_find(process, record->context, modify->number);
    if (object == NULL) {
        return;
    }
    struct journal_modify *path = &object->qp.path;
    const uint32_t mask = modify->mask;
    object->qp.state = modify->to;
    if (modify->to == IBV_QPS_RESET) { // IBA 10.3.1
        observe_requests_drop(object);
        object->qp.flush_reported = object->qp.error_reported = false;
    }
    path->dest = (mask & IBV_QP_DEST_QPN) != 0 ? modify->dest : path->dest;
    path->send_psn = (mask & IBV_QP_SQ_PSN) != 0 ? modify->send_psn : path->send_psn;
    path->receive_psn = (mask & IBV_QP_RQ_PSN) != 0 ? modify->receive_psn : path->receive_psn;
    path->dlid = (mask & IBV_QP_AV) != 0 ? modify->dlid : path->dlid;
    path->mtu_bytes = (mask & IBV_QP_PATH_MTU) != 0 ? modify->mtu_bytes : path->mtu_bytes;
    path->access = (mask & IBV_QP_ACCESS_FLAGS) != 0 ? modify->access : path->access;
    path->retry_count = (mask & IBV_QP_RETRY_CNT) != 0 ? modify->retry_count : path->retry_count;
    path->rnr_retry = (mask & IBV_QP_RNR_RETRY) != 0 ? modify->rnr_retry : path->rnr_retry;
    path->timeout = (mask & IBV_QP_TIMEOUT) != 0 ? modify->timeout : path->timeout;
    path->min_rnr_timer = (mask & IBV_QP_MIN_RNR_TIMER) != 0 ? modify->min_rnr_timer : path->min_rnr_timer;
    path->reads = (mask & IBV_QP_MAX_QP_RD_ATOMIC) != 0 ? modify->reads : path->reads;
    path->dest_reads = (mask & IBV_QP_MAX_DEST_RD_ATOMIC) != 0 ? modify->dest_reads : path->dest_reads;
    path->mask |= mask;
}

// --- records --------------------------------------------------------------------------------------------------------

static void object_made(observe_process_t *process, const struct observe_call *call,
                        const struct journal_record *record)
{
    uint64_t at_ps = call->at_ps;
    struct observe_object *object = NULL;
    switch (record->call) {
    case JOURNAL_OPEN_DEVICE:
        object = made(process, OBSERVE_CONTEXT, record->context, 0, at_ps);
        if (object != NULL) {
            object->device = record->device;
            observe_text_clean(object->device.device, sizeof object->device.device);
        }
        break;
    case JOURNAL_REG_MR:
        process->registered_bytes += record->mr.bytes;
        process->copied_regions += record->mr.is_copied != 0;
        process->copied_bytes += record->mr.is_copied != 0 ? record->mr.bytes : 0;
        object = made(process, OBSERVE_MR, record->context, record->mr.rkey, at_ps);
        if (object != NULL) {
            object->mr = record->mr;
        }
        break;
    case JOURNAL_CREATE_CQ:
        object = made(process, OBSERVE_CQ, record->context, record->cq.handle, at_ps);
        if (object != NULL) {
            object->cq.made = record->cq;
        }
        break;
    case JOURNAL_CREATE_QP:
        object = made(process, OBSERVE_QP, record->context, record->qp.number, at_ps);
        if (object != NULL) {
            object->qp.made = record->qp;
        }
        break;
    case JOURNAL_ALLOC_PD:
    case JOURNAL_CREATE_CHANNEL:
    case JOURNAL_CREATE_AH:
    case JOURNAL_CREATE_SRQ:
        object = made(process, record->call == JOURNAL_CREATE_SRQ ? OBSERVE_SRQ : OBSERVE_OTHER, record->context,
                      record->object.handle, at_ps);
        if (object != NULL) {
            object->other = (struct journal_object){record->object.handle, record->call};
        }
        break;
    }
    if (object != NULL && call->frames != NULL) {
        memcpy(object->frames, call->frames, sizeof object->frames);
    }
}

struct closing {
    uint32_t context;
    struct observe_object **list; // those that have not ended
    unsigned count;
};

static void closing_visit(void *ctx, struct observe_object *object)
{
    struct closing *closing = ctx;
    if (object->context == closing->context && !object->ended) {
        closing->list[closing->count++] = object;
    }
}

// The objects of a context end with it.
static void context_ended(observe_process_t *process, uint32_t context, uint64_t at_ps)
{
    struct closing closing = {.context = context, .list = calloc(process->object_count + 1, sizeof *closing.list)};
    if (closing.list != NULL) {
        observe_objects_visit(process, closing_visit, &closing);
    }
    for (unsigned i = 0; i < closing.count; i++) {
        ended(process, closing.list[i]->kind, context, closing.list[i]->number, at_ps);
    }
    free(closing.list);
}

static void object_ended(observe_process_t *process, uint64_t at_ps, const struct journal_record *record)
{
    switch (record->call) {
    case JOURNAL_CLOSE_DEVICE:
        context_ended(process, record->context, at_ps);
        break;
    case JOURNAL_DEREG_MR:
        ended(process, OBSERVE_MR, record->context, record->mr.rkey, at_ps);
        break;
    case JOURNAL_DESTROY_CQ:
        ended(process, OBSERVE_CQ, record->context, record->cq.handle, at_ps);
        break;
    case JOURNAL_DESTROY_QP:
        ended(process, OBSERVE_QP, record->context, record->qp.number, at_ps);
        break;
    case JOURNAL_DEALLOC_PD:
    case JOURNAL_DESTROY_CHANNEL:
    case JOURNAL_DESTROY_AH:
    case JOURNAL_DESTROY_SRQ:
        ended(process, record->call == JOURNAL_DESTROY_SRQ ? OBSERVE_SRQ : OBSERVE_OTHER, record->context,
              record->object.handle, at_ps);
        break;
    }
}

void observe_objects_note(observe_process_t *process, const struct observe_call *call,
                          const struct journal_record *record)
{
    if (record->error != 0) {
        return;
    }
    bool posts = record->call == JOURNAL_POST_SEND || record->call == JOURNAL_POST_RECV ||
                 record->call == JOURNAL_POST_SRQ_RECV || record->call == JOURNAL_POLL_CQ;
    if (posts) {
        return;
    }
    process->observe->changes++;
    object_made(process, call, record);
    object_ended(process, call->at_ps, record);
    if (record->call == JOURNAL_MODIFY_QP) {
        modify_note(process, record);
    }
    struct observe_object *cq = record->call == JOURNAL_RESIZE_CQ
                                    ? observe_object_find(process, OBSERVE_CQ, record->context, record->cq.handle)
                                    : NULL;
    if (cq != NULL) {
        cq->cq.made.entries = record->cq.entries;
    }
}

// --- searching ------------------------------------------------------------------------------------------------------

struct visiting {
    observe_visit_fn visit;
    void *ctx;
};

static void object_visit(const void *node, VISIT which, void *closure)
{
    const struct visiting *visiting = closure;
    if (which == postorder || which == leaf) {
        visiting->visit(visiting->ctx, *(struct observe_object *const *)node);
    }
}

void observe_objects_visit(const observe_process_t *process, observe_visit_fn visit, void *ctx)
{
    struct visiting visiting = {visit, ctx};
    twalk_r(process->objects, object_visit, &visiting);
}

static const struct journal_device *device_of(const struct observe_object *object)
{
    const struct observe_object *context = observe_object_find(object->process, OBSERVE_CONTEXT, object->context, 0);
    return context != NULL ? &context->device : NULL;
}

struct search {
    const struct journal_device *device; // of the same kind
    uint32_t lid, number;
    struct observe_object *found;
};

static void peer_visit(void *ctx, struct observe_object *object)
{
    struct search *search = ctx;
    if (object->kind == OBSERVE_QP && object->number == search->number) {
        const struct journal_device *device = device_of(object);
        bool same = device != NULL && strcmp(device->device, search->device->device) == 0;
        // Prefers a live queue pair to one that has ended.
        if (same && device->lid == search->lid && (search->found == NULL || search->found->ended)) {
            search->found = object;
        }
    }
}

static struct observe_object *peer_search(const struct observe_object *qp)
{
    struct search search = {device_of(qp), qp->qp.path.dlid, qp->qp.path.dest, NULL};
    if (search.device == NULL) {
        return NULL;
    }
    for (const observe_process_t *process = qp->process->observe->processes; process != NULL; process = process->next) {
        observe_objects_visit(process, peer_visit, &search);
    }
    return search.found;
}

struct observe_object *observe_peer(struct observe_object *qp)
{
    const observe_t *observe = qp->process->observe;
    if (qp->qp.peer_changes != observe->changes) {
        qp->qp.peer = peer_search(qp);
        qp->qp.peer_changes = observe->changes;
    }
    return qp->qp.peer;
}

bool observe_receives_ask(const struct observe_object *qp, struct observe_receives *receives_out)
{
    const struct observe_options *options = &qp->process->observe->options;
    return options->receives != NULL && qp->qp.made.srq == 0 && !qp->ended && !qp->process->ended &&
           options->receives(options->receives_ctx, qp->process->tag, qp->context, qp->number, receives_out);
}

void observe_title(const observe_process_t *process, char *text, size_t room)
{
    bool alone = true;
    for (const observe_process_t *other = process->observe->processes; other != NULL; other = other->next) {
        bool has = other->objects != NULL || other == process;
        alone = alone && (other == process || !has || strcmp(other->node, process->node) != 0);
    }
    if (alone) {
        snprintf(text, room, "%s", process->node);
    } else {
        snprintf(text, room, "%s.process%u", process->node, process->number);
    }
}
