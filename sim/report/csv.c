#include "sim/report/csv.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

void csv_text_write(FILE *out, const char *text)
{
    if (strpbrk(text, ",\"\r\n") == NULL) {
        fputs(text, out);
        return;
    }
    fputc('"', out);
    for (; *text != '\0'; text++) {
        if (*text == '"') {
            fputc('"', out);
        }
        fputc(*text, out);
    }
    fputc('"', out);
}

void csv_micro_write(FILE *out, uint64_t micro)
{
    fprintf(out, "%" PRIu64 ".%06" PRIu64, micro / 1000000, micro % 1000000);
}

// Reads one field: unquotes it in its buffer and terminates it. Returns the character that ended it, which *cursor has
// passed.
static char field_read(char **cursor, char **field)
{
    char *from = *cursor;
    char *to = from;
    bool quoted = false;
    *field = from;
    while (*from != '\0' && (quoted || (*from != ',' && *from != '\n'))) {
        if (*from != '"') {
            *to++ = *from++;
        } else if (quoted && from[1] == '"') {
            *to++ = '"';
            from += 2;
        } else {
            quoted = !quoted;
            from++;
        }
    }
    char end = *from;
    if (end != ',' && to > *field && from[-1] == '\r') { // not one in quotes
        to--;
    }
    *cursor = end == '\0' ? from : from + 1;
    *to = '\0';
    return end;
}

size_t csv_record_read(char **cursor, char **fields, size_t room)
{
    if (**cursor == '\0') {
        return 0;
    }
    size_t count = 0;
    char end = ',';
    while (end == ',') {
        char *field;
        end = field_read(cursor, &field);
        if (count < room) {
            fields[count] = field;
        }
        count++;
    }
    return count;
}
