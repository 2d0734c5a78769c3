// `tcasim bench`: measures the speed of the simulator on this machine and prints it beside its limits.
#include "sim/cli/bench.h"

#include <ftw.h>
#include <glob.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/cli/bench_attached.h"
#include "sim/cli/bench_cosim.h"
#include "sim/cli/bench_cost.h"
#include "sim/cli/bench_verbs.h"
#include "sim/cli/load.h"
#include "sim/cli/options.h"
#include "sim/cli/progress.h"
#include "sim/kernel/text.h"

#define START_LIMIT_S        0.1
#define PINGPONG_LIMIT_S     1.0
#define FIGURE_LIMIT_S       20.0
#define FABRIC_LIMIT_S       2.0
#define GPU_LIMIT_S          4.0 // 2 s in each direction
#define FIGURES_TWIN_LIMIT_S 120.0
#define FIGURES_RTL_LIMIT_S  900.0
#define FIGURES_FLOW_LIMIT_S 10.0
#define HALO_FLOW_LIMIT_S    0.23 // that of SimGrid's SMPI for the same halo, where it is not installed
#define HALO_1024_LIMIT_S    60.0
#define HALO_1024_LIMIT_MB   4096.0
#define MEMORY_LIMIT_MB      150.0
#define ACP_COPIES_LIMIT_S   0.5
#define ACP_RANKS_LIMIT_S    10.0
#define ACP_RANKS_LIMIT_MB   2048.0
#define START_REPEATS        5
#define RTL_SLOWDOWN_LIMIT   80.0

void cli_measure_add(struct cli_bench_result *result, const char *what, const char *unit, double value, double limit,
                     bool at_least)
{
    if (result->count < CLI_MEASURES_MAX) {
        result->measures[result->count++] = (struct cli_measure){what, unit, value, limit, at_least};
    }
}

static int entry_remove(const char *path, const struct stat *about, int kind, struct FTW *walk)
{
    (void)about;
    (void)kind;
    (void)walk;
    return remove(path);
}

void cli_bench_folder_remove(const char *folder)
{
    (void)nftw(folder, entry_remove, 8, FTW_DEPTH | FTW_PHYS);
}

// A measured run writes its results, as a user's run does, but into a directory that is removed. The arguments after
// "run" end with NULL. cost_out: may be NULL.
static bool arguments_run(char *const *given, struct cli_child *child, struct cli_bench_cost *cost_out)
{
    char directory[] = "/tmp/tcasim-bench-XXXXXX";
    if (mkdtemp(directory) == NULL) {
        cli_error("no scratch directory in /tmp");
        return false;
    }
    char *arguments[CLI_CHILD_ARGUMENTS_MAX + 1] = {"run", "--quiet", "--out", directory};
    for (size_t i = 0; given[i] != NULL && i + 4 < CLI_CHILD_ARGUMENTS_MAX; i++) {
        arguments[i + 4] = given[i];
    }
    bool ran = cli_child_run(arguments, child);
    if (ran && child->exit_status <= CLI_EXIT_EXPECT && cost_out != NULL && !cli_bench_cost_read(directory, cost_out)) {
        cli_error("%s left no results", given[0]);
        ran = false;
    }
    cli_bench_folder_remove(directory);
    // A run whose expectation does not hold takes as long as one whose expectation holds.
    if (ran && child->exit_status > CLI_EXIT_EXPECT) {
        cli_error("%s ended with status %d", given[0], child->exit_status);
        return false;
    }
    return ran;
}

bool cli_bench_run(char *const *arguments, struct cli_child *child)
{
    return arguments_run(arguments, child, NULL);
}

// In one process, whose memory is measured.
static bool scenario_run(const char *scenario, struct cli_child *child, struct cli_bench_cost *cost_out)
{
    char *const arguments[] = {(char *)scenario, "--jobs", "1", NULL};
    return arguments_run(arguments, child, cost_out);
}

static bool smallest_run(const struct cli_paths *paths, struct cli_bench_result *result)
{
    struct cli_child best = {.seconds = 1e9};
    for (unsigned i = 0; i < START_REPEATS; i++) {
        struct cli_child child;
        if (!scenario_run(paths->smallest_scenario, &child, NULL)) {
            return false;
        }
        best = child.seconds < best.seconds ? child : best;
    }
    cli_measure_add(result, "start to exit, best of 5", "s", best.seconds, START_LIMIT_S, false);
    cli_measure_add(result, "peak memory", "MB", best.memory_mb, MEMORY_LIMIT_MB, false);
    return true;
}

// One run with a limit on its wall time, and on its memory.
static bool limited_run(const char *scenario, double limit_s, struct cli_bench_result *result)
{
    struct cli_child child;
    if (!scenario_run(scenario, &child, NULL)) {
        return false;
    }
    cli_measure_add(result, "whole run", "s", child.seconds, limit_s, false);
    cli_measure_add(result, "peak memory", "MB", child.memory_mb, MEMORY_LIMIT_MB, false);
    return true;
}

// The same, and the cost per TLP. A TLP counts once on each link that it passes. The events and the processor time
// include its share of the chips and hosts between; processor time leaves out other work of the machine.
static bool fabric_run(const char *scenario, struct cli_bench_result *result)
{
    struct cli_child child;
    struct cli_bench_cost cost;
    if (!scenario_run(scenario, &child, &cost)) {
        return false;
    }
    cli_measure_add(result, "whole run", "s", child.seconds, FABRIC_LIMIT_S, false);
    cli_measure_add(result, "peak memory", "MB", child.memory_mb, MEMORY_LIMIT_MB, false);
    if (cost.tlps == 0 || cost.events == 0) {
        cli_error("%s sent nothing", scenario);
        return false;
    }
    double events = (double)cost.events, tlps = (double)cost.tlps, busy_ns = child.busy_seconds * 1e9;
    cli_measure_add(result, "processor time", "s", child.busy_seconds, 0.0, false);
    cli_measure_add(result, "TLPs on links", "million", tlps / 1e6, 0.0, false);
    cli_measure_add(result, "events per TLP and link", "events", events / tlps, 0.0, false);
    cli_measure_add(result, "time per event", "ns", busy_ns / events, 0.0, false);
    cli_measure_add(result, "time per TLP and link", "ns", busy_ns / tlps, 0.0, false);
    return true;
}

// A scenario of scenarios/speed with limits of its own. set: an override, or NULL.
static bool speed_run(const struct cli_paths *paths, const char *name, const char *set, double limit_s, double limit_mb,
                      struct cli_bench_result *result)
{
    char scenario[PATH_MAX + 64];
    char *const arguments[] = {scenario, set != NULL ? "--set" : NULL, (char *)set, NULL};
    struct cli_child child;
    (void)snprintf(scenario, sizeof scenario, "%s/speed/%s.yaml", paths->scenarios, name);
    if (!arguments_run(arguments, &child, NULL)) {
        return false;
    }
    cli_measure_add(result, "whole run", "s", child.seconds, limit_s, false);
    cli_measure_add(result, "peak memory", "MB", child.memory_mb, limit_mb, false);
    return true;
}

static bool acp_copies_run(const struct cli_paths *paths, struct cli_bench_result *result)
{
    return speed_run(paths, "acp-copies", NULL, ACP_COPIES_LIMIT_S, MEMORY_LIMIT_MB, result);
}

static bool acp_ranks_run(const struct cli_paths *paths, struct cli_bench_result *result)
{
    return speed_run(paths, "acp-256-ranks", NULL, ACP_RANKS_LIMIT_S, ACP_RANKS_LIMIT_MB, result);
}

static bool halo_run(const struct cli_paths *paths, struct cli_bench_result *result)
{
    return fabric_run(paths->halo_scenario, result);
}

static bool halo_flow_run(const struct cli_paths *paths, struct cli_bench_result *result)
{
    struct cli_child smpi;
    bool beside = cli_bench_smpi(paths, &smpi);
    bool done = speed_run(paths, "halo-4x4-128k", "fidelity=flow", beside ? smpi.seconds : HALO_FLOW_LIMIT_S,
                          MEMORY_LIMIT_MB, result);
    if (beside) {
        cli_measure_add(result, "SimGrid's SMPI, the same halo", "s", smpi.seconds, 0.0, false);
        cli_measure_add(result, "its peak memory", "MB", smpi.memory_mb, 0.0, false);
    }
    return done;
}

static bool halo_1024_run(const struct cli_paths *paths, struct cli_bench_result *result)
{
    return speed_run(paths, "halo-32x32-64k", "fidelity=flow", HALO_1024_LIMIT_S, HALO_1024_LIMIT_MB, result);
}

static bool all_to_all_run(const struct cli_paths *paths, struct cli_bench_result *result)
{
    return fabric_run(paths->all_to_all_scenario, result);
}

static bool pingpong_run(const struct cli_paths *paths, struct cli_bench_result *result)
{
    return limited_run(paths->pingpong_scenario, PINGPONG_LIMIT_S, result);
}

static bool figure_run(const struct cli_paths *paths, struct cli_bench_result *result)
{
    return limited_run(paths->main_scenario, FIGURE_LIMIT_S, result);
}

static bool gpu_run(const struct cli_paths *paths, struct cli_bench_result *result)
{
    return limited_run(paths->gpu_scenario, GPU_LIMIT_S, result);
}

// Runs the scenarios side by side on the processors of this machine. set: an override for all of them.
static bool side_by_side_run(char *const *scenarios, size_t count, const char *set, struct cli_child *child)
{
    char *arguments[CLI_CHILD_ARGUMENTS_MAX] = {"--set", (char *)set};
    *child = (struct cli_child){0};
    if (count + 8 >= CLI_CHILD_ARGUMENTS_MAX) {
        cli_error("there are too many scenarios for one command");
        return false;
    }
    memcpy(arguments + 2, scenarios, count * sizeof *scenarios);
    return count == 0 || arguments_run(arguments, child, NULL);
}

// Moves the scenarios with programs behind those without. Programs spend their time on their own start and computing.
// *first_out: the first one with programs. false: one cannot be read.
static bool programs_sort(const struct cli_paths *paths, const glob_t *files, char **sorted, size_t *first_out)
{
    static const struct cli_list no_sets = {0};
    size_t first = 0, behind = files->gl_pathc;
    for (size_t i = 0; i < files->gl_pathc; i++) {
        struct scn_scenario *scenario = cli_scenario_load(files->gl_pathv[i], paths, &no_sets);
        if (scenario == NULL) {
            return false;
        }
        sorted[scenario->outside_count > 0 ? --behind : first++] = files->gl_pathv[i];
        scn_free(scenario);
    }
    *first_out = first;
    return true;
}

// Runs every figure: first those of workloads, then those of programs.
static bool figures_run(const struct cli_paths *paths, const char *set, double limit_s, struct cli_bench_result *result)
{
    glob_t files;
    struct cli_child without, with;
    size_t first;
    if (glob(paths->figures, 0, NULL, &files) != 0) {
        cli_error("there are no scenarios %s", paths->figures);
        return false;
    }
    char **sorted = calloc(files.gl_pathc, sizeof *sorted);
    bool ran = sorted != NULL && programs_sort(paths, &files, sorted, &first) &&
               side_by_side_run(sorted, first, set, &without) &&
               side_by_side_run(sorted + first, files.gl_pathc - first, set, &with);
    free(sorted);
    globfree(&files);
    if (ran) {
        cli_measure_add(result, "those of workloads", "s", without.seconds, 0.0, false);
        cli_measure_add(result, "those of programs (MPI, perftest)", "s", with.seconds, 0.0, false);
        cli_measure_add(result, "all of them", "s", without.seconds + with.seconds, limit_s, false);
    }
    return ran;
}

static bool figures_twin_run(const struct cli_paths *paths, struct cli_bench_result *result)
{
    return figures_run(paths, "nodes.*.board.fidelity=twin", FIGURES_TWIN_LIMIT_S, result);
}

static bool figures_flow_run(const struct cli_paths *paths, struct cli_bench_result *result)
{
    return figures_run(paths, "fidelity=flow", FIGURES_FLOW_LIMIT_S, result);
}

static bool figures_rtl_run(const struct cli_paths *paths, struct cli_bench_result *result)
{
    return figures_run(paths, "nodes.*.board.fidelity=rtl", FIGURES_RTL_LIMIT_S, result);
}

// The same ping-pong on RTL and on twins, so long that the program's start does not count; in processor time.
static bool twin_run(const struct cli_paths *paths, struct cli_bench_result *result)
{
    char *const scenario = (char *)paths->pingpong_scenario, *const longer = "runs.*.iterations=5000";
    char *const rtl_arguments[] = {scenario, "--set", "nodes.*.board.fidelity=rtl", "--set", longer, NULL};
    char *const twin_arguments[] = {scenario, "--set", "nodes.*.board.fidelity=twin", "--set", longer, NULL};
    struct cli_child rtl, twin;
    if (!arguments_run(rtl_arguments, &rtl, NULL) || !arguments_run(twin_arguments, &twin, NULL)) {
        return false;
    }
    cli_measure_add(result, "5000 ping-pongs, RTL boards", "s", rtl.busy_seconds, 0.0, false);
    cli_measure_add(result, "5000 ping-pongs, twins", "s", twin.busy_seconds, 0.0, false);
    cli_measure_add(result, "RTL boards against twins", "ratio", rtl.busy_seconds / twin.busy_seconds,
                    RTL_SLOWDOWN_LIMIT, false);
    return true;
}

static const struct cli_benchmark benchmarks[] = {
    {"smallest", "the smallest scenario", smallest_run},
    {"co-simulation", "the RTL under the kernel against a bare loop on the same model", cli_bench_cosim},
    {"ping-pong", "1,000 DMA ping-pongs of 8 B on two RTL boards", pingpong_run},
    {"twin", "the same ping-pong on RTL boards and on twins", twin_run},
    {"figure-7-8", "hanawa2013 figures 7 and 8", figure_run},
    {"gpu-4mb", "4 MB from GPU to GPU over two RTL boards, there and back", gpu_run},
    {"figures-twin", "every figure, boards as twins", figures_twin_run},
    {"figures-flow", "every figure on flow", figures_flow_run},
    {"figures-rtl", "every figure, RTL boards", figures_rtl_run},
    {"halo", "200 halo exchanges of 4 x 128 KiB and an all-reduce on 16 twins", halo_run},
    {"halo-flow", "the same on flow, beside SimGrid's SMPI where it is installed", halo_flow_run},
    {"halo-1024", "ten halo exchanges of 4 x 64 KiB and an all-reduce on 1,024 nodes, flow", halo_1024_run},
    {"all-to-all", "an all-to-all of 64 KiB on 16 twins", all_to_all_run},
    {"verbs-tca0", "10,000 ping-pongs of 8 B by send and receive over tca0, two twins", cli_bench_tca0},
    {"verbs-ibsim0", "the same over ibsim0", cli_bench_ibsim0},
    {"acp-copies", "10,000 copies of ACP of 8 B between two nodes", acp_copies_run},
    {"acp-256", "256 ranks of ACP start and meet at a barrier", acp_ranks_run},
    {"exec-latency", "ib_send_lat of 8 B as attached programs over ibsim0", cli_bench_send_lat},
    {"exec-ibsim0", "ib_write_bw of 1 GB as attached programs over ibsim0", cli_bench_write_bw_ibsim0},
    {"exec-tca0", "the same over tca0, two twins", cli_bench_write_bw_tca0},
    {"exec-ibsim0-flow", "ib_write_bw of 1 GB over ibsim0, flow", cli_bench_write_bw_ibsim0_flow},
    {"exec-tca0-flow", "the same over tca0", cli_bench_write_bw_tca0_flow},
    {"exec-all-sizes", "ib_write_lat -a over ibsim0: 2 B to 8 MiB, 1,000 of each", cli_bench_write_lat_all},
    {"exec-fio", "fio over ibsim0 from its start to its end, one transfer", cli_bench_fio},
    {"exec-gpu-copy", "copies of up to 128 MiB from the GPU beside MPI, two twins", cli_bench_gpu_copy},
    {"exec-mpi-16", "16 ranks of Open MPI: barriers, broadcasts, all-reduces", cli_bench_phases},
    {"exec-mpi-tca0", "ping-pong of Open MPI over tca0, 8 B to 4 MiB, two twins", cli_bench_mpi_tca0},
    {"exec-himeno-16", "Himeno's small problem on 16 boards and 16 HCAs, on device memory", cli_bench_himeno},
    {"exec-mpi-windows", "bandwidth of Open MPI over UCX, 1 B to 4 MiB in windows of 64", cli_bench_windows},
};
#define BENCHMARK_COUNT (sizeof benchmarks / sizeof benchmarks[0])

static bool is_held(const struct cli_measure *measure)
{
    return measure->limit == 0.0 ||
           (measure->at_least ? measure->value >= measure->limit : measure->value <= measure->limit);
}

static void result_print(const struct cli_benchmark *benchmark, const struct cli_bench_result *result)
{
    for (unsigned i = 0; i < result->count; i++) {
        const struct cli_measure *measure = &result->measures[i];
        printf("%-16s %-34s %12.3f %-8s", benchmark->name, measure->what, measure->value, measure->unit);
        if (measure->limit != 0.0) {
            printf(" at %s %-8g %s", measure->at_least ? "least" : "most", measure->limit,
                   is_held(measure) ? "ok" : "MISSED");
        }
        printf("\n");
    }
    if (result->skipped[0] != '\0') {
        printf("%-16s skipped: %s\n", benchmark->name, result->skipped);
    }
    fflush(stdout);
}

static void result_json_print(const struct cli_benchmark *benchmark, const struct cli_bench_result *result)
{
    for (unsigned i = 0; i < result->count; i++) {
        const struct cli_measure *measure = &result->measures[i];
        fputs("{\"benchmark\":", stdout);
        sim_text_quote(stdout, benchmark->name);
        fputs(",\"what\":", stdout);
        sim_text_quote(stdout, measure->what);
        printf(",\"value\":%.6f,\"unit\":\"%s\"", measure->value, measure->unit);
        if (measure->limit != 0.0) {
            printf(",\"%s\":%g,\"holds\":%s", measure->at_least ? "at_least" : "at_most", measure->limit,
                   is_held(measure) ? "true" : "false");
        }
        puts("}");
    }
    if (result->skipped[0] != '\0') {
        fputs("{\"benchmark\":", stdout);
        sim_text_quote(stdout, benchmark->name);
        fputs(",\"skipped\":", stdout);
        sim_text_quote(stdout, result->skipped);
        puts("}");
    }
    fflush(stdout);
}

static const struct cli_benchmark *benchmark_find(const char *name)
{
    const char *names[BENCHMARK_COUNT];
    for (size_t i = 0; i < BENCHMARK_COUNT; i++) {
        names[i] = benchmarks[i].name;
        if (strcmp(name, names[i]) == 0) {
            return &benchmarks[i];
        }
    }
    const char *nearest = cli_nearest(name, names, BENCHMARK_COUNT);
    cli_error("unknown benchmark '%s'%s%s%s", name, nearest != NULL ? "; did you mean '" : "",
              nearest != NULL ? nearest : "", nearest != NULL ? "'?" : "");
    return NULL;
}

// CLI_EXIT_EXPECT: a limit was missed.
static enum cli_exit result_report(const struct cli_benchmark *benchmark, bool measured,
                                   const struct cli_bench_result *result, bool json)
{
    bool held = true;
    if (json) {
        result_json_print(benchmark, result);
    } else {
        result_print(benchmark, result);
    }
    if (result->skipped[0] != '\0') {
        return CLI_EXIT_OK;
    }
    for (unsigned i = 0; i < result->count; i++) {
        held = held && is_held(&result->measures[i]);
    }
    return !measured ? CLI_EXIT_INPUT : held ? CLI_EXIT_OK : CLI_EXIT_EXPECT;
}

static enum cli_exit benchmarks_run(const struct cli_list *names, bool strict, bool json)
{
    struct cli_paths paths;
    cli_paths_find(&paths);
    bool right = true;
    for (size_t i = 0; i < names->count; i++) {
        right = benchmark_find(names->items[i]) != NULL && right;
    }
    if (!right) {
        return CLI_EXIT_INPUT;
    }
    enum cli_exit result = CLI_EXIT_OK;
    size_t count = names->count != 0 ? names->count : BENCHMARK_COUNT;
    struct cli_progress progress;
    cli_progress_init(&progress, true);
    for (size_t i = 0; i < count; i++) {
        const struct cli_benchmark *benchmark = names->count != 0 ? benchmark_find(names->items[i]) : &benchmarks[i];
        struct cli_bench_result measures = {0};
        cli_progress_update(&progress, (unsigned)(1000 * i / count), benchmark->name);
        bool measured = benchmark->run(&paths, &measures);
        cli_progress_fini(&progress); // the numbers take its line
        result = cli_exit_worse(result, result_report(benchmark, measured, &measures, json));
    }
    return result == CLI_EXIT_EXPECT && !strict ? CLI_EXIT_OK : result;
}

static void list_print(void)
{
    for (size_t i = 0; i < BENCHMARK_COUNT; i++) {
        printf("%-16s %s\n", benchmarks[i].name, benchmarks[i].doc);
    }
}

enum cli_exit cli_bench(int argc, char **argv)
{
    struct {
        bool list, strict, json;
    } given = {0};
    static const struct cli_option options[] = {
        {"list", NULL, "print the names of the benchmarks and exit", CLI_OPTION_FLAG, 0},
        {"strict", NULL, "exit with status 1 if a limit is missed", CLI_OPTION_FLAG, 1},
        {"json", NULL, "print each number as a line of JSON", CLI_OPTION_FLAG, 2},
    };
    const struct cli_syntax syntax = {
        .usage = "tcasim bench [NAME...] [--strict] [--json]",
        .doc = "Measures the simulator on this machine and prints each number beside its limit. Without\n"
               "--strict a missed limit does not change the exit status: the machine may be busy.",
        .options = options,
        .option_count = sizeof options / sizeof options[0],
        .operands_max = SIZE_MAX,
        .operand = "a benchmark",
    };
    struct cli_list names = {0};
    enum cli_exit result = CLI_EXIT_OK;
    enum cli_parsed parsed = cli_options_parse(&syntax, argc, argv, &given, &names);
    if (parsed == CLI_PARSED_RUN && given.list) {
        list_print();
    } else if (parsed == CLI_PARSED_RUN) {
        result = benchmarks_run(&names, given.strict, given.json);
    }
    cli_list_free(&names);
    return parsed == CLI_PARSED_WRONG ? CLI_EXIT_INPUT : result;
}
