// What makes nodes, cables and switches of `topology:`, as entries that a file would contain. Private to the room.
#pragma once

#include "sim/scenario/loader.h"
#include "sim/scenario/topology.h"

struct scn_generate {
    enum scn_topology topology;
    uint32_t nodes, sub_clusters; // nodes: of each sub-cluster
    const struct scn_tree *tree;  // the mapping of topology:
    const struct scn_tree *cable; // a preset's name, or the keys of a link; NULL: none
    const struct scn_tree *names; // a list of them; NULL: node0, node1, ...
};

struct scn_tree *scn_generate_collection(struct scn_loader *loader, enum scn_tree_kind kind,
                                         struct scn_location location);
// Adds a copy of the entry to the mapping, under this key, which may be the entry's own. entry NULL: adds nothing.
void scn_generate_copy(struct scn_loader *loader, struct scn_tree *mapping, const char *key,
                       const struct scn_tree *entry);
void scn_generate_text(struct scn_loader *loader, struct scn_tree *mapping, const char *key, const char *text);
// Reads a number of the kind's row. False: missing or bad; reported.
bool scn_generate_number(struct scn_loader *loader, const struct scn_kind *kind, const struct scn_tree *tree,
                         const char *name, uint64_t *number_out);

// generate_ib.c: the switch of ib_switch:, or those of ib_fabric:, and the cables.
void scn_generate_ib(struct scn_loader *loader, const struct scn_generate *request);
