// Opens a file that may have been put there by anybody: a FIFO or a device in its place is refused, and nobody waits for
// its other end.
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

// For reading. NULL with errno (EINVAL: it is no regular file). The caller closes it.
static inline FILE *sim_regular_open(const char *path)
{
    struct stat about;
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    int error = fd < 0 ? errno : fstat(fd, &about) != 0 || !S_ISREG(about.st_mode) ? EINVAL : 0;
    FILE *file = error == 0 ? fdopen(fd, "r") : NULL;
    if (file == NULL && fd >= 0) {
        error = error != 0 ? error : errno;
        close(fd);
    }
    errno = error;
    return file;
}
