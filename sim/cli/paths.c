#include "sim/cli/paths.h"
#include "sim/kernel/regular_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void path_make(char path[PATH_MAX], const char *home, const char *name)
{
    (void)snprintf(path, PATH_MAX, "%s/%s", home, name);
}

// The directory of the program, without a slash; "": unknown.
static void program_directory(char path[PATH_MAX])
{
    ssize_t length = readlink("/proc/self/exe", path, PATH_MAX - 1);
    path[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(path, '/');
    if (slash != NULL) {
        *slash = '\0';
    }
}

// A build has the folder of its sources in the file tcasim.home beside the program; an installed program has its data
// in share/tcasim of the same prefix.
static void home_find(char home[PATH_MAX])
{
    char directory[PATH_MAX], file[PATH_MAX + 16];
    const char *given = getenv("TCASIM_HOME");
    if (given != NULL && given[0] != '\0') {
        (void)snprintf(home, PATH_MAX, "%s", given);
        return;
    }
    program_directory(directory);
    (void)snprintf(file, sizeof file, "%s/tcasim.home", directory);
    FILE *note = sim_regular_open(file);
    if (note != NULL && fgets(home, PATH_MAX, note) != NULL) {
        home[strcspn(home, "\n")] = '\0';
    } else if ((size_t)snprintf(home, PATH_MAX, "%s/../../share/tcasim", directory) >= PATH_MAX) {
        home[0] = '\0';
    }
    if (note != NULL) {
        (void)fclose(note);
    }
}

static void libraries_find(char path[PATH_MAX])
{
    program_directory(path);
    size_t length = strlen(path);
    if (snprintf(path + length, PATH_MAX - length, "/lib") >= (int)(PATH_MAX - length)) {
        path[0] = '\0';
    }
}

void cli_paths_find(struct cli_paths *paths)
{
    char home[PATH_MAX];
    home_find(home);
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
