// A thread of a library that is started, stopped and started again: prints how often it has paused each time.
#include <pthread.h>
#include <stdio.h>

#include "backend.h"

enum { PAUSE_NS = 1000, PAUSES_MAX = 100 };

static const struct backend *used;
static unsigned pauses;

static void run(void *arg)
{
    const struct backend_thread_ops *thread = used->ops->thread;
    (void)arg;
    attach_thread_began();
    while (pauses < PAUSES_MAX && thread->pause(used->ctx, BACKEND_THREAD_ACP,
                                                thread->changes(used->ctx, BACKEND_THREAD_ACP), false, PAUSE_NS)) {
        pauses++;
    }
}

// What the world shim does for a program in simulated time: the thread that is waited for needs the run token.
int pthread_join(pthread_t thread, void **result_out)
{
    while (pthread_tryjoin_np(thread, result_out) != 0) {
        (void)attach_wait(ATTACH_WAIT_OUTSIDE, ATTACH_NEVER_PS);
    }
    return 0;
}

int backend_helper(const struct backend *backend)
{
    used = backend;
    for (unsigned i = 0; i < 2; i++) {
        pauses = 0;
        if (backend->ops->thread->start(backend->ctx, BACKEND_THREAD_ACP, run, NULL) != 0) {
            return 3;
        }
        attach_thread_started();
        (void)attach_wait(0, attach_now_ps() + 10 * (uint64_t)BACKEND_US_PS);
        backend->ops->thread->stop(backend->ctx, BACKEND_THREAD_ACP);
        printf("%u\n", pauses);
    }
    return 0;
}
