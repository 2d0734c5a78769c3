// Comma-separated values as in RFC 4180, but with bare newlines between records.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

// Writes one field, quoted only if necessary.
void csv_text_write(FILE *out, const char *text);

// Writes millionths as a decimal number with exactly six decimals.
void csv_micro_write(FILE *out, uint64_t micro);

// Splits the record at *cursor, which it modifies, and moves *cursor after it. Returns the number of fields, of which
// the first `room` are stored; 0 at the end of the text.
size_t csv_record_read(char **cursor, char **fields, size_t room);
