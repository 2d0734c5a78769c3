// What programs of a run leave in places that other runs share: temporary files (TMPDIR), and shared memory, whose
// names the world shim begins with the run's (verbs-shim/world/paths.c). Both go with the run.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sim/attach/internal.h"

void attach_scratch_path(const struct attach_server *server, char *path_out, size_t bytes)
{
    snprintf(path_out, bytes, "%s/.tmp", server->directory); // no node is called so
}

bool attach_scratch_make(struct attach_server *server)
{
    char path[ATTACH_SYSFS_BYTES];
    attach_scratch_path(server, path, sizeof path);
    if (mkdir(path, 0700) != 0) {
        snprintf(server->result->text, sizeof server->result->text, "%s: %s", path, strerror(errno));
        return false;
    }
    return true;
}

void attach_scratch_remove(const struct attach_server *server)
{
    char prefix[sizeof server->directory + 1];
    snprintf(prefix, sizeof prefix, "%s.", strrchr(server->directory, '/') + 1);
    DIR *shared = opendir("/dev/shm");
    for (struct dirent *entry = shared != NULL ? readdir(shared) : NULL; entry != NULL; entry = readdir(shared)) {
        // Those of semaphores begin with "sem.".
        const char *name = strncmp(entry->d_name, "sem.", 4) == 0 ? entry->d_name + 4 : entry->d_name;
        if (strncmp(name, prefix, strlen(prefix)) == 0) {
            (void)unlinkat(dirfd(shared), entry->d_name, 0);
        }
    }
    if (shared != NULL) {
        (void)closedir(shared);
    }
    attach_folder_remove(server->directory);
}
