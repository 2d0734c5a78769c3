// The processors that a thread may use. The simulator decides where programs really run (sim/attach/run_token.c): a
// rank that binds itself to a core of its node must not move away from the other programs. A thread reads what it has
// set, and threads and children that it starts inherit this.
//
// Leaves out: a new program (exec) begins with all processors; a setting for another thread is checked and then
// ignored.
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "verbs-shim/world/world.h"

static __thread struct world_affinity own;

struct world_affinity world_affinity_of_thread(void)
{
    return own;
}

void world_affinity_inherit(const struct world_affinity *affinity)
{
    own = *affinity;
}

// The checks of the kernel. 0, or an errno value.
static int refusal(pid_t thread, const void *set)
{
    cpu_set_t ignored;
    if (thread != 0 && WORLD_REAL(sched_getaffinity)(world_id_real(thread), sizeof ignored, &ignored) < 0) {
        return errno;
    }
    return set == NULL ? EFAULT : 0;
}

static int failure(int error)
{
    errno = error;
    return -1;
}

static bool is_own(pid_t thread)
{
    return thread == 0 || thread == gettid();
}

static size_t least_bytes(void)
{
    size_t least = 0;
    for (size_t i = 0; i < sizeof own.processors; i++) {
        least = attach_environment()->processors[i] != 0 ? i + 1 : least;
    }
    return least;
}

int sched_setaffinity(pid_t thread, size_t bytes, const cpu_set_t *set)
{
    if (!world_timed()) {
        return WORLD_REAL(sched_setaffinity)(world_id_real(thread), bytes, set);
    }
    int error = refusal(thread, set);
    if (error != 0) {
        return failure(error);
    }
    struct world_affinity wanted = {.given = true};
    memcpy(wanted.processors, set, bytes < sizeof wanted.processors ? bytes : sizeof wanted.processors);
    unsigned any = 0;
    for (size_t i = 0; i < sizeof wanted.processors; i++) {
        wanted.processors[i] &= attach_environment()->processors[i];
        any |= wanted.processors[i];
    }
    if (any == 0) {
        return failure(EINVAL);
    }
    own = is_own(thread) ? wanted : own;
    return 0;
}

int sched_getaffinity(pid_t thread, size_t bytes, cpu_set_t *set)
{
    if (!world_timed()) {
        return WORLD_REAL(sched_getaffinity)(world_id_real(thread), bytes, set);
    }
    if (bytes < least_bytes() || bytes % sizeof(long) != 0) {
        return failure(EINVAL);
    }
    int error = refusal(thread, set);
    if (error != 0) {
        return failure(error);
    }
    const unsigned char *processors = is_own(thread) && own.given ? own.processors : attach_environment()->processors;
    memset(set, 0, bytes);
    memcpy(set, processors, bytes < sizeof own.processors ? bytes : sizeof own.processors);
    return 0;
}

int pthread_setaffinity_np(pthread_t thread, size_t bytes, const cpu_set_t *set)
{
    if (!world_timed()) {
        return WORLD_REAL(pthread_setaffinity_np)(thread, bytes, set);
    }
    bool is_other = pthread_equal(thread, pthread_self()) == 0;
    return is_other || sched_setaffinity(0, bytes, set) == 0 ? 0 : errno;
}

int pthread_getaffinity_np(pthread_t thread, size_t bytes, cpu_set_t *set)
{
    if (!world_timed()) {
        return WORLD_REAL(pthread_getaffinity_np)(thread, bytes, set);
    }
    bool is_other = pthread_equal(thread, pthread_self()) == 0;
    return sched_getaffinity(is_other ? getpid() : 0, bytes, set) == 0 ? 0 : errno;
}
