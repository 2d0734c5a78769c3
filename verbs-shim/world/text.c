#include "verbs-shim/world/text.h"

#include <string.h>

#include "verbs-shim/world/maps.h"

enum { LINE_BYTES = 128, BUFFER_BYTES = 1024 };

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
    uintptr_t start, end;
    line = world_maps_range(line, &start, &end);
    size_t length = sizeof permissions - 1;
    return at >= start && at < end && bytes <= end - at && strncmp(line, permissions, length) == 0 &&
           has_inode(line + length);
}

bool world_text_fixed(uintptr_t at, size_t bytes)
{
    char buffer[BUFFER_BYTES], line[LINE_BYTES];
    struct world_maps maps;
    bool fixed = false;
    if (!world_maps_open(&maps, buffer, sizeof buffer)) {
        return false;
    }
    while (!fixed && world_maps_line(&maps, line, sizeof line)) {
        fixed = line_fixed(line, at, bytes);
    }
    world_maps_close(&maps);
    return fixed;
}
