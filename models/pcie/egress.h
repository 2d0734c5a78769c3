// What waits to leave through one end of a link: part of every endpoint and of each root port.
//
// Models clause 2.4.1 of the PCI Express Base Specification 3.0 up to the link, which goes on from there (link.h):
// nothing passes a posted write that came before it; non-posted requests and completions pass each other, and posted
// writes pass both. TLPs of one class stay in order. A TLP may have to wait for a time before it may be offered.
// Requests that need no order with anything (relaxed ordering) wait beside the others, and take turns with them.
//
// A waiting TLP is a slot: a struct of the owner's whose first member is struct pcie_leaving.
#pragma once

#include "models/pcie/link.h"
#include "models/pcie/ring.h"
#include "sim/kernel/cause.h"

struct pcie_leaving {
    pcie_tlp_t *tlp;
    uint64_t ready_ps; // it is not offered before
    uint64_t begun_ps; // of pcie_end_offer_begun, where the link takes it at once; 0: now
    // filled in by the egress
    uint64_t order;
    sim_cause_t cause; // of its coming here
};

struct pcie_egress_ops {
    // The link has taken the TLP of the slot, which may be gone already. May be NULL.
    void (*sent)(void *ctx, const void *slot);
    // The egress ends with the slot in it; the egress gives the TLP back. May be NULL.
    void (*dropped)(void *ctx, const void *slot);
    // What the TLP's way is called in a breakdown; NULL: it is none of its own.
    const struct sim_work *passage;
};

struct pcie_egress {
    sim_t *sim;
    const char *name; // the owner's
    pcie_end_t *end;  // NULL: not connected, all wait
    const struct pcie_egress_ops *ops;
    void *ctx;
    struct pcie_ring classes[PCIE_CLASS_COUNT], unordered;
    uint64_t order;
};

// ops and name must stay valid. end is set by the owner.
void pcie_egress_init(struct pcie_egress *egress, sim_t *sim, const char *name, uint32_t slot_bytes,
                      const struct pcie_egress_ops *ops, void *ctx);
void pcie_egress_fini(struct pcie_egress *egress);

// A TLP leaves, or waits: takes its reference and copies the slot. Returns as pcie_egress_pump.
uint64_t pcie_egress_send(struct pcie_egress *egress, const void *slot);
uint64_t pcie_egress_send_unordered(struct pcie_egress *egress, const void *slot);
// Offers what may go until the link has no room, or nothing is ready. Returns when something will be ready that is not
// yet: the owner calls again then, and when the link has room again. SIM_NEVER_PS: nothing new waits for a time.
uint64_t pcie_egress_pump(struct pcie_egress *egress);
static inline uint32_t pcie_egress_count(const struct pcie_egress *egress, enum pcie_class class)
{
    return egress->classes[class].count;
}
