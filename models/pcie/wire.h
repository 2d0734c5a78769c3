// One direction of a link as a resource: how long bytes take, and when the wire is free again. Internal to models/pcie.
//
// Positions on the wire are kept in ticks, fractions of a picosecond: the duration of a byte at any generation and width
// is a whole number of these, so a long run accumulates no rounding. They count from an origin that moves with time,
// because 64 bits of them are only ten hours.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct pcie_wire {
    uint64_t byte_ticks;
    uint64_t symbol_ticks; // a byte on one lane
    uint64_t origin_ps;
    uint64_t free_ticks; // when the last symbol sent so far has left
    uint64_t skp_ticks;  // when the next SKP ordered set is due
};

bool pcie_wire_valid(uint32_t generation, uint32_t lanes);
void pcie_wire_init(struct pcie_wire *wire, uint32_t generation, uint32_t lanes, uint64_t now_ps);
uint64_t pcie_wire_free_ps(const struct pcie_wire *wire);
// Sends bytes from now on, or from the end of the packet or SKP ordered set on the wire. Returns when the last symbol
// has left, rounded up.
uint64_t pcie_wire_send(struct pcie_wire *wire, uint64_t now_ps, uint64_t bytes);
