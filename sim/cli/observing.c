#include "sim/cli/observing.h"

#include <stdlib.h>

#include "sim/cli/cli.h"
#include "sim/cli/output.h"

bool cli_observing_begin(struct cli_observing *observing, const struct cli_observing_options *given,
                         const char *scenario_path, const struct cli_paths *paths)
{
    *observing = (struct cli_observing){.given = given};
    if (given->trace == NULL && given->trace_only.count > 0) {
        cli_error("--trace-only needs --trace FILE.csv");
        return false;
    }
    if (given->trace != NULL) {
        observing->tracing = cli_output_usable(given->trace, scenario_path, paths) &&
                             cli_trace_open(&observing->trace, given->trace, &given->trace_only);
        observing->trace.series = "exec";
    }
    return observing->tracing || given->trace == NULL;
}

bool cli_observing_end(struct cli_observing *observing)
{
    free(observing->yaml);
    observing->yaml = NULL;
    // Of a run that got stuck the trace is what one wants to read.
    return !observing->tracing || cli_trace_close(&observing->trace, true);
}

void cli_observing_trace(struct cli_observing *observing, uint64_t time_ps, const char *component,
                         const struct sim_trace_point *point, const uint64_t *values)
{
    cli_trace_write(&observing->trace, time_ps, component, point, values);
}

void cli_observing_diagnosis(const char *line)
{
    cli_error("%s", line);
}

void cli_observing_take(struct cli_observing *observing, const observe_t *observe)
{
    size_t size;
    FILE *yaml = open_memstream(&observing->yaml, &size);
    if (yaml != NULL) {
        observe_summary_yaml(observe, yaml);
        (void)fclose(yaml);
    }
    if (observing->given->summary) {
        observe_summary_print(observe, stderr);
    }
}
