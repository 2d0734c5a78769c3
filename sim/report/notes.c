#include "sim/report/notes.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "sim/kernel/regular_file.h"
#include "sim/report/json.h"

enum { ID_LENGTH = 3, NOTES_MAX = 256, PARAGRAPH_MAX = 4096 };

struct note {
    char id[ID_LENGTH + 1];
    char *text; // owned by the first note of a paragraph
    bool owner;
};

struct notes {
    struct note items[NOTES_MAX];
    size_t count;
};

static bool is_id(const char *text)
{
    return isupper((unsigned char)text[0]) && isdigit((unsigned char)text[1]) && isdigit((unsigned char)text[2]) &&
           !isalnum((unsigned char)text[3]);
}

static void note_add(struct notes *notes, char letter, int number, char *text)
{
    if (notes->count < NOTES_MAX && number >= 0 && number < 100) {
        struct note *note = &notes->items[notes->count++];
        *note = (struct note){.text = text};
        snprintf(note->id, sizeof note->id, "%c%02d", letter, number);
    }
}

// The ids in the bold beginning, "S26 to S28" as all three. Returns whether there are any.
static bool ids_add(struct notes *notes, const char *lead, size_t length, char *text)
{
    size_t before = notes->count;
    const char *end = lead + length;
    int from = -1;
    for (const char *at = lead; at + ID_LENGTH <= end; at++) {
        if (!is_id(at) || (at > lead && isalnum((unsigned char)at[-1]))) {
            continue;
        }
        int number = atoi(at + 1);
        bool range = from >= 0 && at - lead >= 4 && strncmp(at - 4, " to ", 4) == 0;
        for (int i = range ? from + 1 : number; i <= number; i++) {
            note_add(notes, at[0], i, text);
        }
        from = number;
    }
    if (notes->count > before) {
        notes->items[before].owner = true;
    }
    return notes->count > before;
}

static void paragraph_take(struct notes *notes, char *paragraph)
{
    const char *bold_end = strncmp(paragraph, "**", 2) == 0 ? strstr(paragraph + 2, "**") : NULL;
    if (bold_end == NULL) {
        return;
    }
    char *text = strdup(paragraph);
    if (text == NULL) {
        return;
    }
    char *to = text; // without the marks of bold type
    for (const char *from = text; *from != '\0'; from++) {
        if (strncmp(from, "**", 2) == 0) {
            from++;
        } else {
            *to++ = *from;
        }
    }
    *to = '\0';
    if (!ids_add(notes, paragraph + 2, (size_t)(bold_end - paragraph - 2), text)) {
        free(text);
    }
}

static void document_read(struct notes *notes, FILE *file)
{
    char line[1024], paragraph[PARAGRAPH_MAX] = "";
    size_t length = 0;
    while (fgets(line, sizeof line, file) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        if (line[0] == '\0' || strncmp(line, "**", 2) == 0) {
            paragraph_take(notes, paragraph);
            length = 0;
            paragraph[0] = '\0';
        }
        int added = line[0] != '\0'
                        ? snprintf(paragraph + length, sizeof paragraph - length, "%s%s", length > 0 ? " " : "", line)
                        : 0;
        length += (size_t)added; // beyond the paragraph: it is cut there
        length = length < sizeof paragraph ? length : sizeof paragraph - 1;
    }
    paragraph_take(notes, paragraph);
}

void notes_write(const char *path, FILE *out)
{
    struct notes notes = {0};
    FILE *file = path != NULL ? sim_regular_open(path) : NULL;
    if (file != NULL) {
        document_read(&notes, file);
        (void)fclose(file);
    }
    fputc('{', out);
    bool first = true;
    for (size_t i = 0; i < notes.count; i++) {
        bool seen = false;
        for (size_t k = 0; k < i; k++) {
            seen = seen || strcmp(notes.items[k].id, notes.items[i].id) == 0;
        }
        if (seen) {
            continue;
        }
        fprintf(out, "%s\"%s\":[", first ? "" : ",", notes.items[i].id);
        first = false;
        for (size_t k = i; k < notes.count; k++) {
            if (strcmp(notes.items[k].id, notes.items[i].id) == 0) {
                fputs(k > i ? "," : "", out);
                json_text_write(out, notes.items[k].text);
            }
        }
        fputc(']', out);
    }
    fputc('}', out);
    for (size_t i = 0; i < notes.count; i++) {
        free(notes.items[i].owner ? notes.items[i].text : NULL);
    }
}
