// A text as lines, for what programs print: any bytes, of which nothing is believed.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "sim/kernel/status.h"

struct lines_text {
    const char *bytes;
    size_t length;
};

// The next line without its newline; false: there is none. *rest: what follows it.
bool lines_next(struct lines_text *rest, struct lines_text *line_out);

// Bytes as people may read them: control characters and what is no UTF-8 as \x1b, a tab stays.
void lines_shown_write(FILE *out, struct lines_text text);

// How `printed` differs from `expected`, in the form of `diff -u` with three lines around a change, and at most
// LINES_DIFFERENCE_MAX lines in all. Nothing where they are equal.
#define LINES_DIFFERENCE_MAX 60
void lines_difference_write(FILE *out, struct lines_text expected, struct lines_text printed);

// The last lines of it, each behind the indent.
void lines_tail_write(FILE *out, struct lines_text text, unsigned count, const char *indent);

// The number of bytes of the UTF-8 sequence at the beginning of text, one that XML allows; 0: there is none.
unsigned lines_utf8_length(struct lines_text text);

// A whole file, with a zero byte behind it that is not in the length; to be freed. SIM_ERR_IO: errno says why.
enum sim_status lines_file_read(const char *path, char **bytes_out, size_t *length_out);
