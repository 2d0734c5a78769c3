#include "sim/platform/process_maps.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

// --- by question ----------------------------------------------------------------------------------------------------

// Linux 6.11 and later, include/uapi/linux/fs.h; Debian 12's headers are older.
struct procmap_query {
    uint64_t size, query_flags, query_addr;
    uint64_t vma_start, vma_end, vma_flags, vma_page_size, vma_offset, inode;
    uint32_t dev_major, dev_minor, vma_name_size, build_id_size;
    uint64_t vma_name_addr, build_id_addr;
};
#define QUERY _IOWR('f', 17, struct procmap_query)
enum vma_flag { VMA_READABLE = 1, VMA_WRITABLE = 2, VMA_SHARED = 8 };

static uint64_t device_of(unsigned major, unsigned minor)
{
    return (uint64_t)major << 32 | minor;
}

bool plat_maps_ask(const struct plat_maps *maps, uint64_t address, struct plat_map *map_out)
{
    struct procmap_query query = {.size = sizeof query, .query_addr = address};
    if (!maps->answered || ioctl(maps->fd, QUERY, &query) != 0) {
        return false;
    }
    *map_out = (struct plat_map){.begin = query.vma_start,
                                 .end = query.vma_end,
                                 .readable = (query.vma_flags & VMA_READABLE) != 0,
                                 .writable = (query.vma_flags & VMA_WRITABLE) != 0,
                                 .shared = (query.vma_flags & VMA_SHARED) != 0,
                                 .device = device_of(query.dev_major, query.dev_minor),
                                 .inode = query.inode,
                                 .offset = query.vma_offset};
    return true;
}

void plat_maps_open(struct plat_maps *maps, pid_t process)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/maps", (int)process);
    maps->fd = open(path, O_RDONLY | O_CLOEXEC);
    struct procmap_query query = {.size = sizeof query};
    maps->answered = maps->fd >= 0 && (ioctl(maps->fd, QUERY, &query) == 0 || errno == ENOENT);
}

void plat_maps_close(struct plat_maps *maps)
{
    if (maps->fd >= 0) {
        close(maps->fd);
    }
}

// --- as text --------------------------------------------------------------------------------------------------------

// A line of proc(5), up to the name, which may have any length and any text.
static bool line_read(FILE *text, struct plat_map *map)
{
    char line[512], rights[5];
    unsigned major, minor;
    if (fgets(line, sizeof line, text) == NULL) {
        return false;
    }
    bool known = sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64, &map->begin, &map->end, rights,
                        &map->offset, &major, &minor, &map->inode) == 7;
    for (bool ended = strchr(line, '\n') != NULL; !ended; ended = strchr(line, '\n') != NULL) {
        if (fgets(line, sizeof line, text) == NULL) {
            break;
        }
    }
    map->readable = known && rights[0] == 'r';
    map->writable = known && rights[1] == 'w';
    map->shared = known && rights[3] == 's';
    map->device = known ? device_of(major, minor) : 0;
    return known;
}

// The mappings come one after the other. NULL: none come.
static FILE *text_open(const struct plat_maps *maps)
{
    int fd = maps->fd >= 0 ? fcntl(maps->fd, F_DUPFD_CLOEXEC, 0) : -1;
    FILE *text = fd >= 0 ? fdopen(fd, "r") : NULL;
    if (text != NULL) {
        rewind(text);
    } else if (fd >= 0) {
        close(fd);
    }
    return text;
}

static bool text_find(FILE *text, uint64_t address, struct plat_map *map_out)
{
    bool found = false;
    while (!found && line_read(text, map_out)) {
        found = map_out->end > address;
    }
    return found && map_out->begin <= address;
}

bool plat_maps_walk(const struct plat_maps *maps, uint64_t address, uint64_t bytes, plat_map_take_fn take, void *ctx)
{
    FILE *text = maps->answered ? NULL : text_open(maps);
    uint64_t last = address + bytes - 1;
    struct plat_map map;
    bool all = false, more = bytes == 0 || last >= address;
    while (more && !all) {
        more = (text != NULL ? text_find(text, address, &map) : plat_maps_ask(maps, address, &map)) && take(ctx, &map);
        all = more && last < map.end;
        address = map.end;
    }
    if (text != NULL) {
        (void)fclose(text);
    }
    return all;
}
