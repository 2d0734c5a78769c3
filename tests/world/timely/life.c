// New processes, programs and threads: each sleeps for 100 us, and the one that has started it waits for its end.
#include <errno.h>
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <threads.h>
#include <unistd.h>
#include <x86intrin.h>

#include "timely.h"

extern char **environ;

// This program, which does so and ends with 5: by its path, and by a name that PATH leads to (main.c).
#define PATH "/proc/self/exe"
#define NAME "world_timely"
#define NAP  "nap"
enum { STATUS = 5, MHZ = 2600 };

static char *nap_argv[] = {NAME, NAP, NULL};

static long end_of(pid_t child)
{
    int status = -1;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static long by_fork(struct timely_scene *scene)
{
    (void)scene;
    pid_t child = fork();
    if (child == 0) {
        (void)usleep(TIMELY_WOKEN_US);
        _exit(STATUS);
    }
    return end_of(child);
}

static long by_vfork(struct timely_scene *scene)
{
    (void)scene;
    pid_t child = vfork(); // a fork, here
    if (child == 0) {
        (void)execv(PATH, nap_argv);
        _exit(1);
    }
    return end_of(child);
}

// A child becomes the program.
#define EXEC_ROW(function, ...)                                                                                        \
    static int become_##function(void *unused)                                                                         \
    {                                                                                                                  \
        (void)unused;                                                                                                  \
        (void)__VA_ARGS__;                                                                                             \
        return 1;                                                                                                      \
    }                                                                                                                  \
    static long by_##function(struct timely_scene *scene)                                                              \
    {                                                                                                                  \
        (void)scene;                                                                                                   \
        return timely_in_child(become_##function, NULL);                                                               \
    }

EXEC_ROW(execl, execl(PATH, NAME, NAP, (char *)NULL))
EXEC_ROW(execle, execle(PATH, NAME, NAP, (char *)NULL, environ))
EXEC_ROW(execlp, execlp(NAME, NAME, NAP, (char *)NULL))
EXEC_ROW(execv, execv(PATH, nap_argv))
EXEC_ROW(execve, execve(PATH, nap_argv, environ))
EXEC_ROW(execveat, execveat(AT_FDCWD, PATH, nap_argv, environ, 0))
EXEC_ROW(fexecve, fexecve(open(PATH, O_RDONLY), nap_argv, environ))
EXEC_ROW(execvp, execvp(NAME, nap_argv))
EXEC_ROW(execvpe, execvpe(NAME, nap_argv, environ))

// A launcher hands its environment on, although it may be on another node: the program is on the node of the process that
// has started it, and its environment says so.
static int become_launched(void *unused)
{
    static char *launched_argv[] = {NAME, "whose", NULL};
    const char *folder = getenv("TCASIM_SYSFS");
    char other[1024];
    (void)unused;
    (void)snprintf(other, sizeof other, "%s/../node1", folder != NULL ? folder : "");
    (void)setenv("TCASIM_NODE", "node1", 1);
    (void)setenv("TCASIM_HOME", "node1", 1);
    (void)setenv("TCASIM_SYSFS", other, 1);
    (void)execv(PATH, launched_argv);
    return 1;
}

static long by_execv_of_launcher(struct timely_scene *scene)
{
    (void)scene;
    return timely_in_child(become_launched, NULL);
}

// After an exec that has failed the program goes on in simulated time: a cycle is that of the configured processor.
static long by_failed_exec(struct timely_scene *scene)
{
    (void)scene;
    int status = execv("/nonexistent/program", nap_argv);
    uint64_t before = __rdtsc();
    (void)usleep(TIMELY_WOKEN_US);
    uint64_t cycles = __rdtsc() - before;
    return status == -1 ? (long)(cycles / (TIMELY_WOKEN_US * MHZ / 100)) : status;
}

static long by_posix_spawn(struct timely_scene *scene)
{
    pid_t child;
    (void)scene;
    int error = posix_spawn(&child, PATH, NULL, NULL, nap_argv, environ);
    return error == 0 ? end_of(child) : -error;
}

static long by_posix_spawnp(struct timely_scene *scene)
{
    pid_t child;
    (void)scene;
    int error = posix_spawnp(&child, NAME, NULL, NULL, nap_argv, environ);
    return error == 0 ? end_of(child) : -error;
}

static long by_system(struct timely_scene *scene)
{
    (void)scene;
    int status = system("exec " NAME " " NAP);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// The end of its output is its end.
static long by_popen(struct timely_scene *scene)
{
    (void)scene;
    FILE *stream = popen("exec " NAME " " NAP, "r");
    int end = stream != NULL ? fgetc(stream) : 0;
    int status = stream != NULL ? pclose(stream) : -1;
    return end == EOF && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static long by_pclose(struct timely_scene *scene)
{
    (void)scene;
    FILE *stream = popen("exec " NAME " " NAP, "r");
    int status = stream != NULL ? pclose(stream) : -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// The child of the second one does not hold the end of the first one's pipe: the first one's command comes to its end.
static long by_pclose_of_two(struct timely_scene *scene)
{
    (void)scene;
    FILE *first = popen("exec /bin/cat", "w"), *second = popen("exec /bin/cat", "w");
    int status = first != NULL ? pclose(first) : -1, other = second != NULL ? pclose(second) : -1;
    return status == 0 && other == 0 ? STATUS : -1;
}

static void *nap(void *arg)
{
    (void)usleep(TIMELY_WOKEN_US);
    return arg;
}

static long by_pthread_create(struct timely_scene *scene)
{
    pthread_t thread;
    void *result = NULL;
    int error = pthread_create(&thread, NULL, nap, scene);
    (void)pthread_join(thread, &result);
    return error == 0 && result == scene ? STATUS : -error;
}

static int nap_shortly(void *unused)
{
    (void)unused;
    (void)usleep(TIMELY_WOKEN_US);
    return STATUS;
}

static long by_thrd_create(struct timely_scene *scene)
{
    thrd_t thread;
    int result = 0;
    int error = thrd_create(&thread, nap_shortly, scene);
    (void)thrd_join(thread, &result);
    return error == thrd_success ? result : -error;
}

// With exit(3) instead of _exit(2).
#define EXITS .at_us = TIMELY_WOKEN_US + TIMELY_EXIT_US + TIMELY_END_US

static const struct timely_row rows[] = {
    TIMELY_ROW(FUNCTION, "fork", by_fork, STATUS, .at_us = TIMELY_WOKEN_US + TIMELY_END_US),
    TIMELY_ROW(FUNCTION, "vfork", by_vfork, STATUS, EXITS),
    TIMELY_ROW(FUNCTION, "execl", by_execl, STATUS, EXITS),
    TIMELY_ROW(FUNCTION, "execle", by_execle, STATUS, EXITS),
    TIMELY_ROW(FUNCTION, "execlp", by_execlp, STATUS, EXITS),
    TIMELY_ROW(FUNCTION, "execv", by_execv, STATUS, EXITS),
    TIMELY_ROW(FUNCTION, "execv", by_execv_of_launcher, STATUS, .at_us = TIMELY_EXIT_US + TIMELY_END_US),
    TIMELY_ROW(FUNCTION, "execv", by_failed_exec, 100, .at_us = TIMELY_WOKEN_US, .late_ns = 100),
    TIMELY_ROW(FUNCTION, "execve", by_execve, STATUS, EXITS),
    TIMELY_ROW(FUNCTION, "execveat", by_execveat, STATUS, EXITS),
    TIMELY_ROW(FUNCTION, "fexecve", by_fexecve, STATUS, EXITS),
    TIMELY_ROW(FUNCTION, "execvp", by_execvp, STATUS, EXITS),
    TIMELY_ROW(FUNCTION, "execvpe", by_execvpe, STATUS, EXITS),
    TIMELY_ROW(FUNCTION, "posix_spawn", by_posix_spawn, STATUS, EXITS),
    TIMELY_ROW(FUNCTION, "posix_spawnp", by_posix_spawnp, STATUS, EXITS),
    TIMELY_ROW(FUNCTION, "system", by_system, STATUS, EXITS),
    TIMELY_ROW(FUNCTION, "popen", by_popen, STATUS, EXITS),
    TIMELY_ROW(FUNCTION, "pclose", by_pclose, STATUS, EXITS),
    TIMELY_ROW(FUNCTION, "pclose", by_pclose_of_two, STATUS, .at_us = 2 * (TIMELY_EXIT_US + TIMELY_END_US)),
    TIMELY_ROW(FUNCTION, "pthread_create", by_pthread_create, STATUS, .at_us = TIMELY_WOKEN_US),
    TIMELY_ROW(FUNCTION, "thrd_create", by_thrd_create, STATUS, .at_us = TIMELY_WOKEN_US),
};
TIMELY_THEME(life, rows);
