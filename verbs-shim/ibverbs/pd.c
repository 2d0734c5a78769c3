// Protection domains (IBA 10.2.3).
#include <stdlib.h>

#include "verbs-shim/ibverbs/note.h"

struct ibv_pd *ibv_alloc_pd(struct ibv_context *ibv_context)
{
    IBVERBS_ENTER_CONTEXT(ibv_context);
    struct ibverbs_context *context = ibverbs_context_of(ibv_context);
    uint64_t began_ps = ibverbs_note_begin(entered);
    struct ibverbs_pd *pd = ibverbs_object_new(context, sizeof *pd);
    int status = pd != NULL ? context->device->ops->pd_create(context->object, &pd->object.device) : -ENOMEM;
    if (status != 0) {
        ibverbs_object_drop(context, pd);
        ibverbs_note_object(context, began_ps, JOURNAL_ALLOC_PD, -status, 0, 0);
        return ibverbs_fail(status);
    }
    pd->base = (struct ibv_pd){.context = ibv_context, .handle = context->handles++};
    ibverbs_object_add(&pd->object, context, IBVERBS_PD, pd);
    ibverbs_note_object(context, began_ps, JOURNAL_ALLOC_PD, 0, pd->base.handle, 0);
    return &pd->base;
}

int ibverbs_pd_end(struct ibverbs_object *object)
{
    int status = ibverbs_ops(object)->pd_destroy(object->device);
    if (status == 0) {
        ibverbs_object_remove(object);
        free(object->container);
    }
    return status;
}

// 11.2.1.6: refused while an object uses it.
int ibv_dealloc_pd(struct ibv_pd *pd)
{
    IBVERBS_ENTER_CONTEXT(pd->context);
    struct ibverbs_object *object = &ibverbs_pd_of(pd)->object;
    struct ibverbs_context *context = object->context;
    uint64_t began_ps = ibverbs_note_begin(entered);
    uint32_t handle = pd->handle;
    int error = object->users > 0 ? ibverbs_refuse(entered, EBUSY, JOURNAL_WHY_BUSY, object->users, 0)
                                  : -ibverbs_pd_end(object);
    ibverbs_note_object(context, began_ps, JOURNAL_DEALLOC_PD, error, handle, 0);
    return ibverbs_status(error);
}
