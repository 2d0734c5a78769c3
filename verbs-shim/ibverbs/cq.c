// Completion queues (IBA 10.8, 11.4.2).
#include <stdlib.h>

#include "verbs-shim/ibverbs/note.h"

static int create_check(const struct ibverbs_context *context, const struct ibv_cq_init_attr_ex *init)
{
    struct ibverbs_library *library = context->device->library;
    const struct ibverbs_device_info *info = &context->device->info;
    if (init->cqe < 1) {
        return ibverbs_refuse(library, -EINVAL, JOURNAL_WHY_ZERO, 0, 0);
    }
    if (init->cqe > (uint32_t)info->attr.max_cqe) {
        return ibverbs_refuse(library, -EINVAL, JOURNAL_WHY_LIMIT_CQE, init->cqe, (uint32_t)info->attr.max_cqe);
    }
    if (init->comp_vector >= (uint32_t)info->completion_vectors) {
        return ibverbs_refuse(library, -EINVAL, JOURNAL_WHY_LIMIT_VECTOR, init->comp_vector,
                              (uint32_t)info->completion_vectors - 1);
    }
    if (init->channel != NULL && init->channel->context != &context->verbs.context) {
        return ibverbs_refuse(library, -EINVAL, JOURNAL_WHY_OTHER_CONTEXT, 0, 0);
    }
    return 0;
}

static int cq_make(struct ibverbs_context *context, const struct ibv_cq_init_attr_ex *init, struct ibverbs_cq **cq_out)
{
    int status = create_check(context, init);
    if (status != 0) {
        return status;
    }
    struct ibverbs_cq *cq = ibverbs_object_new(context, sizeof *cq);
    unsigned entries = init->cqe;
    status = cq != NULL ? context->device->ops->cq_create(context->object, &entries, init->comp_vector, &cq->object,
                                                          &cq->object.device)
                        : -ENOMEM;
    if (status != 0) {
        ibverbs_object_drop(context, cq);
        return status;
    }
    cq->base.context = &context->verbs.context;
    cq->base.channel = init->channel;
    cq->base.cq_context = init->cq_context;
    cq->base.handle = context->handles++;
    cq->base.cqe = (int)entries;
    cq->armed = JOURNAL_ARMED_NOT;
    (void)pthread_mutex_init(&cq->base.mutex, NULL);
    (void)pthread_cond_init(&cq->base.cond, NULL);
    if (init->channel != NULL) {
        init->channel->refcnt++;
    }
    ibverbs_object_add(&cq->object, context, IBVERBS_CQ, cq);
    *cq_out = cq;
    return 0;
}

int ibverbs_cq_create(struct ibverbs_context *context, const struct ibv_cq_init_attr_ex *init,
                      struct ibverbs_cq **cq_out)
{
    uint64_t began_ps = ibverbs_note_begin(context->device->library);
    int status = cq_make(context, init, cq_out);
    if (status == 0) {
        ibverbs_note_cq(*cq_out, began_ps, JOURNAL_CREATE_CQ, 0);
    } else {
        ibverbs_note_cq_refused(context, began_ps, -status, init->cqe);
    }
    return status;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context, struct ibv_comp_channel *channel,
                             int comp_vector)
{
    IBVERBS_ENTER_CONTEXT(context);
    const struct ibv_cq_init_attr_ex init = {.cqe = cqe > 0 ? (uint32_t)cqe : 0,
                                             .cq_context = cq_context,
                                             .channel = channel,
                                             .comp_vector = (uint32_t)comp_vector};
    struct ibverbs_cq *cq;
    int status = ibverbs_cq_create(ibverbs_context_of(context), &init, &cq);
    return status == 0 ? &cq->base : ibverbs_fail(status);
}

int ibv_resize_cq(struct ibv_cq *ibv_cq, int cqe)
{
    IBVERBS_ENTER_CONTEXT(ibv_cq->context);
    struct ibverbs_cq *cq = ibverbs_cq_of(ibv_cq);
    const struct ibverbs_device *device = cq->object.context->device;
    uint64_t began_ps = ibverbs_note_begin(entered);
    unsigned entries = (unsigned)cqe;
    int status;
    if (cqe < 1 || cqe > device->info.attr.max_cqe) {
        status =
            ibverbs_refuse(entered, -EINVAL, JOURNAL_WHY_LIMIT_CQE, (uint64_t)cqe, (uint64_t)device->info.attr.max_cqe);
    } else if (device->ops->cq_resize == NULL) {
        status = ibverbs_refuse(entered, -EOPNOTSUPP, JOURNAL_WHY_UNSUPPORTED, 0, 0);
    } else {
        status = device->ops->cq_resize(cq->object.device, &entries);
    }
    if (status == 0) {
        ibv_cq->cqe = (int)entries;
    }
    ibverbs_note_cq(cq, began_ps, JOURNAL_RESIZE_CQ, -status);
    return ibverbs_status(-status);
}

int ibverbs_cq_end(struct ibverbs_object *object)
{
    struct ibverbs_cq *cq = object->container;
    object->ending = true;
    int status = ibverbs_ops(object)->cq_destroy(object->device);
    if (status != 0) {
        object->ending = false;
        return status;
    }
    object->context->device->library->polled = NULL;
    ibverbs_queue_purge(&object->context->events, object);
    if (cq->base.channel != NULL) {
        ibverbs_queue_purge(&((struct ibverbs_channel *)cq->base.channel)->events, object);
        cq->base.channel->refcnt--;
    }
    (void)pthread_mutex_destroy(&cq->base.mutex);
    (void)pthread_cond_destroy(&cq->base.cond);
    ibverbs_object_remove(object);
    free(cq);
    return 0;
}

// Refused while a queue pair uses it; waits until its events are acknowledged.
int ibv_destroy_cq(struct ibv_cq *ibv_cq)
{
    IBVERBS_ENTER_CONTEXT(ibv_cq->context);
    struct ibverbs_cq *cq = ibverbs_cq_of(ibv_cq);
    uint64_t began_ps = ibverbs_note_begin(entered);
    if (cq->object.users > 0) {
        ibverbs_note_cq(cq, began_ps, JOURNAL_DESTROY_CQ,
                        ibverbs_refuse(entered, EBUSY, JOURNAL_WHY_BUSY, cq->object.users, 0));
        return ibverbs_status(EBUSY);
    }
    struct ibverbs_context *context = cq->object.context;
    int status = ibverbs_events_settle(context, &ibv_cq->comp_events_completed, cq->completions_taken);
    status = status != 0 ? status : ibverbs_events_settle(context, &ibv_cq->async_events_completed, cq->events_taken);
    struct journal_record record = ibverbs_record_cq(cq);
    status = status != 0 ? status : ibverbs_cq_end(&cq->object);
    ibverbs_note_end(context, began_ps, JOURNAL_DESTROY_CQ, -status, &record);
    return ibverbs_status(-status);
}

static int poll_locked(struct ibverbs_cq *cq, int max, struct ibv_wc *wc)
{
    IBVERBS_ENTER(cq->object.context->device->library);
    uint64_t began_ps = ibverbs_notes_all(entered) ? ibverbs_note_begin(entered) : 0;
    int count = ibverbs_ops(&cq->object)->cq_poll(cq->object.device, max, wc);
    ibverbs_note_poll(cq, began_ps, wc, count);
    return count;
}

static const struct ibverbs_outside *outside_of(const struct ibverbs_cq *cq)
{
    return cq->object.context->device->library->outside;
}

bool ibverbs_cq_poll_again(struct ibverbs_cq *cq, bool found, uint64_t site)
{
    const struct ibverbs_outside *outside = outside_of(cq);
    const struct ibverbs_device_ops *ops = ibverbs_ops(&cq->object);
    if (outside == NULL) {
        return false;
    }
    if (found) {
        outside->found();
        return false;
    }
    cq->object.context->device->library->polled = cq;
    return outside->polled_empty(site, ops->cq_next_word != NULL ? ops->cq_next_word(cq->object.device) : NULL,
                                 ops->repeats != NULL && ops->repeats(cq->object.context->object));
}

int ibverbs_poll_cq(struct ibv_cq *ibv_cq, int max, struct ibv_wc *wc)
{
    return ibverbs_poll_cq_at(ibv_cq, max, wc, IBVERBS_SITE(ibv_cq));
}

enum ibverbs_idle ibverbs_poll_idle(struct ibv_cq *ibv_cq, struct ibverbs_idle_poll *poll_out)
{
    struct ibverbs_cq *cq = ibverbs_cq_of(ibv_cq);
    return ibverbs_ops(&cq->object)->cq_idle(cq->object.device, poll_out);
}

int ibverbs_poll_cq_at(struct ibv_cq *ibv_cq, int max, struct ibv_wc *wc, uint64_t site)
{
    struct ibverbs_cq *cq = ibverbs_cq_of(ibv_cq);
    const struct ibverbs_outside *outside = outside_of(cq);
    int count = 0;
    bool again;
    if (outside == NULL || outside->resumed == NULL || !outside->resumed(&again)) {
        count = poll_locked(cq, max > 0 ? max : 0, wc);
        again = ibverbs_cq_poll_again(cq, count != 0, site);
    }
    // A program with several queues would poll another one next, and wait there while a completion is here.
    if (again) {
        count = poll_locked(cq, max > 0 ? max : 0, wc);
        (void)(count != 0 && ibverbs_cq_poll_again(cq, true, site));
    }
    return count;
}

int ibverbs_req_notify_cq(struct ibv_cq *ibv_cq, int solicited_only)
{
    IBVERBS_ENTER_CONTEXT(ibv_cq->context);
    struct ibverbs_cq *cq = ibverbs_cq_of(ibv_cq);
    uint64_t began_ps = ibverbs_notes_all(entered) ? ibverbs_note_begin(entered) : 0;
    int error = -ibverbs_ops(&cq->object)->cq_arm(cq->object.device, solicited_only != 0);
    if (error == 0 && cq->armed != JOURNAL_ARMED_ALL) { // 11.4.2.2: the wider request remains
        cq->armed = solicited_only != 0 ? JOURNAL_ARMED_SOLICITED : JOURNAL_ARMED_ALL;
    }
    if (ibverbs_notes_all(entered)) {
        ibverbs_note_object(cq->object.context, began_ps, JOURNAL_REQ_NOTIFY_CQ, error, ibv_cq->handle,
                            solicited_only != 0);
    }
    return error;
}

int ibverbs_cq_wait(struct ibv_cq *ibv_cq, uint64_t timeout_ns)
{
    struct ibverbs_cq *cq = ibverbs_cq_of(ibv_cq);
    return -ibverbs_ops(&cq->object)->cq_wait(cq->object.device, timeout_ns);
}
