// The faults of a scenario: failures of cables and devices while programs run, once in every series. Their times are counted from
// the instant at which the boards of all nodes are booted and the programs start.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define SCN_NOT_GIVEN UINT64_MAX

enum scn_port { SCN_PORT_N, SCN_PORT_E, SCN_PORT_W, SCN_PORT_S };

// Pulled: the link goes down in both directions at once, and stays down unless for_ps is given. Unpinned: the pages of a
// GPU's memory leave its window. Reset: a board or an HCA begins anew, and its links are down for for_ps.
enum scn_fault_kind { SCN_FAULT_PULL, SCN_FAULT_UNPIN, SCN_FAULT_RESET };

// What fails in a node; GPUs are the last ones, gpu0 first.
enum scn_fault_device {
    SCN_FAULT_NO_DEVICE,
    SCN_FAULT_BOARD,
    SCN_FAULT_HCA,
    SCN_FAULT_GPU0,
    SCN_FAULT_GPU1,
    SCN_FAULT_GPU2,
    SCN_FAULT_GPU3
};

struct scn_fault_ends {
    bool given;
    uint32_t from_node, to_node; // as written; the cable may name them the other way round
    enum scn_port from_port, to_port;
};

// Of an InfiniBand cable: nodes or switches.
struct scn_fault_ib_ends {
    bool given;
    uint32_t from_node, to_node;
};

struct scn_fault {
    enum scn_fault_kind kind;
    struct scn_fault_ends ends; // of PULL, either these or ib_ends are given
    struct scn_fault_ib_ends ib_ends;
    uint32_t cable; // index into cables, or ib_cables
    uint32_t node;  // of the other kinds, with the device; SCN_NODE_NONE: not given
    enum scn_fault_device device;
    uint64_t at_ps;      // either this or after_tlps is SCN_NOT_GIVEN
    uint64_t after_tlps; // sent over the cable, both directions together, without replays
    uint64_t for_ps;     // until the cable is put back and its link is trained; SCN_NOT_GIVEN: never
};
