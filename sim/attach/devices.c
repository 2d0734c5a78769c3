// What programs look for in the file system before they ask libibverbs: for each node a folder with
// /dev/infiniband/uverbsN, a character device as the real one (a link to /dev/null, nobody talks to it), and the
// devices' folders of /sys/class/infiniband. verbs-shim/world leads there (TCASIM_SYSFS).
#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sim/attach/internal.h"

enum { PATH_BYTES = 256, REMOVE_DESCRIPTORS = 8 };

// Folders of a path under the node's, the last one as well.
static void folders_make(const char *root, const char *path)
{
    char full[2 * PATH_BYTES];
    snprintf(full, sizeof full, "%s%s", root, path);
    for (char *end = full + strlen(root) + 1; (end = strchr(end, '/')) != NULL; *end++ = '/') {
        *end = '\0';
        (void)mkdir(full, 0700);
    }
    (void)mkdir(full, 0700);
}

static void file_make(const char *root, const char *path, const char *text)
{
    char full[2 * PATH_BYTES];
    snprintf(full, sizeof full, "%s%s", root, path);
    FILE *file = fopen(full, "we");
    if (file != NULL) {
        fputs(text, file);
        fclose(file);
    }
}

static void device_make(const char *root, unsigned number, const char *name)
{
    char path[PATH_BYTES], link[2 * PATH_BYTES];
    snprintf(link, sizeof link, "%s/dev/infiniband/uverbs%u", root, number);
    (void)!symlink("/dev/null", link);
    snprintf(path, sizeof path, "/sys/class/infiniband/%s/ports/1", name);
    folders_make(root, path);
    snprintf(path, sizeof path, "/sys/class/infiniband/%s/node_type", name);
    file_make(root, path, "1: CA\n");
    snprintf(path, sizeof path, "/sys/class/infiniband/%s/ports/1/link_layer", name);
    file_make(root, path, "InfiniBand\n");
}

void attach_devices_path(const struct attach_server *server, uint32_t node, char *path, size_t bytes)
{
    snprintf(path, bytes, "%s/node%u", server->directory, node);
}

void attach_devices_make(const struct attach_server *server)
{
    char root[PATH_BYTES];
    for (uint32_t i = 0; i < server->scenario->node_count; i++) {
        unsigned number = 0;
        attach_devices_path(server, i, root, sizeof root);
        (void)mkdir(root, 0700);
        folders_make(root, "/dev/infiniband");
        folders_make(root, "/sys/class/infiniband");
        if (server->scenario->nodes[i].board.given) {
            device_make(root, number++, "tca0");
        }
        if (plat_machine_backend(server->machine, i)->hca != NULL) {
            device_make(root, number++, "ibsim0");
        }
    }
}

static int path_remove(const char *path, const struct stat *about, int type, struct FTW *place)
{
    (void)about;
    (void)type;
    (void)place;
    return remove(path);
}

void attach_devices_remove(const struct attach_server *server)
{
    char root[PATH_BYTES];
    for (uint32_t i = 0; i < server->scenario->node_count; i++) {
        attach_devices_path(server, i, root, sizeof root);
        (void)nftw(root, path_remove, REMOVE_DESCRIPTORS, FTW_DEPTH | FTW_PHYS);
    }
}
