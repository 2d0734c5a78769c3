#include "models/pcie/egress.h"

#include <string.h>

enum { SLOT_BYTES_MAX = 128 };

void pcie_egress_init(struct pcie_egress *egress, sim_t *sim, const char *name, uint32_t slot_bytes,
                      const struct pcie_egress_ops *ops, void *ctx)
{
    if (slot_bytes < sizeof(struct pcie_leaving) || slot_bytes > SLOT_BYTES_MAX) {
        sim_panic(name, "slots of %u bytes wait to leave", slot_bytes);
    }
    *egress = (struct pcie_egress){.sim = sim, .name = name, .ops = ops, .ctx = ctx};
    for (unsigned class = 0; class < PCIE_CLASS_COUNT; class ++) {
        pcie_ring_init(&egress->classes[class], slot_bytes);
    }
    pcie_ring_init(&egress->unordered, slot_bytes);
}

static void ring_drop(struct pcie_egress *egress, struct pcie_ring *ring)
{
    for (; ring->count > 0; pcie_ring_pop(ring)) {
        const struct pcie_leaving *slot = pcie_ring_front(ring);
        if (egress->ops->dropped != NULL) {
            egress->ops->dropped(egress->ctx, slot);
        }
        pcie_tlp_unref(slot->tlp);
    }
    pcie_ring_fini(ring);
}

void pcie_egress_fini(struct pcie_egress *egress)
{
    for (unsigned class = 0; class < PCIE_CLASS_COUNT; class ++) {
        ring_drop(egress, &egress->classes[class]);
    }
    ring_drop(egress, &egress->unordered);
}

static void push(struct pcie_egress *egress, struct pcie_ring *ring, const void *slot)
{
    struct pcie_leaving *leaving = pcie_ring_push(ring);
    memcpy(leaving, slot, ring->slot_bytes);
    leaving->begun_ps = 0;
    leaving->order = egress->order++;
    leaving->cause = egress->ops->passage != NULL ? sim_cause_now(egress->sim) : 0;
}

// Offers a TLP to the link. false: there is no room.
static bool offer(struct pcie_egress *egress, pcie_tlp_t *tlp, uint64_t begun_ps, sim_cause_t came)
{
    const struct sim_work *passage = egress->ops->passage;
    if (passage == NULL) {
        return pcie_end_offer_begun(egress->end, tlp, begun_ps);
    }
    sim_cause_t cause = sim_cause_now(egress->sim);
    sim_cause_follow(egress->sim, came, egress->name, passage);
    bool taken = pcie_end_offer_begun(egress->end, tlp, begun_ps);
    sim_cause_arrive(egress->sim, cause);
    return taken;
}

// Sends the oldest TLP of the ring. false: there is no room.
static bool leave(struct pcie_egress *egress, struct pcie_ring *ring)
{
    const struct pcie_leaving *front = pcie_ring_front(ring);
    if (!offer(egress, front->tlp, sim_now_ps(egress->sim), front->cause)) {
        return false;
    }
    if (egress->ops->sent == NULL) {
        pcie_ring_pop(ring);
        return true;
    }
    _Alignas(16) unsigned char sent[SLOT_BYTES_MAX]; // the owner may push when notified
    memcpy(sent, front, ring->slot_bytes);
    pcie_ring_pop(ring);
    egress->ops->sent(egress->ctx, sent);
    return true;
}

// Sends as many TLPs of each class as possible, or only one TLP; posted writes first, as nothing may pass them.
static uint64_t pump_in_order(struct pcie_egress *egress, bool one, bool *moved_out)
{
    uint64_t now_ps = sim_now_ps(egress->sim), barrier = UINT64_MAX, next_ps = SIM_NEVER_PS;
    *moved_out = false;
    for (enum pcie_class class = PCIE_POSTED; class < PCIE_CLASS_COUNT && !(one && *moved_out); class ++) {
        struct pcie_ring *ring = &egress->classes[class];
        while (ring->count > 0 && !(one && *moved_out)) {
            const struct pcie_leaving *front = pcie_ring_front(ring);
            if (front->order > barrier) {
                break;
            }
            if (front->ready_ps > now_ps) {
                next_ps = front->ready_ps < next_ps ? front->ready_ps : next_ps;
                break;
            }
            if (!leave(egress, ring)) {
                break;
            }
            *moved_out = true;
        }
        if (class == PCIE_POSTED && ring->count > 0) {
            barrier = ((const struct pcie_leaving *)pcie_ring_front(ring))->order;
        }
    }
    return next_ps;
}

// If nothing is ahead of it, the TLP bypasses the rings.
uint64_t pcie_egress_send(struct pcie_egress *egress, const void *slot)
{
    const struct pcie_leaving *leaving = slot;
    uint64_t now_ps = sim_now_ps(egress->sim);
    struct pcie_ring *ring = &egress->classes[pcie_tlp_class(leaving->tlp)];
    bool first = ring->count == 0 && egress->classes[PCIE_POSTED].count == 0 && egress->unordered.count == 0;
    if (first && leaving->ready_ps <= now_ps && egress->end != NULL &&
        offer(egress, leaving->tlp, leaving->begun_ps != 0 ? leaving->begun_ps : now_ps, sim_cause_now(egress->sim))) {
        if (egress->ops->sent != NULL) {
            egress->ops->sent(egress->ctx, slot);
        }
        return SIM_NEVER_PS;
    }
    push(egress, ring, slot);
    return pcie_egress_pump(egress);
}

uint64_t pcie_egress_send_unordered(struct pcie_egress *egress, const void *slot)
{
    push(egress, &egress->unordered, slot);
    return pcie_egress_pump(egress);
}

uint64_t pcie_egress_pump(struct pcie_egress *egress)
{
    bool moved = egress->end != NULL;
    while (moved && egress->unordered.count > 0) {
        bool left = leave(egress, &egress->unordered);
        (void)pump_in_order(egress, true, &moved);
        moved = moved || left;
    }
    return egress->end != NULL ? pump_in_order(egress, false, &moved) : SIM_NEVER_PS;
}
