// What is usually wrong where the YAML library stops: its problems in the words of someone who writes a scenario.
#pragma once

#include <stddef.h>

// problem, context: of the library; context may be NULL. at: the text from where it stopped, to its end. NULL: nothing
// better is known.
const char *scn_yaml_hint(const char *problem, const char *context, const char *at, size_t length);
