// The run token on the program's side: giving it away and waiting for it.
//
// A task switch between processors costs more than the rest of an attach call. So the one thread that had the token
// last busy-waits at its slot before it sleeps: most often the simulator, on another processor, gives the token to it
// again. If another thread gets the token instead, this one wakes it, on their common processor, and sleeps. If the
// simulator shares that processor or does not keep up, it tells the threads not to busy-wait (sim/attach/run_token.c).
#include <linux/futex.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "verbs-shim/attach/client_internal.h"
#include "verbs-shim/attach/kernel_call.h"
#include "verbs-shim/attach/real_time.h"

// The most polls, whatever a program wrote to the bells: some milliseconds.
enum { POLLS_MAX = 1 << 16 };

// System calls go through the gate: interposed functions of the C library, `syscall` among them, call in here, and a
// process that is connecting would wait for itself.

void attach_word_wake(_Atomic uint32_t *word)
{
    (void)kernel_call(SYS_futex, (long)(uintptr_t)word, FUTEX_WAKE, INT32_MAX, 0, 0, 0);
}

void attach_word_wait(_Atomic uint32_t *word, uint32_t value)
{
    const struct timespec most = {.tv_sec = ATTACH_REAL_SIMULATOR_LOOK_S};
    (void)kernel_call(SYS_futex, (long)(uintptr_t)word, FUTEX_WAIT, value, (long)(uintptr_t)&most, 0, 0);
}

// Without a simulator a thread would sleep for ever. Does not test the socket, because programs close descriptors that
// they do not know.
static void simulator_check(void)
{
    uint32_t simulator = attach_client.segment->greeting.simulator;
    if (simulator != 0 && kernel_call(SYS_kill, simulator, 0, 0, 0, 0, 0) != 0) {
        (void)kernel_call(SYS_kill, (uint32_t)kernel_call(SYS_getpid, 0, 0, 0, 0, 0, 0), SIGKILL, 0, 0, 0, 0);
    }
}

static bool is_here(const struct attach_slot *slot)
{
    return atomic_load_explicit(&slot->holder, memory_order_acquire) != ATTACH_HOLDER_SIMULATOR;
}

void attach_token_give(struct attach_slot *slot)
{
    if (atomic_exchange(&slot->holder, ATTACH_HOLDER_SIMULATOR) == ATTACH_HOLDER_AWAITED) {
        attach_word_wake(&slot->holder);
    }
}

static uint32_t bell_of(const struct attach_slot *slot)
{
    const struct attach_segment *segment = attach_client.segment;
    return attach_bell(segment->greeting.first_bell, (uint32_t)(slot - segment->slots));
}

// The token goes to the next thread in any case; what is written to the bells only says which threads sleep.
static bool busy_wait(struct attach_bells *bells, const struct attach_slot *slot, uint32_t polls)
{
    uint32_t me = bell_of(slot);
    atomic_store(&bells->awake, me);
    for (uint32_t i = 0; i < polls && atomic_load_explicit(&bells->next, memory_order_relaxed) == me; i++) {
        if (is_here(slot)) {
            return true;
        }
        __builtin_ia32_pause();
    }
    uint32_t awake = me, next;
    (void)atomic_compare_exchange_strong(&bells->awake, &awake, ATTACH_BELL_NONE);
    next = atomic_load(&bells->next);
    if (next != me && next < ATTACH_BELLS) {
        atomic_fetch_add(&bells->rung[next], 1);
        attach_word_wake(&bells->rung[next]);
    }
    return is_here(slot);
}

void attach_token_await(struct attach_slot *slot)
{
    struct attach_bells *bells = attach_client.bells;
    uint32_t polls = atomic_load_explicit(&bells->polls, memory_order_relaxed);
    if (polls != 0 && busy_wait(bells, slot, polls < POLLS_MAX ? polls : POLLS_MAX)) {
        return;
    }
    _Atomic uint32_t *bell = &bells->rung[bell_of(slot)];
    for (uint32_t rung = atomic_load(bell); !is_here(slot); rung = atomic_load(bell)) {
        attach_word_wait(bell, rung);
        if (!is_here(slot)) {
            simulator_check();
        }
    }
}
