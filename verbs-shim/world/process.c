// Processes: new ones, exec, and waiting for their ends.
//
// A thread that reads the time stamp counter faults (tsc.c). The dynamic linker of a new program reads it before any
// handler exists, so the fault is disabled before every exec.
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "verbs-shim/attach/kernel_call.h"
#include "verbs-shim/world/calls.h"
#include "verbs-shim/world/environment.h"
#include "verbs-shim/world/world.h"

extern char **environ;

// --- new processes --------------------------------------------------------------------------------------------------

// Returns the child's number in the run.
static pid_t born(pid_t child)
{
    pid_t id = attach_fork_parent(child);
    if (id != child) {
        world_id_known(id, child);
    }
    return id;
}

pid_t fork(void)
{
    bool timed = world_timed();
    attach_window_close();
    pid_t child = WORLD_REAL(fork)();
    if (child == 0) {
        attach_forked();
        if (timed) {
            world_clocks_forked();
            world_lookahead_forked();
            world_timers_forked();
            world_aio_forked();
            world_spin_start();
        }
    } else if (child > 0 && timed) {
        return born(child);
    }
    return child;
}

// A child that shares its parent's memory cannot be told apart from the parent.
pid_t vfork(void)
{
    return fork();
}

static int spawned(int error, pid_t *child)
{
    world_tsc_trap(true);
    if (error == 0) {
        *child = born(*child);
    }
    return error;
}

int posix_spawn(pid_t *restrict child, const char *restrict path, const posix_spawn_file_actions_t *restrict actions,
                const posix_spawnattr_t *restrict attributes, char *const argv[restrict], char *const env[restrict])
{
    if (!world_timed()) {
        return WORLD_REAL(posix_spawn)(child, path, actions, attributes, argv, env);
    }
    pid_t number;
    child = child != NULL ? child : &number;
    const struct world_environment with = world_environment_begin(env);
    world_tsc_trap(false);
    int error = spawned(WORLD_REAL(posix_spawn)(child, path, actions, attributes, argv, with.list), child);
    world_environment_end(&with);
    return error;
}

int posix_spawnp(pid_t *restrict child, const char *restrict file, const posix_spawn_file_actions_t *restrict actions,
                 const posix_spawnattr_t *restrict attributes, char *const argv[restrict], char *const env[restrict])
{
    if (!world_timed()) {
        return WORLD_REAL(posix_spawnp)(child, file, actions, attributes, argv, env);
    }
    pid_t number;
    child = child != NULL ? child : &number;
    const struct world_environment with = world_environment_begin(env);
    world_tsc_trap(false);
    int error = spawned(WORLD_REAL(posix_spawnp)(child, file, actions, attributes, argv, with.list), child);
    world_environment_end(&with);
    return error;
}

// --- exec -----------------------------------------------------------------------------------------------------------

static struct world_environment exec_begin(char *const *env)
{
    attach_before_exec();
    world_tsc_trap(false);
    return world_environment_begin(env);
}

static int exec_failed(const struct world_environment *env, int status)
{
    world_environment_end(env);
    world_tsc_trap(true);
    return status;
}

int execve(const char *path, char *const argv[], char *const env[])
{
    if (!world_timed()) {
        return WORLD_REAL(execve)(path, argv, env);
    }
    const struct world_environment with = exec_begin(env);
    return exec_failed(&with, WORLD_REAL(execve)(path, argv, with.list));
}

int execvpe(const char *file, char *const argv[], char *const env[])
{
    if (!world_timed()) {
        return WORLD_REAL(execvpe)(file, argv, env);
    }
    const struct world_environment with = exec_begin(env);
    return exec_failed(&with, WORLD_REAL(execvpe)(file, argv, with.list));
}

int fexecve(int fd, char *const argv[], char *const env[])
{
    if (!world_timed()) {
        return WORLD_REAL(fexecve)(fd, argv, env);
    }
    const struct world_environment with = exec_begin(env);
    return exec_failed(&with, WORLD_REAL(fexecve)(fd, argv, with.list));
}

int execveat(int folder, const char *path, char *const argv[], char *const env[], int flags)
{
    if (!world_timed()) {
        return WORLD_REAL(execveat)(folder, path, argv, env, flags);
    }
    const struct world_environment with = exec_begin(env);
    return exec_failed(&with, WORLD_REAL(execveat)(folder, path, argv, with.list, flags));
}

int execv(const char *path, char *const argv[])
{
    return execve(path, argv, environ);
}

int execvp(const char *file, char *const argv[])
{
    return execvpe(file, argv, environ);
}

// Copies the arguments of a list to a vector, and finds what follows their end. NULL: no memory.
static char **list_gather(const char *first, va_list *list)
{
    size_t count = 0, room = 16;
    char **argv = malloc(room * sizeof *argv);
    const char *next = first;
    while (argv != NULL) {
        if (count == room) {
            room *= 2;
            char **larger = realloc(argv, room * sizeof *argv);
            if (larger == NULL) {
                free(argv);
                return NULL;
            }
            argv = larger;
        }
        argv[count++] = (char *)(uintptr_t)next;
        if (next == NULL) {
            break;
        }
        next = va_arg(*list, const char *);
    }
    return argv;
}

int execl(const char *path, const char *first, ...)
{
    va_list list;
    va_start(list, first);
    char **argv = list_gather(first, &list);
    va_end(list);
    int status = argv != NULL ? execv(path, argv) : -1;
    free(argv);
    return status;
}

int execlp(const char *file, const char *first, ...)
{
    va_list list;
    va_start(list, first);
    char **argv = list_gather(first, &list);
    va_end(list);
    int status = argv != NULL ? execvp(file, argv) : -1;
    free(argv);
    return status;
}

int execle(const char *path, const char *first, ...)
{
    va_list list;
    va_start(list, first);
    char **argv = list_gather(first, &list);
    char *const *env = va_arg(list, char *const *);
    va_end(list);
    int status = argv != NULL ? execve(path, argv, env) : -1;
    free(argv);
    return status;
}

int system(const char *command)
{
    if (!world_timed() || command == NULL) {
        return WORLD_REAL(system)(command);
    }
    pid_t child = fork();
    if (child == 0) {
        (void)execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(127);
    }
    int status = -1;
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return child < 0 ? -1 : status;
}

// --- ends of processes ----------------------------------------------------------------------------------------------

// Checks without waiting for a child that has ended; the end of a child wakes the thread that waits.
long world_call_wait4(const long *a)
{
    const long call[] = {a[0], a[1], a[2] | WNOHANG, a[3]};
    unsigned interrupts = attach_interrupts_ending();
    bool interrupted = false;
    long ended;
    while ((ended = kernel_call(SYS_wait4, call[0], call[1], call[2], call[3], 0, 0)) == 0 && (a[2] & WNOHANG) == 0) {
        if (interrupted) {
            return -EINTR;
        }
        (void)attach_wait(ATTACH_WAIT_OUTSIDE | ATTACH_WAIT_ENDS, ATTACH_NEVER_PS);
        interrupted = attach_interrupts_ending() != interrupts;
    }
    return ended;
}

long world_call_waitid(const long *a)
{
    siginfo_t own;
    siginfo_t *info = a[2] != 0 ? (siginfo_t *)a[2] : &own;
    unsigned interrupts = attach_interrupts_ending();
    for (;;) {
        memset(info, 0, sizeof *info);
        long status = kernel_call(SYS_waitid, a[0], a[1], (long)(uintptr_t)info, a[3] | WNOHANG, a[4], 0);
        if (status != 0 || info->si_pid != 0 || (a[3] & WNOHANG) != 0) {
            return status;
        }
        if (attach_interrupts_ending() != interrupts) {
            return -EINTR;
        }
        (void)attach_wait(ATTACH_WAIT_OUTSIDE | ATTACH_WAIT_ENDS, ATTACH_NEVER_PS);
    }
}

pid_t wait4(pid_t child, int *status, int options, struct rusage *usage)
{
    child = world_id_real_signed(child);
    return world_id_of(world_timed() ? (pid_t)WORLD_CALL(world_call_wait4, child, status, options, usage)
                                     : WORLD_REAL(wait4)(child, status, options, usage));
}

pid_t waitpid(pid_t child, int *status, int options)
{
    return world_timed() ? wait4(child, status, options, NULL) : WORLD_REAL(waitpid)(child, status, options);
}

pid_t wait(int *status)
{
    return world_timed() ? wait4(-1, status, 0, NULL) : WORLD_REAL(wait)(status);
}

pid_t wait3(int *status, int options, struct rusage *usage)
{
    return world_timed() ? wait4(-1, status, options, usage) : WORLD_REAL(wait3)(status, options, usage);
}

int waitid(idtype_t type, id_t id, siginfo_t *info, int options)
{
    if (!world_timed()) {
        return WORLD_REAL(waitid)(type, id, info, options);
    }
    id = type == P_PID || type == P_PGID ? (id_t)world_id_real((pid_t)id) : id;
    int status = (int)WORLD_CALL(world_call_waitid, type, id, info, options);
    if (status == 0 && info != NULL) {
        info->si_pid = world_id_of(info->si_pid);
    }
    return status;
}
