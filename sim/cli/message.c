#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "sim/cli/cli.h"
#include "sim/kernel/terminal.h"
#include "sim/kernel/text.h"

void cli_error(const char *format, ...)
{
    char *text = NULL, *shown = NULL;
    va_list args;
    va_start(args, format);
    if (vasprintf(&text, format, args) >= 0) {
        shown = sim_text_printable(text, "\n\t"); // messages may have several lines
        free(text);
    }
    va_end(args);
    fprintf(stderr, "%stcasim:%s %s\n", sim_terminal_colour(stderr, SIM_COLOUR_RED),
            sim_terminal_colour(stderr, SIM_COLOUR_PLAIN), shown != NULL ? shown : format);
    free(shown);
}
