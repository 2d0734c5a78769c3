// The files that a program reads about the machine that it is on: a tree for each node in the run's directory, which
// holds all of /sys and what the shim redirects of /proc, /etc and /dev (verbs-shim/world/redirect.c). They depend only
// on the scenario, and on which flags the machine's processor has (processor.h).
//
// Leaves out what changes while a run goes on (load, free memory, counters): such files show an idle node.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sim/scenario/scenario.h"

// A tree that is being written. good: everything so far was; otherwise errno is that of the first failure.
struct attach_tree {
    const char *root;
    bool good;
};

// Writes the file <root><folder>/<name>, and makes the folders that lead to it.
__attribute__((format(printf, 4, 5))) void attach_tree_write(struct attach_tree *tree, const char *folder,
                                                             const char *name, const char *format, ...);
void attach_tree_folder(struct attach_tree *tree, const char *folder); // an empty one
void attach_tree_link(struct attach_tree *tree, const char *path, const char *target);

// What is the same on all nodes with this processor and memory: /sys/devices/system as <root>/system, and the topology
// for hwloc.
void attach_processor_files_make(struct attach_tree *tree, const struct scn_host *host);

// The node's own. shared: the tree with the files above. address: IPv4, host byte order, of node 0.
struct attach_node_facts {
    const struct scn_scenario *scenario;
    uint32_t node, address_base;
    const char *shared;
};
void attach_node_files_make(struct attach_tree *tree, const struct attach_node_facts *facts);

// port_files.c: a device of /sys/class/infiniband. number: of the node in the sub-cluster, as its board has it.
struct hca;
void attach_hca_files_make(struct attach_tree *tree, struct hca *hca, const char *node);
void attach_board_files_make(struct attach_tree *tree, uint32_t number, const char *node);

// Memory of a node, in KiB, and how much of it is free.
uint64_t attach_memory_kib(const struct scn_host *host);
uint64_t attach_memory_free_kib(const struct scn_host *host);
