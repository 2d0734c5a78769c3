// The links of a scenario under the names that they have in a machine: in counters and in traces, where `.0` and `.1`
// follow for the two ends.
//
// Leaves out: links inside a device, such as the loopback of an HCA.
#pragma once

#include <stdint.h>

#include "sim/scenario/scenario.h"

#define SCN_LINK_END_MAX  (SCN_NAME_MAX + 8)
#define SCN_LINK_NAME_MAX (2 * SCN_LINK_END_MAX + 16)

enum scn_link_kind {
    SCN_LINK_SLOT,    // end 0 is the root port of the host, end 1 the device
    SCN_LINK_CABLE,   // of boards; end 0 is `from`
    SCN_LINK_IB_CABLE // the same
};

struct scn_named_link {
    char name[SCN_LINK_NAME_MAX];
    char ends[2][SCN_LINK_END_MAX]; // "node0.E", "leaf0.ib"; of a slot "node0", "node0.hca"
    enum scn_link_kind kind;
    const struct scn_link *pcie; // of slots and cables of boards
    uint64_t bytes_per_us;       // of InfiniBand cables: the rate of the slower end
};

// The two ports of a cable of boards: "node0.E", "node1.W".
void scn_cable_ends(const struct scn_scenario *scenario, uint32_t index, char root[SCN_LINK_END_MAX],
                    char endpoint[SCN_LINK_END_MAX]);
// "node0.E-node1.W"
void scn_cable_name(const struct scn_scenario *scenario, uint32_t index, char name[SCN_LINK_NAME_MAX]);
// "node0.hca-leaf0.ib"; the name of a node or switch ends at a dot. Of several cables with the same ends, the second one
// is "leaf0.ib-spine0.ib#2".
void scn_ib_cable_name(const struct scn_scenario *scenario, uint32_t index, char name[SCN_LINK_NAME_MAX]);

// All slots of a node: "node0.slot" is the board's, "node0.gpu1.slot" and "node0.hca.slot" are those of other devices.
typedef void (*scn_link_visit_fn)(void *ctx, const struct scn_named_link *link);
void scn_slots_visit(const struct scn_scenario *scenario, uint32_t node, scn_link_visit_fn visit, void *ctx);
// Slots, cables, InfiniBand cables.
void scn_links_visit(const struct scn_scenario *scenario, scn_link_visit_fn visit, void *ctx);
