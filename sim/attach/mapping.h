// What kind of memory a process has at an address, as the kernel reports it: may the simulator cache it while no
// program runs? Valid for an epoch of accesses, in which the process does not run; epoch numbers are not 0. Embedded;
// init and fini are paired.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "sim/platform/process_maps.h"

#define ATTACH_PAGE_BYTES  4096u
#define ATTACH_GROUP_PAGES 16u
#define ATTACH_GROUPS      16u

// In order: a later kind has all properties of the earlier ones.
enum attach_page_kind {
    ATTACH_PAGE_OTHER,   // not in memory, or visible elsewhere as well (shared, or of a file)
    ATTACH_PAGE_PRIVATE, // in memory, and visible nowhere else
    ATTACH_PAGE_ORDINARY // part of anonymous private memory that may be read and written
};

// The kinds of a group of pages, a bit for each page.
struct attach_page_group {
    uint64_t va, epoch;
    uint16_t present, private;
};

struct attach_mapping {
    struct plat_maps maps;
    int pagemap;                      // /proc/PID/pagemap; -1: none
    uint64_t begin_va, end_va, epoch; // the area of the last query
    bool ordinary;                    // that area is ordinary memory
    struct attach_page_group groups[ATTACH_GROUPS];
};

void attach_mapping_init(struct attach_mapping *mapping, pid_t pid);
void attach_mapping_fini(struct attach_mapping *mapping);
// page_va: address of the page's first byte.
enum attach_page_kind attach_mapping_kind(struct attach_mapping *mapping, uint64_t epoch, uint64_t page_va);
