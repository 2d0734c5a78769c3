// What programs read about devices without libibverbs: a folder for each node with the kernel's files that name the
// devices (Linux, Documentation/ABI/stable/sysfs-class-infiniband), and the device nodes of /dev. TCASIM_SYSFS leads
// programs there (verbs-shim/world/paths.c).
#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sim/attach/internal.h"
#include "verbs-shim/attach/identity.h"

enum { PATH_BYTES = 512, FOLDERS_OPEN = 16 };

// Makes all folders that contain the path.
static bool folders_make(char *path)
{
    for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        bool made = mkdir(path, 0700) == 0 || errno == EEXIST;
        *slash = '/';
        if (!made) {
            return false;
        }
    }
    return true;
}

static bool file_make(const char *root, const char *folder, const char *name, const char *text)
{
    char path[PATH_BYTES + 64];
    snprintf(path, sizeof path, "%s%s/%s", root, folder, name);
    FILE *file = folders_make(path) ? fopen(path, "we") : NULL;
    return file != NULL && (fprintf(file, "%s\n", text) > 0) == (fclose(file) == 0);
}

// A character device that every program may open, as for uverbs.
static bool device_make(const char *root, unsigned index)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/dev/infiniband/uverbs%u", root, index);
    return folders_make(path) && symlink("/dev/null", path) == 0;
}

static bool verbs_device_make(const char *root, unsigned index, const char *name)
{
    char verbs[64], class[64], port[80];
    snprintf(verbs, sizeof verbs, "/sys/class/infiniband_verbs/uverbs%u", index);
    snprintf(class, sizeof class, "/sys/class/infiniband/%s", name);
    snprintf(port, sizeof port, "%s/ports/1", class);
    return device_make(root, index) && file_make(root, verbs, "ibdev", name) &&
           file_make(root, verbs, "abi_version", "1") && file_make(root, class, "node_type", "1: CA") &&
           file_make(root, port, "link_layer", "InfiniBand");
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

static bool identity_make(const char *root, const char *node)
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
    bool made = true;
    for (size_t i = 0; i < sizeof files / sizeof files[0] && made; i++) {
        char path[128], text[40];
        identity_text(node, files[i].form == UUID, text);
        snprintf(path, sizeof path, "%s", files[i].path);
        char *name = strrchr(path, '/');
        *name++ = '\0';
        made = file_make(root, path, name, files[i].form == NAME ? node : text);
    }
    return made;
}

void attach_sysfs_path(const struct attach_server *server, uint32_t node, char *path_out, size_t bytes)
{
    snprintf(path_out, bytes, "%s/%s", server->scratch.directory, server->scenario->nodes[node].name);
}

// In the order of libibverbs' list (verbs-shim/dropin/devices.c).
bool attach_sysfs_make(struct attach_server *server)
{
    for (uint32_t node = 0; node < server->scenario->node_count; node++) {
        char root[ATTACH_SYSFS_BYTES];
        unsigned index = 0;
        attach_sysfs_path(server, node, root, sizeof root);
        bool made = identity_make(root, server->scenario->nodes[node].name);
        if (server->scenario->nodes[node].board.given) {
            made = made && verbs_device_make(root, index++, "tca0");
        }
        if (plat_machine_backend(server->machine, node)->hca != NULL) {
            made = made && verbs_device_make(root, index++, "ibsim0");
        }
        if (!made) {
            snprintf(server->result->text, sizeof server->result->text, "%s: %s", root, strerror(errno));
            return false;
        }
    }
    return true;
}

static int entry_remove(const char *path, const struct stat *about, int kind, struct FTW *position)
{
    (void)about, (void)kind, (void)position;
    return remove(path);
}

void attach_folder_remove(const char *path)
{
    (void)nftw(path, entry_remove, FOLDERS_OPEN, FTW_DEPTH | FTW_PHYS);
}
