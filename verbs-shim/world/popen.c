// popen and pclose: the C library's own functions would start their child without the shim.
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "verbs-shim/world/world.h"

extern char **environ;

struct command {
    struct command *next;
    FILE *stream;
    pid_t child;
};

static struct command *commands;
static pthread_mutex_t commands_lock = PTHREAD_MUTEX_INITIALIZER;

static void command_add(struct command *command)
{
    (void)pthread_mutex_lock(&commands_lock);
    command->next = commands;
    commands = command;
    (void)pthread_mutex_unlock(&commands_lock);
}

// NULL: no command has this stream.
static struct command *command_take(FILE *stream)
{
    (void)pthread_mutex_lock(&commands_lock);
    struct command **link = &commands;
    while (*link != NULL && (*link)->stream != stream) {
        link = &(*link)->next;
    }
    struct command *found = *link;
    *link = found != NULL ? found->next : NULL;
    (void)pthread_mutex_unlock(&commands_lock);
    return found;
}

// As POSIX requires, the streams of earlier calls are closed in the child.
static int start(const char *text, int of_child, int target, pid_t *child)
{
    posix_spawn_file_actions_t actions;
    char *const arguments[] = {"sh", "-c", "--", (char *)(uintptr_t)text, NULL};
    (void)posix_spawn_file_actions_init(&actions);
    (void)posix_spawn_file_actions_adddup2(&actions, of_child, target);
    for (const struct command *command = commands; command != NULL; command = command->next) {
        if (fileno(command->stream) != target) {
            (void)posix_spawn_file_actions_addclose(&actions, fileno(command->stream));
        }
    }
    int error = posix_spawn(child, "/bin/sh", &actions, NULL, arguments, environ);
    (void)posix_spawn_file_actions_destroy(&actions);
    return error;
}

FILE *popen(const char *text, const char *mode)
{
    if (!world_timed()) {
        return WORLD_REAL(popen)(text, mode);
    }
    bool reads = mode[0] == 'r';
    int ends[2];
    if ((!reads && mode[0] != 'w') || pipe2(ends, O_CLOEXEC) != 0) {
        errno = !reads && mode[0] != 'w' ? EINVAL : errno;
        return NULL;
    }
    struct command *command = malloc(sizeof *command);
    int own = ends[reads ? 0 : 1], of_child = ends[reads ? 1 : 0];
    FILE *stream = command != NULL ? fdopen(own, reads ? "r" : "w") : NULL;
    int error = stream != NULL ? start(text, of_child, reads ? STDOUT_FILENO : STDIN_FILENO, &command->child) : ENOMEM;
    (void)close(of_child);
    if (error != 0) {
        if (stream != NULL) {
            (void)fclose(stream);
        } else {
            (void)close(own);
        }
        free(command);
        errno = error;
        return NULL;
    }
    if (strchr(mode, 'e') == NULL) {
        (void)fcntl(own, F_SETFD, 0);
    }
    command->stream = stream;
    command_add(command);
    return stream;
}

int pclose(FILE *stream)
{
    struct command *command = command_take(stream);
    if (command == NULL) {
        return WORLD_REAL(pclose)(stream);
    }
    pid_t child = command->child;
    int status;
    free(command);
    (void)fclose(stream);
    while (waitpid(child, &status, 0) < 0) {
        if (errno != EINTR) {
            return -1;
        }
    }
    return status;
}
