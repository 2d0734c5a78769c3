// Which operations `exec --explain` explains: "send 4 KiB #100 qp 5"; every word is optional. "#1..40" selects
// each of several.
#pragma once

#include "sim/observe/observe.h"

// Is the word the beginning of a selection?
bool cli_selection_is(const char *word);
// false: printed why. An empty text selects all.
bool cli_selection_parse(const char *text, struct observe_selection *select_out);
