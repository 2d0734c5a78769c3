// Tables that programs print, as rows of results.
//
// Supported: perftest's tables (bandwidth in MB/sec of 2^20 B, or Gb/sec), those of the OSU micro-benchmarks,
// comma-separated values with a line of names, and lines with a fixed number of words. Other lines are ignored. A row
// needs a time, a bandwidth or a memory. Values that are not printed have defaults: operations are 1, the shortest and
// the longest time are the mean.
#pragma once

#include "sim/report/report.h"

#define REPORT_PRINTED_COLUMNS_MAX 32

// The meaning of a number of a line. In `columns:` and in comma-separated values a name may also be series, a text.
enum report_printed_field {
    REPORT_PRINTED_NONE, // ignored
    REPORT_PRINTED_SERIES,
    REPORT_PRINTED_BYTES,
    REPORT_PRINTED_DESCRIPTORS,
    REPORT_PRINTED_OPERATIONS,
    REPORT_PRINTED_RANKS,
    REPORT_PRINTED_MEMORY,  // bytes
    REPORT_PRINTED_LATENCY, // us
    REPORT_PRINTED_LATENCY_MIN,
    REPORT_PRINTED_LATENCY_MAX,
    REPORT_PRINTED_BANDWIDTH // of `scale` bytes per microsecond
};

struct report_printed_column {
    enum report_printed_field field;
    double scale;
};

struct report_printed_line {
    struct report_printed_column columns[REPORT_PRINTED_COLUMNS_MAX];
    unsigned count; // 0: outside of a table
};

// Parses the names of `columns:`. wrong_out: the unknown name, empty if all are known. SIM_ERR_INVALID with an empty
// name: none of them is a time, a bandwidth or a memory, or there are too many.
enum sim_status report_printed_columns(const char *names, struct report_printed_line *line_out,
                                       char wrong_out[SCN_NAME_MAX]);

// The possible names; NULL after the last.
const char *report_printed_column_name(unsigned index);

// Adds the rows of text to the report. SIM_ERR_NOT_FOUND: there are no rows. SIM_ERR_INVALID: a row contradicts itself.
// The reason is in error.
enum sim_status report_add_printed(report_t *report, const struct scn_results *results, const char *text, char *error,
                                   size_t error_size);
