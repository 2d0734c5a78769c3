// The clock that all boards share: it decides which edges are evaluated.
#include "sim/cosim/internal.hpp"

#include <new>

namespace
{

// Evaluates the boards that are awake. Returns whether one still is.
bool evaluate_edge(cosim_clock *clock)
{
    bool work = false;
    // By index: an op may not create boards, but this loop should not depend on it.
    for (size_t i = 0; i < clock->boards.size(); i++) {
        cosim_peach2 *board = clock->boards[i];
        if (board->awake && board->wake_edge <= clock->edge) {
            board->evaluate(clock->edge);
        }
    }
    for (const cosim_peach2 *board : clock->boards) {
        work = work || board->awake;
    }
    return work;
}

void on_edge(void *ctx)
{
    auto *clock = static_cast<cosim_clock *>(ctx);
    clock->running = true;
    clock->edge = sim_now_ps(clock->sim) / clock->period_ps;
    bool work = evaluate_edge(clock);
    while (work && sim_try_advance(clock->sim, clock->period_ps)) {
        clock->edge++;
        work = evaluate_edge(clock);
    }
    clock->running = false;
    if (work) {
        sim_event_schedule(clock->sim, &clock->edge_event, clock->period_ps);
    }
}

} // namespace

void cosim_clock::wake()
{
    if (!running && !sim_event_pending(&edge_event)) {
        sim_event_schedule_at(sim, &edge_event, next_edge() * period_ps);
    }
}

sim_status cosim_clock_create(sim_t *sim, uint64_t period_ps, cosim_clock_t **clock_out)
{
    if (period_ps == 0 || period_ps % 2 != 0) {
        return SIM_ERR_INVALID;
    }
    auto *clock = new (std::nothrow) cosim_clock{};
    if (clock == nullptr) {
        return SIM_ERR_NO_MEMORY;
    }
    clock->sim = sim;
    clock->period_ps = period_ps;
    sim_event_init(&clock->edge_event, on_edge, clock);
    *clock_out = clock;
    return SIM_OK;
}

void cosim_clock_destroy(cosim_clock_t *clock)
{
    if (!clock->boards.empty()) {
        sim_panic("cosim", "a clock is destroyed before its %zu boards", clock->boards.size());
    }
    sim_event_cancel(clock->sim, &clock->edge_event);
    delete clock;
}
