// YAML text as a tree with the line and column of every entry. Refused here: syntax errors, duplicate keys, anchors,
// aliases and tags, a second document, and nesting deeper or files larger than a scenario can need.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "sim/scenario/arena.h"
#include "sim/scenario/mistakes.h"

#define SCN_FILE_BYTES_MAX   (1u << 24)
#define SCN_TREE_DEPTH_MAX   16
#define SCN_TREE_ENTRIES_MAX 4096 // of one mapping or list

enum scn_tree_kind { SCN_TREE_SCALAR, SCN_TREE_SEQUENCE, SCN_TREE_MAPPING };

struct scn_tree {
    enum scn_tree_kind kind;
    struct scn_location location;     // where the value starts
    struct scn_location key_location; // entries of a mapping: where the key is
    const char *key;            // entries of a mapping
    const char *text;           // scalars
    bool quoted;                // scalars
    struct scn_tree *first, *last, *next;
    size_t count;
};

// NULL: mistakes were reported. With a mistake such as a duplicate key there is still a tree.
struct scn_tree *scn_tree_parse(struct scn_arena *arena, struct scn_mistakes *mistakes, const struct scn_file *file,
                                const char *text, size_t length);

// Reads the file of that name and parses it. NULL: mistakes were reported; *readable_out: whether it could be read.
struct scn_tree *scn_tree_read(struct scn_arena *arena, struct scn_mistakes *mistakes, const struct scn_file *file,
                               bool *readable_out);

// The entry of a mapping; NULL: there is none, or tree is not a mapping.
struct scn_tree *scn_tree_find(const struct scn_tree *tree, const char *key);

// Adds an entry, which must not belong to another tree.
void scn_tree_append(struct scn_tree *tree, struct scn_tree *entry);

// "a mapping", "a list", "a single value".
const char *scn_tree_kind_text(const struct scn_tree *tree);
