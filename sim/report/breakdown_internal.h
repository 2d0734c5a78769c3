// Shared by breakdown.c (rows and sums) and breakdown_plot.c. No other file includes this.
#pragma once

#include "sim/report/breakdown.h"
#include "sim/scenario/scenario.h"

enum breakdown_part {
    PART_LIBRARY,
    PART_STORES,
    PART_DESCRIPTOR,
    PART_PCIE,
    PART_BOARD,
#define DEVICE(id, ID, name, kind_doc, key_doc) PART_##ID,
#include "sim/scenario/devices.def"
    PART_CABLE,
    PART_MEMORY,
    PART_GPU,
    PART_POLLING,
    PART_REMOTE_LIBRARY,
    PART_OTHER,
    PARTS
};
enum { PS_PER_NS = 1000, PS_PER_US = 1000000 };

extern const char *const breakdown_part_names[PARTS];

struct breakdown_row {
    uint32_t series; // index
    enum breakdown_part part;
    char detail[96], component[96], node[SCN_NAME_MAX];
    uint64_t begin_ps, end_ps; // from the beginning of the measurement
};

struct breakdown_series {
    char name[SCN_NAME_MAX];
    uint64_t bytes, operations, total_ps;
    uint64_t parts_ps[PARTS];
};

struct breakdown {
    struct breakdown_series *series;
    struct breakdown_row *rows;
    uint32_t series_count;
    size_t row_count;
};

// Picoseconds of one operation, rounded to the nearest; for display.
static inline uint64_t breakdown_each_ps(const struct breakdown_series *series, uint64_t ps)
{
    return series->operations == 0 ? ps : (ps + series->operations / 2) / series->operations;
}
bool breakdown_part_used(const breakdown_t *breakdown, enum breakdown_part part);
void breakdown_plot_write(const breakdown_t *breakdown, const char *title, FILE *out);
