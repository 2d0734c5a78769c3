// Benchmarks with fio and with programs that are compiled as their users compile them.
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/cli/bench_attached.h"

#define GPU_COPY_LIMIT_S 5.0
#define PHASES_LIMIT_S   20.0
#define WINDOWS_LIMIT_S  30.0
#define FIO_LIMIT_S      2.0
#define PINGPONG_LIMIT_S 10.0
#define HIMENO_LIMIT_S   60.0

// Runs `exec` with these arguments and discards its output. name: of the measurement.
static bool exec_measure(char *const *arguments, const char *name, double limit_s, struct cli_bench_result *result)
{
    struct cli_child child;
    if (!cli_child_run(arguments, &child)) {
        return false;
    }
    if (child.exit_status != 0) {
        cli_error("%s ended with status %d", name, child.exit_status);
        return false;
    }
    cli_measure_add(result, name, "s", child.seconds, limit_s, false);
    cli_measure_add(result, "processor time, without programs", "s", child.busy_seconds, 0.0, false);
    return true;
}

// Makes a new folder with the compiled program. false: printed why, or skipped.
static bool compile(const struct cli_paths *paths, const char *source, const char *name, char *folder,
                    struct cli_bench_result *result)
{
    char command[4 * PATH_MAX];
    if (!cli_is_installed("mpicc") || !cli_is_installed("mpirun")) {
        (void)snprintf(result->skipped, sizeof result->skipped,
                       "Open MPI is not installed (Debian: openmpi-bin, libopenmpi-dev)");
        return false;
    }
    if (mkdtemp(folder) == NULL) {
        cli_error("no folder %s", folder);
        return false;
    }
    (void)snprintf(command, sizeof command,
                   "mpicc -O2 '%s/%s' -o '%s/%s' $(PKG_CONFIG_PATH='%s/pkgconfig' pkg-config --cflags --libs tcasim)",
                   paths->scenarios, source, folder, name, paths->libraries);
    if (system(command) != 0) {
        cli_error("%s could not be compiled", source);
        return false;
    }
    return true;
}

// Runs the scenario's own command in the folder of its program.
static bool mpi_measure(const struct cli_paths *paths, const char *source, const char *name, const char *scenario,
                        double limit_s, struct cli_bench_result *result)
{
    char folder[] = "/tmp/tcasim-bench-XXXXXX", file[2 * PATH_MAX], before[PATH_MAX];
    bool done = false;
    (void)snprintf(file, sizeof file, "%s/attached/%s", paths->scenarios, scenario);
    (void)setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
    (void)setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
    if (compile(paths, source, name, folder, result) && getcwd(before, sizeof before) != NULL && chdir(folder) == 0) {
        char *const words[] = {"exec", file, NULL};
        done = exec_measure(words, name, limit_s, result);
        done = chdir(before) == 0 && done;
    }
    cli_bench_folder_remove(folder);
    return done;
}

bool cli_bench_gpu_copy(const struct cli_paths *paths, struct cli_bench_result *result)
{
    return mpi_measure(paths, "attached/tca/copy_back.c", "copy_back", "tca/copy-back.yaml", GPU_COPY_LIMIT_S, result);
}

bool cli_bench_phases(const struct cli_paths *paths, struct cli_bench_result *result)
{
    return mpi_measure(paths, "workloads/mpi_phases.c", "mpi_phases", "mpi-phases.yaml", PHASES_LIMIT_S, result);
}

bool cli_bench_windows(const struct cli_paths *paths, struct cli_bench_result *result)
{
    return mpi_measure(paths, "workloads/mpi_windows.c", "mpi_windows", "mpi-windows.yaml", WINDOWS_LIMIT_S, result);
}

bool cli_bench_mpi_tca0(const struct cli_paths *paths, struct cli_bench_result *result)
{
    return mpi_measure(paths, "workloads/mpi_pingpong.c", "mpi_pingpong", "mpi-pingpong-tca0.yaml", PINGPONG_LIMIT_S,
                       result);
}

// One point of the figure: first one device, then the other.
bool cli_bench_himeno(const struct cli_paths *paths, struct cli_bench_result *result)
{
    char file[2 * PATH_MAX], out[] = "/tmp/tcasim-bench-XXXXXX";
    char *const words[] = {"run",   file,        "--set", "sweep={parameters.split.value: [4x4]}",
                           "--set", "expect=[]", "--set", "compare=[]",
                           "--out", out,         NULL};
    (void)snprintf(file, sizeof file, "%s/figures/sato2015-fig15-himeno-small.yaml", paths->scenarios);
    if (!cli_is_installed("mpirun") || mkdtemp(out) == NULL) {
        (void)snprintf(result->skipped, sizeof result->skipped,
                       "Open MPI is not installed (Debian: openmpi-bin, libopenmpi-dev)");
        return false;
    }
    bool done = exec_measure(words, "4x4 ranks over tca0, and over ibsim0", HIMENO_LIMIT_S, result);
    cli_bench_folder_remove(out);
    return done;
}

#define FIO "fio --name=j --ioengine=rdma --port=12345 --bs=4k --size=4k "
bool cli_bench_fio(const struct cli_paths *paths, struct cli_bench_result *result)
{
    char *const words[] = {"exec",
                           (char *)paths->ibsim0_scenario,
                           "--on",
                           "node0",
                           FIO "--rw=read",
                           "--on",
                           "node1",
                           FIO "--hostname=node0 --verb=write --rw=write",
                           NULL};
    if (!cli_is_installed("fio")) {
        (void)snprintf(result->skipped, sizeof result->skipped, "fio is not installed");
        return false;
    }
    return exec_measure(words, "fio with one transfer of 4 KiB", FIO_LIMIT_S, result);
}
