// libibverbs.so.1 in an attached process: its devices, its lock, and how its threads wait.
//
// In simulated time the lock is a word and is acquired by trying. A thread that holds it may give away the run token in
// an attach call; a thread that slept for the lock in the kernel would then keep the run token forever. It is not a
// mutex of the C library, because each release of such a mutex counts as a possible wake-up: sleeping threads that are
// asked whether they can continue enter the library, and would wake each other.
#include <errno.h>
#include <pthread.h>
#include <stddef.h>

#include "verbs-shim/attach/ahead.h"
#include "verbs-shim/attach/attach.h"
#include "verbs-shim/dropin/dropin.h"
#include "verbs-shim/ibverbs/device.h"

// --- the lock -------------------------------------------------------------------------------------------------------

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static bool taken;                    // in simulated time, instead of the mutex
static bool wanted;                   // a thread has tried to acquire it since the last release
static _Thread_local unsigned depth;  // how often the calling thread has acquired it
static struct backend_process *begun; // NULL: the process has not asked for devices yet

static void mutex_take(void)
{
    if (attach_mode() != ATTACH_TIMED) {
        (void)pthread_mutex_lock(&mutex);
        return;
    }
    while (__atomic_exchange_n(&taken, true, __ATOMIC_SEQ_CST)) {
        __atomic_store_n(&wanted, true, __ATOMIC_SEQ_CST);
        (void)attach_wait(ATTACH_WAIT_OUTSIDE, ATTACH_NEVER_PS);
    }
}

static void mutex_give(void)
{
    int error = errno;
    if (attach_mode() != ATTACH_TIMED) {
        (void)pthread_mutex_unlock(&mutex);
    } else {
        __atomic_store_n(&taken, false, __ATOMIC_SEQ_CST);
        if (__atomic_exchange_n(&wanted, false, __ATOMIC_SEQ_CST)) {
            attach_may_wake();
        }
    }
    errno = error;
}

static void lock(void)
{
    if (depth++ == 0) {
        attach_library_enter();
        mutex_take();
    }
}

static void unlock(void)
{
    if (--depth == 0) {
        mutex_give();
        attach_library_leave();
    }
}

// The child of a fork has one thread, which holds no lock, and none of its parent's devices.
static void forked(void)
{
    mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    taken = false;
    wanted = false;
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
        attach_library_leave();
    }
    (void)attach_wait(ATTACH_WAIT_EVENTS | ATTACH_WAIT_OUTSIDE, ATTACH_NEVER_PS);
    pthread_testcancel();
    if (had != 0) {
        attach_library_enter();
        mutex_take();
        depth = had;
    }
}

// Without simulated time no other thread polls for a program that waits for a descriptor.
static void *watch(void *arg)
{
    (void)arg;
    while (true) {
        (void)attach_wait(ATTACH_WAIT_MEMORY, ATTACH_NEVER_PS);
        ibverbs_events_poll(begun);
    }
    return NULL;
}

static void events_poll(void)
{
    ibverbs_events_poll(begun);
}

// A thread in the library makes progress itself, and one that holds the lock for others.
static uint64_t events_due_ps(bool written, bool events)
{
    if (depth != 0 || __atomic_load_n(&taken, __ATOMIC_SEQ_CST)) {
        return ATTACH_NEVER_PS;
    }
    return written ? 0 : ibverbs_events_due_ps(begun, events);
}

static void events_look(void)
{
    if (depth == 0 && !__atomic_load_n(&taken, __ATOMIC_SEQ_CST)) {
        ibverbs_events_look(begun);
    }
}

static bool events_repeat(void)
{
    return ibverbs_events_repeat(begun);
}

// What a program has posted just before its end leaves, as a device would send it by itself. It does not wait for ever for
// a peer that takes nothing.
__attribute__((destructor)) static void sends_await(void)
{
    enum { LONGEST_US = 1000, PS_PER_US = 1000000 };
    if (begun == NULL || depth != 0 || attach_mode() != ATTACH_TIMED) {
        return;
    }
    uint64_t until_ps = attach_now_ps() + (uint64_t)LONGEST_US * PS_PER_US;
    while (ibverbs_sends_wait(begun) && attach_wait(ATTACH_WAIT_EVENTS, until_ps) != ATTACH_WOKEN_DEADLINE) {
    }
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
        static struct attach_progress progress = {
            .pass = events_poll, .look = events_look, .due_ps = events_due_ps, .repeats = events_repeat};
        progress.on_writes = begun->board != NULL; // tca0's library serves requests of peers
        attach_progress_set(&progress);
    }
}

// --- polls ------------------------------------------------------------------------------------------------------------

static uint64_t site_of(const struct attach_caller *caller, const struct ibv_cq *cq)
{
    return (caller->rip * 31 + caller->rsp) * 31 + (uintptr_t)cq;
}

int ibverbs_poll_cq_entry(struct ibv_cq *cq, int max, struct ibv_wc *wc);
__attribute__((used)) int poll_cq_from(struct ibv_cq *cq, int max, struct ibv_wc *wc, struct attach_caller *caller);
ATTACH_CALLER_ENTRY(ibverbs_poll_cq_entry, "rcx", poll_cq_from);

int poll_cq_from(struct ibv_cq *cq, int max, struct ibv_wc *wc, struct attach_caller *caller)
{
    struct attach_caller *before = attach_poll_within(caller);
    int count = ibverbs_poll_cq_at(cq, max, wc, site_of(caller, cq));
    (void)attach_poll_within(before);
    return count;
}

// Of ibverbs_poll_cq_entry. While another thread has the lock, a poll waits for it.
static enum attach_idle is_idle(const uint64_t arguments[3], const struct attach_caller *caller,
                                const struct attach_costs *costs, struct attach_ahead_poll *poll_out)
{
    static const enum attach_idle results[] = {
        [IBVERBS_IDLE] = ATTACH_IDLE, [IBVERBS_FINDS] = ATTACH_FINDS, [IBVERBS_IDLE_UNKNOWN] = ATTACH_IDLE_UNKNOWN};
    struct ibv_cq *cq = (struct ibv_cq *)arguments[0]; // NOLINT(performance-no-int-to-ptr)
    struct ibverbs_idle_poll poll = {0};
    if (__atomic_load_n(&taken, __ATOMIC_SEQ_CST)) {
        return ATTACH_IDLE_UNKNOWN;
    }
    enum ibverbs_idle idle = ibverbs_poll_idle(cq, &poll);
    poll_out->key = site_of(caller, cq);
    poll_out->word = (uintptr_t)poll.word;
    poll_out->state = (uintptr_t)poll.state;
    poll_out->until_ps = poll.until_ps;
    poll_out->function_ps = poll.calls * costs->call_ps + poll.locks * costs->lock_ps + poll.loads * costs->load_ps;
    return results[idle];
}

static const struct ibverbs_outside outside = {.poll_cq = ibverbs_poll_cq_entry,
                                               .lock = lock,
                                               .unlock = unlock,
                                               .wait = wait_unlocked,
                                               .interrupts = attach_interrupts_ending,
                                               .polled_empty = attach_poll,
                                               .resumed = attach_resumed,
                                               .found = attach_found,
                                               .signalled = attach_may_wake,
                                               .settle = attach_settle,
                                               .opened = opened};

// --- the first call -------------------------------------------------------------------------------------------------

static pthread_mutex_t beginning = PTHREAD_MUTEX_INITIALIZER;

void ibverbs_process_begin(struct backend_process *process)
{
    (void)pthread_mutex_lock(&beginning);
    if (process->libraries[BACKEND_LIBRARY_IBVERBS].state == NULL) {
        const struct attach_environment *environment = attach_environment();
        dropin_devices_add(process, environment->verbs_chain, environment->verbs_completion);
        attach_poll_function_add((uintptr_t)ibverbs_poll_cq_entry, is_idle);
        ibverbs_outside_set(process, &outside);
        if (begun == NULL) {
            (void)pthread_atfork(NULL, NULL, forked);
        }
        begun = process;
    }
    (void)pthread_mutex_unlock(&beginning);
}
