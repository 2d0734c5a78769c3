#include "sim/report/page_difference.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <string.h>

#include "sim/report/difference_internal.h"
#include "sim/report/json.h"

const char *page_directory_name(const char *directory, char *name, size_t size)
{
    size_t length = strlen(directory);
    while (length > 1 && directory[length - 1] == '/') {
        length--;
    }
    size_t begin = length;
    while (begin > 0 && directory[begin - 1] != '/') {
        begin--;
    }
    snprintf(name, size, "%.*s", (int)(length - begin), directory + begin);
    return name;
}

static void text_write(FILE *out, const char *text)
{
    if (text != NULL) {
        json_text_write(out, text);
    } else {
        fputs("null", out);
    }
}

static void keys_write(const struct difference *difference, FILE *out)
{
    fputs("\"keys\":[", out);
    for (size_t i = 0; i < difference->key_count; i++) {
        const struct difference_key *key = &difference->keys[i];
        fputs(i > 0 ? ",\n[" : "\n[", out);
        json_text_write(out, key->path);
        fputc(',', out);
        text_write(out, key->first);
        fputc(',', out);
        text_write(out, key->second);
        fputc(']', out);
    }
    fputc(']', out);
}

// Both values as in the files, the change as `tcasim compare` prints it.
static void change_write(const struct difference_item *item, FILE *out)
{
    text_write(out, item->first != NULL ? item->first->text : NULL);
    fputc(',', out);
    text_write(out, item->second != NULL ? item->second->text : NULL);
    if (item->first == NULL || item->second == NULL) {
        fputs(",null,null]", out);
    } else if (isinf(item->percent)) {
        fprintf(out, ",\"%+.10Lg\",\"%s\"]", item->change, item->percent > 0 ? "+inf" : "-inf");
    } else {
        fprintf(out, ",\"%+.10Lg\",%.17g]", item->change, item->percent);
    }
}

static void rows_write(const struct difference *difference, FILE *out)
{
    fputs(",\n\"rows\":{\"columns\":[\"series\",\"bytes\",\"descriptors\",\"ranks\",\"copy\",\"column\",\"first\","
          "\"second\",\"difference\",\"percent\"],\"rows\":[",
          out);
    for (size_t i = 0; i < difference->data.count; i++) {
        const struct difference_item *item = &difference->data.items[i];
        const struct measured_number *number = difference_number(item);
        fputs(i > 0 ? ",\n[" : "\n[", out);
        json_text_write(out, number->series);
        fprintf(out, ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%zu,", number->bytes, number->descriptors, number->ranks,
                number->copy);
        json_text_write(out, number->name);
        fputc(',', out);
        change_write(item, out);
    }
    fputs("]}", out);
}

static void counters_write(const struct difference *difference, FILE *out)
{
    bool some = false;
    fputs(",\n\"counters\":{\"columns\":[\"series\",\"component\",\"name\",\"first\",\"second\",\"difference\","
          "\"percent\"],\"rows\":[",
          out);
    for (size_t i = 0; i < difference->counters.count; i++) {
        const struct difference_item *item = &difference->counters.items[i];
        const struct measured_number *number = difference_number(item);
        if (item->state == DIFFERENCE_EQUAL) {
            continue;
        }
        fputs(some ? ",\n[" : "\n[", out);
        some = true;
        json_text_write(out, number->series);
        fputc(',', out);
        json_text_write(out, number->component);
        fputc(',', out);
        json_text_write(out, number->name);
        fputc(',', out);
        change_write(item, out);
    }
    fputs("]}", out);
}

static void difference_json_write(const struct difference *difference, size_t first, size_t second, FILE *out)
{
    bool resolved = difference->sides[0].resolved && difference->sides[1].resolved;
    fprintf(out, "{\"first\":%zu,\"second\":%zu,\"numbers\":%zu,\"resolved\":%s,\n", first, second,
            difference->data.count + difference->counters.count, resolved ? "true" : "false");
    keys_write(difference, out);
    rows_write(difference, out);
    counters_write(difference, out);
    fputc('}', out);
}

static bool have_one_name(const char *first, const char *second)
{
    char names[2][NAME_MAX + 1];
    return strcmp(page_directory_name(first, names[0], sizeof names[0]),
                  page_directory_name(second, names[1], sizeof names[1])) == 0;
}

void page_differences_write(const struct page_request *request, FILE *out)
{
    bool some = false;
    fputc('[', out);
    for (size_t i = 0; i < request->count; i++) {
        for (size_t k = i + 1; k < request->count; k++) {
            const char *first = request->directories[i], *second = request->directories[k];
            difference_t *difference = NULL;
            char error[PATH_MAX + 256];
            if (!have_one_name(first, second) ||
                difference_create(first, second, 0, &difference, error, sizeof error) != SIM_OK) {
                continue;
            }
            fputs(some ? ",\n" : "", out);
            some = true;
            difference_json_write(difference, i, k, out);
            difference_destroy(difference);
        }
    }
    fputc(']', out);
}
