// What a terminal can show: its width and colours. Files and pipes have no width and get no colours, so that their bytes
// depend on nothing outside.
#pragma once

#include <stdbool.h>
#include <stdio.h>

enum sim_colour { SIM_COLOUR_PLAIN, SIM_COLOUR_BOLD, SIM_COLOUR_RED, SIM_COLOUR_GREEN, SIM_COLOUR_YELLOW };

// 0: it is no terminal.
unsigned sim_terminal_columns(FILE *out);

// What switches to the colour; PLAIN ends it. "" without a terminal, with a NO_COLOR in the environment that is not empty
// (no-color.org), without TERM, or with TERM=dumb.
const char *sim_terminal_colour(FILE *out, enum sim_colour colour);
