// The links of a result for the page: names, kinds and capacities, and a drawing of the fabric. Private to the room.
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "sim/report/page.h"

// Writes `,"links":[{"name","ends","kind","what","capacity_GBps"}],"drawing":"<svg ...>"` for the scenario in resolved.yaml,
// or of a sweep `,"values":[{"links","drawing","value"}]` for each of its points. False, and nothing is written: there is no
// resolved.yaml, or this version cannot read it.
bool page_links_write(const struct page_request *request, const char *directory, FILE *out);
