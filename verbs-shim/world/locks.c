// Spin locks: the one kind of lock whose waiting is no system call (futex.c has the others). A look at one that is
// taken is a turn of a loop that waits for another thread.
#include <errno.h>
#include <pthread.h>

#include "verbs-shim/world/world.h"

int pthread_spin_lock(pthread_spinlock_t *lock)
{
    if (!world_timed()) {
        return WORLD_REAL(pthread_spin_lock)(lock);
    }
    int error;
    while ((error = pthread_spin_trylock(lock)) == EBUSY) {
        (void)attach_wait(ATTACH_WAIT_TURNS, ATTACH_NEVER_PS);
    }
    return error;
}
