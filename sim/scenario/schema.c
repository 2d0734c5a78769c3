// JSON Schema (2020-12) of scenarios, from the table of keys: for editors that complete and check while one writes.
//
// Leaves out what only the loader knows: rules between keys, exactness of quantities, whether names exist.
#include <inttypes.h>
#include <string.h>

#include "sim/scenario/value.h"
#include "sim/kernel/text.h"

struct schema {
    FILE *out;
    bool first; // of the entries of the present mapping
};

static void quantity_write(FILE *out, const char *units)
{
    fprintf(out, "\"type\":\"string\",\"pattern\":\"^[0-9]+([.][0-9]+)? *(%s)$\"", units);
}

static void choices_write(FILE *out, const struct scn_key *key)
{
    fputs("\"enum\":[", out);
    for (size_t i = 0; key->choices[i].name != NULL; i++) {
        fputs(i > 0 ? "," : "", out);
        sim_text_quote(out, key->choices[i].name);
    }
    fputc(']', out);
}

// Of a single value.
static void value_write(FILE *out, const struct scn_key *key, enum scn_unit unit)
{
    switch (unit) {
    case SCN_UNIT_SIZE:
        quantity_write(out, "B|KiB|MiB|GiB|TiB|KB|MB|GB|TB|kB");
        break;
    case SCN_UNIT_TIME:
        quantity_write(out, "ps|ns|us|ms|s");
        break;
    case SCN_UNIT_FREQUENCY:
        quantity_write(out, "Hz|kHz|MHz|GHz");
        break;
    case SCN_UNIT_RATE:
        quantity_write(out, "[A-Za-z]+/s");
        break;
    case SCN_UNIT_INTEGER:
        fprintf(out, "\"type\":\"integer\",\"minimum\":%" PRIu64, key->min);
        if (key->max != 0) {
            fprintf(out, ",\"maximum\":%" PRIu64, key->max);
        }
        break;
    case SCN_UNIT_CHOICE:
        choices_write(out, key);
        break;
    case SCN_UNIT_BOOL:
        fputs("\"type\":\"boolean\"", out);
        break;
    case SCN_UNIT_REAL:
        fputs("\"type\":\"number\"", out);
        break;
    case SCN_UNIT_PERCENT:
        fputs("\"type\":\"string\",\"pattern\":\"%$\"", out);
        break;
    case SCN_UNIT_ENDPOINT:
        fputs("\"type\":\"string\",\"pattern\":\"[.]\"", out);
        break;
    default: // texts, names and addresses: YAML may take them for numbers
        fputs("\"type\":[\"string\",\"number\",\"boolean\"]", out);
        break;
    }
}

// A value, a list of them, or a range.
static void list_write(FILE *out, const struct scn_key *key)
{
    fputs("\"anyOf\":[{", out);
    value_write(out, key, scn_unit_element(key->unit));
    fputs("},{\"type\":\"array\",\"items\":{", out);
    value_write(out, key, scn_unit_element(key->unit));
    fputs("}},{\"type\":\"object\",\"required\":[\"from\",\"to\"]}]", out);
}

static void property_write(struct schema *schema, const char *name, const struct scn_key *key)
{
    FILE *out = schema->out;
    fputs(schema->first ? "\n    " : ",\n    ", out);
    schema->first = false;
    sim_text_quote(out, name);
    fputs(":{\"description\":", out);
    sim_text_quote(out, key->doc);
    if (key->fallback != NULL && key->fallback[0] != '\0') {
        fputs(",\"default\":", out);
        sim_text_quote(out, key->fallback);
    }
    fputc(',', out);
    if (key->child != NULL && key->unit == SCN_UNIT_OBJECTS) {
        fprintf(out, "\"type\":\"array\",\"items\":{\"$ref\":\"#/$defs/%s\"}", key->child->name);
    } else if (key->child != NULL) {
        fprintf(out, "\"$ref\":\"#/$defs/%s\"", key->child->name);
    } else if (key->unit == SCN_UNIT_SIZES || key->unit == SCN_UNIT_INTEGERS) {
        list_write(out, key);
    } else if (key->unit == SCN_UNIT_ABSENT || key->unit == SCN_UNIT_GENERATOR) {
        fputs("\"type\":[\"string\",\"number\",\"boolean\",\"array\",\"object\"]", out);
    } else {
        value_write(out, key, key->unit);
    }
    fputc('}', out);
}

static void properties_write(struct schema *schema, const struct scn_kind *kind)
{
    for (size_t i = 0; i < kind->key_count; i++) {
        const struct scn_key *key = &kind->keys[i];
        if (key->unit == SCN_UNIT_EMBED) {
            properties_write(schema, key->child);
            continue;
        }
        property_write(schema, key->name, key);
        if (key->was != NULL) {
            property_write(schema, key->was, key);
        }
    }
}

// The kind, or the kind that it takes the keys of, has presets.
static bool takes_preset(const struct scn_kind *kind)
{
    bool takes = kind->presets != NULL;
    for (size_t i = 0; i < kind->key_count && !takes; i++) {
        takes = kind->keys[i].unit == SCN_UNIT_EMBED && takes_preset(kind->keys[i].child);
    }
    return takes;
}

static void kind_write(FILE *out, const struct scn_kind *kind)
{
    struct schema schema = {out, true};
    fprintf(out, "  \"%s\":{\"description\":", kind->name);
    sim_text_quote(out, kind->doc);
    fputs(",\"type\":\"object\",\"additionalProperties\":false,\"properties\":{", out);
    properties_write(&schema, kind);
    if (takes_preset(kind)) {
        fprintf(out,
                "%s\"preset\":{\"type\":\"string\",\"description\":\"configs/%s/NAME.yaml\"},\n"
                "    \"with\":{\"type\":\"object\",\"description\":\"values over those of the preset\"}",
                schema.first ? "\n    " : ",\n    ", kind->presets != NULL ? kind->presets : "...");
    }
    fputs("}}", out);
}

enum sim_status scn_write_schema(FILE *out)
{
    fputs("{\"$schema\":\"https://json-schema.org/draft/2020-12/schema\",\n\"title\":\"A scenario of tcasim\",\n"
          "\"$ref\":\"#/$defs/scenario\",\n\"$defs\":{\n",
          out);
    for (size_t i = 0; scn_kinds[i] != NULL; i++) {
        fputs(i > 0 ? ",\n" : "", out);
        kind_write(out, scn_kinds[i]);
    }
    fputs("}}\n", out);
    return ferror(out) ? SIM_ERR_IO : SIM_OK;
}
