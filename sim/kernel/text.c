#include "sim/kernel/text.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ESCAPE_BYTES = 4 };

// The bytes of the control character at the start of the text. 0: it is another one.
static size_t control_bytes(const unsigned char *at)
{
    bool c1 = at[0] == 0xc2 && at[1] >= 0x80 && at[1] <= 0x9f;
    return c1 ? 2 : at[0] < ' ' || at[0] == 0x7f ? 1 : 0;
}

char *sim_text_printable(const char *text, const char *kept)
{
    char *copy = malloc(ESCAPE_BYTES * strlen(text) + 1), *to = copy;
    for (const unsigned char *at = (const unsigned char *)text; copy != NULL && *at != '\0';) {
        size_t bytes = strchr(kept, *at) != NULL ? 0 : control_bytes(at);
        if (bytes == 0) {
            *to++ = (char)*at++;
        } else if (*at == '\n') {
            to += sprintf(to, "\\n");
            at++;
        } else {
            to += sprintf(to, "\\x%02x", at[bytes - 1]);
            at += bytes;
        }
    }
    if (copy != NULL) {
        *to = '\0';
    }
    return copy;
}
