// libibverbs.so.1 in an attached process: which devices it has, its lock, and how its threads wait.
//
// The lock is taken by trying: a thread that has it may give away the baton in a crossing, and another that slept for
// it in the kernel would keep the baton for ever.
#include <errno.h>
#include <pthread.h>
#include <stddef.h>

#include "verbs-shim/attach/attach.h"
#include "verbs-shim/dropin/dropin.h"
#include "verbs-shim/ibverbs/device.h"

// --- the lock -------------------------------------------------------------------------------------------------------

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static unsigned waiting;              // threads that try
static _Thread_local unsigned depth;  // how often the calling thread has it
static struct backend_process *begun; // the process; NULL: it has not asked for devices yet

static void mutex_take(void)
{
    if (attach_mode() != ATTACH_TIMED) {
        (void)pthread_mutex_lock(&mutex);
        return;
    }
    if (pthread_mutex_trylock(&mutex) == 0) {
        return;
    }
    (void)__atomic_add_fetch(&waiting, 1, __ATOMIC_SEQ_CST);
    while (pthread_mutex_trylock(&mutex) != 0) {
        (void)attach_wait(ATTACH_WAIT_OUTSIDE, ATTACH_NEVER_PS);
    }
    (void)__atomic_sub_fetch(&waiting, 1, __ATOMIC_SEQ_CST);
}

static void mutex_give(void)
{
    int error = errno;
    (void)pthread_mutex_unlock(&mutex);
    if (__atomic_load_n(&waiting, __ATOMIC_SEQ_CST) != 0) {
        attach_may_wake();
    }
    errno = error;
}

static void lock(void)
{
    if (depth++ == 0) {
        mutex_take();
    }
}

static void unlock(void)
{
    if (--depth == 0) {
        mutex_give();
    }
}

// The child of a fork has one thread, which holds nothing, and none of its parent's devices.
static void forked(void)
{
    mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    waiting = 0;
    depth = 0;
    if (begun != NULL) {
        begun->libraries[BACKEND_LIBRARY_IBVERBS].state = NULL;
    }
}

// --- waiting --------------------------------------------------------------------------------------------------------

static void wait_unlocked(void)
{
    unsigned had = depth;
    if (had != 0) {
        depth = 0;
        mutex_give();
    }
    unsigned devices = attach_look_progresses() ? ATTACH_WAIT_MEMORY : ATTACH_WAIT_EVENTS;
    (void)attach_wait(devices | ATTACH_WAIT_OUTSIDE, ATTACH_NEVER_PS);
    if (had != 0) {
        mutex_take();
        depth = had;
    }
}

// Without simulated time nobody stands in for a program that waits for a descriptor.
static void *watch(void *arg)
{
    (void)arg;
    while (true) {
        (void)attach_wait(ATTACH_WAIT_MEMORY, ATTACH_NEVER_PS);
        ibverbs_look(begun);
    }
    return NULL;
}

static void look(void)
{
    ibverbs_look(begun);
}

static void watch_start(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, watch, NULL) == 0) {
        (void)pthread_detach(thread);
    }
}

static void opened(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (attach_mode() == ATTACH_FUNCTIONAL) {
        (void)pthread_once(&once, watch_start);
    } else {
        attach_look_set(look, begun->board != NULL); // tca0's library moves what others read and write
    }
}

static const struct ibverbs_outside outside = {.lock = lock,
                                               .unlock = unlock,
                                               .wait = wait_unlocked,
                                               .now_ps = attach_now_ps,
                                               .looked_in_vain = attach_poll,
                                               .signalled = attach_may_wake,
                                               .opened = opened};

// --- the first call -------------------------------------------------------------------------------------------------

static pthread_mutex_t beginning = PTHREAD_MUTEX_INITIALIZER;

void ibverbs_process_begin(struct backend_process *process)
{
    (void)pthread_mutex_lock(&beginning);
    if (process->libraries[BACKEND_LIBRARY_IBVERBS].state == NULL) {
        dropin_devices_add(process);
        ibverbs_outside_set(process, &outside);
        if (begun == NULL) {
            (void)pthread_atfork(NULL, NULL, forked);
        }
        begun = process;
    }
    (void)pthread_mutex_unlock(&beginning);
}
