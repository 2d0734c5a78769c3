// The comparisons of results on the page: the numbers of `tcasim compare`. Private to the room.
#pragma once

#include <stdio.h>

#include "sim/report/page.h"

// Writes a list with the comparison of any two directories of the same name, the earlier one first:
// {"first", "second": positions of the directories, and the members of difference_json_write}
// Directories that cannot be compared, because they are no results of a run, are left out.
void page_differences_write(const struct page_request *request, FILE *out);

// The last part of the path of a directory.
const char *page_directory_name(const char *directory, char *name, size_t size);
