// The report of results as a page, with what the page needs of the simulator: presets, rates of links, the paragraphs of
// docs/accuracy.md.
#pragma once

#include "sim/cli/paths.h"
#include "sim/report/page.h"

// A request about so many directories, which must stay valid, as must the paths.
struct page_request cli_page_request(const struct cli_paths *paths, const char *const *directories, size_t count);
