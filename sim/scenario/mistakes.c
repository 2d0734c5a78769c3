#include "sim/scenario/mistakes.h"

#include <stdlib.h>
#include <string.h>

#include "sim/kernel/status.h"
#include "sim/kernel/text.h"

struct scn_mistake {
    struct scn_mistake *older;
    struct scn_location location;
    size_t number;
    const char *text;
};

static void put(struct scn_mistakes *mistakes, struct scn_location location, const char *text)
{
    struct scn_mistake *mistake = scn_arena_alloc(mistakes->arena, sizeof *mistake);
    *mistake = (struct scn_mistake){
        .older = mistakes->newest, .location = location, .number = mistakes->count + mistakes->warnings, .text = text};
    mistakes->newest = mistake;
}

void scn_mistakes_add(struct scn_mistakes *mistakes, struct scn_location location, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    put(mistakes, location, scn_arena_vformat(mistakes->arena, format, args));
    va_end(args);
    mistakes->count++;
}

void scn_mistakes_warn(struct scn_mistakes *mistakes, struct scn_location location, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const char *text = scn_arena_vformat(mistakes->arena, format, args);
    va_end(args);
    put(mistakes, location, scn_arena_format(mistakes->arena, "warning: %s", text));
    mistakes->warnings++;
}

char *scn_location_text(struct scn_arena *arena, struct scn_location location)
{
    if (location.line == 0 || location.file->is_argument) {
        return scn_arena_format(arena, "%s", location.file->name);
    }
    return scn_arena_format(arena, "%s:%u:%u", location.file->name, location.line, location.column);
}

static int order(unsigned long a, unsigned long b)
{
    return (a > b) - (a < b);
}

static int compare(const void *left, const void *right)
{
    const struct scn_mistake *a = *(struct scn_mistake *const *)left;
    const struct scn_mistake *b = *(struct scn_mistake *const *)right;
    int result = order(a->location.file->rank, b->location.file->rank);
    result = result != 0 ? result : order(a->location.line, b->location.line);
    result = result != 0 ? result : order(a->location.column, b->location.column);
    return result != 0 ? result : order(a->number, b->number);
}

// The line goes to a terminal and has parts that the file or the command line chose.
static char *line_new(const char *location, const char *text)
{
    size_t size = strlen(location) + strlen(text) + 3;
    char *line = calloc(1, size), *shown = NULL;
    if (line != NULL) {
        snprintf(line, size, "%s: %s", location, text);
        shown = sim_text_printable(line, "");
    }
    if (shown == NULL) {
        sim_panic("scenario", "no memory for %zu bytes", size);
    }
    free(line);
    return shown;
}

static void line_add(struct scn_messages *messages, char *line)
{
    for (size_t i = 0; i < messages->count; i++) {
        if (strcmp(messages->lines[i], line) == 0) {
            free(line);
            return;
        }
    }
    messages->lines[messages->count++] = line;
}

void scn_mistakes_export(const struct scn_mistakes *mistakes, struct scn_messages *messages)
{
    struct scn_mistake **sorted =
        scn_arena_alloc(mistakes->arena, (mistakes->count + mistakes->warnings + 1) * sizeof(void *));
    size_t count = 0;
    for (struct scn_mistake *mistake = mistakes->newest; mistake != NULL; mistake = mistake->older) {
        sorted[count++] = mistake;
    }
    qsort(sorted, count, sizeof *sorted, compare);

    messages->lines = calloc(SCN_MISTAKES_SHOWN_MAX + 1, sizeof(char *));
    if (messages->lines == NULL) {
        sim_panic("scenario", "no memory for messages");
    }
    size_t shown = 0;
    while (shown < count && messages->count < SCN_MISTAKES_SHOWN_MAX) {
        line_add(messages, line_new(scn_location_text(mistakes->arena, sorted[shown]->location), sorted[shown]->text));
        shown++;
    }
    if (shown < count) {
        const char *rest = scn_arena_format(mistakes->arena, "and %zu more", count - shown);
        line_add(messages, line_new(sorted[shown]->location.file->name, rest));
    }
}

void scn_messages_free(struct scn_messages *messages)
{
    for (size_t i = 0; i < messages->count; i++) {
        free(messages->lines[i]);
    }
    free(messages->lines);
    messages->lines = NULL;
    messages->count = 0;
}
