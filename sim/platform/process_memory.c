#include "sim/platform/process_memory.h"

#include <string.h>

#include "sim/platform/process_maps.h"

static bool memory_read(void *ctx, uint64_t va, void *data, uint32_t bytes)
{
    (void)ctx;
    memcpy(data, (const void *)(uintptr_t)va, bytes);
    return true;
}

static bool memory_write(void *ctx, uint64_t va, const void *data, uint32_t bytes)
{
    (void)ctx;
    memcpy((void *)(uintptr_t)va, data, bytes);
    return true;
}

const struct host_owner_ops plat_process_memory_ops = {.read = memory_read, .write = memory_write};

static bool rights_suffice(void *ctx, const struct plat_map *map)
{
    return map->readable && (map->writable || !*(const bool *)ctx);
}

bool plat_process_memory_exists(pid_t process, uint64_t address, uint64_t bytes, bool writable)
{
    struct plat_maps maps;
    plat_maps_open(&maps, process);
    bool exists = plat_maps_walk(&maps, address, bytes, rights_suffice, &writable);
    plat_maps_close(&maps);
    return exists;
}
