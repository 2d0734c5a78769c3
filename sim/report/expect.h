// `expect:` after the run: whether each expectation holds, and the difference if it does not.
//
// Numbers come from series (data.csv), from lines that programs printed, or from counters. They are compared with
// bounds of the scenario or with numbers recorded in a baseline file (baseline.h). The whole output of a program is
// compared with a file.
#pragma once

#include <limits.h>

#include "sim/report/report.h"

// One number of it.
struct report_verdict {
    char *series; // of the results; NULL: of the output of a program
    bool holds;
};

struct report_outcome {
    char *name;
    struct report_verdict *verdicts;
    size_t verdict_count;
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

#define REPORT_EXPECT_RECORD    1u // numbers are recorded for the baseline files, not compared with them
#define REPORT_EXPECT_NO_SERIES 2u // skip expectations about series

// Judges all expectations, in the order of the scenario. To be freed, also before it is made again.
void report_outcomes_make(const report_t *report, unsigned flags, struct report_outcomes *outcomes_out);
void report_outcomes_free(struct report_outcomes *outcomes);

// Prints a line for each expectation that does not hold, and its details.
void report_outcomes_print(const struct report_outcomes *outcomes, FILE *out);

// Puts the records into their baseline files, and writes to log what changed. On failure the reason is in error.
enum sim_status report_outcomes_record(const struct report_outcomes *outcomes, const char *scenario, FILE *log,
                                       char *error, size_t error_size);

// The path of a file that an expectation names; it is relative to the scenario's directory. A path that is too long is
// cut, and then not found.
void report_expect_path(const struct scn_scenario *scenario, const char *name, char path[PATH_MAX]);
