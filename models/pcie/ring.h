// A growing first-in first-out queue of fixed-size slots; it allocates memory only to grow.
//
// A pointer to a slot is valid until the next push. For models/pcie and the devices behind its links.
#pragma once

#include <stdint.h>

struct pcie_ring {
    uint8_t *slots;
    uint32_t slot_bytes;
    uint32_t capacity; // a power of two
    uint32_t head;
    uint32_t count;
};

void pcie_ring_init(struct pcie_ring *ring, uint32_t slot_bytes);
void pcie_ring_fini(struct pcie_ring *ring);
void pcie_ring_grow(struct pcie_ring *ring);

// index 0 is the oldest; the caller keeps index below count.
static inline void *pcie_ring_at(const struct pcie_ring *ring, uint32_t index)
{
    return ring->slots + (uint64_t)((ring->head + index) & (ring->capacity - 1)) * ring->slot_bytes;
}

static inline void *pcie_ring_front(const struct pcie_ring *ring)
{
    return pcie_ring_at(ring, 0);
}

// The new slot, not initialised.
static inline void *pcie_ring_push(struct pcie_ring *ring)
{
    if (ring->count == ring->capacity) {
        pcie_ring_grow(ring);
    }
    return pcie_ring_at(ring, ring->count++);
}

static inline void pcie_ring_pop(struct pcie_ring *ring)
{
    ring->head = (ring->head + 1) & (ring->capacity - 1);
    ring->count--;
}
