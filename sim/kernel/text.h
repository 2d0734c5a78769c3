// Text for terminals.
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

// A copy of the text in which control characters, C1 ones in UTF-8 too, stand as escapes (\n, \x1b); those in `kept` stay as
// they are. The caller frees it. NULL: there is no memory.
char *sim_text_printable(const char *text, const char *kept);

#ifdef __cplusplus
}
#endif
