// Threads of the program: each is made known to the simulator before it runs, and before its creator goes on.
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "verbs-shim/world/world.h"

// One for each thread that may still be joined.
struct thread {
    struct thread *next;
    pthread_t handle;
    void *(*start)(void *);
    void *arg;
    uint64_t end_ps; // when it ended: what it did last may be seen before that
    bool ended;      // nothing of the program runs in it any more
};

static struct thread *threads;
static pthread_spinlock_t threads_lock;

static void threads_enter(void)
{
    (void)WORLD_REAL(pthread_spin_lock)(&threads_lock);
}

static void threads_leave(void)
{
    (void)WORLD_REAL(pthread_spin_unlock)(&threads_lock);
}

// In whatever way it ends; the baton is still its own.
static void thread_ended(void *value)
{
    struct thread *thread = value;
    world_spin_end();
    thread->end_ps = attach_now_ps();
    __atomic_store_n(&thread->ended, true, __ATOMIC_RELEASE);
    attach_may_wake();
}

__attribute__((constructor)) static void threads_start(void)
{
    (void)pthread_spin_init(&threads_lock, PTHREAD_PROCESS_PRIVATE);
}

static void *thread_run(void *arg)
{
    struct thread *thread = arg;
    attach_thread_began();
    attach_thread_at_end(thread_ended, thread);
    world_spin_start();
    return thread->start(thread->arg);
}

int pthread_create(pthread_t *restrict handle, const pthread_attr_t *restrict attributes, void *(*start)(void *),
                   void *restrict arg)
{
    if (!world_timed()) {
        return WORLD_REAL(pthread_create)(handle, attributes, start, arg);
    }
    struct thread *thread = calloc(1, sizeof *thread);
    if (thread == NULL) {
        return EAGAIN;
    }
    *thread = (struct thread){.start = start, .arg = arg};
    int error = WORLD_REAL(pthread_create)(&thread->handle, attributes, thread_run, thread);
    if (error != 0) {
        free(thread);
        return error;
    }
    *handle = thread->handle;
    threads_enter();
    thread->next = threads;
    threads = thread;
    threads_leave();
    attach_thread_started();
    return 0;
}

// NULL: it is not one of ours.
static struct thread *thread_find(pthread_t handle)
{
    threads_enter();
    struct thread *thread = threads;
    while (thread != NULL && !pthread_equal(thread->handle, handle)) {
        thread = thread->next;
    }
    threads_leave();
    return thread;
}

static void thread_forget(struct thread *forgotten)
{
    threads_enter();
    struct thread **link = &threads;
    while (*link != forgotten) {
        link = &(*link)->next;
    }
    *link = forgotten->next;
    threads_leave();
    free(forgotten);
}

// false: the deadline came first.
static bool thread_wait_end(const struct thread *thread, uint64_t deadline_ps)
{
    while (!__atomic_load_n(&thread->ended, __ATOMIC_ACQUIRE)) {
        if (attach_wait(ATTACH_WAIT_OUTSIDE, deadline_ps) == ATTACH_WOKEN_DEADLINE) {
            return false;
        }
    }
    while (attach_now_ps() < thread->end_ps) {
        (void)attach_wait(0, thread->end_ps);
    }
    return true;
}

int pthread_join(pthread_t handle, void **result)
{
    struct thread *thread = world_timed() ? thread_find(handle) : NULL;
    if (thread == NULL) {
        return WORLD_REAL(pthread_join)(handle, result);
    }
    if (pthread_equal(handle, pthread_self())) {
        return EDEADLK;
    }
    (void)thread_wait_end(thread, ATTACH_NEVER_PS);
    int error = WORLD_REAL(pthread_join)(handle, result); // it is on its last instructions
    if (error == 0) {
        thread_forget(thread);
    }
    return error;
}

int pthread_timedjoin_np(pthread_t handle, void **result, const struct timespec *when)
{
    struct thread *thread = world_timed() ? thread_find(handle) : NULL;
    if (thread == NULL) {
        return WORLD_REAL(pthread_timedjoin_np)(handle, result, when);
    }
    return thread_wait_end(thread, world_clock_deadline(CLOCK_REALTIME, when)) ? pthread_join(handle, result)
                                                                               : ETIMEDOUT;
}

int pthread_tryjoin_np(pthread_t handle, void **result)
{
    struct thread *thread = world_timed() ? thread_find(handle) : NULL;
    if (thread == NULL) {
        return WORLD_REAL(pthread_tryjoin_np)(handle, result);
    }
    return __atomic_load_n(&thread->ended, __ATOMIC_ACQUIRE) ? pthread_join(handle, result) : EBUSY;
}
