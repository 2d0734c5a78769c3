// Waits for objects without a descriptor: locks of files, System V semaphores and queues, POSIX queues. The call is
// tried without waiting, and again whenever another program may have changed something.
//
// System V objects belong to a node: the numbers that programs choose (keys) are mixed with the node's.
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <sys/file.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/syscall.h>

#include "verbs-shim/attach/kernel_call.h"
#include "verbs-shim/world/calls.h"
#include "verbs-shim/world/world.h"

// Repeats the call until its result is not `busy`. restarts: a signal handler with SA_RESTART does not end it.
static long repeat(long number, const long *a, long busy, uint64_t deadline_ps, bool restarts)
{
    unsigned interrupts = world_interrupts(restarts);
    long result;
    while ((result = kernel_call(number, a[0], a[1], a[2], a[3], a[4], a[5])) == busy) {
        if (attach_wait(ATTACH_WAIT_OUTSIDE, deadline_ps) == ATTACH_WOKEN_DEADLINE) {
            break;
        }
        if (world_interrupts(restarts) != interrupts) {
            return -EINTR;
        }
    }
    attach_may_wake();
    return result;
}

static long at_once(long number, const long *a)
{
    long result = kernel_call(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    attach_may_wake();
    return result;
}

long world_call_flock(const long *a)
{
    const long call[6] = {a[0], a[1] | LOCK_NB};
    bool waits = (a[1] & LOCK_NB) == 0 && (a[1] & LOCK_UN) == 0;
    return waits ? repeat(SYS_flock, call, -EWOULDBLOCK, ATTACH_NEVER_PS, true) : at_once(SYS_flock, a);
}

// Only locks of fcntl(2) come here; the C library's own function comes through the trap.
long world_call_fcntl(const long *a)
{
    const long call[6] = {a[0], a[1] == F_SETLKW ? F_SETLK : F_OFD_SETLK, a[2]};
    bool waits = a[1] == F_SETLKW || a[1] == F_OFD_SETLKW;
    return waits ? repeat(SYS_fcntl, call, -EAGAIN, ATTACH_NEVER_PS, true) : at_once(SYS_fcntl, a);
}

static bool semaphores_wait(struct sembuf *to, const struct sembuf *from, size_t count)
{
    bool waits = true;
    for (size_t i = 0; i < count; i++) {
        to[i] = from[i];
        waits = waits && (from[i].sem_flg & IPC_NOWAIT) == 0;
        to[i].sem_flg = (short)(to[i].sem_flg | IPC_NOWAIT);
    }
    return waits;
}

static long semaphores(const long *a, const struct timespec *timeout)
{
    struct sembuf operations[500]; // SEMOPM of Linux; a call with more fails at once
    if ((size_t)a[2] > sizeof operations / sizeof operations[0] ||
        !semaphores_wait(operations, (const struct sembuf *)a[1], (size_t)a[2])) {
        return at_once(SYS_semop, (const long[6]){a[0], a[1], a[2]});
    }
    const long call[6] = {a[0], (long)(uintptr_t)operations, a[2]};
    return repeat(SYS_semop, call, -EAGAIN, world_deadline_after(timeout), false);
}

long world_call_semop(const long *a)
{
    return semaphores(a, NULL);
}

long world_call_semtimedop(const long *a)
{
    return semaphores(a, (const struct timespec *)a[3]);
}

long world_call_msgsnd(const long *a)
{
    const long call[6] = {a[0], a[1], a[2], a[3] | IPC_NOWAIT};
    return (a[3] & IPC_NOWAIT) != 0 ? at_once(SYS_msgsnd, a)
                                    : repeat(SYS_msgsnd, call, -EAGAIN, ATTACH_NEVER_PS, false);
}

long world_call_msgrcv(const long *a)
{
    const long call[6] = {a[0], a[1], a[2], a[3], a[4] | IPC_NOWAIT};
    return (a[4] & IPC_NOWAIT) != 0 ? at_once(SYS_msgrcv, a)
                                    : repeat(SYS_msgrcv, call, -ENOMSG, ATTACH_NEVER_PS, false);
}

// A deadline in the past makes the call return at once.
static long queue_call(long number, const long *a)
{
    static const struct timespec past;
    const long call[6] = {a[0], a[1], a[2], a[3], (long)(uintptr_t)&past};
    const struct timespec *when = (const struct timespec *)a[4];
    return repeat(number, call, -ETIMEDOUT, world_clock_deadline(CLOCK_REALTIME, when), true);
}

long world_call_mq_send(const long *a)
{
    return queue_call(SYS_mq_timedsend, a);
}

long world_call_mq_receive(const long *a)
{
    return queue_call(SYS_mq_timedreceive, a);
}

// --- keys -----------------------------------------------------------------------------------------------------------

static key_t key_of_node(key_t key)
{
    return key == IPC_PRIVATE || !world_timed() ? key : (key_t)((uint32_t)key ^ world_identity());
}

int shmget(key_t key, size_t bytes, int flags)
{
    return WORLD_REAL(shmget)(key_of_node(key), bytes, flags);
}

int semget(key_t key, int count, int flags)
{
    return WORLD_REAL(semget)(key_of_node(key), count, flags);
}

int msgget(key_t key, int flags)
{
    return WORLD_REAL(msgget)(key_of_node(key), flags);
}
