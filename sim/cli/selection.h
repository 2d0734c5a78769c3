// Which operations `exec --explain` is to explain: "send 4 KiB #100 qp 5", each word or none of them.
#pragma once

#include "sim/observe/observe.h"

// Does a word of the command line begin a selection?
bool cli_selection_is(const char *word);
// false: said why. An empty text: all.
bool cli_selection_parse(const char *text, struct observe_selection *select_out);
