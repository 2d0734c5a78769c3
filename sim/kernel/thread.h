// Host threads as coroutines: ordinary C code that spends simulated time only in calls that do so explicitly.
//
// A thread runs until it sleeps, waits or ends; no other thread and no event runs meanwhile. Threads are implemented as
// SystemC processes. All functions without a thread argument act on the calling thread; calling them outside a thread
// is a broken invariant.
#pragma once

#include "sim/kernel/sim.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sim_thread sim_thread_t;
typedef void (*sim_thread_fn)(void *arg);

// Starts at the current time, after the events already due. name is copied. The kernel owns the thread.
enum sim_status sim_thread_spawn(sim_t *sim, const char *name, sim_thread_fn fn, void *arg);

// The calling thread's name, or NULL outside threads.
const char *sim_thread_name(const sim_t *sim);
bool sim_thread_is_running(const sim_t *sim); // called from inside a thread?
unsigned sim_thread_count(const sim_t *sim);  // threads that have not ended

void sim_thread_sleep(sim_t *sim, uint64_t delay_ps);

// From now on the calling thread runs, when it has waited for a time, after the other events of the instant, in an order with
// all such threads that depends on their numbers and the time alone; others keep the order of their waits. Returns its number.
uint32_t sim_thread_take_turns(const sim_t *sim);
// Did the thread of that number have its turn at this instant, if it waited for it (sim.h)?
bool sim_turn_is_over(const sim_t *sim, uint32_t number);

// --- conditions --------------------------------------------------------------------------------------------------

// The reason for a thread's wait, kept unformatted: `format` (static storage) takes two `unsigned long long`, a and b.
struct sim_wait_reason {
    const char *component; // the component that must act; lives as long as the wait
    const char *format;
    uint64_t a, b;
};

// Embedded in its owner. Waiters wake in the order of their arrival.
typedef struct sim_condition {
    struct sim_thread *first, *last;
} sim_condition_t;

void sim_condition_init(sim_condition_t *condition);

// Waits until signalled or until deadline_ps (SIM_NEVER_PS: no deadline). Returns false when the deadline comes first,
// at once if it has already passed.
bool sim_condition_wait(sim_t *sim, sim_condition_t *condition, uint64_t deadline_ps,
                        const struct sim_wait_reason *reason);
// The same to the calling thread's turn at this instant, as if it had waited for this time. Returns false if it has come.
bool sim_condition_wait_turn(sim_t *sim, sim_condition_t *condition, const struct sim_wait_reason *reason);
// Wakes every waiter at the current time, in order.
void sim_condition_signal(sim_t *sim, sim_condition_t *condition);

#ifdef __cplusplus
}
#endif
