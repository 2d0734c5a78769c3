#include "sim/platform/process_memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

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

// proc(5): mappings are in the order of their addresses. Unlike mincore, or a system call that reads the bytes, the
// file shows which memory is writable, and reading it changes nothing.
bool plat_process_memory_exists(pid_t process, uint64_t address, uint64_t bytes, bool writable)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/maps", (int)process);
    FILE *maps = fopen(path, "re");
    if (maps == NULL) {
        return false;
    }
    uint64_t last = address + bytes - 1;
    bool found = false;
    char line[512];
    bool line_begins = true;
    while (!found && fgets(line, sizeof line, maps) != NULL) {
        uint64_t begin, end;
        char rights[5];
        bool is_entry = line_begins && sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s", &begin, &end, rights) == 3;
        line_begins = strchr(line, '\n') != NULL; // names may be longer than the buffer
        if (!is_entry || end <= address) {
            continue;
        }
        if (begin > address || rights[0] != 'r' || (writable && rights[1] != 'w')) {
            break;
        }
        found = last < end;
        address = end;
    }
    fclose(maps);
    return found;
}
