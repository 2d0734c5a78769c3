// Spin locks: the only kind of lock whose waiting is no system call (futex.c has the others). A failed attempt to take
// a lock is an iteration of a loop that waits for another thread.
//
// A program's own computing takes no time, so a thread that releases a lock and takes it again in its next iteration
// would always be first. If another thread of the process waits, the thread that releases a lock yields to it.
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#include "verbs-shim/world/world.h"

static _Atomic unsigned waiters; // threads of this process that wait for any spin lock

static void forked(void)
{
    atomic_store(&waiters, 0);
}

void world_locks_start(void)
{
    (void)pthread_atfork(NULL, NULL, forked);
}

int pthread_spin_lock(pthread_spinlock_t *lock)
{
    if (!world_timed()) {
        return WORLD_REAL(pthread_spin_lock)(lock);
    }
    int error;
    while ((error = pthread_spin_trylock(lock)) == EBUSY) {
        atomic_fetch_add(&waiters, 1);
        (void)attach_wait(ATTACH_WAIT_OTHERS, ATTACH_NEVER_PS);
        atomic_fetch_sub(&waiters, 1);
    }
    return error;
}

int pthread_spin_unlock(pthread_spinlock_t *lock)
{
    int error = WORLD_REAL(pthread_spin_unlock)(lock);
    if (atomic_load_explicit(&waiters, memory_order_relaxed) != 0 && world_timed()) {
        (void)attach_wait(0, 0);
    }
    return error;
}
