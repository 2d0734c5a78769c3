// Scenarios in fuzz targets.
#pragma once

#include "fuzz.h"

// Loads the file with a --set or none. What is accepted is written out, loaded again and written again: the same text.
// What is refused has a message; no message has a control character.
void fuzz_scenario_load(const char *path, const char *set);
