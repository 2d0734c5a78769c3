// Threads of the program: the simulator knows each of them before it runs, and before its creator goes on. A thread
// that joins another one waits for a futex (futex.c), which the kernel changes when the other has ended.
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <threads.h>

#include "verbs-shim/world/world.h"

struct beginning {
    void *(*start)(void *);
    thrd_start_t c11; // instead of start
    void *arg;
    struct world_affinity affinity;
};

// Called however the thread ends; the thread still has the run token.
static void thread_ended(void *unused)
{
    (void)unused;
    world_spin_end();
}

static void *thread_run(void *arg)
{
    const struct beginning beginning = *(struct beginning *)arg;
    free(arg);
    world_trap_unblock(); // its attributes may contain a signal mask
    attach_thread_began();
    attach_thread_at_end(thread_ended, NULL);
    world_spin_start();
    world_affinity_inherit(&beginning.affinity);
    return beginning.c11 != NULL ? (void *)(intptr_t)beginning.c11(beginning.arg) : beginning.start(beginning.arg);
}

static int create(pthread_t *handle, const pthread_attr_t *attributes, const struct beginning *beginning)
{
    struct beginning *copy = malloc(sizeof *copy);
    if (copy == NULL) {
        return EAGAIN;
    }
    *copy = *beginning;
    copy->affinity = world_affinity_of_thread();
    int error = WORLD_REAL(pthread_create)(handle, attributes, thread_run, copy);
    if (error != 0) {
        free(copy);
        return error;
    }
    attach_thread_started();
    return 0;
}

int pthread_create(pthread_t *restrict handle, const pthread_attr_t *restrict attributes, void *(*start)(void *),
                   void *restrict arg)
{
    return world_timed() ? create(handle, attributes, &(struct beginning){.start = start, .arg = arg})
                         : WORLD_REAL(pthread_create)(handle, attributes, start, arg);
}

int thrd_create(thrd_t *handle, thrd_start_t start, void *arg)
{
    if (!world_timed()) {
        return WORLD_REAL(thrd_create)(handle, start, arg);
    }
    int error = create(handle, NULL, &(struct beginning){.c11 = start, .arg = arg});
    return error == 0 ? thrd_success : error == EAGAIN ? thrd_nomem : thrd_error;
}
