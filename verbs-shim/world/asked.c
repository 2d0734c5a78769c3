// Notes what a program asked for and its node has not. The simulator reads the notes at the end of the run, and `exec`
// prints each once (sim/attach/asked.c). It costs no simulated time.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "verbs-shim/attach/identity.h"
#include "verbs-shim/attach/kernel_call.h"
#include "verbs-shim/world/world.h"

void world_asked(const char *what, const char *which)
{
    const char *folder = getenv("TCASIM_SYSFS"), *last = folder != NULL ? strrchr(folder, '/') : NULL;
    char path[WORLD_PATH_BYTES], line[256];
    if (last == NULL) {
        return;
    }
    (void)snprintf(path, sizeof path, "%.*s/" ATTACH_ASKED_FILE, (int)(last - folder), folder);
    (void)snprintf(line, sizeof line - 1, "%s %.128s", what, which);
    for (char *at = line; *at != '\0'; at++) {
        *at = *at >= ' ' && *at <= '~' ? *at : '?';
    }
    size_t bytes = strlen(line);
    line[bytes++] = '\n';
    long fd = kernel_call(SYS_open, (long)(uintptr_t)path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600, 0, 0, 0);
    if (fd >= 0) {
        (void)kernel_call(SYS_write, fd, (long)(uintptr_t)line, (long)bytes, 0, 0, 0);
        (void)kernel_call(SYS_close, fd, 0, 0, 0, 0, 0);
    }
}
