// The loop: which event runs next, how far time may move, and when the run is over.
#include "sim/kernel/internal.h"

// With more events than this at one instant, the run is considered stuck.
static const uint64_t max_instant_events = 10000000;
// Events between two polls of the outside; a power of two.
enum { POLL_EVENTS = 1 << 16 };

static void quick_set(sim_t *sim)
{
    uint64_t limit_ps = sim->horizon_ps < sim->busy_ps ? sim->horizon_ps : sim->busy_ps;
    sim->quick_ps = sim->exact ? 0 : limit_ps;
}

// A limit of 0 means none.
static void update_horizon(sim_t *sim)
{
    uint64_t horizon_ps = SIM_NEVER_PS - 1;
    if (sim->config.time_limit_ps != 0) {
        horizon_ps = sim->config.time_limit_ps - 1; // reaching the limit ends the run
    }
    uint64_t silence_ps = sim->config.silence_limit_ps;
    if (silence_ps != 0 && silence_ps <= horizon_ps && sim->progress_ps <= horizon_ps - silence_ps) {
        horizon_ps = sim->progress_ps + silence_ps;
    }
    sim->horizon_ps = sim->stopping ? 0 : horizon_ps;
    quick_set(sim);
}

void sim_progress(sim_t *sim)
{
    if (sim->progress_ps != sim->now_ps) {
        sim->progress_ps = sim->now_ps;
        update_horizon(sim);
    }
}

void sim_stop(sim_t *sim)
{
    sim->stopping = true;
    update_horizon(sim);
}

void sim_loop_begin(sim_t *sim)
{
    sim->stopping = false;
    sim->progress_ps = sim->now_ps;
    sim->instant_events = 0;
    update_horizon(sim);
}

static void move_time(sim_t *sim, uint64_t to_ps)
{
    sim->now_ps = to_ps;
    sim->instant_events = 0;
}

bool sim_try_advance(sim_t *sim, uint64_t delay_ps)
{
    uint64_t to_ps = sim->now_ps + delay_ps;
    if (to_ps > sim->horizon_ps || delay_ps > sim->horizon_ps || sim->exact) {
        return false;
    }
    if (sim->queue.first != NULL && sim->queue.first->due_ps <= to_ps) {
        return false;
    }
    if (to_ps >= (sim->current != NULL ? sim_bridge_busy_ps(sim) : sim->busy_ps)) {
        return false;
    }
    move_time(sim, to_ps);
    if (sim->causes != NULL) {
        sim->cause = sim_cause_add(sim, sim->cause, to_ps, NULL, NULL);
    }
    return true;
}

static enum sim_turn over(sim_t *sim, enum sim_run_outcome outcome)
{
    sim->outcome = outcome;
    return SIM_TURN_OVER;
}

// Time stops at the limit that was reached first.
static enum sim_turn over_at_limit(sim_t *sim)
{
    uint64_t limit_ps = sim->config.time_limit_ps;
    if (limit_ps != 0 && sim->horizon_ps == limit_ps - 1) {
        if (limit_ps > sim->now_ps) {
            move_time(sim, limit_ps);
        }
        return over(sim, SIM_RUN_TIME_LIMIT);
    }
    move_time(sim, sim->horizon_ps);
    return over(sim, SIM_RUN_STUCK);
}

// A thread runs with SystemC's clock at the thread's time. An event may run ahead of it while SystemC has no events.
static bool needs_systemc(const sim_t *sim, const sim_event_t *head)
{
    if (head->due_ps == sim->systemc_ps) {
        return false;
    }
    return sim->exact || head->fn == sim_thread_wake || (head->due_ps != sim->now_ps && head->due_ps >= sim->busy_ps);
}

// Does the next event run in this turn? If not, *turn_out is the end of the turn.
static bool runs_now(sim_t *sim, const sim_event_t *head, enum sim_turn *turn_out)
{
    if (sim->stopping) {
        *turn_out = over(sim, SIM_RUN_STOPPED);
        return false;
    }
    if (head == NULL) {
        *turn_out = over(sim, sim->thread_count == 0 ? SIM_RUN_DONE : SIM_RUN_STUCK);
        return false;
    }
    if (head->due_ps > sim->horizon_ps) {
        *turn_out = over_at_limit(sim);
        return false;
    }
    if (needs_systemc(sim, head)) {
        sim->next_turn_ps = head->due_ps;
        *turn_out = SIM_TURN_LATER;
        return false;
    }
    return true;
}

static enum sim_turn run_events(sim_t *sim)
{
    enum sim_turn turn;
    for (;;) {
        sim_event_t *event = sim->queue.first;
        bool quick = event != NULL && event->due_ps < sim->quick_ps && event->fn != sim_thread_wake;
        if (!quick && !runs_now(sim, event, &turn)) {
            return turn;
        }
        if (event->due_ps != sim->now_ps) {
            move_time(sim, event->due_ps);
        }
        if (++sim->instant_events > max_instant_events) {
            return over(sim, SIM_RUN_STUCK);
        }
        sim_queue_pop(&sim->queue);
        sim->events_run++;
        if (sim->causes != NULL) {
            sim->cause = sim_cause_add(sim, event->cause, sim->now_ps, NULL, NULL);
        }
        sim->rank = event->rank;
        event->fn(event->ctx);
        if (sim->current != NULL) {
            return SIM_TURN_THREAD;
        }
        if (sim->events_run % POLL_EVENTS == 0 && sim->poll != NULL) {
            sim->poll(sim->poll_ctx);
        }
    }
}

enum sim_turn sim_loop_turn(sim_t *sim, uint64_t systemc_ps)
{
    if (sim->unwinding) {
        return sim_thread_unwind_next(sim) ? SIM_TURN_THREAD : SIM_TURN_OVER;
    }
    sim->systemc_ps = systemc_ps;
    sim->busy_ps = sim_bridge_busy_ps(sim); // events do not change SystemC's own events
    quick_set(sim);
    return run_events(sim);
}
