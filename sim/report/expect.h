// `expect:` after the run: what was expected, whether it holds, and where not, by how much.
//
// Numbers come from series (data.csv), from lines that programs printed, or from counters. They are held against bounds
// of the scenario or against numbers recorded in a baseline file (baseline.h); what a program printed as a whole is
// held against a file.
#pragma once

#include <limits.h>

#include "sim/report/report.h"

struct report_outcome {
    char *name;
    char *message;         // one line: why it does not hold; NULL: it holds
    char *detail;          // further lines; NULL: none
    unsigned line, column; // of the scenario's file
};

// Numbers for a baseline file.
struct report_record {
    char *path, *name;
    double *numbers;
    size_t count;
};

struct report_outcomes {
    struct report_outcome *items;
    size_t count, failed;
    struct report_record *records;
    size_t record_count;
};

#define REPORT_EXPECT_RECORD    1u // numbers are taken for the baseline files, and not held against them
#define REPORT_EXPECT_NO_SERIES 2u // none of the expectations about series

// All of them judged, in the order of the scenario. To be freed, also before it is made again.
void report_outcomes_make(const report_t *report, unsigned flags, struct report_outcomes *outcomes_out);
void report_outcomes_free(struct report_outcomes *outcomes);

// A line for each that does not hold, and its details.
void report_outcomes_print(const struct report_outcomes *outcomes, FILE *out);

// Puts the records into their baseline files, and says to log what changed. The reason is in error.
enum sim_status report_outcomes_record(const struct report_outcomes *outcomes, const char *scenario, FILE *log,
                                       char *error, size_t error_size);

// The path of a file that an expectation names, which lies beside the scenario. One that does not fit is cut, and then
// not found.
void report_expect_path(const struct scn_scenario *scenario, const char *name, char path[PATH_MAX]);
