// One simulation: its time, its events, and the loop that runs them.
//
// Time is SystemC's, in integer picoseconds, counted from the simulation's own start (its epoch). SystemC's clock never
// goes back within a process, so the C interface subtracts the creation time of the simulation. One simulation is alive
// at a time; a process may run any number one after another.
//
// The order of an instant, evaluate and update: first the evaluate events run, in the order in which they were
// scheduled; then threads that take turns (thread.h), and those of them that yield;
// then the update events, in the order in which they were initialised. Events that an update event schedules
// for the same instant follow by the same rule. So decisions do not depend on the order of scheduling
// (docs/decisions/0010).
//
// Leaves out: everything about PCI Express, RDMA and YAML.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sim/kernel/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sim sim_t;

#define SIM_PS_PER_NS 1000ULL
#define SIM_PS_PER_US 1000000ULL
#define SIM_PS_PER_MS 1000000000ULL
#define SIM_NEVER_PS  UINT64_MAX

// --- the process -------------------------------------------------------------------------------------------------

// Enters SystemC's elaboration and calls program(argc, argv) from inside; returns its result. Call once, from main.
int sim_main(int argc, char **argv, int (*program)(int argc, char **argv));

// --- a simulation ------------------------------------------------------------------------------------------------

struct sim_config {
    uint64_t seed;             // root of every random stream
    uint64_t time_limit_ps;    // 0: none. Reaching it ends the run as SIM_RUN_TIME_LIMIT
    uint64_t silence_limit_ps; // 0: none. Longest simulated time without sim_progress()
};

enum sim_run_outcome {
    SIM_RUN_DONE,  // every thread ended and nothing is left to do
    SIM_RUN_STUCK, // threads wait and no event is left, or silence_limit_ps passed without progress (a thread
                   // that runs is progress), or ten million events ran at one instant
    SIM_RUN_TIME_LIMIT,
    SIM_RUN_STOPPED // sim_stop was called
};

// SIM_ERR_BUSY while another simulation is alive. On success the caller owns *sim_out.
enum sim_status sim_create(const struct sim_config *config, sim_t **sim_out);

// Ends every thread that still exists (its stack is unwound without running further program code) and frees everything.
// Pending events are dropped without access to them; call sim_event_init before using them in another simulation. Call
// outside sim_run.
void sim_destroy(sim_t *sim);

// Runs until the outcome is known. May be called again after more threads or events were added. Events that remain when
// every thread has ended (idle traffic, credit returns) still run: DONE means the event queue is empty.
enum sim_run_outcome sim_run(sim_t *sim);

// From an event or a thread: ends sim_run as soon as the current one returns.
void sim_stop(sim_t *sim);

// Calls poll(ctx) from time to time, after so many events that it costs nothing: to check for requests from outside to
// end the run. It may call sim_stop, but nothing else that changes the simulation. NULL: none.
void sim_set_poll(sim_t *sim, void (*poll)(void *ctx), void *ctx);

// After SIM_RUN_STUCK or SIM_RUN_TIME_LIMIT: one line per waiting thread in the order of spawning, such as
// "node0.cpu0 waits for node1.memory: word 0x1000 to become 7 (since 12345 ns)\n", into buffer (always terminated,
// cut when too small). Returns the number of waiting threads, sleeping ones included.
unsigned sim_describe_waiters(const sim_t *sim, char *buffer, size_t size);

// The name of a component that may be destroyed before the simulation: a copy that lives as long as the simulation;
// equal texts share one copy. NULL: no memory.
const char *sim_name_keep(sim_t *sim, const char *name);

uint64_t sim_now_ps(const sim_t *sim);
uint64_t sim_seed(const sim_t *sim);

// The due time of the next event; SIM_NEVER_PS: there is none.
uint64_t sim_next_due_ps(const sim_t *sim);

// Reports progress as seen from outside: a byte reached memory, a thread ran. Used for the silence limit.
void sim_progress(sim_t *sim);

// Number of events run since sim_create, wakes of threads included. Deterministic.
uint64_t sim_events_run(const sim_t *sim);

// --- events ------------------------------------------------------------------------------------------------------

typedef void (*sim_event_fn)(void *ctx);

// Embedded in its owner; the fields belong to the kernel. An event is pending at most once.
typedef struct sim_event {
    uint64_t due_ps;
    uint64_t order;                    // among events with the same due_ps
    struct sim_event *earlier, *later; // in the queue's bucket
    sim_event_fn fn;
    void *ctx;
    uint32_t slot;  // in the queue, 0 when not pending
    uint32_t rank;  // 0: evaluate; otherwise update
    uint32_t cause; // of its due time (cause.h)
} sim_event_t;

void sim_event_init(sim_event_t *event, sim_event_fn fn, void *ctx);
// An update event: for decisions after all evaluate events of the instant.
void sim_event_init_update(sim_t *sim, sim_event_t *event, sim_event_fn fn, void *ctx);
// Schedules at now + delay_ps; a pending event is moved to that time, with a new sequence number.
void sim_event_schedule(sim_t *sim, sim_event_t *event, uint64_t delay_ps);
void sim_event_schedule_at(sim_t *sim, sim_event_t *event, uint64_t due_ps);
void sim_event_cancel(sim_t *sim, sim_event_t *event); // no effect when not pending
static inline bool sim_event_pending(const sim_event_t *event)
{
    return event->slot != 0;
}

// For a clock: moves time forward by delay_ps at once, from within an event, if no other event is due until then (and
// the limits of the run allow it). Otherwise returns false and does not move time; the caller then schedules as usual.
bool sim_try_advance(sim_t *sim, uint64_t delay_ps);

#ifdef __cplusplus
}
#endif
