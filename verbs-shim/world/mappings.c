#include "verbs-shim/world/mappings.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "verbs-shim/attach/kernel_call.h"
#include "verbs-shim/world/maps.h"

enum { MAPS_BYTES = 16384, LINE_BYTES = 512, PIECES_MAX = 4096, NAME_BYTES = 4096 };
#define MAPPED_BYTES_MAX (UINT64_C(1) << 30) // changing the protection of more takes too long

static void mapping_add(struct world_mappings *mappings, const struct world_mapping *mapping, const char *name)
{
    if (strstr(name, "memfd:tcasim") != NULL || strstr(name, "[perf_event]") != NULL) { // breakpoints of --check
        return;
    }
    struct world_mapping *last = mappings->count > 0 ? &mappings->list[mappings->count - 1] : NULL;
    mappings->writable = mappings->writable || (mapping->protection & PROT_WRITE) != 0;
    mappings->bytes += mapping->end - mapping->begin;
    mappings->pieces++;
    if (last != NULL && last->end == mapping->begin && last->protection == mapping->protection) {
        last->end = mapping->end;
    } else if (mappings->count < WORLD_MAPPINGS_MAX) {
        mappings->list[mappings->count++] = *mapping;
    } else {
        mappings->pieces = PIECES_MAX;
    }
}

// --- by question ----------------------------------------------------------------------------------------------------

// Linux 6.11: struct procmap_query and PROCMAP_QUERY of <linux/fs.h>, which older systems do not have.
struct procmap_query {
    uint64_t size, flags, address;
    uint64_t begin, end, rights, page_bytes, offset, inode;
    uint32_t major, minor;
    uint32_t name_bytes, build_id_bytes;
    uint64_t name, build_id;
};
#define QUERY _IOWR('f', 17, struct procmap_query)
enum { READABLE = 1, WRITABLE = 2, EXECUTABLE = 4, SHARED = 8, THIS_OR_NEXT = 16 };

// The kernel passes over all other mappings; a rank of MPI has some six hundred.
static bool mappings_query(struct world_mappings *mappings)
{
    static char name[NAME_BYTES];
    static bool unknown; // the kernel is older
    struct procmap_query query = {.size = sizeof query, .flags = READABLE | SHARED | THIS_OR_NEXT};
    struct world_maps maps;
    long result = 0;
    if (unknown || !world_maps_open(&maps, NULL, 0)) {
        return false;
    }
    for (;;) {
        query.name = (uintptr_t)name;
        query.name_bytes = sizeof name;
        name[0] = '\0'; // memory without a file
        result = kernel_call(SYS_ioctl, maps.fd, (long)QUERY, (long)(uintptr_t)&query, 0, 0, 0);
        if (result != 0) {
            break;
        }
        const struct world_mapping mapping = {.begin = query.begin,
                                              .end = query.end,
                                              .protection = PROT_READ |
                                                            ((query.rights & WRITABLE) != 0 ? PROT_WRITE : 0) |
                                                            ((query.rights & EXECUTABLE) != 0 ? PROT_EXEC : 0)};
        mapping_add(mappings, &mapping, name);
        query.address = query.end;
    }
    world_maps_close(&maps);
    unknown = result == -ENOTTY;
    return result == -ENOENT;
}

// --- as text --------------------------------------------------------------------------------------------------------

typedef void (*line_fn)(void *ctx, const char *line);

static void line_take(void *ctx, const char *line)
{
    struct world_mapping mapping;
    line = world_maps_range(line, &mapping.begin, &mapping.end);
    if (line[0] == ' ' && line[4] == 's' && line[1] == 'r') {
        mapping.protection = PROT_READ | (line[2] == 'w' ? PROT_WRITE : 0) | (line[3] == 'x' ? PROT_EXEC : 0);
        mapping_add(ctx, &mapping, line);
    }
}

// If spin.c interrupted this (world_shared_busy), its own check would start it again.
static bool lines_read(line_fn take, void *ctx)
{
    static char text[MAPS_BYTES];
    char line[LINE_BYTES];
    struct world_maps maps;
    if (!world_maps_open(&maps, text, sizeof text)) {
        return false;
    }
    while (world_maps_line(&maps, line, sizeof line)) {
        take(ctx, line);
    }
    world_maps_close(&maps);
    return true;
}

bool world_mappings_read(struct world_mappings *mappings)
{
    *mappings = (struct world_mappings){0};
    return lines_read(line_take, mappings);
}

bool world_mappings_find(struct world_mappings *mappings)
{
    *mappings = (struct world_mappings){0};
    bool known = mappings_query(mappings) || world_mappings_read(mappings);
    return known && mappings->count > 0 && mappings->pieces < PIECES_MAX && mappings->bytes <= MAPPED_BYTES_MAX;
}

// --- rights ---------------------------------------------------------------------------------------------------------

bool world_mapping_rights_set(const struct world_mapping *mapping, int protection)
{
    return kernel_call(SYS_mprotect, (long)mapping->begin, (long)(mapping->end - mapping->begin), protection, 0, 0,
                       0) == 0;
}

static void line_give_back(void *ctx, const char *line)
{
    const struct world_mappings *mappings = ctx;
    struct world_mapping piece;
    line = world_maps_range(line, &piece.begin, &piece.end);
    for (unsigned i = 0; i < mappings->count && strncmp(line, " ---s", 5) == 0; i++) {
        const struct world_mapping *mapping = &mappings->list[i];
        if (piece.begin >= mapping->begin && piece.end <= mapping->end) {
            (void)world_mapping_rights_set(&piece, mapping->protection);
        }
    }
}

void world_mappings_rights_restore(const struct world_mappings *mappings)
{
    bool all = true;
    for (unsigned i = 0; i < mappings->count; i++) {
        all = world_mapping_rights_set(&mappings->list[i], mappings->list[i].protection) && all;
    }
    if (!all) { // a part was unmapped meanwhile: piece by piece
        (void)lines_read(line_give_back, (void *)mappings);
    }
}
