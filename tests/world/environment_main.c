// Starts itself with other environments; each of these programs is attached: it waits for an hour of simulated time.
// environment [stage]: of `stages`; `last` is what they start. LIBRARY: a library of the user's own.
#include <fcntl.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static char *nothing[] = {NULL}, *of_the_user[] = {"LD_PRELOAD=" LIBRARY, "LD_LIBRARY_PATH=/nowhere", NULL};

static int by_execve(const char *path, char **arguments, char **environment)
{
    return execve(path, arguments, environment);
}

static int by_fexecve(const char *path, char **arguments, char **environment)
{
    return fexecve(open(path, O_RDONLY), arguments, environment);
}

static int by_spawn(const char *path, char **arguments, char **environment)
{
    pid_t child;
    int status = 0;
    bool started = posix_spawn(&child, path, NULL, NULL, arguments, environment) == 0;
    _exit(started && waitpid(child, &status, 0) == child && status == 0 ? 0 : 1);
}

static const struct {
    int (*start)(const char *path, char **arguments, char **environment);
    char **environment;
    const char *user; // whose library has to be there
} stages[] = {{by_execve, nothing, ""},          {by_execve, of_the_user, "user"}, {by_execve, NULL, ""},
              {by_fexecve, of_the_user, "user"}, {by_spawn, nothing, ""},          {by_spawn, of_the_user, "user"}};

// The user's library comes before this one: its function is that of the program.
__attribute__((weak)) const char *environment_user(void);

static int last(const char *user)
{
    (void)sleep(3600);
    bool loaded = environment_user != NULL;
    return loaded == (strcmp(user, "user") == 0) ? 0 : 1;
}

int main(int count, char **arguments)
{
    int failures = 0;
    if (count > 1) {
        return last(arguments[1]);
    }
    for (size_t i = 0; i < sizeof stages / sizeof stages[0]; i++) {
        char *next[] = {arguments[0], (char *)(uintptr_t)stages[i].user, NULL};
        pid_t child = fork();
        if (child == 0) {
            (void)stages[i].start(arguments[0], next, stages[i].environment);
            _exit(127);
        }
        int status = 0;
        if (waitpid(child, &status, 0) != child || status != 0) {
            printf("stage %zu: %x\n", i, (unsigned)status);
            failures++;
        }
    }
    return failures;
}
