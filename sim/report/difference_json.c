// A difference as JSON: for the page, and for other programs.
#include <inttypes.h>
#include <math.h>

#include "sim/report/difference_internal.h"
#include "sim/report/json.h"

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

void difference_json_write(const difference_t *difference, FILE *out)
{
    bool resolved = difference->sides[0].resolved && difference->sides[1].resolved;
    fprintf(out, "\"numbers\":%zu,\"resolved\":%s,\n", difference->data.count + difference->counters.count,
            resolved ? "true" : "false");
    keys_write(difference, out);
    rows_write(difference, out);
    counters_write(difference, out);
}
