// Leaves shared memory, a semaphore and a temporary file behind. "make" must find none of them, "find" those that
// another process of its node has made. Prints where the temporary file is.
#include <fcntl.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

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
                (!make || open(path, flags, 0600) >= 0);
    return good ? 0 : 1;
}
