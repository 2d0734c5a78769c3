// Text for terminals and files.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

// The bytes of the character at the start of the text. 0: these bytes are no UTF-8, or no character (U+FFFE, U+FFFF).
size_t sim_text_character(const char *text);

// The character at the start of the text, which is one, is a control character (C0, DEL, C1) or the byte order mark:
// YAML has none of them as they are.
bool sim_text_is_control(const char *text);

// The number of bytes, at most so many, of the whole characters at the start of the text.
size_t sim_text_fit(const char *text, size_t bytes);

// A copy of the text in which control characters stand as escapes (\n, \x1b); those in `kept` stay as they are. The
// caller frees it. NULL: there is no memory.
char *sim_text_printable(const char *text, const char *kept);

// Writes a string in double quotes as JSON and YAML read it: control characters as escapes, a byte that is no UTF-8 as a
// question mark.
void sim_text_quote(FILE *out, const char *text);

// Writes text for a page of the manual, from the beginning of a line: dashes that can be copied, no requests of troff.
void sim_text_manual(FILE *out, const char *text);

#ifdef __cplusplus
}
#endif
