// Futexes in simulated time: mutexes, condition variables, semaphores, barriers and joins of the C library, of OpenMP
// and of C++ use them when a thread has to wait. The kernel compares the word here; the simulator knows which threads
// wait and which are woken (sim/attach/futex.c).
//
// Leaves out: priority inheritance, and waits for several words (futex_waitv): ENOSYS, as on older kernels.
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>

#include "verbs-shim/attach/kernel_call.h"
#include "verbs-shim/world/calls.h"
#include "verbs-shim/world/world.h"

// Does the word still have the value? -ETIMEDOUT: yes. Otherwise the result of futex(2).
static long compare(long word, long flags, long value)
{
    const struct timespec now = {0};
    return kernel_call(SYS_futex, word, FUTEX_WAIT | (flags & FUTEX_PRIVATE_FLAG), value, (long)(uintptr_t)&now, 0, 0);
}

static long wait_until(const long *a, uint32_t bitset, uint64_t deadline_ps)
{
    const bool restarts = deadline_ps == ATTACH_NEVER_PS; // after a handler with SA_RESTART
    unsigned interrupts = world_interrupts(restarts);
    if (bitset == 0) {
        return -EINVAL;
    }
    for (;;) {
        long status = compare(a[0], a[1], a[2]);
        if (status != -ETIMEDOUT && status != -EINTR) {
            return status;
        }
        status = attach_futex_wait((const void *)a[0], (a[1] & FUTEX_PRIVATE_FLAG) == 0, bitset, deadline_ps);
        if (status != -EINTR) {
            return status;
        }
        if (world_interrupts(restarts) != interrupts) {
            return -EINTR;
        }
    }
}

static long wait_call(const long *a, bool absolute, uint32_t bitset)
{
    const struct timespec *time = (const struct timespec *)a[3];
    if (time != NULL && !world_time_valid(time)) {
        return -EINVAL;
    }
    clockid_t clock = (a[1] & FUTEX_CLOCK_REALTIME) != 0 ? CLOCK_REALTIME : CLOCK_MONOTONIC;
    return wait_until(a, bitset, absolute ? world_clock_deadline(clock, time) : world_deadline_after(time));
}

static long wake(const long *a, long word, uint32_t bitset, long most)
{
    bool shared = (a[1] & FUTEX_PRIVATE_FLAG) == 0;
    return most > 0 ? attach_futex_wake((const void *)word, shared, bitset, (uint32_t)most) : 0;
}

// The kernel may have waiters too: of a process that the simulator does not run, or a thread that it does not know.
static long wake_all(const long *a, uint32_t bitset)
{
    long really = kernel_call(SYS_futex, a[0], a[1], a[2], a[3], a[4], a[5]);
    return really < 0 ? really : really + wake(a, a[0], bitset, a[2] - really);
}

static long requeue(const long *a, bool compares)
{
    _Atomic uint32_t *word = (_Atomic uint32_t *)a[0];
    uint32_t moved;
    if (compares && atomic_load(word) != (uint32_t)a[5]) {
        return -EAGAIN;
    }
    long woken = attach_futex_requeue((const void *)a[0], (a[1] & FUTEX_PRIVATE_FLAG) == 0, (uint32_t)a[2],
                                      (uint32_t)a[3], (const void *)a[4], &moved);
    return woken + (compares ? (long)moved : 0);
}

// futex(2): modifies the second word; its earlier value decides whether the waiters of that word are woken.
static long wake_op(const long *a)
{
    unsigned code = (unsigned)a[5];
    int32_t operand = (int32_t)(code << 8) >> 20, compared = (int32_t)(code << 20) >> 20;
    _Atomic int32_t *word = (_Atomic int32_t *)a[4];
    int32_t before = atomic_load(word), after = 0;
    if ((code >> 28 & FUTEX_OP_OPARG_SHIFT) != 0) {
        operand = (int32_t)(UINT32_C(1) << (operand & 31));
    }
    do {
        switch (code >> 28 & 7) {
        case FUTEX_OP_SET:
            after = operand;
            break;
        case FUTEX_OP_ADD:
            after = (int32_t)((uint32_t)before + (uint32_t)operand);
            break;
        case FUTEX_OP_OR:
            after = before | operand;
            break;
        case FUTEX_OP_ANDN:
            after = before & ~operand;
            break;
        case FUTEX_OP_XOR:
            after = before ^ operand;
            break;
        default:
            return -ENOSYS;
        }
    } while (!atomic_compare_exchange_weak(word, &before, after));
    const bool holds[] = {before == compared, before != compared, before<compared, before <= compared, before> compared,
                          before >= compared};
    unsigned comparison = code >> 24 & 0xf;
    long woken = wake(a, a[0], UINT32_MAX, a[2]);
    if (comparison >= sizeof holds / sizeof holds[0]) {
        return -ENOSYS;
    }
    return woken + (holds[comparison] ? wake(a, a[4], UINT32_MAX, a[3]) : 0);
}

long world_call_futex(const long *a)
{
    switch (a[1] & FUTEX_CMD_MASK) {
    case FUTEX_WAIT:
        return wait_call(a, false, FUTEX_BITSET_MATCH_ANY);
    case FUTEX_WAIT_BITSET:
        return wait_call(a, true, (uint32_t)a[5]);
    case FUTEX_WAKE:
        return wake_all(a, FUTEX_BITSET_MATCH_ANY);
    case FUTEX_WAKE_BITSET:
        return wake_all(a, (uint32_t)a[5]);
    case FUTEX_REQUEUE:
        return requeue(a, false);
    case FUTEX_CMP_REQUEUE:
        return requeue(a, true);
    case FUTEX_WAKE_OP:
        return wake_op(a);
    default:
        return -ENOSYS;
    }
}
