// What programs read about devices without libibverbs: a folder for each node with the kernel's files that name the
// devices (Linux, Documentation/ABI/stable/sysfs-class-infiniband), and the device nodes of /dev. TCASIM_SYSFS leads
// programs there (verbs-shim/world/paths.c).
#include <errno.h>
#include <ftw.h>
#include <inttypes.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/attach/internal.h"
#include "sim/attach/node_files.h"
#include "verbs-shim/attach/identity.h"

enum { FOLDERS_OPEN = 16 };

// A character device that every program may open, as for uverbs.
static void device_make(struct attach_tree *tree, unsigned index)
{
    char path[64];
    snprintf(path, sizeof path, "/dev/infiniband/uverbs%u", index);
    attach_tree_link(tree, path, "/dev/null");
}

static void verbs_device_make(struct attach_tree *tree, unsigned index, const char *name)
{
    char verbs[64];
    snprintf(verbs, sizeof verbs, "/sys/class/infiniband_verbs/uverbs%u", index);
    device_make(tree, index);
    attach_tree_write(tree, verbs, "ibdev", "%s\n", name);
    attach_tree_write(tree, verbs, "abi_version", "1\n");
}

// For management datagrams (Linux, Documentation/infiniband/user_mad.rst); the shim opens it (verbs-shim/world/umad.c).
static void management_device_make(struct attach_tree *tree)
{
    attach_tree_link(tree, "/dev/infiniband/umad0", "/dev/null");
    attach_tree_write(tree, "/sys/class/infiniband_mad", "abi_version", "5\n");
    attach_tree_write(tree, "/sys/class/infiniband_mad/umad0", "ibdev", "ibsim0\n");
    attach_tree_write(tree, "/sys/class/infiniband_mad/umad0", "port", "1\n");
}

// 128 bits that depend only on the node's name, as a UUID of version 4 (RFC 4122) or as 32 digits.
static void identity_text(const char *node, bool is_uuid, char text[40])
{
    uint64_t parts[2] = {0x9ae16a3b2f90404fu, 0xcbf29ce484222325u};
    for (const char *at = node; *at != '\0'; at++) {
        parts[0] = (parts[0] ^ (unsigned char)*at) * 0x9e3779b97f4a7c15u;
        parts[1] = (parts[1] ^ (unsigned char)*at) * 0x100000001b3u;
        parts[0] ^= parts[0] >> 29;
    }
    const char *form = is_uuid ? "%08x-%04x-4%03x-a%03x-%012llx" : "%08x%04x4%03xa%03x%012llx";
    snprintf(text, 40, form, (unsigned)(parts[0] >> 32), (unsigned)(parts[0] >> 16 & 0xffff),
             (unsigned)(parts[0] & 0xfff), (unsigned)(parts[1] >> 52), (unsigned long long)(parts[1] & 0xffffffffffff));
}

static void identity_make(struct attach_tree *tree, const char *node)
{
    enum form { UUID, ID, NAME };
    static const struct {
        const char *path;
        enum form form;
    } files[] = {
#define FILE_OF_NODE(path, form) {path, form},
        ATTACH_IDENTITY_FILES(FILE_OF_NODE)
#undef FILE_OF_NODE
    };
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        char path[128], text[40];
        identity_text(node, files[i].form == UUID, text);
        snprintf(path, sizeof path, "%s", files[i].path);
        char *name = strrchr(path, '/');
        *name++ = '\0';
        attach_tree_write(tree, path, name, "%s\n", files[i].form == NAME ? node : text);
    }
}

void attach_sysfs_path(const struct attach_server *server, uint32_t node, char *path_out, size_t bytes)
{
    snprintf(path_out, bytes, "%s/%s", server->scratch.directory, server->scenario->nodes[node].name);
}

// What nodes with the same processor and memory share; made for the first of them.
static void shared_make(struct attach_tree *tree, const struct attach_server *server, uint32_t node, char *path_out,
                        size_t bytes)
{
    const struct scn_host *host = &server->scenario->nodes[node].host;
    snprintf(path_out, bytes, "%s/.host-%u-%" PRIu64, server->scratch.files, (unsigned)host->processor,
             attach_memory_kib(host));
    struct attach_tree shared = {path_out, tree->good};
    if (access(path_out, F_OK) != 0) {
        attach_processor_files_make(&shared, host);
    }
    tree->good = shared.good;
}

static void node_make(struct attach_tree *tree, const struct attach_server *server, uint32_t node)
{
    const struct scn_node *config = &server->scenario->nodes[node];
    char shared[ATTACH_SYSFS_BYTES];
    unsigned index = 0;
    shared_make(tree, server, node, shared, sizeof shared);
    const struct attach_node_facts facts = {server->scenario, node, server->network.address_base, shared};
    attach_node_files_make(tree, &facts);
    identity_make(tree, config->name);
    // In the order of libibverbs' list (verbs-shim/dropin/devices.c).
    if (config->board.given) {
        verbs_device_make(tree, index++, "tca0");
        attach_board_files_make(tree, node, config->name);
    }
    hca_t *hca = plat_machine_backend(server->machine, node)->hca;
    if (hca != NULL) {
        verbs_device_make(tree, index++, "ibsim0");
        attach_hca_files_make(tree, hca, config->name);
        management_device_make(tree);
    }
}

// The files are many and small: in memory they are made ten times as fast as on a disk. A node's folder in the run's
// directory is then a link. The names there begin as those of the run's shared memory, and are removed with it.
static void files_place(struct attach_server *server)
{
    const char *run = strrchr(server->scratch.directory, '/') + 1;
    snprintf(server->scratch.files, sizeof server->scratch.files, "/dev/shm/%s.nodes", run);
    if (mkdir(server->scratch.files, 0700) != 0) {
        snprintf(server->scratch.files, sizeof server->scratch.files, "%s", server->scratch.directory);
    }
}

static void root_make(const struct attach_server *server, uint32_t node, const char *root)
{
    char own[ATTACH_SYSFS_BYTES];
    snprintf(own, sizeof own, "%s/%s", server->scratch.files, server->scenario->nodes[node].name);
    if (strcmp(own, root) != 0 && mkdir(own, 0700) == 0) {
        (void)symlink(own, root); // without it the files are made in the run's directory
    }
}

bool attach_sysfs_make(struct attach_server *server)
{
    bool made = true;
    files_place(server);
    for (uint32_t node = 0; node < server->scenario->node_count && made; node++) {
        char root[ATTACH_SYSFS_BYTES];
        attach_sysfs_path(server, node, root, sizeof root);
        root_make(server, node, root);
        struct attach_tree tree = {root, true};
        node_make(&tree, server, node);
        made = tree.good;
        if (!made) {
            snprintf(server->result->text, sizeof server->result->text, "%s: %s", root, strerror(errno));
        }
    }
    return made;
}

static int entry_remove(const char *path, const struct stat *about, int kind, struct FTW *position)
{
    (void)about, (void)kind, (void)position;
    return remove(path);
}

// What nftw cannot remove: paths that are too long, folders that their owner has closed.
static void force_remove(const char *path)
{
    static char shell[] = "sh", option[] = "-c", script[] = "chmod -R u+rwx -- \"$0\"; exec rm -rf -- \"$0\"";
    char *const argv[] = {shell, option, script, (char *)(uintptr_t)path, NULL};
    static char search[] = "PATH=/usr/bin:/bin";
    char *const env[] = {search, NULL};
    pid_t pid;
    int status;
    struct stat about;
    if (posix_spawn(&pid, "/bin/sh", NULL, NULL, argv, env) == 0) {
        (void)waitpid(pid, &status, 0);
    }
    if (lstat(path, &about) == 0) {
        fprintf(stderr, "tcasim: %s could not be removed\n", path);
    }
}

void attach_folder_remove(const char *path)
{
    struct stat about;
    (void)nftw(path, entry_remove, FOLDERS_OPEN, FTW_DEPTH | FTW_PHYS);
    if (lstat(path, &about) == 0) {
        force_remove(path);
    }
}
