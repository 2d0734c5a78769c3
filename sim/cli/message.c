#include <stdarg.h>
#include <stdio.h>

#include "sim/cli/cli.h"

void cli_error(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("tcasim: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
}
