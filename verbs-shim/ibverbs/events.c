// Events: from the device to the channel or context where they are queued, and from there to the program.
//
// The descriptors that programs see are real: O_NONBLOCK can be set on them, and in a process of its own they are
// readable while an event waits. In a simulated process poll(2) on them shows nothing, because poll(2) would take no
// simulated time.
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "verbs-shim/ibverbs/note.h"

int ibverbs_event_fd(void)
{
    int fd = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
    return fd < 0 ? -errno : fd;
}

static bool blocks(int fd)
{
    return (fcntl(fd, F_GETFL) & O_NONBLOCK) == 0;
}

// --- queues ---------------------------------------------------------------------------------------------------------
// The counter of a queue's descriptor equals its number of events.

void ibverbs_queue_init(struct ibverbs_queue *queue, const struct ibverbs_library *library, int fd)
{
    *queue = (struct ibverbs_queue){.end = &queue->first, .fd = fd, .outside = library->outside};
}

static void count_lower(const struct ibverbs_queue *queue)
{
    uint64_t one;
    if (queue->outside != NULL) {
        (void)!read(queue->fd, &one, sizeof one); // does not block: every event in the queue was counted
    }
}

static void count_raise(const struct ibverbs_queue *queue)
{
    const uint64_t one = 1;
    if (queue->outside != NULL) {
        (void)!write(queue->fd, &one, sizeof one);
        queue->outside->signalled();
    }
}

struct ibverbs_queued *ibverbs_queue_take(struct ibverbs_queue *queue)
{
    struct ibverbs_queued *queued = queue->first;
    if (queued != NULL) {
        queue->first = queued->next;
        queue->end = queue->first == NULL ? &queue->first : queue->end;
        count_lower(queue);
    }
    return queued;
}

void ibverbs_queue_purge(struct ibverbs_queue *queue, const struct ibverbs_object *object)
{
    struct ibverbs_queued **link = &queue->first;
    while (*link != NULL) {
        struct ibverbs_queued *queued = *link;
        if (object == NULL || queued->event.user == object) {
            *link = queued->next;
            free(queued);
            count_lower(queue);
        } else {
            link = &queued->next;
        }
    }
    queue->end = link;
}

static int queue_put(struct ibverbs_queue *queue, const struct ibverbs_event *event)
{
    struct ibverbs_queued *queued = malloc(sizeof *queued);
    if (queued == NULL) {
        return -ENOMEM;
    }
    *queued = (struct ibverbs_queued){.event = *event};
    *queue->end = queued;
    queue->end = &queued->next;
    count_raise(queue);
    return 0;
}

// --- from the device ------------------------------------------------------------------------------------------------

static bool of_an_object(enum ibv_event_type type)
{
    switch (type) {
    case IBV_EVENT_DEVICE_FATAL:
    case IBV_EVENT_PORT_ACTIVE:
    case IBV_EVENT_PORT_ERR:
    case IBV_EVENT_LID_CHANGE:
    case IBV_EVENT_PKEY_CHANGE:
    case IBV_EVENT_SM_CHANGE:
    case IBV_EVENT_CLIENT_REREGISTER:
    case IBV_EVENT_GID_CHANGE:
        return false;
    case IBV_EVENT_CQ_ERR:
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_PATH_MIG:
    case IBV_EVENT_PATH_MIG_ERR:
    case IBV_EVENT_SRQ_ERR:
    case IBV_EVENT_SRQ_LIMIT_REACHED:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
    case IBV_EVENT_WQ_FATAL:
        break;
    }
    return true;
}

// The user pointer of an object is its ibverbs_object. Events of destroyed objects are dropped.
static int event_pull(struct ibverbs_context *context, uint64_t timeout_ns)
{
    struct ibverbs_event event;
    int status = context->device->ops->event_get(context->object, timeout_ns, &event);
    if (status != 0) {
        return status;
    }
    const struct ibverbs_object *object = event.user;
    if (!event.completion && of_an_object(event.type)) {
        return object == NULL ? 0 : queue_put(&object->context->events, &event);
    }
    if (!event.completion) {
        return queue_put(&context->events, &event);
    }
    struct ibverbs_cq *cq = object != NULL ? object->container : NULL;
    if (cq == NULL || cq->base.channel == NULL) {
        return 0;
    }
    return queue_put(&((struct ibverbs_channel *)cq->base.channel)->events, &event);
}

static void interrupt_pay(const struct backend_process *process)
{
    process->backend.ops->cost(process->backend.ctx, BACKEND_COST_INTERRUPT, 1);
}

// For a thread that sleeps while others ask whether it can continue: the query takes it no time.
static bool event_waits(const struct ibverbs_context *context)
{
    const struct ibverbs_device_ops *ops = context->device->ops;
    return ops->event_waits == NULL || ops->event_waits(context->object);
}

// If other threads may need the lock, it is free while the caller waits. A wait never happens with the lock held, not
// even for a nanosecond: threads that want the lock and this one would wake each other forever, once a nanosecond.
int ibverbs_events_pull(struct ibverbs_context *context, uint64_t timeout_ns)
{
    const struct ibverbs_library *library = context->device->library;
    if (library->outside == NULL || timeout_ns != IBVERBS_FOR_EVER) {
        return event_pull(context, timeout_ns);
    }
    int status = event_waits(context) ? event_pull(context, IBVERBS_NO_WAIT) : -EAGAIN;
    if (status == 0) {
        interrupt_pay(library->process);
    } else if (status == -EAGAIN) {
        library->outside->wait();
        status = 0; // the caller checks again: another thread may have taken the event
    }
    return status;
}

int ibverbs_event_await(struct ibverbs_context *context, const struct ibverbs_queue *queue)
{
    const struct ibverbs_outside *outside = context->device->library->outside;
    uint64_t timeout_ns = blocks(queue->fd) ? IBVERBS_FOR_EVER : IBVERBS_NO_WAIT;
    unsigned interrupts = outside != NULL ? outside->interrupts() : 0;
    while (queue->first == NULL) {
        int status = ibverbs_events_pull(context, timeout_ns);
        if (status == 0 && outside != NULL && outside->interrupts() != interrupts) {
            status = -EINTR;
        }
        if (status != 0 && queue->first == NULL) {
            return status;
        }
    }
    return 0;
}

static void events_poll(struct backend_process *process, bool all)
{
    struct ibverbs_library *library = process->libraries[BACKEND_LIBRARY_IBVERBS].state;
    if (library == NULL || library->contexts == NULL) {
        return;
    }
    IBVERBS_ENTER(library);
    bool found = false;
    for (struct ibverbs_context *context = library->contexts; context != NULL; context = context->next) {
        bool works = context->device->ops->due_ps != NULL, looks = works ? all : event_waits(context);
        while (looks && event_pull(context, IBVERBS_NO_WAIT) == 0) {
            found = true;
            looks = event_waits(context);
        }
    }
    if (found) {
        interrupt_pay(process);
    }
    // The thread that does this for the program runs at other times than the program's threads. They must not see a
    // device state that is ahead of the data stored for it.
    if (library->outside != NULL && library->outside->settle != NULL) {
        library->outside->settle();
    }
}

void ibverbs_events_poll(struct backend_process *process)
{
    events_poll(process, true);
}

void ibverbs_events_look(struct backend_process *process)
{
    events_poll(process, false);
}

bool ibverbs_sends_wait(const struct backend_process *process)
{
    const struct ibverbs_library *library = process->libraries[BACKEND_LIBRARY_IBVERBS].state;
    bool wait = false;
    for (struct ibverbs_context *context = library != NULL ? library->contexts : NULL; context != NULL;
         context = context->next) {
        const struct ibverbs_device_ops *ops = context->device->ops;
        wait = wait || (ops->sends_wait != NULL && ops->sends_wait(context->object));
    }
    return wait;
}

bool ibverbs_events_repeat(const struct backend_process *process)
{
    const struct ibverbs_library *library = process->libraries[BACKEND_LIBRARY_IBVERBS].state;
    bool repeat = library != NULL && library->contexts != NULL;
    for (struct ibverbs_context *context = repeat ? library->contexts : NULL; context != NULL;
         context = context->next) {
        const struct ibverbs_device_ops *ops = context->device->ops;
        repeat = repeat && ops->repeats != NULL && ops->repeats(context->object);
    }
    return repeat;
}

uint64_t ibverbs_events_due_ps(struct backend_process *process, bool events)
{
    const struct ibverbs_library *library = process->libraries[BACKEND_LIBRARY_IBVERBS].state;
    uint64_t due_ps = UINT64_MAX;
    for (struct ibverbs_context *context = library != NULL ? library->contexts : NULL; context != NULL;
         context = context->next) {
        const struct ibverbs_device_ops *ops = context->device->ops;
        uint64_t own_ps = ops->due_ps != NULL ? ops->due_ps(context->object, events) : UINT64_MAX;
        due_ps = own_ps < due_ps ? own_ps : due_ps;
    }
    return due_ps;
}

int ibverbs_events_settle(struct ibverbs_context *context, const uint32_t *acknowledged, uint32_t taken)
{
    struct ibverbs_library *library = context->device->library;
    int status = 0, cancels;
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancels);
    library->settling++;
    while (status == 0 && *acknowledged != taken) {
        status = ibverbs_events_pull(context, IBVERBS_FOR_EVER);
    }
    library->settling--;
    (void)pthread_setcancelstate(cancels, NULL);
    return status;
}

void ibverbs_own(const struct ibverbs_library *library, struct ibverbs_owner *owner)
{
    int cancels;
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancels);
    owner->waiting++;
    while (owner->there && library->outside != NULL) {
        library->outside->wait();
    }
    owner->waiting--;
    (void)pthread_setcancelstate(cancels, NULL);
    owner->there = true;
}

void ibverbs_disown(const struct ibverbs_library *library, struct ibverbs_owner *owner)
{
    owner->there = false;
    if (owner->waiting != 0) {
        library->outside->signalled();
    }
}

void ibverbs_events_acknowledged(const struct ibverbs_library *library)
{
    if (library->settling != 0 && library->outside != NULL) {
        library->outside->signalled();
    }
}

// --- asynchronous events --------------------------------------------------------------------------------------------

static void event_describe(const struct ibverbs_event *event, struct ibv_async_event *event_out)
{
    const struct ibverbs_object *object = of_an_object(event->type) ? event->user : NULL;
    *event_out = (struct ibv_async_event){.event_type = event->type};
    if (object == NULL) {
        event_out->element.port_num = event->port;
    } else if (object->kind == IBVERBS_CQ) {
        struct ibverbs_cq *cq = object->container;
        event_out->element.cq = &cq->base;
        cq->events_taken++;
    } else if (object->kind == IBVERBS_SRQ) {
        struct ibverbs_srq *srq = object->container;
        event_out->element.srq = &srq->base;
        srq->events_taken++;
    } else {
        struct ibverbs_qp *qp = object->container;
        event_out->element.qp = &qp->base;
        qp->events_taken++;
    }
}

int ibv_get_async_event(struct ibv_context *ibv_context, struct ibv_async_event *event)
{
    pthread_testcancel();
    IBVERBS_ENTER_CONTEXT(ibv_context);
    struct ibverbs_context *context = ibverbs_context_of(ibv_context);
    uint64_t began_ps = ibverbs_note_begin(entered);
    int status = ibverbs_event_await(context, &context->events);
    if (status != 0) {
        errno = -status;
        return -1;
    }
    struct ibverbs_queued *queued = ibverbs_queue_take(&context->events);
    event_describe(&queued->event, event);
    free(queued);
    if (ibverbs_notes_all(entered)) {
        ibverbs_note_object(context, began_ps, JOURNAL_GET_ASYNC_EVENT, 0, 0, event->event_type);
    }
    return 0;
}

static void acknowledge(struct ibv_context *context, uint32_t *count)
{
    IBVERBS_ENTER_CONTEXT(context);
    ++*count;
    ibverbs_events_acknowledged(entered);
}

void ibv_ack_async_event(struct ibv_async_event *event)
{
    switch (event->event_type) {
    case IBV_EVENT_CQ_ERR:
        acknowledge(event->element.cq->context, &event->element.cq->async_events_completed);
        break;
    case IBV_EVENT_SRQ_ERR:
    case IBV_EVENT_SRQ_LIMIT_REACHED:
        acknowledge(event->element.srq->context, &event->element.srq->events_completed);
        break;
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_PATH_MIG:
    case IBV_EVENT_PATH_MIG_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
        acknowledge(event->element.qp->context, &event->element.qp->events_completed);
        break;
    case IBV_EVENT_WQ_FATAL:
    case IBV_EVENT_DEVICE_FATAL:
    case IBV_EVENT_PORT_ACTIVE:
    case IBV_EVENT_PORT_ERR:
    case IBV_EVENT_LID_CHANGE:
    case IBV_EVENT_PKEY_CHANGE:
    case IBV_EVENT_SM_CHANGE:
    case IBV_EVENT_CLIENT_REREGISTER:
    case IBV_EVENT_GID_CHANGE:
        break;
    }
}
