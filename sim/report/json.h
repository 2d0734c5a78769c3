// Results as JSON: for the page, and for other programs.
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "sim/report/table.h"

// In double quotes, fit for a script element of HTML ('<' is escaped). Bytes that are no UTF-8 become question marks.
void json_text_write(FILE *out, const char *text);

// {"columns":[...],"rows":[[...]]}. Fields that are decimal numbers are numbers, but not
// in columns of names and published values. keep: rows to write; NULL: all.
void json_table_write(FILE *out, const struct table *table, bool (*keep)(const struct table *table, size_t row));

// Files of a results directory as one object, for `--json`: {"scenario": scenario, "results": directory, "data":
// {"columns": ..., "rows": ...}, ...}, a member for each of the files that exists, named without its ending: a table
// (.csv), or mappings and lists (.yaml), whose decimal numbers are numbers. The list ends with NULL.
enum sim_status json_results_print(FILE *out, const char *scenario, const char *directory, const char *const *files,
                                   char *error, size_t error_size);

// A YAML file that tcasim has written: mappings, lists, and scalars as texts; numbers: decimal ones as numbers.
// SIM_ERR_NOT_FOUND: there is no such file. SIM_ERR_INVALID: it is something else; the reason is in error. Nothing is
// written then.
enum sim_status json_yaml_write(FILE *out, const char *path, bool numbers, char *error, size_t error_size);
