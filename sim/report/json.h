// Results as JSON: for the page, and for other programs.
#pragma once

#include <stdio.h>

#include "sim/report/table.h"
#include "sim/scenario/tree.h"

// In double quotes, fit for a script element of HTML ('<' is escaped). Bytes that are no UTF-8 become question marks.
void json_text_write(FILE *out, const char *text);

// {"columns":[...],"rows":[[...]]}. Fields that are decimal numbers are numbers, but not
// in columns of names and published values. keep: rows to write; NULL: all.
void json_table_write(FILE *out, const struct table *table, bool (*keep)(const struct table *table, size_t row));

// Tables of a results directory as one object, for `--json`: {"scenario": scenario, "results": directory, "data":
// {"columns": ..., "rows": ...}, ...}, a member for each of the files, without .csv, that exists. The list ends with NULL.
enum sim_status json_results_print(FILE *out, const char *scenario, const char *directory, const char *const *files,
                                   char *error, size_t error_size);

// Mappings, lists, and scalars as texts.
void json_tree_write(FILE *out, const struct scn_tree *tree);
