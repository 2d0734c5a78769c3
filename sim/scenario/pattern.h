// Extended regular expressions of scenarios (`match:`), which are not trusted: the library's compiler copies what is
// repeated, so that some forty characters would take all memory.
#pragma once

#include <regex.h>
#include <stdbool.h>

#include "sim/scenario/units.h"

// Compiles it, with REG_EXTENDED. False: why is the reason, and there is nothing to free. Refused besides mistakes: more
// than SCN_PATTERN_PARTS_MAX parts when repetitions are written out, and references to groups, whose search may take for
// ever.
#define SCN_PATTERN_PARTS_MAX 500u
bool scn_pattern_compile(const char *text, regex_t *pattern_out, char why[SCN_WHY_MAX]);
