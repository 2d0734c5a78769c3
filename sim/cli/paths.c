#include "sim/cli/paths.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void path_make(char path[PATH_MAX], const char *home, const char *name)
{
    (void)snprintf(path, PATH_MAX, "%s/%s", home, name);
}

static void libraries_find(char path[PATH_MAX])
{
    ssize_t length = readlink("/proc/self/exe", path, PATH_MAX - 1);
    path[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(path, '/');
    size_t room = slash != NULL ? (size_t)(path + PATH_MAX - slash) : 0;
    if (snprintf(slash != NULL ? slash : path, room, "/lib") >= (int)room) {
        path[0] = '\0';
    }
}

void cli_paths_find(struct cli_paths *paths)
{
    const char *home = getenv("TCASIM_HOME");
    if (home == NULL || home[0] == '\0') {
        home = TCASIM_SOURCE_DIR;
    }
    path_make(paths->configs, home, "configs");
    path_make(paths->reference, home, "results/reference/papers.csv");
    path_make(paths->main_scenario, home, "scenarios/figures/hanawa2013-fig7-8-pingpong.yaml");
    path_make(paths->smallest_scenario, home, "scenarios/smoke/smallest.yaml");
    path_make(paths->pingpong_scenario, home, "scenarios/smoke/thousand-pingpongs.yaml");
    path_make(paths->gpu_scenario, home, "scenarios/smoke/gpu-4mb.yaml");
    path_make(paths->tca0_scenario, home, "scenarios/smoke/verbs-tca0.yaml");
    path_make(paths->ibsim0_scenario, home, "scenarios/smoke/verbs-ibsim0.yaml");
    path_make(paths->scenarios, home, "scenarios");
    path_make(paths->accuracy, home, "docs/accuracy.md");
    path_make(paths->figures, home, "scenarios/figures/*.yaml");
    path_make(paths->halo_scenario, home, "scenarios/speed/halo-4x4-128k.yaml");
    path_make(paths->all_to_all_scenario, home, "scenarios/speed/all-to-all-64k.yaml");
    libraries_find(paths->libraries);
}
