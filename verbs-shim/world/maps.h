// The lines of /proc/self/maps (proc(5)): "BEGIN-END RIGHTS OFFSET DEVICE INODE PATH". Private to the room. Without the C
// library, and without memory of its own, so also for signal handlers.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct world_maps {
    long fd;
    char *buffer; // the caller's
    size_t size, filled, taken;
};

// false: there is no such file. To be closed.
bool world_maps_open(struct world_maps *maps, char *buffer, size_t size);
void world_maps_close(const struct world_maps *maps);
// Takes the next line, of which `line` gets the first size - 1 bytes. false: there are no more.
bool world_maps_line(struct world_maps *maps, char *line, size_t size);
// Takes BEGIN and END from the line. Returns what stands behind them, from the blank before RIGHTS on.
const char *world_maps_range(const char *line, uintptr_t *begin_out, uintptr_t *end_out);
