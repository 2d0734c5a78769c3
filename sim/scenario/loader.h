// State that the steps of one load share. The steps, in their order:
//   tree.c      YAML text to a tree
//   set.c       --set on the tree, for keys that take effect while loading
//   object.c    tree to structs through the table of keys, with preset.c, node.c, generate.c, value.c, list.c
//   set.c       --set over the structs
//   check*.c    rules between keys
#pragma once

#include "sim/scenario/keys.h"
#include "sim/scenario/mistakes.h"
#include "sim/scenario/source.h"
#include "sim/scenario/tree.h"

// A scenario as scn_load returns it: the public struct first, then the memory that it refers to.
struct scn_loaded {
    struct scn_scenario scenario;
    struct scn_arena arena;
    struct scn_sources sources;
    scn_presets_t *presets; // NULL: those of the caller
};

struct scn_preset;
struct scn_given;

#define SCN_GIVEN_BUCKETS 4096

struct scn_loader {
    struct scn_arena *arena;
    struct scn_mistakes mistakes;
    struct scn_sources *sources;
    struct scn_scenario *scenario;
    const char *configs_dir;
    scn_presets_t *presets;                     // those read so far
    struct scn_preset *bad_presets;             // those of them with mistakes
    struct scn_given *given[SCN_GIVEN_BUCKETS]; // the values of the scenario's file over presets, by object
    unsigned preset_depth; // presets being applied, one inside another
    const struct scn_file *file;
    const char *const *sets; // of the options
    size_t set_count;
    bool *sets_of_presets; // which of them gave a value of a preset; NULL: none is of that kind
    bool without_sweep, sweep_is_bad, sweep_collapsed; // --set has left one value of a swept key
    struct scn_location sweep_location;
    bool sourced; // loading a preset's own keys, where every value must name its source
};

// object.c: applies a mapping to the object at base. Reports mistakes and loads the rest.
void scn_object_load(struct scn_loader *loader, const struct scn_kind *kind, const struct scn_tree *tree, void *base);

// The mapping of `with:` that the scenario's file has over the preset of the object at base; NULL: none.
const struct scn_tree *scn_given_find(const struct scn_loader *loader, const void *base);

// Loads one entry of a mapping by its row.
void scn_object_load_key(struct scn_loader *loader, const struct scn_key *key, const struct scn_tree *tree, void *base);

// Reports every required key that nothing has set. location: of the object.
void scn_object_require(struct scn_loader *loader, const struct scn_kind *kind, struct scn_location location,
                        void *base);

// "unknown key 'pol' (did you mean 'poll'?)"
void scn_object_complain_unknown(struct scn_loader *loader, const struct scn_kind *kind, struct scn_location location,
                                 const char *name);

// node.c: the list of nodes; an entry with count: is several nodes.
void scn_nodes_load(struct scn_loader *loader, const struct scn_key *key, const struct scn_tree *tree);

void scn_node_load(struct scn_loader *loader, const struct scn_tree *item, struct scn_node *node);

// The message for more than SCN_NODES_MAX nodes: the key, their number, the largest number.
#define SCN_TOO_MANY_NODES "%s: %" PRIu64 " nodes; a scenario has at most %d"
// The end of the message for more than SCN_WINDOW_NODES_MAX nodes in a sub-cluster: the largest number.
#define SCN_WINDOW_IS_FULL "a sub-cluster has at most %d, as its window of 512 GiB has room for no more"

// generate.c: `topology:`; parent: the mapping that contains it.
void scn_topology_load(struct scn_loader *loader, const struct scn_tree *parent, const struct scn_tree *tree);

// sweep.c: `sweep:`
void scn_sweep_load(struct scn_loader *loader, const struct scn_tree *tree);
// Checks the lengths of the names of series, after the runs are loaded.
void scn_sweep_check(struct scn_loader *loader);

// preset.c: the tree of configs/<folder>/<name>.yaml, which is read once a load. NULL: reported.
const struct scn_tree *scn_preset_get(struct scn_loader *loader, const char *folder, const struct scn_tree *name);

// The names in configs/<folder>, sorted, ended by NULL; NULL: the folder cannot be read.
char **scn_preset_names(struct scn_arena *arena, const char *configs_dir, const char *folder);

// set.c: one "path=value"; number: its position among the settings. Settings of which scn_set_is_early is true change
// the tree before it is loaded. Settings that name a preset come next, so that the others override the preset's values.
bool scn_set_is_early(const char *text);
bool scn_set_is_preset(const char *text);
void scn_set_apply_early(struct scn_loader *loader, struct scn_tree *tree, const char *text, unsigned number);
void scn_set_apply(struct scn_loader *loader, const char *text, unsigned number);
// "presets.KIND.NAME.KEY=VALUE" stands in place of what configs/KIND/NAME.yaml says of the key, for all that use it and
// do not override it.
bool scn_set_is_of_presets(const char *text);
// The last value given for the key at that location of a preset's file; NULL: none.
const struct scn_tree *scn_set_of_presets_find(struct scn_loader *loader, const struct scn_key *key,
                                               const struct scn_location *location);
void scn_set_of_presets_check(struct scn_loader *loader); // each of them gave a value

// check.c, check_routes.c (called by check.c, for good cables), check_faults.c, check_run.c and check_results.c
void scn_check_hardware(struct scn_loader *loader);
void scn_check_faults(struct scn_loader *loader); // also finds the cables of the faults
void scn_check_routes(struct scn_loader *loader);
void scn_check_runs(struct scn_loader *loader);
void scn_check_results(struct scn_loader *loader);

// check_expect.c: one entry of `expect:`, except for what expectations share with comparisons.
void scn_check_expect(struct scn_loader *loader, const struct scn_check *expect);

// check_fpga.c: a run of fpga-transfer; values that other runs may not have (false: a method of the FPGA's).
void scn_check_fpga_run(struct scn_loader *loader, const struct scn_run *run);
bool scn_check_board_run(struct scn_loader *loader, const struct scn_run *run);

// check_hybrid.c: a run on every node of several sub-clusters; other runs are left alone.
void scn_check_hybrid_run(struct scn_loader *loader, const struct scn_run *run);

// check_verbs.c: a run of a program on libibverbs; values that other runs may not have (false: the run has no method).
void scn_check_acp_run(struct scn_loader *loader, const struct scn_run *run);
void scn_check_verbs_run(struct scn_loader *loader, const struct scn_run *run);
bool scn_check_other_run(struct scn_loader *loader, const struct scn_run *run);

// check_run.c: whether cables of boards lead from one node to the other. True if cables have mistakes.
bool scn_check_joined(const struct scn_loader *loader, uint32_t from, uint32_t to);
bool scn_check_are_cables_good(const struct scn_loader *loader);

// check_hca.c: HCAs and the cables between them.
void scn_check_hcas(struct scn_loader *loader);

// Notes that the field at address was set (or the object at address starts) at that location.
void scn_loader_note(struct scn_loader *loader, const void *address, bool structure, struct scn_location location,
                     const char *note);
void scn_loader_note_bad(struct scn_loader *loader, const void *address, bool structure, struct scn_location location);

// Where the value at address was set; if nothing set it, where the object that holds it starts.
struct scn_location scn_loader_location(const struct scn_loader *loader, const void *address, const void *object);
bool scn_loader_is_given(const struct scn_loader *loader, const void *address);
bool scn_loader_is_bad(const struct scn_loader *loader, const void *address, bool structure);
// For a value, not a structure.
static inline bool scn_loader_is_good(const struct scn_loader *loader, const void *field)
{
    return !scn_loader_is_bad(loader, field, false);
}

// The index of the node of that name, or SCN_NODE_NONE.
uint32_t scn_loader_find_node(const struct scn_loader *loader, const char *name);
