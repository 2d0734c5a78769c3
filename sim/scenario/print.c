// Values and ranges as text.
#include "sim/scenario/value.h"

#include <inttypes.h>
#include <string.h>

#include "sim/kernel/text.h"
#include "sim/scenario/ib_fabric.h"

#define OBJECT_BYTES_MAX 1024

static void print_choice(FILE *out, const struct scn_choice *choices, uint64_t number)
{
    for (const struct scn_choice *choice = choices; choice->name != NULL; choice++) {
        if (choice->value == number) {
            fputs(choice->name, out);
            return;
        }
    }
}

static void print_quantity(FILE *out, enum scn_quantity quantity, uint64_t number)
{
    char text[SCN_QUANTITY_MAX];
    scn_quantity_format(quantity, number, text);
    fputs(text, out);
}

static void print_number(FILE *out, const struct scn_key *key, uint64_t number)
{
    switch (scn_unit_element(key->unit)) {
    case SCN_UNIT_SIZE:
        print_quantity(out, SCN_QUANTITY_SIZE, number);
        break;
    case SCN_UNIT_TIME:
        print_quantity(out, SCN_QUANTITY_TIME, number);
        break;
    case SCN_UNIT_FREQUENCY:
        print_quantity(out, SCN_QUANTITY_FREQUENCY, number);
        break;
    case SCN_UNIT_RATE:
        print_quantity(out, SCN_QUANTITY_RATE, number);
        break;
    case SCN_UNIT_INTEGER:
    case SCN_UNIT_ABSENT:
        fprintf(out, "%" PRIu64, number);
        break;
    case SCN_UNIT_ADDRESS:
        fprintf(out, "0x%" PRIx64, number);
        break;
    case SCN_UNIT_CHOICE:
        print_choice(out, key->choices, number);
        break;
    case SCN_UNIT_BOOL:
        fputs(number != 0 ? "true" : "false", out);
        break;
    case SCN_UNIT_REAL:
    case SCN_UNIT_PERCENT:
    case SCN_UNIT_TEXT:
    case SCN_UNIT_NODE:
    case SCN_UNIT_ENDPOINT:
    case SCN_UNIT_SIZES:
    case SCN_UNIT_INTEGERS:
    case SCN_UNIT_OBJECT:
    case SCN_UNIT_EMBED:
    case SCN_UNIT_OBJECTS:
    case SCN_UNIT_GENERATOR:
        break;
    }
}

static void print_list(FILE *out, const struct scn_key *key, const void *base)
{
    const uint64_t *items = (const uint64_t *)(const void *)((const char *)base + key->offset);
    uint32_t count = 0;
    memcpy(&count, (const char *)base + key->second, sizeof count);
    fputc('[', out);
    for (uint32_t i = 0; i < count; i++) {
        fputs(i == 0 ? "" : ", ", out);
        print_number(out, key, items[i]);
    }
    fputc(']', out);
}

static void print_real(FILE *out, const void *field)
{
    double number = 0;
    char text[SCN_QUANTITY_MAX];
    memcpy(&number, field, sizeof number);
    scn_real_format(number, text);
    fputs(text, out);
}

static void print_node(FILE *out, const struct scn_scenario *scenario, uint64_t node)
{
    fputs(scn_ib_vertex_name(scenario, (uint32_t)node), out);
}

static uint64_t fetch_number(const struct scn_key *key, const void *base)
{
    const char *field = (const char *)base + key->offset;
    uint64_t wide = 0;
    uint32_t narrow = 0;
    bool truth = false;
    if (key->size == sizeof wide) {
        memcpy(&wide, field, sizeof wide);
        return wide;
    }
    if (key->size == sizeof narrow) {
        memcpy(&narrow, field, sizeof narrow);
        return narrow;
    }
    memcpy(&truth, field, sizeof truth);
    return truth;
}

void scn_value_print(FILE *out, const struct scn_scenario *scenario, const struct scn_key *key, const void *base)
{
    const char *field = (const char *)base + key->offset;
    uint32_t port = 0;
    if (key->unit == SCN_UNIT_SIZES || key->unit == SCN_UNIT_INTEGERS) {
        print_list(out, key, base);
    } else if (key->unit == SCN_UNIT_REAL || key->unit == SCN_UNIT_PERCENT) {
        print_real(out, field);
        fputs(key->unit == SCN_UNIT_PERCENT ? " %" : "", out);
    } else if (key->unit == SCN_UNIT_TEXT) {
        sim_text_quote(out, field);
    } else if (key->unit == SCN_UNIT_NODE) {
        print_node(out, scenario, fetch_number(key, base));
    } else if (key->unit == SCN_UNIT_ENDPOINT) {
        memcpy(&port, (const char *)base + key->second, sizeof port);
        print_node(out, scenario, fetch_number(key, base));
        fputc('.', out);
        print_choice(out, scn_choices_port, port);
    } else {
        print_number(out, key, fetch_number(key, base));
    }
}

bool scn_key_has_range(const struct scn_key *key)
{
    enum scn_unit unit = scn_unit_element(key->unit);
    return unit <= SCN_UNIT_ADDRESS || unit == SCN_UNIT_ABSENT;
}

void scn_range_print(FILE *out, const struct scn_key *key)
{
    if (key->unit == SCN_UNIT_CHOICE) {
        const char *separator = "";
        for (const struct scn_choice *choice = key->choices; choice->name != NULL; choice++) {
            if (scn_choice_is_offered(choice)) {
                fprintf(out, "%s%s", separator, choice->name);
                separator = " | ";
            }
        }
    } else if (key->unit == SCN_UNIT_BOOL) {
        fputs("true | false", out);
    } else if (scn_key_has_range(key)) {
        print_number(out, key, key->min);
        if (key->max != UINT64_MAX) {
            fputs(" .. ", out);
            print_number(out, key, key->max);
        } else {
            fputs(" or more", out);
        }
        if (key->multiple != 0) {
            fputs(", multiple of ", out);
            struct scn_key size = {.unit = SCN_UNIT_SIZE};
            print_number(out, &size, key->multiple);
        }
        if ((key->flags & SCN_KEY_POWER_OF_TWO) != 0) {
            fputs(", power of two", out);
        }
    }
}

bool scn_key_is_left_out(const struct scn_key *key, const void *base)
{
    max_align_t aligned[OBJECT_BYTES_MAX / sizeof(max_align_t)];
    char *defaults = (char *)aligned;
    const char *field = (const char *)base + key->offset;
    bool pair = key->second != 0 && (key->unit == SCN_UNIT_SIZE || key->unit == SCN_UNIT_INTEGER);
    if (pair || key->unit == SCN_UNIT_ABSENT || key->unit == SCN_UNIT_GENERATOR) {
        return true;
    }
    if ((key->flags & SCN_KEY_OPEN) == 0) {
        return false;
    }
    struct scn_key moved = *key;
    moved.offset = 0;
    if (key->unit == SCN_UNIT_INTEGERS) { // the default of a list is one number
        moved.second = sizeof(uint64_t);
        moved.size = sizeof(uint64_t);
        uint32_t count;
        memcpy(&count, (const char *)base + key->second, sizeof count);
        if (count != 1) {
            return false;
        }
    }
    memset(aligned, 0, sizeof aligned);
    if (key->unit == SCN_UNIT_OBJECT) {
        scn_kind_defaults(key->child, defaults);
    } else {
        scn_value_default(&moved, defaults);
    }
    return memcmp(defaults, field, moved.size) == 0;
}
