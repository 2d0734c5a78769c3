// Leaves shared memory, a semaphore, a folder and a temporary file. "make" must find none of them, "find" those that
// another process of its node has made. Prints the path of the temporary file.
#include <fcntl.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

// Files and folders by their paths; "make" makes them.
static bool files(bool make, int flags)
{
    char name[] = "/dev/shm/world-scratch-XXXXXX";
    struct stat about;
    if (make) {
        int fd = mkstemp(name);
        bool found = fd >= 0 && strstr(name, "XXXXXX") == NULL && chmod(name, 0400) == 0 && stat(name, &about) == 0;
        if (!found || (about.st_mode & 0777) != 0400 || unlink(name) != 0 ||
            mkdir("/dev/shm/world-scratch-folder", 0700) != 0) {
            return false;
        }
    }
    return open("/dev/shm/world-scratch-folder/file", flags, 0600) >= 0 &&
           truncate("/dev/shm/world-scratch-folder/file", 5) == 0 && rmdir("/dev/shm/world-scratch-folder") != 0;
}

int main(int argc, char **argv)
{
    bool make = argc < 2 || strcmp(argv[1], "find") != 0;
    int flags = O_RDWR | (make ? O_CREAT | O_EXCL : 0);
    char path[256];
    if (make) {
        snprintf(path, sizeof path, "%s/world-scratch-%d", getenv("TMPDIR"), (int)getpid());
        printf("%s\n", path);
    }
    bool good = shm_open("/world-scratch", flags, 0600) >= 0 &&
                sem_open("/world-scratch", flags, 0600, 1) != SEM_FAILED &&
                open("/dev/shm/world-scratch-file", flags, 0600) >= 0 && access("/dev/shm/world-scratch", R_OK) == 0 &&
                files(make, flags) && (!make || open(path, flags, 0600) >= 0);
    return good ? 0 : 1;
}
