// One series of a scenario from beginning to end.
#include "sim/platform/platform.h"

#include <stdio.h>

#include "sim/platform/machine.h"
#include "sim/platform/series.h"

static void outcome_describe(const plat_machine_t *machine, struct plat_result *result)
{
    const char *failure = plat_machine_failure(machine);
    if (failure != NULL) {
        result->failed = true;
        snprintf(result->text, sizeof result->text, "%s", failure);
        return;
    }
    switch (result->outcome) {
    case SIM_RUN_DONE:
        if (plat_machine_live_packets(machine) != 0) {
            result->failed = true;
            snprintf(result->text, sizeof result->text, "%u packets were left over somewhere in the machine",
                     plat_machine_live_packets(machine));
        }
        break;
    case SIM_RUN_STUCK:
    case SIM_RUN_TIME_LIMIT:
        (void)sim_describe_waiters(plat_machine_sim(machine), result->text, sizeof result->text);
        break;
    case SIM_RUN_STOPPED:
        break;
    }
}

// Verbs calls of programs are lines of the trace. Processes that are added later are observed, too.
// traced: records of the simulations before.
static observe_t *calls_observe(plat_machine_t *machine, const struct plat_hooks *hooks, uint32_t traced)
{
    const struct observe_options options = {
        .trace = hooks->trace, .trace_ctx = hooks->ctx, .trace_causes = hooks->trace_causes, .undiagnosed = true};
    observe_t *observe = observe_create(plat_machine_sim(machine), &options);
    if (observe == NULL) {
        sim_panic("platform", "no memory for a trace");
    }
    plat_machine_observe(machine, observe);
    sim_trace_count_set(plat_machine_sim(machine), traced);
    return observe;
}

// last: this is the last one of the run's simulations, whose counters and faults are reported.
static void series_run(plat_machine_t *machine, const struct scn_scenario *scenario, uint32_t run_index,
                       uint32_t ranks_index, bool last, const struct plat_hooks *hooks, struct plat_result *result)
{
    sim_t *sim = plat_machine_sim(machine);
    struct plat_series series;
    if (hooks->path != NULL) {
        sim_causes_record(sim, hooks->path_bytes_max);
    }
    observe_t *observe = hooks->trace != NULL ? calls_observe(machine, hooks, result->traced) : NULL;
    plat_series_init(&series, scenario, &scenario->runs[run_index], ranks_index, hooks, machine);
    result->outcome = plat_machine_run(machine);
    if (observe != NULL) {
        observe_trace_flush(observe);
    }
    result->simulated_ps += sim_now_ps(sim);
    result->events += sim_events_run(sim);
    result->rtl_cycles += plat_machine_rtl_cycles(machine);
    result->traced = sim_trace_count(sim);
    outcome_describe(machine, result);
    result->causes_full = sim_causes_full(sim);
    plat_chip_counters_read(machine);
    if (hooks->counter != NULL && last) {
        sim_counters_visit(sim, hooks->counter, hooks->ctx);
    }
    for (uint32_t i = 0; hooks->fault != NULL && last && i < scenario->fault_count; i++) {
        const struct plat_fault fault = plat_machine_fault(machine, i);
        hooks->fault(hooks->ctx, &fault);
    }
    plat_series_fini(&series);
}

enum sim_status plat_run_series(const struct scn_scenario *scenario, uint32_t run_index,
                                const struct plat_options *options, const struct plat_hooks *hooks,
                                struct plat_result *result)
{
    static const struct plat_hooks no_hooks = {0};
    *result = (struct plat_result){.outcome = SIM_RUN_STOPPED};
    if (run_index >= scenario->run_count) {
        snprintf(result->text, sizeof result->text, "there is no series %u", run_index);
        return SIM_ERR_INVALID;
    }
    enum sim_status status = plat_series_check(scenario, &scenario->runs[run_index], result->text, sizeof result->text);
    if (status != SIM_OK) {
        return status;
    }
    uint32_t count = scenario->runs[run_index].ranks_count > 1 ? scenario->runs[run_index].ranks_count : 1;
    result->outcome = SIM_RUN_DONE;
    for (uint32_t i = 0; i < count && result->outcome == SIM_RUN_DONE && !result->failed; i++) {
        plat_machine_t *machine;
        status = plat_machine_create(scenario, options, result->text, sizeof result->text, &machine);
        if (status != SIM_OK) {
            return status;
        }
        series_run(machine, scenario, run_index, i, i + 1 == count, hooks != NULL ? hooks : &no_hooks, result);
        plat_machine_destroy(machine);
    }
    return SIM_OK;
}
