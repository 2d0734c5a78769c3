#include "verbs-shim/world/text.h"

#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "verbs-shim/attach/kernel_call.h"

// "START-END PERMISSIONS OFFSET DEVICE INODE PATH" (proc(5)); only the first part of each line is kept.
struct maps {
    int fd;
    char buffer[1024];
    size_t filled, taken;
};

// -1: end of the file.
static int maps_byte(struct maps *maps)
{
    if (maps->taken == maps->filled) {
        long got = kernel_call(SYS_read, maps->fd, (long)(uintptr_t)maps->buffer, sizeof maps->buffer, 0, 0, 0);
        maps->filled = got > 0 ? (size_t)got : 0;
        maps->taken = 0;
    }
    return maps->taken < maps->filled ? (unsigned char)maps->buffer[maps->taken++] : -1;
}

enum { LINE_BYTES = 128 };

// false: no more lines.
static bool maps_line(struct maps *maps, char line[LINE_BYTES])
{
    size_t bytes = 0;
    int byte = maps_byte(maps);
    bool any = byte >= 0;
    for (; byte >= 0 && byte != '\n'; byte = maps_byte(maps)) {
        if (bytes < LINE_BYTES - 1) {
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

// After the permissions: is there a file?
static bool has_inode(const char *rest)
{
    for (unsigned fields = 0; fields < 2 && rest != NULL; fields++) { // offset and device
        rest = strchr(rest, ' ');
        rest = rest != NULL ? rest + 1 : NULL;
    }
    return rest != NULL && *rest >= '1' && *rest <= '9';
}

static bool line_fixed(const char *line, uintptr_t at, size_t bytes)
{
    static const char permissions[] = " r-xp ";
    uintptr_t start = hexadecimal(&line);
    line += *line == '-';
    uintptr_t end = hexadecimal(&line);
    size_t length = sizeof permissions - 1;
    return at >= start && at < end && bytes <= end - at && strncmp(line, permissions, length) == 0 &&
           has_inode(line + length);
}

bool world_text_fixed(uintptr_t at, size_t bytes)
{
    struct maps maps = {.fd = (int)kernel_call(SYS_openat, AT_FDCWD, (long)(uintptr_t) "/proc/self/maps",
                                               O_RDONLY | O_CLOEXEC, 0, 0, 0)};
    char line[LINE_BYTES];
    bool fixed = false;
    while (maps.fd >= 0 && !fixed && maps_line(&maps, line)) {
        fixed = line_fixed(line, at, bytes);
    }
    if (maps.fd >= 0) {
        (void)kernel_call(SYS_close, maps.fd, 0, 0, 0, 0, 0);
    }
    return fixed;
}
