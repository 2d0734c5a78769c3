// TLPs that wait to leave through one end of a link: part of every endpoint and of each root port.
//
// Models clause 2.4.1 of the PCI Express Base Specification 3.0 up to the link, which continues it (link.h): nothing
// passes an earlier posted write; non-posted requests and completions pass each other, and posted writes pass both.
// TLPs of one class stay in order. A TLP may have a time before which it may not be offered. Requests that need no
// ordering (relaxed ordering) wait in a queue of their own and take turns with the others.
//
// A waiting TLP is a slot: a struct of the owner whose first member is struct pcie_leaving.
#pragma once

#include "models/pcie/link.h"
#include "models/pcie/ring.h"
#include "sim/kernel/cause.h"

struct pcie_leaving {
    pcie_tlp_t *tlp;
    uint64_t ready_ps; // not offered before this time
    uint64_t begun_ps; // for pcie_end_offer_begun, if the link takes the TLP at once; 0: now
    // filled in by the egress
    uint64_t order;
    sim_cause_t cause; // of its arrival here
};

struct pcie_egress_ops {
    // The link has taken the TLP of the slot, which may no longer exist. May be NULL.
    void (*sent)(void *ctx, const void *slot);
    // The egress is destroyed with the slot in it; the egress releases the TLP. May be NULL.
    void (*dropped)(void *ctx, const void *slot);
    // The name of a TLP's time in the egress in a breakdown; NULL: a breakdown does not show it.
    const struct sim_work *passage;
};

struct pcie_egress {
    sim_t *sim;
    const char *name; // of the owner
    pcie_end_t *end;  // NULL: not connected, all TLPs wait
    const struct pcie_egress_ops *ops;
    void *ctx;
    struct pcie_ring classes[PCIE_CLASS_COUNT], unordered;
    uint64_t order;
};

// ops and name must stay valid. end is set by the owner.
void pcie_egress_init(struct pcie_egress *egress, sim_t *sim, const char *name, uint32_t slot_bytes,
                      const struct pcie_egress_ops *ops, void *ctx);
void pcie_egress_fini(struct pcie_egress *egress);

// Sends a TLP, or queues it: takes the caller's reference and copies the slot. Returns the same as pcie_egress_pump.
uint64_t pcie_egress_send(struct pcie_egress *egress, const void *slot);
uint64_t pcie_egress_send_unordered(struct pcie_egress *egress, const void *slot);
// Offers TLPs until the link has no room or no TLP is ready. Returns when the next TLP becomes ready: the owner calls
// again then, and when the link has room again. SIM_NEVER_PS: no TLP waits for a time.
uint64_t pcie_egress_pump(struct pcie_egress *egress);
static inline uint32_t pcie_egress_count(const struct pcie_egress *egress, enum pcie_class class)
{
    return egress->classes[class].count;
}
