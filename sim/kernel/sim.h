// One simulation: its time, its events, and the loop that runs them.
//
// Time is SystemC's, in integer picoseconds, counted from the simulation's own start (its epoch): SystemC's clock never
// goes back within a process, so the C face subtracts the time at which the simulation was created. One simulation is
// alive at a time; any number may follow one another in a process.
//
// The order of an instant, evaluate and update: first the evaluate events, in the order in which they were scheduled;
// then the update events, in the order in which they were initialised. What an update event schedules for its own
// instant follows by the same rule. So what is decided does not depend on who scheduled first (docs/decisions/0010).
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

// SIM_ERR_BUSY while another simulation is alive. On success *sim_out is owned by the caller.
enum sim_status sim_create(const struct sim_config *config, sim_t **sim_out);

// Ends every thread that still lives (its stack is unwound without running further program code) and frees all. Events
// left pending are forgotten without being touched; sim_event_init them before using them in another simulation.
// Call outside sim_run.
void sim_destroy(sim_t *sim);

// Runs until the outcome is known. May be called again after more threads or events were added. What is left over when
// every thread has ended (idle traffic, credit returns) still runs: DONE means the event queue is empty.
enum sim_run_outcome sim_run(sim_t *sim);

// From an event or a thread: ends sim_run as soon as the current one returns.
void sim_stop(sim_t *sim);

// Calls look(ctx) now and then, after so many events that it costs nothing: for what ends a run from outside. It may
// call sim_stop, and nothing else that changes the simulation. NULL: none.
void sim_set_look(sim_t *sim, void (*look)(void *ctx), void *ctx);

// After SIM_RUN_STUCK or SIM_RUN_TIME_LIMIT: one line per waiting thread in the order of spawning, such as
// "node0.cpu0 waits for node1.memory: word 0x1000 to become 7 (since 12345 ns)\n", into buffer (always terminated,
// cut when too small). Returns the number of waiting threads, sleeping ones included.
unsigned sim_describe_waiters(const sim_t *sim, char *buffer, size_t size);

// The name of a component that may end before the simulation does: a copy that lives as long as that, the same one for
// the same text. NULL: no memory.
const char *sim_name_keep(sim_t *sim, const char *name);

uint64_t sim_now_ps(const sim_t *sim);
uint64_t sim_seed(const sim_t *sim);

// When the next event is due; SIM_NEVER_PS: there is none.
uint64_t sim_next_due_ps(const sim_t *sim);

// Something the outside would call progress happened: a byte reached memory, a thread ran. Feeds the silence limit.
void sim_progress(sim_t *sim);

// Number of events run since sim_create, wakes of threads included. Deterministic.
uint64_t sim_events_run(const sim_t *sim);

// --- events ------------------------------------------------------------------------------------------------------

typedef void (*sim_event_fn)(void *ctx);

// Embedded in its owner; fields are the kernel's. An event is pending at most once.
typedef struct sim_event {
    uint64_t due_ps;
    uint64_t order;                    // among those of due_ps
    struct sim_event *earlier, *later; // in the queue's bucket
    sim_event_fn fn;
    void *ctx;
    uint32_t place; // where in the queue, 0 when not pending
    uint32_t rank;  // 0: evaluate; otherwise update
    uint32_t cause; // of its being due when it is (cause.h)
} sim_event_t;

void sim_event_init(sim_event_t *event, sim_event_fn fn, void *ctx);
// An update event: for what decides when all evaluate events of the instant have run.
void sim_event_init_update(sim_t *sim, sim_event_t *event, sim_event_fn fn, void *ctx);
// Schedules at now + delay_ps; a pending event is moved there, with a new sequence number.
void sim_event_schedule(sim_t *sim, sim_event_t *event, uint64_t delay_ps);
void sim_event_schedule_at(sim_t *sim, sim_event_t *event, uint64_t due_ps);
void sim_event_cancel(sim_t *sim, sim_event_t *event); // no effect when not pending
static inline bool sim_event_pending(const sim_event_t *event)
{
    return event->place != 0;
}

// For a clock: moves time forward by delay_ps at once, from within an event, if no other event is due until then (and
// the limits of the run allow it). Returns false, with time unmoved, otherwise: then schedule as usual.
bool sim_try_advance(sim_t *sim, uint64_t delay_ps);

#ifdef __cplusplus
}
#endif
