// Visits every value of a scenario with its path and its source.
#include "sim/scenario/loader.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sim/scenario/value.h"

struct visitor {
    const struct scn_scenario *scenario;
    void (*visit)(void *context, const char *path, const char *value, const char *source);
    void *context;
    struct scn_arena arena;
};

static void visit_kind(struct visitor *visitor, const struct scn_kind *kind, const void *base, const char *path);

static void visit_value(struct visitor *visitor, const struct scn_key *key, const void *base, const char *path)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (out == NULL) {
        sim_panic("scenario", "no memory for a value");
    }
    scn_value_print(out, visitor->scenario, key, base);
    fclose(out);
    visitor->visit(visitor->context, path, text, scn_source(visitor->scenario, (const char *)base + key->offset));
    free(text);
}

static void visit_list(struct visitor *visitor, const struct scn_key *key, const void *base, const char *path)
{
    uint32_t count = 0;
    memcpy(&count, (const char *)base + key->second, sizeof count);
    for (uint32_t i = 0; i < count; i++) {
        visit_kind(visitor, key->child, (const char *)base + key->offset + i * key->child->size,
                   scn_arena_format(&visitor->arena, "%s.%" PRIu32, path, i));
    }
}

static void visit_kind(struct visitor *visitor, const struct scn_kind *kind, const void *base, const char *path)
{
    for (size_t i = 0; i < kind->key_count; i++) {
        const struct scn_key *key = &kind->keys[i];
        const char *field = (const char *)base + key->offset;
        const char *inner = scn_arena_format(&visitor->arena, "%s%s%s", path, path[0] != '\0' ? "." : "", key->name);
        if (key->unit == SCN_UNIT_EMBED) {
            visit_kind(visitor, key->child, field, path);
        } else if (scn_key_is_left_out(key, base)) {
            continue;
        } else if (key->unit == SCN_UNIT_OBJECTS) {
            visit_list(visitor, key, base, inner);
        } else if (key->unit == SCN_UNIT_OBJECT) {
            visit_kind(visitor, key->child, field, inner);
        } else {
            visit_value(visitor, key, base, inner);
        }
    }
}

void scn_visit(const struct scn_scenario *scenario,
               void (*visit)(void *context, const char *path, const char *value, const char *source), void *context)
{
    struct visitor visitor = {.scenario = scenario, .visit = visit, .context = context};
    visit_kind(&visitor, &scn_kind_scenario, scenario, "");
    scn_arena_fini(&visitor.arena);
}
