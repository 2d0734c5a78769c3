#include "sim/cli/tool.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "sim/cli/cli.h"
#include "sim/report/files.h"

#define POLL_US 5000 // interval of polling for its end

extern char **environ;

static bool is_left_out(const char *variable)
{
    static const char *const prefixes[] = {"SQUEUE_", "SACCT_", "SCANCEL_", "SBATCH_WAIT="};
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++) {
        if (strncmp(variable, prefixes[i], strlen(prefixes[i])) == 0) {
            return true;
        }
    }
    return false;
}

// The strings are borrowed.
static char **environment_make(void)
{
    size_t count = 0, kept = 0;
    while (environ[count] != NULL) {
        count++;
    }
    char **variables = calloc(count + 1, sizeof *variables);
    for (size_t i = 0; i < count && variables != NULL; i++) {
        if (!is_left_out(environ[i])) {
            variables[kept++] = environ[i];
        }
    }
    return variables;
}

static int spawn(const char *const *argv, FILE *const outputs[2], pid_t *child_out)
{
    posix_spawn_file_actions_t actions;
    int error = posix_spawn_file_actions_init(&actions);
    if (error != 0) {
        return error;
    }
    char **variables = environment_make();
    error =
        variables != NULL ? posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0) : ENOMEM;
    for (int i = 0; i < 2 && error == 0; i++) {
        error = posix_spawn_file_actions_adddup2(&actions, fileno(outputs[i]), STDOUT_FILENO + i);
    }
    if (error == 0) {
        error = posix_spawnp(child_out, argv[0], &actions, NULL, (char *const *)(uintptr_t)argv, variables);
    }
    free(variables);
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

static int status_wait(pid_t child, unsigned seconds)
{
    struct timespec start, now;
    int status = 0;
    bool killed = false;
    clock_gettime(CLOCK_MONOTONIC, &start);
    for (;;) {
        pid_t ended = waitpid(child, &status, WNOHANG);
        if (ended == child) {
            return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        }
        if (ended < 0 && errno != EINTR) {
            return 128;
        }
        clock_gettime(CLOCK_MONOTONIC, &now);
        if (!killed && now.tv_sec - start.tv_sec > (time_t)seconds) {
            (void)kill(child, SIGKILL);
            killed = true;
        }
        (void)usleep(POLL_US);
    }
}

static char *text_read(FILE *file)
{
    char *text = files_text_read(file);
    return text != NULL ? text : strdup("");
}

bool cli_tool_run(const char *const *argv, unsigned seconds, struct cli_tool *tool)
{
    FILE *outputs[2] = {tmpfile(), tmpfile()};
    pid_t child = 0;
    *tool = (struct cli_tool){0};
    int error = outputs[0] != NULL && outputs[1] != NULL ? spawn(argv, outputs, &child) : errno;
    tool->found = error == 0;
    if (error == 0) {
        fflush(NULL);
        tool->status = status_wait(child, seconds);
    }
    bool good = error == 0 || error == ENOENT;
    if (good) {
        tool->output = text_read(outputs[0]);
        tool->errors = text_read(outputs[1]);
        good = tool->output != NULL && tool->errors != NULL;
    }
    if (!good) {
        cli_error("cannot run %s: %s", argv[0], strerror(error != 0 ? error : ENOMEM));
        cli_tool_fini(tool);
    }
    for (int i = 0; i < 2; i++) {
        if (outputs[i] != NULL) {
            (void)fclose(outputs[i]);
        }
    }
    return good;
}

void cli_tool_fini(struct cli_tool *tool)
{
    free(tool->output);
    free(tool->errors);
    *tool = (struct cli_tool){0};
}

const char *cli_tool_reason(struct cli_tool *tool)
{
    static const char *const kinds[] = {"error: ", "fatal: "};
    size_t length = strlen(tool->errors);
    while (length > 0 && tool->errors[length - 1] == '\n') {
        tool->errors[--length] = '\0';
    }
    char *line = strrchr(tool->errors, '\n');
    line = line != NULL ? line + 1 : tool->errors;
    if (line[0] == '\0') {
        return tool->status == 128 + SIGKILL ? "it was killed, or gave no answer in time" : "it gave no reason";
    }
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        char *found = strstr(line, kinds[i]);
        if (found != NULL) {
            return found + strlen(kinds[i]);
        }
    }
    return line;
}
