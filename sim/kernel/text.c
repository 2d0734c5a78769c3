#include "sim/kernel/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ESCAPE_BYTES = 4 };

size_t sim_text_character(const char *text)
{
    const unsigned char *at = (const unsigned char *)text;
    size_t bytes = at[0] < 0x80 ? 1 : at[0] >= 0xc2 && at[0] < 0xe0 ? 2 : (at[0] & 0xf0) == 0xe0 ? 3 : 0;
    bytes = at[0] >= 0xf0 && at[0] < 0xf5 ? 4 : bytes;
    for (size_t i = 1; i < bytes; i++) {
        if ((at[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    bool overlong = (at[0] == 0xe0 && at[1] < 0xa0) || (at[0] == 0xf0 && at[1] < 0x90);
    bool beyond = (at[0] == 0xed && at[1] >= 0xa0) || (at[0] == 0xf4 && at[1] >= 0x90); // surrogates, over U+10FFFF
    bool none = at[0] == 0xef && at[1] == 0xbf && at[2] >= 0xbe;
    return overlong || beyond || none ? 0 : bytes;
}

static bool is_c1(const unsigned char *at)
{
    return at[0] == 0xc2 && at[1] >= 0x80 && at[1] < 0xa0;
}

size_t sim_text_fit(const char *text, size_t bytes)
{
    size_t fit = 0;
    while (text[fit] != '\0') {
        size_t length = sim_text_character(text + fit);
        length = length == 0 ? 1 : length; // no character: a byte of its own
        if (fit + length > bytes) {
            break;
        }
        fit += length;
    }
    return fit;
}

bool sim_text_is_control(const char *text)
{
    const unsigned char *at = (const unsigned char *)text;
    bool mark = at[0] == 0xef && at[1] == 0xbb && at[2] == 0xbf;
    return at[0] < ' ' || at[0] == 0x7f || is_c1(at) || mark;
}

// Of a character that sim_text_is_control has found.
static unsigned control_code(const char *text)
{
    const unsigned char *at = (const unsigned char *)text;
    return at[0] == 0xef ? 0xfeff : is_c1(at) ? at[1] : at[0];
}

void sim_text_quote(FILE *out, const char *text)
{
    fputc('"', out);
    while (*text != '\0') {
        size_t bytes = sim_text_character(text);
        if (bytes == 0) {
            fputc('?', out);
        } else if (sim_text_is_control(text)) {
            fprintf(out, "\\u%04x", control_code(text));
        } else {
            fputs(*text == '"' || *text == '\\' ? "\\" : "", out);
            fwrite(text, 1, bytes, out);
        }
        text += bytes > 0 ? bytes : 1;
    }
    fputc('"', out);
}

void sim_text_manual(FILE *out, const char *text)
{
    bool line_begins = true;
    for (; *text != '\0'; text++) {
        if (line_begins && (*text == '.' || *text == '\'')) {
            fputs("\\&", out);
        }
        line_begins = *text == '\n';
        if (*text == '\\') {
            fputs("\\e", out);
        } else if (*text == '-') {
            fputs("\\-", out);
        } else {
            fputc(*text, out);
        }
    }
}

char *sim_text_printable(const char *text, const char *kept)
{
    char *copy = malloc(ESCAPE_BYTES * strlen(text) + 1), *to = copy;
    for (const unsigned char *at = (const unsigned char *)text; copy != NULL && *at != '\0'; at++) {
        bool c1 = is_c1(at), shown = strchr(kept, *at) != NULL || !(*at < ' ' || *at == 0x7f || c1);
        at += c1;
        if (shown) {
            *to++ = (char)*at;
        } else {
            to += *at == '\n' ? sprintf(to, "\\n") : sprintf(to, "\\x%02x", *at);
        }
    }
    if (copy != NULL) {
        *to = '\0';
    }
    return copy;
}
