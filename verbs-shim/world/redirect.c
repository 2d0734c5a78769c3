// Paths of the devices (/sys/class/infiniband and its relatives, /dev/infiniband/uverbsN) and of files that show which
// machine this is (identity.h) are redirected to a folder that the simulator has made for the node (TCASIM_SYSFS). The
// uverbs devices in it are links to /dev/null, a character device.
//
// POSIX shared memory (/dev/shm) belongs to a node: its names begin with those of the run and the node. So neither
// other nodes nor other runs find it, nor does this run find what a killed program of an earlier run left. The same
// holds for files and folders that are created there by their paths, and for the contents of such a folder (files.c).
//
// Leaves out: listing the folder (opendir of /dev/shm shows the files of all), paths that are relative or go through a
// link or "..", what realpath and /proc/self/fd show, inotify, extended attributes, and system calls by their numbers.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verbs-shim/attach/identity.h"
#include "verbs-shim/world/world.h"

// /proc/NUMBER: the number is the run's, the folder is the machine's.
static const char *process_redirect(const char *path, char buffer[WORLD_PATH_BYTES])
{
    char *rest;
    long id = strtol(path + strlen("/proc/"), &rest, 10);
    bool ours = id >= (long)ATTACH_ID_BASE && id <= INT32_MAX && (*rest == '/' || *rest == '\0');
    int bytes = ours ? snprintf(buffer, WORLD_PATH_BYTES, "/proc/%d%s", (int)world_id_real((pid_t)id), rest) : 0;
    return bytes > 0 && bytes < WORLD_PATH_BYTES ? buffer : path;
}

static const char shared_folder[] = "/dev/shm/";

// A name in that folder; for a deeper path the first part is replaced. "/tmp/tcasim-Ab12cd/node0" gives the prefix
// "tcasim-Ab12cd.node0.".
static const char *shared_redirect(const char *name, const char *folder, char buffer[WORLD_PATH_BYTES])
{
    const char *node = getenv("TCASIM_SYSFS");
    const char *node_name = node != NULL ? strrchr(node, '/') : NULL;
    const char *run = node_name;
    while (run != NULL && run > node && run[-1] != '/') {
        run--;
    }
    int run_bytes = (int)(node_name - run);
    int bytes = run != NULL
                    ? snprintf(buffer, WORLD_PATH_BYTES, "%s%.*s.%s.%s", folder, run_bytes, run, node_name + 1, name)
                    : 0;
    return bytes > 0 && bytes < WORLD_PATH_BYTES ? buffer : NULL;
}

// What the simulator has made for the node: folders of devices, and files that show which machine this is.
static bool is_of_node(const char *path)
{
    static const char *const folders[] = {"/sys/class/infiniband", "/dev/infiniband"};
#define FILE_OF_NODE(path, form) path,
    static const char *const files[] = {ATTACH_IDENTITY_FILES(FILE_OF_NODE)};
#undef FILE_OF_NODE
    bool is = false;
    for (size_t i = 0; i < sizeof folders / sizeof folders[0] && !is; i++) {
        is = strncmp(path, folders[i], strlen(folders[i])) == 0;
    }
    for (size_t i = 0; i < sizeof files / sizeof files[0] && !is; i++) {
        is = strcmp(path, files[i]) == 0;
    }
    return is;
}

const char *world_path(const char *path, char buffer[WORLD_PATH_BYTES])
{
    const char *root = path != NULL && path[0] == '/' && is_of_node(path) ? getenv("TCASIM_SYSFS") : NULL;
    if (root != NULL) {
        int bytes = snprintf(buffer, WORLD_PATH_BYTES, "%s%s", root, path);
        return bytes > 0 && bytes < WORLD_PATH_BYTES ? buffer : path;
    }
    if (path != NULL && strncmp(path, "/proc/", strlen("/proc/")) == 0) {
        return process_redirect(path, buffer);
    }
    size_t shared = sizeof shared_folder - 1;
    if (path != NULL && strncmp(path, shared_folder, shared) == 0 && path[shared] != '\0') {
        const char *own = shared_redirect(path + shared, shared_folder, buffer);
        return own != NULL ? own : path;
    }
    return path;
}

// "/name" or "name", of shared memory and semaphores.
const char *world_shared_name(const char *name, char buffer[WORLD_PATH_BYTES])
{
    const char *bare = name != NULL && name[0] == '/' ? name + 1 : name;
    const char *own = bare != NULL && bare[0] != '\0' ? shared_redirect(bare, "/", buffer) : NULL;
    return own != NULL ? own : name;
}
