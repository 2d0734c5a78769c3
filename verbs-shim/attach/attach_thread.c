// Threads that libraries run beside an attached program: pthreads, which the simulator knows like any other thread of
// the program. A thread that pauses sleeps in the simulator: the program until it is woken, a library's thread also
// until a device has written or another thread was scheduled.
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#include "verbs-shim/attach/attach_ops.h"
#include "verbs-shim/attach/client.h"
#include "verbs-shim/attach/client_internal.h"

enum { PS_PER_NS = 1000, EVERY_BIT = -1 };

static struct helper {
    pthread_t pthread;
    bool running;
    _Atomic bool stopping;
    _Atomic uint32_t changes; // a futex
    _Atomic uint32_t ticket, served;
    void (*run)(void *arg);
    void *arg;
} helpers[BACKEND_THREADS];

static void *thread_main(void *arg)
{
    struct helper *helper = arg;
    helper->run(helper->arg);
    return NULL;
}

static int start(void *ctx, enum backend_thread thread, void (*run)(void *arg), void *arg)
{
    struct helper *helper = &helpers[thread];
    (void)ctx;
    if (helper->running) {
        return -EBUSY;
    }
    helper->run = run;
    helper->arg = arg;
    helper->stopping = false;
    helper->running = pthread_create(&helper->pthread, NULL, thread_main, helper) == 0;
    return helper->running ? 0 : -ENOMEM;
}

static uint64_t changes(void *ctx, enum backend_thread thread)
{
    (void)ctx;
    return atomic_load(&helpers[thread].changes);
}

static void wake(void *ctx, enum backend_thread thread)
{
    struct helper *helper = &helpers[thread];
    (void)ctx;
    atomic_fetch_add(&helper->changes, 1);
    (void)attach_futex_wake(&helper->changes, false, (uint32_t)EVERY_BIT, INT32_MAX);
}

static void stop(void *ctx, enum backend_thread thread)
{
    struct helper *helper = &helpers[thread];
    if (helper->running) {
        helper->stopping = true;
        wake(ctx, thread);
        (void)pthread_join(helper->pthread, NULL);
        helper->running = false;
    }
}

// Until the count has changed, a device has written, or the deadline has passed. Anything else that ends a wait
// (another thread was scheduled, a signal handler, a request of the simulator to all waiting threads) makes the loop
// wait again.
static void sleep_until_changed(const struct helper *helper, uint32_t seen, bool devices, uint64_t deadline_ps)
{
    const unsigned flags = ATTACH_WAIT_MEMORY | ATTACH_WAIT_PINNED | ATTACH_WAIT_OTHERS;
    bool again = true;
    while (again && atomic_load(&helper->changes) == seen && !helper->stopping) {
        again = devices ? attach_wait(flags, deadline_ps) == ATTACH_WOKEN_OUTSIDE
                        : attach_futex_wait(&helper->changes, false, (uint32_t)EVERY_BIT, deadline_ps) == -EINTR;
        again = again && attach_mode() == ATTACH_TIMED;
    }
}

static bool pause_thread(void *ctx, enum backend_thread thread, uint64_t seen, bool devices, uint64_t max_ns)
{
    struct helper *helper = &helpers[thread];
    bool own = helper->running && pthread_equal(pthread_self(), helper->pthread) != 0;
    (void)ctx;
    if (own && helper->stopping) {
        return false;
    }
    uint64_t deadline_ps = max_ns == 0 ? ATTACH_NEVER_PS : attach_now_ps() + max_ns * PS_PER_NS;
    sleep_until_changed(helper, (uint32_t)seen, devices, deadline_ps);
    attach_spend_ps(attach_greeting()->poll_ps);
    return !own || !helper->stopping;
}

static void elapse(void *ctx)
{
    struct attach_slot *slot = attach_mode() == ATTACH_TIMED ? attach_slot() : NULL;
    (void)ctx;
    if (slot != NULL && !attach_own.in_call && attach_own.tail_ps != 0) {
        (void)attach_call(slot, ATTACH_OP_NOTHING);
    }
}

static bool is_locked(void *ctx, enum backend_thread thread)
{
    (void)ctx;
    return atomic_load(&helpers[thread].served) != atomic_load(&helpers[thread].ticket);
}

static void lock(void *ctx, enum backend_thread thread)
{
    struct helper *helper = &helpers[thread];
    uint32_t ticket = atomic_fetch_add(&helper->ticket, 1), served = atomic_load(&helper->served);
    (void)ctx;
    attach_spend_ps(BACKEND_LOCK_LOADS * attach_greeting()->load_ps);
    for (; served != ticket; served = atomic_load(&helper->served)) {
        (void)attach_futex_wait(&helper->served, false, (uint32_t)EVERY_BIT, ATTACH_NEVER_PS);
    }
}

static void unlock(void *ctx, enum backend_thread thread)
{
    struct helper *helper = &helpers[thread];
    (void)ctx;
    attach_spend_ps(BACKEND_UNLOCK_LOADS * attach_greeting()->load_ps);
    atomic_fetch_add(&helper->served, 1);
    if (atomic_load(&helper->served) != atomic_load(&helper->ticket)) {
        (void)attach_futex_wake(&helper->served, false, (uint32_t)EVERY_BIT, INT32_MAX);
    }
}

const struct backend_thread_ops attach_thread_ops = {
    .start = start,
    .stop = stop,
    .changes = changes,
    .pause = pause_thread,
    .wake = wake,
    .elapse = elapse,
    .is_locked = is_locked,
    .lock = lock,
    .unlock = unlock,
};

// The threads belong to the parent.
void attach_threads_forked(void)
{
    for (unsigned i = 0; i < BACKEND_THREADS; i++) {
        helpers[i] = (struct helper){0};
    }
}
