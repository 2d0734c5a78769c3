#include "sim/cli/bench_verbs.h"

#include <stddef.h>

#include "verbs-shim/ibsim/ibsim.h"
#include "verbs-shim/tca-verbs/tca_verbs.h"

#define TCA0_LIMIT_S   2.0
#define IBSIM0_LIMIT_S 1.0
#define KIB            1024.0

// The defaults of the workloads' queue pairs.
static const struct ibv_qp_cap cap = {.max_send_wr = 128, .max_recv_wr = 512, .max_send_sge = 1, .max_recv_sge = 1};

static bool pingpong_run(const char *scenario, double limit_s, struct cli_bench_result *result)
{
    char *const arguments[] = {
        (char *)scenario, "--set", "runs.*.iterations=10000", "--set", "nodes.*.board.fidelity=twin", NULL};
    struct cli_child child;
    if (!cli_bench_run(arguments, &child)) {
        return false;
    }
    cli_measure_add(result, "whole run", "s", child.seconds, limit_s, false);
    cli_measure_add(result, "processor time", "s", child.busy_seconds, 0.0, false);
    return true;
}

bool cli_bench_tca0(const struct cli_paths *paths, struct cli_bench_result *result)
{
    if (!pingpong_run(paths->tca0_scenario, TCA0_LIMIT_S, result)) {
        return false;
    }
    cli_measure_add(result, "a queue pair, 128 + 512 requests", "KiB", (double)tca_verbs_qp_bytes(&cap) / KIB, 0.0,
                    false);
    cli_measure_add(result, "a connection of two nodes, an end", "KiB", (double)tca_verbs_connection_bytes() / KIB, 0.0,
                    false);
    return true;
}

bool cli_bench_ibsim0(const struct cli_paths *paths, struct cli_bench_result *result)
{
    if (!pingpong_run(paths->ibsim0_scenario, IBSIM0_LIMIT_S, result)) {
        return false;
    }
    cli_measure_add(result, "a queue pair, 128 + 512 requests", "KiB", (double)ibsim_qp_bytes(&cap) / KIB, 0.0, false);
    return true;
}
