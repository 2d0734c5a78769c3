// What the page needs as JSON: texts, tables, YAML. Private to the room.
#pragma once

#include <stdio.h>

#include "sim/report/table.h"
#include "sim/scenario/tree.h"

// In double quotes, fit for a script element of HTML ('<' is escaped). Bytes that are no UTF-8 become question marks.
void json_text_write(FILE *out, const char *text);

// {"columns":[...],"rows":[[...]]}. Fields that are decimal numbers are numbers, but not
// in columns of names and published values. keep: rows to write; NULL: all.
void json_table_write(FILE *out, const struct table *table, bool (*keep)(const struct table *table, size_t row));

// Mappings, lists, and scalars as texts.
void json_tree_write(FILE *out, const struct scn_tree *tree);
