// Completion channels: they queue the events of completion queues for the program.
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "verbs-shim/ibverbs/note.h"

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *ibv_context)
{
    IBVERBS_ENTER_CONTEXT(ibv_context);
    struct ibverbs_context *context = ibverbs_context_of(ibv_context);
    uint64_t began_ps = ibverbs_note_begin(entered);
    struct ibverbs_channel *channel = calloc(1, sizeof *channel);
    int fd = channel != NULL ? ibverbs_event_fd() : -ENOMEM;
    if (fd < 0) {
        free(channel);
        return ibverbs_fail(fd);
    }
    channel->base = (struct ibv_comp_channel){.context = ibv_context, .fd = fd};
    channel->handle = context->handles++;
    ibverbs_queue_init(&channel->events, context->device->library, fd);
    ibverbs_object_add(&channel->object, context, IBVERBS_CHANNEL, channel);
    ibverbs_note_object(context, began_ps, JOURNAL_CREATE_CHANNEL, 0, channel->handle, 0);
    return &channel->base;
}

int ibverbs_channel_end(struct ibverbs_object *object)
{
    struct ibverbs_channel *channel = object->container;
    ibverbs_queue_purge(&channel->events, NULL);
    (void)close(channel->base.fd);
    ibverbs_object_remove(object);
    free(channel);
    return 0;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *ibv_channel)
{
    IBVERBS_ENTER_CONTEXT(ibv_channel->context);
    struct ibverbs_channel *channel = (struct ibverbs_channel *)ibv_channel;
    struct ibverbs_context *context = channel->object.context;
    uint64_t began_ps = ibverbs_note_begin(entered);
    uint32_t handle = channel->handle, users = (uint32_t)ibv_channel->refcnt;
    int error =
        users > 0 ? ibverbs_refuse(entered, EBUSY, JOURNAL_WHY_BUSY, users, 0) : -ibverbs_channel_end(&channel->object);
    ibverbs_note_object(context, began_ps, JOURNAL_DESTROY_CHANNEL, error, handle, 0);
    return ibverbs_status(error);
}

int ibv_get_cq_event(struct ibv_comp_channel *ibv_channel, struct ibv_cq **cq_out, void **cq_context_out)
{
    pthread_testcancel();
    IBVERBS_ENTER_CONTEXT(ibv_channel->context);
    struct ibverbs_channel *channel = (struct ibverbs_channel *)ibv_channel;
    uint64_t began_ps = ibverbs_note_begin(entered);
    int status = ibverbs_event_await(channel->object.context, &channel->events);
    if (status != 0) {
        errno = -status;
        return -1;
    }
    struct ibverbs_queued *queued = ibverbs_queue_take(&channel->events);
    struct ibverbs_cq *cq = ((const struct ibverbs_object *)queued->event.user)->container;
    free(queued);
    cq->completions_taken++;
    cq->armed = JOURNAL_ARMED_NOT;
    *cq_out = &cq->base;
    *cq_context_out = cq->base.cq_context;
    if (ibverbs_notes_all(entered)) {
        ibverbs_note_object(channel->object.context, began_ps, JOURNAL_GET_CQ_EVENT, 0, cq->base.handle, 0);
    }
    return 0;
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int nevents)
{
    IBVERBS_ENTER_CONTEXT(cq->context);
    cq->comp_events_completed += nevents;
    ibverbs_events_acknowledged(entered);
}
