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

// Defaults of keys that not every workload uses (check_run.c), and a default as text.
#define SCN_FALLBACK_CHANNEL       0
#define SCN_FALLBACK_WARMUP        2
#define SCN_FALLBACK_COLUMNS       4
#define SCN_FALLBACK_DEPTH         128 // of verbs: perftest's defaults
#define SCN_FALLBACK_RECEIVE_DEPTH 512
#define SCN_FALLBACK_CQ_MOD        100
#define SCN_FALLBACK_QP_TIMEOUT    14
#define SCN_FALLBACK_RETRY_COUNT   7
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
    SCN_UNIT_EMBED,    // the keys of `child` are also keys of this kind
    SCN_UNIT_OBJECTS,  // a list of mappings; its length goes to the second field
    SCN_UNIT_ABSENT,   // no field: takes effect while loading (count)
    SCN_UNIT_GENERATOR // no field: a mapping from which the loader makes other keys (topology)
};

#define SCN_KEY_OWN          1u // of one object: not allowed in a preset or in `with:`
#define SCN_KEY_OPEN         2u // written to resolved.yaml only when it differs from its default
#define SCN_KEY_POWER_OF_TWO 4u
#define SCN_KEY_SWITCHES     8u  // the value names a node or an InfiniBand switch
#define SCN_KEY_SHOWN        16u // open, but `tcasim params` prints its default

struct scn_choice {
    const char *name;
    uint64_t value;
};
// "none" is the value of a key that is not given; messages do not list it as a choice.
static inline bool scn_choice_is_offered(const struct scn_choice *choice)
{
    return strcmp(choice->name, "none") != 0;
}

struct scn_kind;

struct scn_key {
    const char *name;
    const char *was; // its name in the previous version, still accepted with a warning; NULL: the same
    enum scn_unit unit;
    const char *fallback; // the default as YAML text; NULL: required
    uint64_t min, max;    // of a number, a text's length, or a list's elements. A real with max 0 is unbounded
    uint64_t multiple;    // 0: any
    unsigned flags;
    const char *doc;
    size_t offset, size;              // the field
    size_t second;                    // another field, see the units; 0: none
    const struct scn_choice *choices; // ended by a NULL name; if a value has several names, the first is written
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
    // Called once for each object in the file, to set fields that have no key; may be NULL.
    void (*loaded)(void *object, const struct scn_tree *tree);
};

extern const struct scn_kind scn_kind_scenario, scn_kind_topology, scn_kind_ib_fabric, scn_kind_node, scn_kind_host,
    scn_kind_board, scn_kind_gpu, scn_kind_ib_cable, scn_kind_ib_switch, scn_kind_link, scn_kind_cable, scn_kind_fault,
    scn_kind_fault_ends, scn_kind_fault_ib_ends, scn_kind_parameter, scn_kind_outside, scn_kind_results, scn_kind_run,
    scn_kind_verbs, scn_kind_beside, scn_kind_value, scn_kind_check, scn_kind_expect, scn_kind_compare, scn_kind_panel;
#define DEVICE(id, ID, name, kind_doc, key_doc) extern const struct scn_kind scn_kind_##id; // device_keys.c
#include "sim/scenario/devices.def"

// All of them in the order of `tcasim params`, ended by NULL.
extern const struct scn_kind *const scn_kinds[];

extern const struct scn_choice scn_choices_fidelity[];
extern const struct scn_choice scn_choices_port[], scn_choices_operation[];

// For rows: a field's offset and size; the offset of a second field.
#define SCN_FIELD(type, field)  .offset = offsetof(type, field), .size = sizeof(((type *)0)->field)
#define SCN_SECOND(type, field) .second = offsetof(type, field)
#define SCN_ROWS(rows)          .keys = (rows), .key_count = sizeof(rows) / sizeof((rows)[0])

// The row of that name. If it belongs to an embedded object, *base is moved to that object; base may be NULL.
const struct scn_key *scn_key_find(const struct scn_kind *kind, const char *name, void **base);

// The known key nearest to name; NULL: none is near.
const char *scn_key_nearest(const struct scn_kind *kind, const char *name);

// Whether the row has keys of its own instead of a value.
bool scn_key_is_structure(const struct scn_key *key);

// The unit of a list's elements; for other units the unit itself.
enum scn_unit scn_unit_element(enum scn_unit unit);

// "time", "list of sizes".
const char *scn_unit_text(enum scn_unit unit);

// Fills an object with the defaults of its keys.
void scn_kind_defaults(const struct scn_kind *kind, void *base);
