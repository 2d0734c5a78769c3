// The same halo exchange on SimGrid's SMPI, where it is installed (Debian: libsimgrid-dev): a formula for each transfer,
// which flow is compared with.
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "sim/cli/bench.h"
#include "sim/cli/bench_attached.h"

static bool compile_and_run(const struct cli_paths *paths, const char *folder, struct cli_child *child)
{
    char source[PATH_MAX + 64], platform[PATH_MAX + 64], program[64];
    (void)snprintf(source, sizeof source, "%s/speed/smpi/halo.c", paths->scenarios);
    (void)snprintf(platform, sizeof platform, "%s/speed/smpi/rings.xml", paths->scenarios);
    (void)snprintf(program, sizeof program, "%s/halo", folder);
    char *const compile[] = {"smpicc", "-O2", source, "-o", program, NULL};
    char *const run[] = {"smpirun", "-np", "16", "-platform", platform, "--cfg=smpi/simulate-computation:no",
                         program,   NULL};
    if (!cli_program_run(compile, child) || child->exit_status != 0 || !cli_program_run(run, child)) {
        return false;
    }
    if (child->exit_status != 0) {
        cli_error("smpirun ended with status %d", child->exit_status);
    }
    return child->exit_status == 0;
}

bool cli_bench_smpi(const struct cli_paths *paths, struct cli_child *child)
{
    char folder[] = "/tmp/tcasim-bench-XXXXXX";
    if (!cli_is_installed("smpicc") || !cli_is_installed("smpirun") || mkdtemp(folder) == NULL) {
        return false;
    }
    bool done = compile_and_run(paths, folder, child);
    cli_bench_folder_remove(folder);
    return done;
}
