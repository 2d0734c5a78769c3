// Management datagrams (MADs; IBA 1.2.1, chapters 13 to 16): what the agents of a port and the subnet's manager answer.
//
//   subnet management   GET of NodeDescription, NodeInfo, GUIDInfo, PortInfo, P_KeyTable, SMInfo; by LID, or directed to the own port
//   performance         GET of ClassPortInfo, PortCounters, PortCountersExtended
//   administration      GET of ClassPortInfo and PathRecord; SET, GET and DELETE of MCMemberRecord
//
// A group exists as soon as somebody joins it, and its LID is that of hca_group_lid; whom its packets reach follows from the
// queue pairs that are attached, not from joins. Everything else is answered with a status.
//
// The manager has the LID HCA_MANAGER_LID also if no adapter has it (the first node has none, or no cable).
//
// Leaves out: the time that a datagram takes, directed routes over several hops, switches, changes of ports and counters by
// SET, traps, and tables of records (RMPP).
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct hca;

enum { HCA_MAD_BYTES = 256 };

struct hca_subnet {
    unsigned nodes;
    struct hca *(*adapter)(void *ctx, unsigned node, const char **name_out); // NULL: the node has none
    void *ctx;
};

// Answers a datagram that the adapter of this node sends to that LID, in place. false: nobody answers.
bool hca_mad_answer(const struct hca_subnet *subnet, unsigned node, uint16_t lid, uint8_t mad[HCA_MAD_BYTES]);
