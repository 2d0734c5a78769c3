// Runs gnuplot, and reads its version from the picture.
#include "sim/kernel/regular_file.h"
#include "sim/report/plot.h"

#include <errno.h>
#include <limits.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>

extern char **environ;

#define SETTING_MAX (FILES_NAME_MAX + 64)

static void setting(char buffer[SETTING_MAX], const char *variable, const char *name)
{
    char temporary[FILES_NAME_MAX + 32];
    files_temporary_name(name, temporary, sizeof temporary);
    snprintf(buffer, SETTING_MAX, "%s='%s'", variable, temporary);
}

static int spawn(const char *directory, char *const *arguments, pid_t *child_out)
{
    posix_spawn_file_actions_t actions;
    int error = posix_spawn_file_actions_init(&actions);
    if (error != 0) {
        return error;
    }
    error = posix_spawn_file_actions_addchdir_np(&actions, directory);
    if (error == 0) {
        error = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", 0, 0);
    }
    if (error == 0) {
        error = posix_spawnp(child_out, "gnuplot", &actions, NULL, arguments, environ);
    }
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

void report_plot_draw(struct files *files, const char *script, const char *picture)
{
    if (files->status != SIM_OK) {
        return;
    }
    char data[SETTING_MAX];
    char image[SETTING_MAX];
    char both[2 * SETTING_MAX + 2];
    char path[FILES_NAME_MAX + 32];
    setting(data, "data", "data.csv");
    setting(image, "image", picture);
    snprintf(both, sizeof both, "%s; %s", data, image);
    files_temporary_name(script, path, sizeof path);
    files_expect(files, picture);

    // -d: the user's start-up file must not change the picture.
    char *const arguments[] = {"gnuplot", "-d", "-e", both, path, NULL};
    pid_t child;
    int error = spawn(files->directory, arguments, &child);
    if (error != 0) {
        files_fail(files, SIM_ERR_IO, "cannot run gnuplot, which draws %s: %s", picture, strerror(error));
        return;
    }
    int status = 0;
    while (waitpid(child, &status, 0) < 0) {
        if (errno != EINTR) {
            files_fail(files, SIM_ERR_IO, "cannot wait for gnuplot: %s", strerror(errno));
            return;
        }
    }
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        files_fail(files, SIM_ERR_IO, "gnuplot failed on %s", script);
    }
}

void report_plot_version(const struct files *files, char *version, size_t size)
{
    snprintf(version, size, "unknown");
    char temporary[FILES_NAME_MAX + 32];
    char path[PATH_MAX];
    files_temporary_name("plot.svg", temporary, sizeof temporary);
    FILE *file = files_path(files->directory, temporary, path, sizeof path) == SIM_OK ? sim_regular_open(path) : NULL;
    if (file == NULL) {
        return;
    }
    static const char mark[] = "Produced by GNUPLOT ";
    char line[256];
    for (unsigned i = 0; i < 16 && fgets(line, sizeof line, file) != NULL; i++) {
        char *found = strstr(line, mark);
        if (found != NULL) {
            found += sizeof mark - 1;
            found[strcspn(found, "<\n")] = '\0';
            size_t length = strlen(found);
            while (length > 0 && found[length - 1] == ' ') {
                found[--length] = '\0';
            }
            snprintf(version, size, "%s", found);
            break;
        }
    }
    fclose(file);
}
