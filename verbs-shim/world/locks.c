// Locks: taken without blocking, waited for in simulated time. One thread of all runs at a time, so that what is tested
// here cannot change before it is acted on, except by threads that nobody announced (clone(2) by hand); a real spin
// lock guards the list of waiters against those.
//
// Condition variables: who waits stands in a list, first come first served, and the C library's own variable is told
// too, for waits that do not come through here. Leaves out: priorities, robust mutexes whose owner dies, variables in
// memory that processes share.
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <time.h>

#include "verbs-shim/world/world.h"

static unsigned waiting; // threads of the process that wait for a lock: nobody else is woken by its release

static bool wait_for_lock(uint64_t deadline_ps)
{
    __atomic_add_fetch(&waiting, 1, __ATOMIC_RELAXED);
    bool in_time = attach_wait(ATTACH_WAIT_OUTSIDE, deadline_ps) != ATTACH_WOKEN_DEADLINE;
    __atomic_sub_fetch(&waiting, 1, __ATOMIC_RELAXED);
    return in_time;
}

static void released(void)
{
    if (__atomic_load_n(&waiting, __ATOMIC_RELAXED) != 0 && world_timed()) {
        attach_may_wake();
    }
}

static uint64_t deadline_of(const struct timespec *when)
{
    // Which clock a variable has is not to be seen from outside; no machine has been up for 30 years.
    return world_clock_deadline(when->tv_sec > 1000000000 ? CLOCK_REALTIME : CLOCK_MONOTONIC, when);
}

// --- mutexes
// ----------------------------------------------------------------------------------------------------------

static int mutex_lock_until(pthread_mutex_t *mutex, uint64_t deadline_ps)
{
    int error;
    while ((error = pthread_mutex_trylock(mutex)) == EBUSY) {
        if (!wait_for_lock(deadline_ps)) {
            return ETIMEDOUT;
        }
    }
    return error;
}

int pthread_mutex_lock(pthread_mutex_t *mutex)
{
    return world_timed() ? mutex_lock_until(mutex, ATTACH_NEVER_PS) : WORLD_REAL(pthread_mutex_lock)(mutex);
}

int pthread_mutex_timedlock(pthread_mutex_t *restrict mutex, const struct timespec *restrict when)
{
    return world_timed() ? mutex_lock_until(mutex, world_clock_deadline(CLOCK_REALTIME, when))
                         : WORLD_REAL(pthread_mutex_timedlock)(mutex, when);
}

int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
    int error = WORLD_REAL(pthread_mutex_unlock)(mutex);
    released();
    return error;
}

int pthread_spin_lock(pthread_spinlock_t *lock)
{
    if (!world_timed()) {
        return WORLD_REAL(pthread_spin_lock)(lock);
    }
    int error;
    while ((error = pthread_spin_trylock(lock)) == EBUSY) {
        (void)wait_for_lock(ATTACH_NEVER_PS);
    }
    return error;
}

int pthread_spin_unlock(pthread_spinlock_t *lock)
{
    int error = WORLD_REAL(pthread_spin_unlock)(lock);
    released();
    return error;
}

int pthread_rwlock_rdlock(pthread_rwlock_t *lock)
{
    if (!world_timed()) {
        return WORLD_REAL(pthread_rwlock_rdlock)(lock);
    }
    int error;
    while ((error = pthread_rwlock_tryrdlock(lock)) == EBUSY) {
        (void)wait_for_lock(ATTACH_NEVER_PS);
    }
    return error;
}

int pthread_rwlock_wrlock(pthread_rwlock_t *lock)
{
    if (!world_timed()) {
        return WORLD_REAL(pthread_rwlock_wrlock)(lock);
    }
    int error;
    while ((error = pthread_rwlock_trywrlock(lock)) == EBUSY) {
        (void)wait_for_lock(ATTACH_NEVER_PS);
    }
    return error;
}

int pthread_rwlock_unlock(pthread_rwlock_t *lock)
{
    int error = WORLD_REAL(pthread_rwlock_unlock)(lock);
    released();
    return error;
}

// --- condition variables
// ----------------------------------------------------------------------------------------------

struct waiter {
    struct waiter *next;
    const pthread_cond_t *condition;
    bool signalled;
};

static struct waiter *waiters;
static pthread_spinlock_t waiters_lock;

__attribute__((constructor)) static void locks_start(void)
{
    (void)pthread_spin_init(&waiters_lock, PTHREAD_PROCESS_PRIVATE);
}

static void waiters_enter(void)
{
    (void)WORLD_REAL(pthread_spin_lock)(&waiters_lock);
}

static void waiters_leave(void)
{
    (void)WORLD_REAL(pthread_spin_unlock)(&waiters_lock);
}

static void waiter_add(struct waiter *waiter)
{
    waiters_enter();
    struct waiter **link = &waiters;
    while (*link != NULL) {
        link = &(*link)->next;
    }
    *link = waiter;
    waiters_leave();
}

static void waiter_remove(struct waiter *waiter)
{
    waiters_enter();
    struct waiter **link = &waiters;
    while (*link != waiter) {
        link = &(*link)->next;
    }
    *link = waiter->next;
    waiters_leave();
}

static void cancelled(void *waiter)
{
    waiter_remove(waiter);
}

static int condition_wait_until(pthread_cond_t *condition, pthread_mutex_t *mutex, uint64_t deadline_ps)
{
    struct waiter waiter = {.condition = condition};
    int error = pthread_mutex_unlock(mutex);
    if (error != 0) {
        return error;
    }
    bool in_time = true;
    waiter_add(&waiter);
    pthread_cleanup_push(cancelled, &waiter);
    while (in_time && !waiter.signalled) {
        in_time = attach_wait(ATTACH_WAIT_OUTSIDE, deadline_ps) != ATTACH_WOKEN_DEADLINE;
    }
    pthread_cleanup_pop(1);
    error = pthread_mutex_lock(mutex);
    return error != 0 ? error : waiter.signalled ? 0 : ETIMEDOUT;
}

static void condition_wake(const pthread_cond_t *condition, bool all)
{
    bool more = true;
    waiters_enter();
    for (struct waiter *waiter = waiters; more && waiter != NULL; waiter = waiter->next) {
        if (waiter->condition == condition && !waiter->signalled) {
            waiter->signalled = true;
            more = all;
        }
    }
    waiters_leave();
    attach_may_wake();
}

int pthread_cond_wait(pthread_cond_t *restrict condition, pthread_mutex_t *restrict mutex)
{
    return world_timed() ? condition_wait_until(condition, mutex, ATTACH_NEVER_PS)
                         : WORLD_REAL(pthread_cond_wait)(condition, mutex);
}

int pthread_cond_timedwait(pthread_cond_t *restrict condition, pthread_mutex_t *restrict mutex,
                           const struct timespec *restrict when)
{
    return world_timed() ? condition_wait_until(condition, mutex, deadline_of(when))
                         : WORLD_REAL(pthread_cond_timedwait)(condition, mutex, when);
}

int pthread_cond_clockwait(pthread_cond_t *restrict condition, pthread_mutex_t *restrict mutex, clockid_t clock,
                           const struct timespec *restrict when)
{
    return world_timed() ? condition_wait_until(condition, mutex, world_clock_deadline(clock, when))
                         : WORLD_REAL(pthread_cond_clockwait)(condition, mutex, clock, when);
}

int pthread_cond_signal(pthread_cond_t *condition)
{
    if (world_timed()) {
        condition_wake(condition, false);
    }
    return WORLD_REAL(pthread_cond_signal)(condition);
}

int pthread_cond_broadcast(pthread_cond_t *condition)
{
    if (world_timed()) {
        condition_wake(condition, true);
    }
    return WORLD_REAL(pthread_cond_broadcast)(condition);
}

// --- semaphores
// -------------------------------------------------------------------------------------------------------

static int semaphore_wait_until(sem_t *semaphore, uint64_t deadline_ps)
{
    unsigned interrupts = attach_interrupts();
    while (sem_trywait(semaphore) != 0) {
        if (errno != EAGAIN) {
            return -1;
        }
        if (attach_interrupts() != interrupts) {
            errno = EINTR;
            return -1;
        }
        if (!wait_for_lock(deadline_ps)) {
            errno = ETIMEDOUT;
            return -1;
        }
    }
    return 0;
}

int sem_wait(sem_t *semaphore)
{
    return world_timed() ? semaphore_wait_until(semaphore, ATTACH_NEVER_PS) : WORLD_REAL(sem_wait)(semaphore);
}

int sem_timedwait(sem_t *restrict semaphore, const struct timespec *restrict when)
{
    return world_timed() ? semaphore_wait_until(semaphore, world_clock_deadline(CLOCK_REALTIME, when))
                         : WORLD_REAL(sem_timedwait)(semaphore, when);
}

int sem_post(sem_t *semaphore)
{
    int status = WORLD_REAL(sem_post)(semaphore);
    released();
    return status;
}
