#include "sim/report/lines.h"
#include "sim/kernel/regular_file.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

bool lines_next(struct lines_text *rest, struct lines_text *line_out)
{
    if (rest->length == 0) {
        return false;
    }
    const char *end = memchr(rest->bytes, '\n', rest->length);
    size_t length = end != NULL ? (size_t)(end - rest->bytes) : rest->length;
    *line_out = (struct lines_text){rest->bytes, length};
    length += end != NULL;
    *rest = (struct lines_text){rest->bytes + length, rest->length - length};
    return true;
}

// Checks the smallest code that a sequence of this length may encode, and the ranges that encode no character (Unicode
// 15, table 3-7; XML 1.0, production 2).
static bool is_character(uint32_t code, unsigned length)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    bool surrogate = code >= 0xd800 && code <= 0xdfff;
    return code >= least[length] && code <= 0x10ffff && !surrogate && code != 0xfffe && code != 0xffff;
}

unsigned lines_utf8_length(struct lines_text text)
{
    if (text.length == 0) {
        return 0;
    }
    unsigned char first = (unsigned char)text.bytes[0];
    unsigned length = first < 0x80 ? 1 : first >> 5 == 0x6 ? 2 : first >> 4 == 0xe ? 3 : first >> 3 == 0x1e ? 4 : 0;
    if (length <= 1 || length > text.length) {
        return length == 1 && (first >= ' ' || first == '\t' || first == '\n') && first != 0x7f ? 1 : 0;
    }
    uint32_t code = first & (0x7fu >> length);
    for (unsigned i = 1; i < length; i++) {
        unsigned char next = (unsigned char)text.bytes[i];
        if (next >> 6 != 0x2) {
            return 0;
        }
        code = code << 6 | (next & 0x3fu);
    }
    bool control = code >= 0x80 && code < 0xa0;
    return is_character(code, length) && !control ? length : 0;
}

void lines_shown_write(FILE *out, struct lines_text text)
{
    while (text.length > 0) {
        unsigned length = lines_utf8_length(text);
        if (length == 0 || text.bytes[0] == '\n') {
            fprintf(out, "\\x%02x", (unsigned)(unsigned char)text.bytes[0]);
            length = 1;
        } else {
            (void)fwrite(text.bytes, 1, length, out);
        }
        text.bytes += length;
        text.length -= length;
    }
}

void lines_tail_write(FILE *out, struct lines_text text, unsigned count, const char *indent)
{
    size_t from = text.length > 0 ? text.length - 1 : 0; // a final newline does not begin another line
    for (unsigned lines = 0; from > 0; from--) {
        lines += text.bytes[from - 1] == '\n';
        if (lines == count) {
            break;
        }
    }
    struct lines_text rest = {text.bytes + from, text.length - from}, line;
    while (lines_next(&rest, &line)) {
        fputs(indent, out);
        lines_shown_write(out, line);
        fputc('\n', out);
    }
}

static enum sim_status all_read(FILE *file, char **bytes_out, size_t *length_out)
{
    size_t length = 0, room = 1 << 16, count;
    char *bytes = malloc(room);
    while (bytes != NULL && (count = fread(bytes + length, 1, room - length - 1, file)) > 0) {
        length += count;
        if (room - length == 1) {
            char *grown = realloc(bytes, room *= 2);
            if (grown == NULL) {
                free(bytes);
            }
            bytes = grown;
        }
    }
    if (bytes == NULL || ferror(file) != 0) {
        errno = bytes == NULL ? ENOMEM : errno;
        free(bytes);
        return SIM_ERR_IO;
    }
    bytes[length] = '\0';
    *bytes_out = bytes;
    *length_out = length;
    return SIM_OK;
}

enum sim_status lines_file_read(const char *path, char **bytes_out, size_t *length_out)
{
    struct stat about;
    FILE *file = sim_regular_open(path);
    if (file == NULL) {
        return SIM_ERR_IO;
    }
    enum sim_status status = SIM_ERR_IO;
    if (fstat(fileno(file), &about) == 0 && S_ISDIR(about.st_mode)) {
        errno = EISDIR;
    } else {
        status = all_read(file, bytes_out, length_out);
    }
    int error = errno;
    (void)fclose(file);
    errno = error;
    return status;
}
