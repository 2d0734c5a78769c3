// The kinds of the devices in slots, from their rows.
#include "sim/scenario/keys.h"
#include "sim/scenario/sizes.h"

#define DEVICE(id, ID, title, kind_doc, key_doc) static const struct scn_key id##_keys[] = {
#define KEY(kind_of_unit, type, key, field, text, ...)                                                                 \
    {.name = (key), .unit = SCN_UNIT_##kind_of_unit, SCN_FIELD(OWNER, field), .doc = (text), __VA_ARGS__},
#define END(id)                                                                                                        \
    }                                                                                                                  \
    ;                                                                                                                  \
    static void id##_loaded(void *object, const struct scn_tree *tree)                                                 \
    {                                                                                                                  \
        (void)tree;                                                                                                    \
        ((struct scn_##id *)object)->given = true;                                                                     \
    }
#include "sim/scenario/devices.def"

#define DEVICE(id, ID, title, kind_doc, key_doc)                                                                       \
    const struct scn_kind scn_kind_##id = {.name = #id,                                                                \
                                           .doc = (kind_doc),                                                          \
                                           SCN_ROWS(id##_keys),                                                        \
                                           .size = sizeof(struct scn_##id),                                            \
                                           .presets = #id,                                                             \
                                           .loaded = id##_loaded};
#include "sim/scenario/devices.def"
