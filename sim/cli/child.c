// Runs this program as a child of itself and measures its time and memory.
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "sim/cli/bench.h"

extern char **environ;

static double now_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static double timeval_seconds(const struct timeval *time)
{
    return (double)time->tv_sec + (double)time->tv_usec / 1e6;
}

// program: is searched in PATH if it has no slash.
static int spawn(const char *program, char *const *argv, bool silent, pid_t *child_out)
{
    posix_spawn_file_actions_t actions;
    int error = posix_spawn_file_actions_init(&actions);
    if (error != 0) {
        return error;
    }
    error = posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    if (error == 0 && silent) {
        error = posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    }
    if (error == 0) {
        error = posix_spawnp(child_out, program, &actions, NULL, argv, environ);
    }
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

static bool measure(const char *program, char *const *argv, bool silent, struct cli_child *child)
{
    double start = now_seconds();
    pid_t pid;
    int error = spawn(program, argv, silent, &pid);
    if (error != 0) {
        cli_error("cannot start %s: %s", argv[0], strerror(error));
        return false;
    }
    int status = 0;
    struct rusage usage;
    while (wait4(pid, &status, 0, &usage) < 0) {
        if (errno != EINTR) {
            cli_error("cannot wait for %s: %s", argv[0], strerror(errno));
            return false;
        }
    }
    *child = (struct cli_child){
        .seconds = now_seconds() - start,
        .busy_seconds = timeval_seconds(&usage.ru_utime) + timeval_seconds(&usage.ru_stime),
        .memory_mb = (double)usage.ru_maxrss * 1024 / 1e6,
        .exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
    };
    return true;
}

bool cli_child_run(char *const *arguments, struct cli_child *child)
{
    char *argv[CLI_CHILD_ARGUMENTS_MAX + 2] = {"tcasim"};
    for (size_t i = 0; i < CLI_CHILD_ARGUMENTS_MAX && arguments[i] != NULL; i++) {
        argv[i + 1] = arguments[i];
    }
    return measure("/proc/self/exe", argv, false, child);
}

bool cli_program_run(char *const *argv, struct cli_child *child)
{
    return measure(argv[0], argv, true, child);
}
