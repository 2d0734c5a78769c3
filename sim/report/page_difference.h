// The comparisons of results on the page: the numbers of `tcasim compare`. Private to the room.
#pragma once

#include <stdio.h>

#include "sim/report/page.h"

// Writes a list with the comparison of any two directories of the same name, the earlier one first:
//   {"first", "second"         positions of the directories
//    "resolved"                whether both have a resolved.yaml, whose "keys" are compared
//    "keys"                    [key, value, value], those that differ; null: there is none
//    "rows", "counters"        {"columns", "rows"}; of counters only those that are not equal
//    "numbers"}                how many numbers were compared, with the equal counters
// The percentage is null if only one directory has the number, and a text if it is infinite. Directories that cannot be
// compared, because they are no results of a run, are left out.
void page_differences_write(const struct page_request *request, FILE *out);

// The last part of the path of a directory.
const char *page_directory_name(const char *directory, char *name, size_t size);
