// The bridge to SystemC, and the only file that uses it: the process's entry, SystemC's clock, coroutines.
#include "sim/kernel/bridge.h"

#include <cstdint>
#include <cstdlib>

#define SC_INCLUDE_DYNAMIC_PROCESSES // sc_spawn
#include <systemc>

#include "sim/kernel/internal.h"

struct sim_coroutine;

namespace
{

// Runs a turn of the live simulation's loop whenever SystemC's clock has reached the time that the loop requested, or a
// thread has blocked.
class Bridge : public sc_core::sc_module
{
  public:
    SC_HAS_PROCESS(Bridge);
    explicit Bridge(const sc_core::sc_module_name &name) : sc_core::sc_module(name)
    {
        SC_METHOD(turn);
        sensitive << wake_;
        dont_initialize();
    }

    // Requests another turn in the next delta cycle, once the calling process has returned or blocked.
    void call()
    {
        wake_.notify(sc_core::SC_ZERO_TIME);
    }

  private:
    void turn();

    sc_core::sc_event wake_;
};

// The only process-wide state, because SystemC itself is process-wide.
struct ProcessState {
    int (*program)(int argc, char **argv);
    Bridge *bridge;      // lives from sim_main to its end
    sim_t *living;       // NULL: none
    sim_coroutine *idle; // idle SystemC threads
};
ProcessState process;

uint64_t systemc_now_ps()
{
    return sc_core::sc_time_stamp().value();
}

void Bridge::turn()
{
    sim_t *sim = process.living;
    const uint64_t systemc_ps = systemc_now_ps() - sim->epoch_ps;
    switch (sim_loop_turn(sim, systemc_ps)) {
    case SIM_TURN_THREAD:
        break;
    case SIM_TURN_LATER:
        if (sim->next_turn_ps >= UINT64_MAX - sim->epoch_ps) {
            sim_panic("kernel", "SystemC's clock would overflow");
        }
        wake_.notify(sc_core::sc_time::from_value(sim->next_turn_ps - systemc_ps));
        break;
    case SIM_TURN_OVER:
        sc_core::sc_pause();
        break;
    }
}

} // namespace

// --- the process ----------------------------------------------------------------------------------------------------

extern "C" int sc_main(int argc, char **argv)
{
    sc_core::sc_report_handler::set_actions(sc_core::SC_INFO, sc_core::SC_DO_NOTHING);
    sc_core::sc_set_time_resolution(1, sc_core::SC_PS);
    Bridge bridge("bridge");
    process.bridge = &bridge;
    const int result = process.program(argc, argv);
    process.bridge = nullptr;
    return result;
}

extern "C" int sim_main(int argc, char **argv, int (*program)(int argc, char **argv))
{
    if (process.program != nullptr) {
        sim_panic("kernel", "sim_main called twice");
    }
    process.program = program;
    setenv("SYSTEMC_DISABLE_COPYRIGHT_MESSAGE", "1", 1);
    return sc_core::sc_elab_and_sim(argc, argv);
}

// --- SystemC's clock ------------------------------------------------------------------------------------------------

extern "C" sim_t *sim_bridge_living(void)
{
    return process.living;
}

extern "C" void sim_bridge_adopt(sim_t *sim)
{
    if (process.bridge == nullptr) {
        sim_panic("kernel", "a simulation is created or destroyed outside sim_main");
    }
    process.living = sim;
    if (sim != nullptr) {
        sim->epoch_ps = systemc_now_ps();
    }
}

extern "C" void sim_bridge_keep_exact(sim_t *sim)
{
    if (sim->running) {
        sim_panic("kernel", "sim_bridge_keep_exact called inside sim_run");
    }
    sim->exact = true;
}

extern "C" uint64_t sim_bridge_busy_ps(const sim_t *sim)
{
    const sc_core::sc_simcontext *context = sc_core::sc_get_curr_simcontext();
    if (sc_core::sc_pending_activity_at_current_time(context)) {
        return 0;
    }
    sc_core::sc_time next;
    return context->next_time(next) ? next.value() - sim->epoch_ps : SIM_NEVER_PS;
}

extern "C" void sim_bridge_run(sim_t *sim)
{
    sim->running = true;
    process.bridge->call();
    sc_core::sc_start();
    sim->running = false;
}

// --- coroutines -----------------------------------------------------------------------------------------------------

// A coroutine is a SystemC thread that runs one body after another. SystemC keeps the name of every process it ever
// had, so that new ones for each simulation would make a long-lived process grow; idle ones are kept for reuse.
struct sim_coroutine {
    sc_core::sc_event resume;
    void (*body)(void *arg);
    void *arg;
    sim_coroutine *next_idle;
};

static void coroutine_live(sim_coroutine *coroutine)
{
    for (;;) {
        coroutine->body(coroutine->arg);
        sc_core::wait(coroutine->resume);
    }
}

extern "C" struct sim_coroutine *sim_coroutine_start(void (*body)(void *arg), void *arg)
{
    constexpr int stack_bytes = 256 * 1024;
    sim_coroutine *coroutine = process.idle;
    if (coroutine != nullptr) {
        process.idle = coroutine->next_idle;
        coroutine->body = body;
        coroutine->arg = arg;
        coroutine->resume.notify();
        return coroutine;
    }
    coroutine = new sim_coroutine{{}, body, arg, nullptr};
    sc_core::sc_spawn_options options;
    options.set_stack_size(stack_bytes);
    sc_core::sc_spawn([coroutine] { coroutine_live(coroutine); }, nullptr, &options);
    return coroutine;
}

extern "C" void sim_coroutine_resume(struct sim_coroutine *coroutine)
{
    coroutine->resume.notify();
}

extern "C" void sim_coroutine_suspend(struct sim_coroutine *coroutine)
{
    process.bridge->call();
    sc_core::wait(coroutine->resume);
}

extern "C" void sim_coroutine_end(struct sim_coroutine *coroutine)
{
    coroutine->next_idle = process.idle;
    process.idle = coroutine;
    process.bridge->call();
}
