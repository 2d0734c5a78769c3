// The table of keys: a key's name, unit, default, range, meaning and field are declared only here. The loader, checks
// of ranges, `tcasim params`, --set and resolved.yaml are derived from it. A new key is a field in scenario.h and a row
// in keys.c (scenarios, nodes), run_keys.c, hardware_keys.c (hosts, boards, links), gpu_keys.c, ib_keys.c,
// program_keys.c, result_keys.c or expect_keys.c; a key of a device in a slot is a row in devices/<id>.def, which makes
// the field too.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "sim/scenario/scenario.h"
#include "sim/scenario/tree.h"

// Fallbacks of keys that not every program uses (check_run.c), and a fallback as text.
#define SCN_FALLBACK_CHANNEL       0
#define SCN_FALLBACK_WARMUP        2
#define SCN_FALLBACK_COLUMNS       4
#define SCN_FALLBACK_DEPTH         128 // of verbs: perftest's defaults
#define SCN_FALLBACK_RECEIVE_DEPTH 512
#define SCN_FALLBACK_CQ_MOD        100
#define SCN_TEXT_OF(number)        #number
#define SCN_FALLBACK(number)       SCN_TEXT_OF(number)

enum scn_unit {
    SCN_UNIT_SIZE,
    SCN_UNIT_TIME,
    SCN_UNIT_FREQUENCY,
    SCN_UNIT_RATE,
    SCN_UNIT_INTEGER,
    SCN_UNIT_ADDRESS, // an integer written in hexadecimal
    SCN_UNIT_CHOICE,  // one of a few names
    SCN_UNIT_BOOL,
    SCN_UNIT_REAL,    // a bare number: ratios and bounds of results
    SCN_UNIT_PERCENT, // "5 %"; the field is a double
    SCN_UNIT_TEXT,
    SCN_UNIT_NODE,     // a node's name; the field is its index
    SCN_UNIT_ENDPOINT, // node.PORT; the port goes to the second field
    SCN_UNIT_SIZES,    // a list; its length goes to the second field
    SCN_UNIT_INTEGERS,
    SCN_UNIT_OBJECT,   // a mapping with the keys of `child`
    SCN_UNIT_EMBED,    // the keys of `child` stand directly among this kind's
    SCN_UNIT_OBJECTS,  // a list of mappings; its length goes to the second field
    SCN_UNIT_ABSENT,   // no field: acts while loading (count)
    SCN_UNIT_GENERATOR // no field: a mapping that stands for other keys, written out while loading (topology)
};

#define SCN_KEY_OWN          1u // belongs to the one object, never in a preset or in `with:`
#define SCN_KEY_OPEN         2u // written to resolved.yaml only when it differs from its default
#define SCN_KEY_POWER_OF_TWO 4u
#define SCN_KEY_SWITCHES     8u  // a node, or an InfiniBand switch
#define SCN_KEY_SHOWN        16u // open, but its default is a value like any other, which `tcasim params` prints

struct scn_choice {
    const char *name;
    uint64_t value;
};
// "none" is what a key has that was not given; nobody is told to write it.
static inline bool scn_choice_is_offered(const struct scn_choice *choice)
{
    return strcmp(choice->name, "none") != 0;
}

struct scn_kind;

struct scn_key {
    const char *name;
    const char *was; // its name in the version before, still taken with a warning; NULL: the same
    enum scn_unit unit;
    const char *fallback; // the default as it would be written; NULL: required
    uint64_t min, max;    // of a number; of a text's length; of a list's elements. max 0 of a real: unbounded
    uint64_t multiple;    // 0: any
    unsigned flags;
    const char *doc;
    size_t offset, size;              // the field
    size_t second;                    // another field, see the units; 0: none
    const struct scn_choice *choices; // ended by a NULL name; of several names of a value the first is written
    const struct scn_kind *child;
};

// One kind of object.
struct scn_kind {
    const char *name;
    const char *doc;
    const struct scn_key *keys;
    size_t key_count;
    size_t size;
    const char *presets; // folder in configs/, NULL: this kind has none
    // Called once for an object that the file gives, for what has no key of its own; may be NULL.
    void (*loaded)(void *object, const struct scn_tree *tree);
};

extern const struct scn_kind scn_kind_scenario, scn_kind_topology, scn_kind_node, scn_kind_host, scn_kind_board,
    scn_kind_gpu, scn_kind_ib_cable, scn_kind_ib_switch, scn_kind_link, scn_kind_cable, scn_kind_fault,
    scn_kind_fault_ends, scn_kind_parameter, scn_kind_outside, scn_kind_results, scn_kind_run, scn_kind_verbs,
    scn_kind_beside, scn_kind_value, scn_kind_check, scn_kind_expect, scn_kind_compare, scn_kind_panel;
#define DEVICE(id, ID, name, kind_doc, key_doc) extern const struct scn_kind scn_kind_##id; // device_keys.c
#include "sim/scenario/devices.def"

// All of them in the order of `tcasim params`, ended by NULL.
extern const struct scn_kind *const scn_kinds[];

extern const struct scn_choice scn_choices_port[], scn_choices_operation[];

// For rows: a field's offset and size; a field of a second kind.
#define SCN_FIELD(type, field)  .offset = offsetof(type, field), .size = sizeof(((type *)0)->field)
#define SCN_SECOND(type, field) .second = offsetof(type, field)
#define SCN_ROWS(rows)          .keys = (rows), .key_count = sizeof(rows) / sizeof((rows)[0])

// The row of that name and the base of its field: *base moves into an embedded object where the row is there.
const struct scn_key *scn_key_find(const struct scn_kind *kind, const char *name, void **base);

// The known key nearest to name; NULL: none is near.
const char *scn_key_nearest(const struct scn_kind *kind, const char *name);

// Whether the row holds no value itself but further keys.
bool scn_key_is_structure(const struct scn_key *key);

// The unit of a list's elements; of anything else its own.
enum scn_unit scn_unit_element(enum scn_unit unit);

// "time", "list of sizes".
const char *scn_unit_text(enum scn_unit unit);

// Fills an object with the defaults of its keys.
void scn_kind_defaults(const struct scn_kind *kind, void *base);
