// Tables that programs print, as rows of results.
//
// Knows perftest's tables (bandwidth in MB/sec of 2^20 B, or Gb/sec), those of the OSU micro-benchmarks,
// comma-separated values with a line of names, and lines of so many words. Lines that are none of these are passed
// over. A row needs a time, a bandwidth or a memory; operations are 1 unless printed, the shortest and the longest time
// are the mean unless printed.
#pragma once

#include "sim/report/report.h"

#define REPORT_PRINTED_COLUMNS_MAX 32

// What a number of a line is. In names of `columns:` and of comma-separated values also series, a text.
enum report_printed_field {
    REPORT_PRINTED_NONE, // passed over
    REPORT_PRINTED_SERIES,
    REPORT_PRINTED_BYTES,
    REPORT_PRINTED_DESCRIPTORS,
    REPORT_PRINTED_OPERATIONS,
    REPORT_PRINTED_RANKS,
    REPORT_PRINTED_MEMORY,  // bytes
    REPORT_PRINTED_LATENCY, // us
    REPORT_PRINTED_LATENCY_MIN,
    REPORT_PRINTED_LATENCY_MAX,
    REPORT_PRINTED_BANDWIDTH // of `scale` bytes a microsecond
};

struct report_printed_column {
    enum report_printed_field field;
    double scale;
};

struct report_printed_line {
    struct report_printed_column columns[REPORT_PRINTED_COLUMNS_MAX];
    unsigned count; // 0: no table has begun
};

// The names of `columns:`. NULL: all are known; else the one that is not. SIM_ERR_INVALID with an empty name: none of
// them is a time or a bandwidth, or there are too many.
enum sim_status report_printed_columns(const char *names, struct report_printed_line *line_out,
                                       char wrong_out[SCN_NAME_MAX]);

// Those names, a NULL behind the last.
const char *report_printed_column_name(unsigned index);

// Adds the rows of text to the report. SIM_ERR_NOT_FOUND: it has none. SIM_ERR_INVALID: a row contradicts itself. The
// reason is in error.
enum sim_status report_add_printed(report_t *report, const struct scn_results *results, const char *text, char *error,
                                   size_t error_size);
