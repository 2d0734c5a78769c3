// The run's directory, which only its user can enter. It holds the socket, the nodes' device files, a link to the
// libraries, and whatever programs would leave where other runs see it: temporary files (TMPDIR) and ports of rdma_cm.
// The names of shared memory begin with the run's name (verbs-shim/world/paths.c). All of this is removed with the run,
// however the run ends.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/attach/internal.h"

void attach_scratch_path(const struct attach_server *server, char *path_out, size_t bytes)
{
    snprintf(path_out, bytes, "%s/.tmp", server->scratch.directory); // no node has this name
}

void attach_libraries_path(const struct attach_server *server, char *path_out, size_t bytes)
{
    snprintf(path_out, bytes, "%s/.lib", server->scratch.directory);
}

// What the process below runs with the directory's name. The run's processes are those that have its socket in their
// environment; a process that writes over its environment still has the run's shared memory mapped. A process that
// starts another one while they are listed is found in the next round.
static const char janitor_script[] =
    "read -r _\n"
    "while found=$(grep -lsF -- \"TCASIM_ATTACH=$0/\" /proc/[0-9]*/environ\n"
    "              grep -lsF -- \"memfd:${0##*/} \" /proc/[0-9]*/maps); [ -n \"$found\" ]; do\n"
    "  for file in $found; do file=${file%/*}; kill -9 \"${file##*/}\"; done\n"
    "  sleep 0.02\n"
    "done\n"
    "chmod -R u+rwx -- \"$0\"\n"
    "exec rm -rf -- \"$0\" /dev/shm/\"${0##*/}\".* /dev/shm/sem.\"${0##*/}\".*";

// Starts a process that ends the programs and removes the directory when the simulator is killed. It waits for the end
// of a pipe whose other end the simulator has, which comes before the simulator's parent has waited for it, and a
// terminal's signals do not reach it. It gets the directory's name before the directory exists. At an orderly end it is
// killed, after everything else that was started and when the directory is gone.
static void janitor_start(struct attach_server *server)
{
    static char shell[] = "sh", option[] = "-c";
    char *const argv[] = {shell, option, (char *)(uintptr_t)janitor_script, server->scratch.directory, NULL};
    static char path[] = "PATH=/usr/bin:/bin";
    char *const env[] = {path, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return;
    }
    (void)posix_spawn_file_actions_init(&actions);
    (void)posix_spawnattr_init(&attributes);
    (void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
    (void)posix_spawn_file_actions_adddup2(&actions, ends[0], STDIN_FILENO);
    (void)posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    (void)posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
    if (posix_spawn(&server->scratch.janitor, "/bin/sh", &actions, &attributes, argv, env) != 0) {
        server->scratch.janitor = 0;
    }
    (void)posix_spawnattr_destroy(&attributes);
    (void)posix_spawn_file_actions_destroy(&actions);
    close(ends[0]);
    server->scratch.alive = ends[1];
}

static void janitor_end(struct attach_server *server)
{
    pid_t pid = server->scratch.janitor;
    if (pid > 0 && waitpid(pid, NULL, WNOHANG) == 0) { // unless a program has ended it
        (void)kill(pid, SIGKILL);
        (void)waitpid(pid, NULL, 0);
    }
    if (server->scratch.alive >= 0) {
        close(server->scratch.alive);
    }
}

static bool folder_make(struct attach_server *server, const char *path)
{
    bool made = mkdir(path, 0700) == 0;
    if (!made) {
        snprintf(server->result->text, sizeof server->result->text, "%s: %s", path, strerror(errno));
    }
    return made;
}

// Characters that end a name in LD_PRELOAD, LD_LIBRARY_PATH or PATH.
static bool is_listable(const char *path)
{
    return strpbrk(path, " :;\t\n") == NULL;
}

static bool link_make(struct attach_server *server)
{
    char path[ATTACH_SYSFS_BYTES];
    if (server->options->library_directory == NULL) {
        return true;
    }
    attach_libraries_path(server, path, sizeof path);
    bool made = symlink(server->options->library_directory, path) == 0;
    if (!made) {
        snprintf(server->result->text, sizeof server->result->text, "%s: %s", path, strerror(errno));
    }
    return made;
}

bool attach_scratch_make(struct attach_server *server)
{
    uint64_t number = 0;
    const char *parent = getenv("XDG_RUNTIME_DIR");
    bool usable = parent != NULL && parent[0] == '/' && strlen(parent) < 32 && is_listable(parent) &&
                  access(parent, W_OK | X_OK) == 0;
    if (getrandom(&number, sizeof number, 0) != sizeof number) {
        snprintf(server->result->text, sizeof server->result->text, "no random name for a directory");
        return false;
    }
    snprintf(server->scratch.directory, sizeof server->scratch.directory, "%s/tcasim-%012" PRIx64,
             usable ? parent : "/tmp", number >> 16);
    janitor_start(server);
    char temporary[ATTACH_SYSFS_BYTES], ports[ATTACH_SYSFS_BYTES];
    attach_scratch_path(server, temporary, sizeof temporary);
    snprintf(ports, sizeof ports, "%s/.rdma_cm", server->scratch.directory); // verbs-shim/rdmacm/address.c
    if (!folder_make(server, server->scratch.directory)) {
        server->scratch.directory[0] = '\0';
        return false;
    }
    return folder_make(server, temporary) && folder_make(server, ports) && link_make(server);
}

static void remove_all(const struct attach_server *server)
{
    char prefix[sizeof server->scratch.directory + 1];
    snprintf(prefix, sizeof prefix, "%s.", strrchr(server->scratch.directory, '/') + 1);
    DIR *shared = opendir("/dev/shm");
    for (struct dirent *entry = shared != NULL ? readdir(shared) : NULL; entry != NULL; entry = readdir(shared)) {
        // Names of semaphores begin with "sem.".
        const char *name = strncmp(entry->d_name, "sem.", 4) == 0 ? entry->d_name + 4 : entry->d_name;
        if (strncmp(name, prefix, strlen(prefix)) == 0) {
            char path[sizeof "/dev/shm/" + sizeof entry->d_name];
            snprintf(path, sizeof path, "/dev/shm/%s", entry->d_name);
            attach_folder_remove(path); // or a file
        }
    }
    if (shared != NULL) {
        (void)closedir(shared);
    }
    attach_folder_remove(server->scratch.directory);
}

void attach_scratch_remove(struct attach_server *server)
{
    if (server->scratch.directory[0] != '\0') {
        remove_all(server);
    }
    janitor_end(server);
}
