// Writes a scenario as YAML, in the order of the table.
#include "sim/scenario/loader.h"

#include <string.h>

#include "sim/scenario/value.h"

struct writer {
    FILE *out;
    const struct scn_scenario *scenario;
};

static void write_kind(const struct writer *writer, const struct scn_kind *kind, const void *base, int indent,
                       bool in_list);

static void write_list(const struct writer *writer, const struct scn_key *key, const void *base, int indent)
{
    uint32_t count = 0;
    memcpy(&count, (const char *)base + key->second, sizeof count);
    fprintf(writer->out, "%s:%s\n", key->name, count == 0 ? " []" : "");
    for (uint32_t i = 0; i < count; i++) {
        fprintf(writer->out, "%*s- ", indent + 2, "");
        write_kind(writer, key->child, (const char *)base + key->offset + i * key->child->size, indent + 4, true);
    }
}

static void write_kind(const struct writer *writer, const struct scn_kind *kind, const void *base, int indent,
                       bool in_list)
{
    bool first = in_list; // follows the dash
    for (size_t i = 0; i < kind->key_count; i++) {
        const struct scn_key *key = &kind->keys[i];
        const char *field = (const char *)base + key->offset;
        if (key->unit == SCN_UNIT_EMBED) {
            write_kind(writer, key->child, field, indent, first);
            first = false;
            continue;
        }
        if (scn_key_is_left_out(key, base)) {
            continue;
        }
        fprintf(writer->out, "%*s", first ? 0 : indent, "");
        first = false;
        if (key->unit == SCN_UNIT_OBJECTS) {
            write_list(writer, key, base, indent);
        } else if (key->unit == SCN_UNIT_OBJECT) {
            fprintf(writer->out, "%s:\n", key->name);
            write_kind(writer, key->child, field, indent + 2, false);
        } else {
            fprintf(writer->out, "%s: ", key->name);
            scn_value_print(writer->out, writer->scenario, key, base);
            fputc('\n', writer->out);
        }
    }
}

enum sim_status scn_write_resolved(const struct scn_scenario *scenario, FILE *out)
{
    struct writer writer = {out, scenario};
    write_kind(&writer, &scn_kind_scenario, scenario, 0, false);
    return ferror(out) ? SIM_ERR_IO : SIM_OK;
}
