// A text as lines, for what programs print: any bytes, none of them trusted.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "sim/kernel/status.h"

struct lines_text {
    const char *bytes;
    size_t length;
};

// The next line without its newline; false: no further line. *rest: the text after it.
bool lines_next(struct lines_text *rest, struct lines_text *line_out);

// Writes bytes in readable form: control characters and invalid UTF-8 as \x1b; a tab stays.
void lines_shown_write(FILE *out, struct lines_text text);

// Writes how `printed` differs from `expected`, in the form of `diff -u` with three lines around a change, and at most
// LINES_DIFFERENCE_MAX lines. Writes nothing if they are equal.
#define LINES_DIFFERENCE_MAX 60
void lines_difference_write(FILE *out, struct lines_text expected, struct lines_text printed);

// Writes the last lines of the text, each after the indent.
void lines_tail_write(FILE *out, struct lines_text text, unsigned count, const char *indent);

// The number of bytes of the UTF-8 sequence at the beginning of text, if XML allows it; otherwise 0.
unsigned lines_utf8_length(struct lines_text text);

// Reads a whole file and appends a zero byte that the length does not include; to be freed. SIM_ERR_IO: see errno.
enum sim_status lines_file_read(const char *path, char **bytes_out, size_t *length_out);
