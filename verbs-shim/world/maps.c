#include "verbs-shim/world/maps.h"

#include <fcntl.h>
#include <sys/syscall.h>

#include "verbs-shim/attach/kernel_call.h"

bool world_maps_open(struct world_maps *maps, char *buffer, size_t size)
{
    *maps = (struct world_maps){.buffer = buffer, .size = size};
    maps->fd = kernel_call(SYS_openat, AT_FDCWD, (long)(uintptr_t) "/proc/self/maps", O_RDONLY | O_CLOEXEC, 0, 0, 0);
    return maps->fd >= 0;
}

void world_maps_close(const struct world_maps *maps)
{
    (void)kernel_call(SYS_close, maps->fd, 0, 0, 0, 0, 0);
}

// -1: end of the file.
static int byte_take(struct world_maps *maps)
{
    if (maps->taken == maps->filled) {
        long got = kernel_call(SYS_read, maps->fd, (long)(uintptr_t)maps->buffer, (long)maps->size, 0, 0, 0);
        maps->filled = got > 0 ? (size_t)got : 0;
        maps->taken = 0;
    }
    return maps->taken < maps->filled ? (unsigned char)maps->buffer[maps->taken++] : -1;
}

bool world_maps_line(struct world_maps *maps, char *line, size_t size)
{
    size_t bytes = 0;
    int byte = byte_take(maps);
    bool any = byte >= 0;
    for (; byte >= 0 && byte != '\n'; byte = byte_take(maps)) {
        if (bytes < size - 1) {
            line[bytes++] = (char)byte;
        }
    }
    line[bytes] = '\0';
    return any;
}

static uintptr_t hexadecimal(const char **at)
{
    uintptr_t value = 0;
    for (; (**at >= '0' && **at <= '9') || (**at >= 'a' && **at <= 'f'); (*at)++) {
        value = value << 4 | (uintptr_t)(**at <= '9' ? **at - '0' : **at - 'a' + 10);
    }
    return value;
}

const char *world_maps_range(const char *line, uintptr_t *begin_out, uintptr_t *end_out)
{
    *begin_out = hexadecimal(&line);
    line += *line == '-';
    *end_out = hexadecimal(&line);
    return line;
}
