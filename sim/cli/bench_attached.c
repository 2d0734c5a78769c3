#include "sim/cli/bench_attached.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WHOLE_LIMIT_S       1.0
#define ROUND_TRIP_LIMIT_US 15.0
#define GIGABYTE_LIMIT_S    5.0
#define GIGABYTE_FLOW_LIMIT_S 1.5
#define WRITE_LAT_LIMIT_S   30.0
#define REPEATS             3
#define SHORT_TURNS         1000
#define LONG_TURNS          11000
#define GIGABYTE_MESSAGES   954 // of 1 MiB

bool cli_is_installed(const char *program)
{
    const char *path = getenv("PATH");
    bool found = false;
    while (!found && path != NULL && *path != '\0') {
        size_t length = strcspn(path, ":");
        char file[PATH_MAX];
        (void)snprintf(file, sizeof file, "%.*s/%s", (int)length, path, program);
        found = access(file, X_OK) == 0;
        path += length + (path[length] == ':');
    }
    return found;
}

#define TWIN "fidelity=twin"
#define FLOW "fidelity=flow"

// Runs the program as server on node0 and as client on node1. false: printed why, or skipped.
static bool pair_run(const char *scenario, const char *fidelity, const char *program, const char *arguments,
                     struct cli_bench_result *result, struct cli_child *child)
{
    char server[128], client[128];
    if (!cli_is_installed(program)) {
        (void)snprintf(result->skipped, sizeof result->skipped, "%s is not installed (Debian: perftest)", program);
        return false;
    }
    (void)snprintf(server, sizeof server, "%s %s", program, arguments);
    (void)snprintf(client, sizeof client, "%s %s node0", program, arguments);
    char *const words[] = {"exec",  (char *)scenario, "--set", (char *)fidelity,
                           "--on",  "node0",          server,  "--on",
                           "node1", client,           NULL};
    if (!cli_child_run(words, child)) {
        return false;
    }
    if (child->exit_status != 0) {
        cli_error("%s on %s ended with status %d", server, scenario, child->exit_status);
    }
    return child->exit_status == 0;
}

// The fastest of REPEATS runs.
static bool turns_run(const struct cli_paths *paths, unsigned turns, struct cli_bench_result *result,
                      struct cli_child *best_out)
{
    char arguments[64];
    (void)snprintf(arguments, sizeof arguments, "-s 8 -n %u", turns);
    *best_out = (struct cli_child){.seconds = 1e9};
    for (unsigned i = 0; i < REPEATS; i++) {
        struct cli_child child;
        if (!pair_run(paths->ibsim0_scenario, TWIN, "ib_send_lat", arguments, result, &child)) {
            return false;
        }
        *best_out = child.seconds < best_out->seconds ? child : *best_out;
    }
    return true;
}

bool cli_bench_send_lat(const struct cli_paths *paths, struct cli_bench_result *result)
{
    struct cli_child one, many;
    if (!turns_run(paths, SHORT_TURNS, result, &one) || !turns_run(paths, LONG_TURNS, result, &many)) {
        return false;
    }
    double trips = LONG_TURNS - SHORT_TURNS;
    cli_measure_add(result, "whole run of 1,000, best of 3", "s", one.seconds, WHOLE_LIMIT_S, false);
    cli_measure_add(result, "a round trip of 8 B", "us", (many.seconds - one.seconds) * 1e6 / trips,
                    ROUND_TRIP_LIMIT_US, false);
    cli_measure_add(result, "its processor time, with polling for the run token", "us",
                    (many.busy_seconds - one.busy_seconds) * 1e6 / trips, 0.0, false);
    return true;
}

// One complete run of a pair.
static bool pair_measure(const char *scenario, const char *fidelity, const char *program, const char *arguments,
                         double limit_s, struct cli_bench_result *result)
{
    struct cli_child child;
    if (!pair_run(scenario, fidelity, program, arguments, result, &child)) {
        return false;
    }
    cli_measure_add(result, "wall time", "s", child.seconds, limit_s, false);
    cli_measure_add(result, "processor time", "s", child.busy_seconds, 0.0, false);
    return true;
}

static bool gigabyte_run(const char *scenario, const char *fidelity, double limit_s, struct cli_bench_result *result)
{
    char arguments[64];
    (void)snprintf(arguments, sizeof arguments, "-s 1048576 -n %u", GIGABYTE_MESSAGES);
    return pair_measure(scenario, fidelity, "ib_write_bw", arguments, limit_s, result);
}

bool cli_bench_write_bw_ibsim0(const struct cli_paths *paths, struct cli_bench_result *result)
{
    return gigabyte_run(paths->ibsim0_scenario, TWIN, GIGABYTE_LIMIT_S, result);
}

bool cli_bench_write_bw_tca0(const struct cli_paths *paths, struct cli_bench_result *result)
{
    return gigabyte_run(paths->tca0_scenario, TWIN, GIGABYTE_LIMIT_S, result);
}

bool cli_bench_write_bw_ibsim0_flow(const struct cli_paths *paths, struct cli_bench_result *result)
{
    return gigabyte_run(paths->ibsim0_scenario, FLOW, GIGABYTE_FLOW_LIMIT_S, result);
}

bool cli_bench_write_bw_tca0_flow(const struct cli_paths *paths, struct cli_bench_result *result)
{
    return gigabyte_run(paths->tca0_scenario, FLOW, GIGABYTE_FLOW_LIMIT_S, result);
}

bool cli_bench_write_lat_all(const struct cli_paths *paths, struct cli_bench_result *result)
{
    return pair_measure(paths->ibsim0_scenario, TWIN, "ib_write_lat", "-a", WRITE_LAT_LIMIT_S, result);
}
