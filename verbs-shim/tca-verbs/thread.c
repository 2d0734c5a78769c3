// The progress thread: passes, and pauses when there is nothing to do.
#include <errno.h>

#include "verbs-shim/tca-verbs/internal.h"

static void run(void *arg)
{
    struct tcav_context *context = arg;
    const struct backend *backend = &context->backend;
    bool goes_on = true;
    while (goes_on) {
        tcav_lock(context);
        context->on_thread = true;
        unsigned found = tcav_progress(context);
        context->on_thread = false;
        uint64_t pause_ns = tcav_is_idle(context) ? 0 : TCAV_PAUSE_NS;
        uint64_t seen = context->changes;
        tcav_unlock(context);
        goes_on =
            found != 0 || backend->ops->thread->pause(backend->ctx, BACKEND_THREAD_TCA_VERBS, seen, true, pause_ns);
    }
}

int tcav_thread_start(struct tcav_context *context)
{
    const struct backend *backend = &context->backend;
    if (backend->ops->thread == NULL) {
        return -EOPNOTSUPP;
    }
    context->threaded = true;
    int error = backend->ops->thread->start(backend->ctx, BACKEND_THREAD_TCA_VERBS, run, context);
    context->threaded = error == 0;
    return error;
}

void tcav_thread_stop(struct tcav_context *context)
{
    if (context->threaded) {
        context->backend.ops->thread->stop(context->backend.ctx, BACKEND_THREAD_TCA_VERBS);
        context->threaded = false;
    }
}
