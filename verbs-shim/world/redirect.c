// Paths about the machine: all of /sys, what /proc has about it, devices, and files of /etc that say how names of hosts
// are found. They are redirected to a folder that the simulator has made for the node (TCASIM_SYSFS;
// sim/attach/node_files.h). What is not there, the node has not: a program gets ENOENT. The uverbs devices in it are links
// to /dev/null, a character device.
//
// POSIX shared memory (/dev/shm) belongs to a node: its names begin with those of the run and the node. So neither
// other nodes nor other runs find it, nor does this run find what a killed program of an earlier run left. The same
// holds for files and folders that are created there by their paths, and for the contents of such a folder (files.c).
//
// Leaves out: listing /dev/shm, /dev and /proc (opendir shows the machine's), paths that go through a link or "..", what
// realpath and /proc/self/fd show, files of /proc about a process (its status, its descriptors) apart from control groups
// and mounts, inotify, setting extended attributes, counters of ports that are read again through an open descriptor, and system calls in a program's own machine code.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "verbs-shim/attach/identity.h"
#include "verbs-shim/attach/kernel_call.h"
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
    // The nodes' own files, as realpath shows them (sim/attach/sysfs.c).
    if (run != NULL && strncmp(name, run, (size_t)run_bytes) == 0 && strncmp(name + run_bytes, ".nodes/", 7) == 0) {
        return NULL;
    }
    int bytes = run != NULL
                    ? snprintf(buffer, WORLD_PATH_BYTES, "%s%.*s.%s.%s", folder, run_bytes, run, node_name + 1, name)
                    : 0;
    return bytes > 0 && bytes < WORLD_PATH_BYTES ? buffer : NULL;
}

// --- what belongs to the node ---------------------------------------------------------------------------------------

enum owner { MACHINE, NODE };

// A rule says who owns the path and everything in it. The last rule that fits decides; of files that have no rule the
// machine is the owner.
static const struct rule {
    const char *path;
    enum owner owner;
    bool is_prefix; // names in the same folder may go on
    bool is_told;   // no node has it, and a program that asks for it needs it
} rules[] = {{"/sys", NODE, false, false},
             {"/proc", NODE, false, false},
             {"/proc/sysvipc", MACHINE, false, false},
             {"/dev/infiniband", NODE, true, false},
             {"/dev/dri", NODE, false, true},
             {"/dev/nvidia", NODE, true, true},
             {"/dev/kfd", NODE, false, false},
             {"/dev/knem", NODE, false, false},
             {"/dev/xpmem", NODE, false, false},
             {"/dev/hwrng", NODE, false, false},
             {"/dev/cpu", NODE, false, false},
             {"/dev/hugepages", NODE, false, false},
             {"/dev/disk", NODE, false, false},
             {"/run/udev", NODE, false, false},
             {"/etc/hosts", NODE, false, false},
             {"/etc/resolv.conf", NODE, false, false},
             {"/etc/nsswitch.conf", NODE, false, false},
             {"/etc/host.conf", NODE, false, false},
             {"/etc/gai.conf", NODE, false, false},
#define FILE_OF_NODE(path, form) {path, NODE, false, false},
             ATTACH_IDENTITY_FILES(FILE_OF_NODE)
#undef FILE_OF_NODE
};

// Files of a process that say something about the machine: the same for all processes of the node.
static const char *const files_of_processes[] = {"/cgroup", "/cpuset", "/mounts", "/mountinfo", "/mountstats"};

// The end of /proc/self, /proc/thread-self or /proc/NUMBER; NULL: another path.
static const char *process_end(const char *path)
{
    static const char *const folders[] = {"/proc/self", "/proc/thread-self"};
    const char *end = NULL;
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        size_t bytes = strlen(folders[i]);
        end = strncmp(path, folders[i], bytes) == 0 ? path + bytes : end;
    }
    if (end == NULL && strncmp(path, "/proc/", strlen("/proc/")) == 0) {
        const char *number = path + strlen("/proc/");
        size_t digits = strspn(number, "0123456789");
        end = digits > 0 ? number + digits : NULL;
    }
    return end != NULL && (*end == '/' || *end == '\0') ? end : NULL;
}

static bool is_of_process(const char *end)
{
    bool is = false;
    for (size_t i = 0; i < sizeof files_of_processes / sizeof files_of_processes[0]; i++) {
        is = is || strcmp(end, files_of_processes[i]) == 0;
    }
    return is;
}

static enum owner owner_of(const char *path)
{
    enum owner owner = MACHINE;
    bool is_told = false;
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        size_t bytes = strlen(rules[i].path);
        if (strncmp(path, rules[i].path, bytes) == 0 &&
            (path[bytes] == '/' || path[bytes] == '\0' || rules[i].is_prefix)) {
            owner = rules[i].owner;
            is_told = rules[i].is_told;
        }
    }
    if (is_told) {
        world_asked("the device", path);
    }
    return owner;
}

// The path in the node's folder; NULL: it is the machine's.
static const char *node_path(const char *path)
{
    const char *end = process_end(path);
    if (end != NULL) {
        return is_of_process(end) ? end : NULL;
    }
    // The list of processes, and names in it that begin with a digit.
    size_t proc = strlen("/proc");
    const char *rest = strncmp(path, "/proc", proc) == 0 ? path + proc : NULL;
    bool is_list = rest != NULL && (rest[0] == '\0' || strcmp(rest, "/") == 0 || (rest[1] >= '0' && rest[1] <= '9'));
    return owner_of(path) == NODE && !is_list ? path : NULL;
}

// --- paths ----------------------------------------------------------------------------------------------------------

static const char *absolute_redirect(const char *path, char buffer[WORLD_PATH_BYTES])
{
    const char *root = getenv("TCASIM_SYSFS"), *own = root != NULL ? node_path(path) : NULL;
    if (own != NULL) {
        if (strncmp(own, "/sys/class/infiniband/", strlen("/sys/class/infiniband/")) == 0 &&
            strstr(own, "/ports/") != NULL) {
            attach_port_files();
        }
        const char *folder = own != path ? "/proc/self" : "";
        int bytes = snprintf(buffer, WORLD_PATH_BYTES, "%s%s%s", root, folder, own);
        return bytes > 0 && bytes < WORLD_PATH_BYTES ? buffer : path;
    }
    if (strncmp(path, "/proc/", strlen("/proc/")) == 0) {
        return process_redirect(path, buffer);
    }
    size_t shared = sizeof shared_folder - 1;
    if (strncmp(path, shared_folder, shared) == 0 && path[shared] != '\0') {
        const char *shared_path = shared_redirect(path + shared, shared_folder, buffer);
        return shared_path != NULL ? shared_path : path;
    }
    return path;
}

const char *world_path(const char *path, char buffer[WORLD_PATH_BYTES])
{
    return world_path_at(AT_FDCWD, path, buffer);
}

// The folder of a relative path, if what is in it may be the node's. 0: it may not; else the length.
static size_t folder_of(int folder, char text[WORLD_PATH_BYTES])
{
    char link[32];
    snprintf(link, sizeof link, folder == AT_FDCWD ? "/proc/self/cwd" : "/proc/self/fd/%d", folder);
    long bytes = kernel_call(SYS_readlink, (long)(uintptr_t)link, (long)(uintptr_t)text, WORLD_PATH_BYTES - 1, 0, 0, 0);
    if (bytes <= 0 || text[0] != '/') {
        return 0;
    }
    text[bytes] = '\0';
    if (strstr(text, "/sys/class/infiniband") != NULL && strstr(text, ".nodes/") != NULL) {
        attach_port_files();
    }
    static const char *const folders[] = {"/", "/proc", "/dev", "/etc", "/run"};
    bool may = strncmp(text, "/proc/", 6) == 0;
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        may = may || strcmp(text, folders[i]) == 0;
    }
    return may ? (size_t)bytes : 0;
}

// Programs that list a tree open "/" and then paths that are relative to it (hwloc). What they open in the node's folder
// is relative to that.
const char *world_path_at(int folder, const char *path, char buffer[WORLD_PATH_BYTES])
{
    if (path == NULL || path[0] == '\0') {
        return path;
    }
    if (path[0] == '/') {
        return absolute_redirect(path, buffer);
    }
    char whole[WORLD_PATH_BYTES];
    size_t bytes = path[0] != '.' ? folder_of(folder, whole) : 0;
    if (bytes == 0 || bytes + strlen(path) + 2 > sizeof whole) {
        return path;
    }
    (void)snprintf(whole + bytes, sizeof whole - bytes, "%s%s", bytes == 1 ? "" : "/", path);
    return absolute_redirect(whole, buffer) == buffer ? buffer : path;
}

// "/name" or "name", of shared memory and semaphores.
const char *world_shared_name(const char *name, char buffer[WORLD_PATH_BYTES])
{
    const char *bare = name != NULL && name[0] == '/' ? name + 1 : name;
    const char *own = bare != NULL && bare[0] != '\0' ? shared_redirect(bare, "/", buffer) : NULL;
    return own != NULL ? own : name;
}

bool world_path_ends(const char *path, const char *name)
{
    size_t bytes = path != NULL ? strlen(path) : 0, end = strlen(name);
    return bytes >= end && strcmp(path + bytes - end, name) == 0;
}
